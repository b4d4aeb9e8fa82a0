/* tests/models/test_hf_t5.c - folders of T5's families: invalid ones are refused, each with its
 * message; settings become a model's configuration, and are exported again.
 *
 * Values of transformers are compared in test_hf.c and by hf_t5_peer.py. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include "core/graph_internal.h"
#include "hf_files.h"
#include "hf_wall.h"
#include "models/model_io.h"
#include "tests/suites.h"
#include "tests/support/models.h"

TESTS(hf_t5)

SETUP(make_folder, remove_folder)

enum { SPM = 3, JSON = 4 };
static const char *const files[] = { "config.json",       "generation_config.json",
                                     "model.safetensors", "spiece.model",
                                     "tokenizer.json",    "tokenizer_config.json" };

/* Copies a recorded folder, with the first `from` in `file` replaced by `to`; from NULL: without
 * that file. */
static void copy_but(const char *of, const char *file, const char *from, const char *to) {
    const char *other = strcmp(of, "t5") == 0 ? files[JSON] : files[SPM];
    for (int i = 0; i < COUNT_OF(files); i++) {
        if (files[i] == other) continue;
        if (strcmp(files[i], file) != 0)
            copy_changed_of(of, files[i], NULL, NULL);
        else if (from)
            copy_changed_of(of, file, from, to);
    }
}

/* ---- refused --------------------------------------------------------------------------------- */

static const struct {
    const char *of, *file, *from, *to, *sentence;
} broken[] = {
    { "t5", "config.json", "\"d_kv\": 3,", "", "'d_kv' is missing, and nothing is guessed" },
    { "t5", "config.json", "\"d_kv\": 3", "\"d_kv\": 4", "q.weight'" },
    { "t5", "config.json", "\"d_kv\": 3", "\"d_kv\": 0", "'d_kv' is 0" },
    { "t5", "config.json", "\"num_heads\": 2", "\"num_heads\": 0", "the number of heads is 0" },
    { "t5", "config.json", "\"num_heads\": 2", "\"num_heads\": 2, \"head_dim\": 5",
      "'head_dim' is 5 but 'd_kv' is 3" },
    { "t5", "config.json", "\"num_layers\": 2", "\"num_layers\": 3", "is missing" },
    { "t5", "config.json", "\"num_layers\": 2", "\"num_layers\": 1", "is in the weights but not" },
    { "t5", "config.json", "num_buckets\": 8", "num_buckets\": 9",
      "is [8,2] in the file, not [9,2]" },
    { "t5", "config.json", "num_buckets\": 8", "num_buckets\": 3", "buckets do not divide" },
    { "t5", "config.json", "max_distance\": 10", "max_distance\": 2", "buckets do not divide" },
    { "t5", "config.json", "max_distance\": 10", "max_distance\": 2000000",
      "buckets do not divide" },
    { "t5", "config.json", "proj\": \"relu\"", "proj\": \"gated-relu\"",
      "what 'feed_forward_proj' says" },
    { "t5", "config.json", "proj\": \"relu\"", "proj\": \"relu6\"", "relu, gated-gelu or another" },
    { "t5", "config.json", "proj\": \"relu\"", "proj\": 7", "relu, gated-gelu or another" },
    { "t5", "config.json", "dense_act_fn\": \"relu\"", "dense_act_fn\": \"silu\"",
      "'dense_act_fn' is \"silu\", not what 'feed_forward_proj' says" },
    { "flan-own", "config.json", "is_gated_act\": true", "is_gated_act\": false",
      "'is_gated_act' is false, not what 'feed_forward_proj' says" },
    { "t5", "config.json", "is_encoder_decoder\": true", "is_encoder_decoder\": false",
      "not true" },
    { "t5", "config.json", "T5ForConditionalGeneration", "T5EncoderModel",
      "not T5ForConditionalGeneration" },
    { "t5", "config.json", "\"dropout_rate\"", "\"dropout_kind\"", "'dropout_kind' is not known" },
    { "t5", "config.json", "layer_norm_epsilon\": 1e-06", "layer_norm_epsilon\": 0", "eps is 0" },
    { "t5", "config.json", "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false",
      "'lm_head.weight' is missing" },
    { "t5", "config.json", "\"model_type\": \"t5\"", "\"model_type\": \"mt5\"", "not MT5For" },
    { "t5", "model.safetensors", "shared.weight", "chared.weight", "shared.weight' is missing" },
    { "t5", "model.safetensors", "final_layer_norm", "final_layer_nirm", "is missing" },
    { "t5", "spiece.model", "\x0a", "\x07", "spiece.model: not a SentencePiece model" },
    { "t5", "tokenizer_config.json", "\"extra_ids\": 5", "\"extra_ids\": -5",
      "'extra_ids' is not" },
    { "flan-own", "tokenizer.json", "\"Unigram\"", "\"Bigram\"", "tokenizer.json:" },
    { "t5", "config.json", "\"eos_token_id\": 1", "\"eos_token_id\": 900",
      "'eos_token_id' is 1, but 900 in config.json" },
};

TEST_ROWS(a_broken_folder_is_one_sentence, COUNT_OF(broken)) {
    char message[WF_MESSAGE] = "";
    wf_hf hf;
    copy_but(broken[_i].of, broken[_i].file, broken[_i].from, broken[_i].to);
    ck_assert(!wf_hf_import(folder, &hf, message));
    assert_contains(message, broken[_i].sentence);
    wf_hf_free(&hf);
}

/* ---- read ------------------------------------------------------------------------------------ */

static const wf_transformer_config *config_of(const wf_hf *hf) {
    return &wf_transformer_of(hf->model)->config;
}

/* Changes of settings, and the configuration that they give. */
static const struct {
    const char *of, *from, *to;
    wf_tie tie;
    bool scaled, gated;
    wf_activation activation;
} said[] = {
    { "t5", "\"d_kv\"", "\"d_kv\"", WF_TIE_ALL, true, false, WF_RELU },
    { "t5", "\"scale_decoder_outputs\": true", "\"scale_decoder_outputs\": false", WF_TIE_ALL,
      false, false, WF_RELU },
    { "t5", "\"scale_decoder_outputs\": true,", "", WF_TIE_ALL, true, false, WF_RELU },
    { "t5", "\"T5ForConditionalGeneration\"", "\"T5WithLMHeadModel\"", WF_TIE_ALL, true, false,
      WF_RELU },
    { "t5", "\"num_decoder_layers\": 2,", "", WF_TIE_ALL, true, false, WF_RELU },
    { "t5", "\"num_decoder_layers\": 2", "\"n_positions\": 512", WF_TIE_ALL, true, false, WF_RELU },
    { "t5", "\"feed_forward_proj\": \"relu\",", "", WF_TIE_ALL, true, false, WF_RELU },
    { "flan-own", "\"d_kv\"", "\"d_kv\"", WF_TIE_INPUTS, false, true, WF_GELU_TANH },
    { "flan-own", "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false", WF_TIE_INPUTS,
      false, true, WF_GELU_TANH },
};

TEST_ROWS(settings_mean_what_they_mean_there, COUNT_OF(said)) {
    copy_but(said[_i].of, "config.json", said[_i].from, said[_i].to);
    wf_hf hf = import(folder);
    const wf_transformer_config *c = config_of(&hf);
    ck_assert(c->tie == said[_i].tie && c->scale_output == said[_i].scaled &&
              c->gated == said[_i].gated && c->activation == said[_i].activation);
    ck_assert(c->head_dim == 3 && c->attention_scale == 1 && c->norm == WF_RMS_NORM && !c->bias &&
              c->decoder_layers == 2 && !c->relative_per_layer && c->layer_norm_eps == 1e-6);
    wf_hf_free(&hf);
}

TEST(a_folder_without_a_tokenizer_is_of_ids) {
    copy_but("t5", "spiece.model", NULL, NULL);
    wf_hf hf = import(folder);
    ck_assert(!hf.src && !hf.tgt);
    assert_contains(hf.notes, "there is no tokenizer.json and no spiece.model");
    wf_hf_free(&hf);
}

/* ---- written --------------------------------------------------------------------------------- */

TEST(only_what_a_t5_can_say_is_written) {
    char message[WF_MESSAGE] = "";
    wf_hf hf = import(recorded("umt5", (char[512]){ 0 }));
    ck_assert(config_of(&hf)->relative_per_layer);
    ck_assert_msg(wf_hf_export(&hf, folder, &whole_files, message), "%s", message);
    wf_transformer_config c = *config_of(&hf);
    wf_hf_free(&hf);
    c.activation = WF_GELU;
    hf = (wf_hf){ .model = open_model(&c, NULL, WF_F32, 1),
                  .generation.options = wf_decode_defaults() };
    ck_assert(!wf_hf_export(&hf, folder, &whole_files, message));
    assert_contains(message, "transformers has no activation 'gelu'");
    wf_hf_free(&hf);
    c.activation = WF_RELU;
    c.attention_scale = 0;
    hf = (wf_hf){ .model = open_model(&c, NULL, WF_F32, 1),
                  .generation.options = wf_decode_defaults() };
    ck_assert(!wf_hf_export(&hf, folder, &whole_files, message));
    assert_contains(message, "no family of marian");
    wf_hf_free(&hf);
}

/* PEFT adapts the output's matrix, too. An adapter of the packed matrix of q, k and v becomes three
 * adapters there. */
TEST(adapters_of_the_output_go_to_peft_and_back) {
    char message[WF_MESSAGE] = "", base[512], adapters[512];
    const wf_training_config training = { .adapters = { 2, 0, "in_proj,output" } };
    int of_output = 0;
    wf_hf hf = import(recorded("flan-own", base));
    wf_model *m = wf_transformer_new(config_of(&hf), &training, WF_F32, 7, message);
    ck_assert_msg(m && wf_ok(m->graph), "%s", m ? wf_error(m->graph) : message);
    ck_assert_msg(wf_hf_export_adapters(m, folder, &whole_files, message), "%s", message);
    place(adapters, folder, "adapter_model.safetensors");
    wf_file *f = wf_file_open(adapters);
    entry(f, "base_model.model.lm_head.lora_A.weight");
    entry(f, "base_model.model.lm_head.lora_B.weight");
    wf_file_free(f);

    place(base, folder, "base.safetensors");
    ck_assert_msg(wf_model_save(hf.model, base, NULL, NULL, 0, message), "%s", message);
    f = wf_file_open(base);
    wf_model *again = wf_hf_import_adapters(folder, f, message);
    ck_assert_msg(again, "%s", message);
    for (int id = 0; id < wf_node_count(m->graph); id++) {
        const wf_tensor *t = wf_node(m->graph, id);
        if (t->kind != WF_PARAM || !wf_from_hook(t) || strncmp(t->name, "output.", 7) != 0)
            continue;
        double *x = leaf_values(t), *y = leaf_values(wf_find(again->graph, t->name));
        ck_assert(memcmp(x, y, (size_t)wf_count(t) * sizeof *x) == 0);
        of_output++;
        free(x), free(y);
    }
    ck_assert_int_eq(of_output, 2);
    wf_file_free(f);
    wf_model_free(m), wf_model_free(again);
    wf_hf_free(&hf);
}
