/* tests/models/test_hf_lm.c - folders of Hugging Face with language models: small models that
 * record_hf_lm.py recorded compute what transformers computed; invalid folders are refused, each
 * with its message.
 *
 * Continuations of 1,000 prompts by larger models are compared by hf_lm_peer.py, which needs
 * transformers. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include "hf_files.h"
#include "hf_wall.h"
#include "models/language_model.h"
#include "models/text_internal.h"
#include "tests/suites.h"

TESTS(hf_lm)

SETUP(make_folder, remove_folder)

static const char *const names[] = { "lm_gpt2",    "lm_llama", "lm_linear",
                                     "lm_mistral", "lm_qwen2", "lm_qwen3",
                                     "lm_bigcode", "lm_gemma", "lm_starcoder2" };
enum { NEW = 10 };

static wf_file *values_of(const char *path) {
    char file[512];
    place(file, path, "values.safetensors");
    wf_file *f = wf_file_open(file);
    ck_assert_msg(wf_file_ok(f), "%s", wf_file_error(f));
    return f;
}

static wf_decode_options greedy(void) {
    wf_decode_options o = wf_decode_defaults();
    o.beam = 1;
    o.max_len_a = 0;
    o.max_len_b = NEW;
    o.at_limit = WF_LIMIT_NO_END;
    return o;
}

/* ---- what transformers computed -------------------------------------------------------------- */

TEST_ROWS(scores_are_those_of_transformers, COUNT_OF(names)) {
    char path[512], message[WF_MESSAGE];
    wf_hf hf = import(recorded(names[_i], path));
    wf_file *f = values_of(path);
    wf_decoder *d = wf_decoder_new(hf.model, NULL, message);
    const wf_entry *src = entry(f, "src"), *tgt = entry(f, "tgt");
    int b = (int)src->shape[0], t = (int)tgt->shape[1];
    double *p = calloc((size_t)b * (size_t)(t + 1), sizeof *p);
    const double *want = entry(f, "log_probs")->data;
    ck_assert_int_eq(entry(f, "log_probs")->shape[1], t + 1);
    ck_assert_msg(wf_score(d, b, (int)src->shape[1], src->data, ids_in(f, "src_length"), t,
                           tgt->data, ids_in(f, "tgt_length"), p, NULL),
                  "%s", wf_decoder_error(d));
    for (int i = 0; i < b * (t + 1); i++) ck_assert_double_eq_tol(p[i], want[i], 2e-5);
    free(p);
    wf_decoder_free(d), wf_file_free(f), wf_hf_free(&hf);
}

TEST_ROWS(prompts_go_on_as_in_transformers, COUNT_OF(names)) {
    char path[512], message[WF_MESSAGE];
    wf_hf hf = import(recorded(names[_i], path));
    wf_file *f = values_of(path);
    wf_decoder *d = wf_decoder_new(hf.model, NULL, message);
    const wf_entry *src = entry(f, "src"), *found = entry(f, "greedy");
    const wf_decode_options o = greedy();
    int b = (int)src->shape[0], width = (int)found->shape[1];
    wf_decoded *results = calloc((size_t)b, sizeof *results);
    ck_assert_msg(
        wf_decode(d, b, (int)src->shape[1], src->data, ids_in(f, "src_length"), NULL, &o, results),
        "%s", wf_decoder_error(d));
    for (int i = 0; i < b; i++) {
        const wf_hypothesis *h = &results[i].best[0];
        int other = other_token(h, (const int32_t *)found->data + i * width, width);
        ck_assert_msg(other < 0, "prompt %d: token %d is another", i, other);
    }
    wf_decoded_free(results, b);
    free(results);
    wf_decoder_free(d), wf_file_free(f), wf_hf_free(&hf);
}

/* ---- text ------------------------------------------------------------------------------------ */

/* Asserts that the greedy continuation of the ids is this text. */
static void assert_goes_on(wf_hf *hf, wf_decoder *d, const int32_t *ids, int n, const char *want) {
    char text[512];
    int32_t length = n;
    wf_decoded result;
    const wf_decode_options o = greedy();
    ck_assert_msg(wf_decode(d, 1, n, ids, &length, NULL, &o, &result), "%s", wf_decoder_error(d));
    const wf_hypothesis *h = &result.best[0];
    int64_t bytes = wf_tokenizer_decode(hf->tgt, h->tokens, h->length, text, sizeof text);
    ck_assert_int_lt(bytes, sizeof text);
    /* control characters are recorded as spaces */
    for (int64_t i = 0; i < bytes; i++)
        if (text[i] >= 0 && text[i] < ' ') text[i] = ' ';
    ck_assert_int_eq(bytes, strcspn(want, "\n"));
    ck_assert_msg(memcmp(text, want, (size_t)bytes) == 0, "'%s'", text);
    wf_decoded_free(&result, 1);
}

TEST_ROWS(lines_go_on_as_in_transformers, COUNT_OF(names)) {
    char path[512], file[512], message[WF_MESSAGE];
    size_t bytes;
    wf_hf hf = import(recorded(names[_i], path));
    place(file, path, "lines.txt");
    char *lines = read_whole(file, &bytes), *line = lines;
    place(file, path, "texts.txt");
    char *texts = read_whole(file, &bytes), *text = texts;
    wf_file *f = values_of(path);
    wf_decoder *d = wf_decoder_new(hf.model, NULL, message);
    const wf_entry *e = entry(f, "lines");
    ck_assert(hf.src && hf.src == hf.tgt && !*hf.notes);
    for (int i = 0; i < e->shape[0]; i++) {
        const int32_t *want = (const int32_t *)e->data + i * e->shape[1];
        int32_t ids[64];
        int64_t n = wf_tokenizer_encode(hf.src, line, strcspn(line, "\n"), ids, 64, message);
        for (int k = 0; k < e->shape[1]; k++)
            ck_assert_msg(k < n ? ids[k] == want[k] : want[k] < 0, "line %d, id %d", i, k);
        assert_goes_on(&hf, d, ids, (int)n, text);
        line += strcspn(line, "\n") + 1;
        text += strcspn(text, "\n") + 1;
    }
    free(lines), free(texts);
    wf_decoder_free(d), wf_file_free(f), wf_hf_free(&hf);
}

/* ---- a model's file -------------------------------------------------------------------------- */

/* The configuration and the tokenizer are saved in a model's file, and loaded from it. */
TEST_ROWS(a_file_has_all_of_it, COUNT_OF(names)) {
    char path[512], message[WF_MESSAGE];
    wf_meta meta[WF_TOKENIZER_META];
    int n = 0;
    wf_hf hf = import(recorded(names[_i], path));
    ck_assert(wf_tokenizer_to_meta(hf.src, "tokenizer", meta, &n, message));
    place(path, folder, "model.safetensors");
    ck_assert_msg(wf_model_save(hf.model, path, NULL, meta, n, message), "%s", message);
    wf_file *f = wf_file_open(path);
    wf_model *again = wf_model_load(f, NULL, WF_F32, 0, message);
    ck_assert_msg(again != NULL, "%s", message);
    const wf_language_model_config *a = &wf_language_model_of(hf.model)->config;
    const wf_language_model_config *b = &wf_language_model_of(again)->config;
    ck_assert(a->start_if_empty && b->start_if_empty && a->head_dim == b->head_dim);
    ck_assert(a->qkv_bias == b->qkv_bias && a->out_bias == b->out_bias && a->qk_norm == b->qk_norm);
    ck_assert(a->window == b->window && a->rotary_base == b->rotary_base);
    ck_assert(a->rotary_scaling.kind == b->rotary_scaling.kind);
    ck_assert(a->rotary_scaling.factor == b->rotary_scaling.factor);
    ck_assert(a->rotary_scaling.original == b->rotary_scaling.original);
    wf_tokenizer *t = wf_tokenizer_from_meta(f, "tokenizer", message);
    ck_assert_msg(t != NULL, "%s", message);
    assert_same_tokenizer(hf.src, t);
    wf_tokenizer_free(t), wf_model_free(again), wf_file_free(f), wf_hf_free(&hf);
}

/* A prompt without tokens gives the output of the start token alone, in any batch. */
TEST(no_prompt_is_the_start_alone) {
    char path[512], message[WF_MESSAGE];
    wf_hf hf = import(recorded("lm_llama", path));
    wf_decoder *d = wf_decoder_new(hf.model, NULL, message);
    const wf_decode_options o = greedy();
    int32_t start = hf.model->start_id, src[] = { 5, 6, 7, start, 0, 0, 0, 0, 0 };
    int32_t lengths[] = { 3, 1, 0 };
    wf_decoded r[3];
    ck_assert_msg(wf_decode(d, 3, 3, src, lengths, NULL, &o, r), "%s", wf_decoder_error(d));
    ck_assert_int_eq(r[1].best->length, r[2].best->length);
    ck_assert(memcmp(r[1].best->tokens, r[2].best->tokens,
                     (size_t)r[1].best->length * sizeof(int32_t)) == 0);
    ck_assert(memcmp(&r[1].best->total, &r[2].best->total, sizeof(double)) == 0);
    wf_decoded_free(r, 3);
    ck_assert_int_eq(wf_model_longest_source(hf.model), hf.model->max_len);
    ck_assert_int_eq(wf_model_room(hf.model, hf.model->max_len), 0);
    wf_decoder_free(d), wf_hf_free(&hf);
}

/* ---- out and in ------------------------------------------------------------------------------ */

TEST_ROWS(what_is_written_is_read_again, COUNT_OF(names)) {
    char path[512], message[WF_MESSAGE] = "";
    wf_hf hf = import(recorded(names[_i], path));
    ck_assert_msg(wf_hf_export(&hf, folder, &whole_files, message), "%s", message);
    ck_assert_str_eq(hf.notes, "");
    wf_hf again = import(folder);
    assert_same(&hf, &again);
    wf_hf_free(&hf), wf_hf_free(&again);
}

/* Imports and exports while allocations fail: see test_hf.c. */
TEST_ROWS(every_failure_is_survived, 4 * 4) {
    static const char *const some[] = { "lm_gpt2", "lm_llama", "lm_qwen3", "lm_gemma" };
    survive_failures(some[_i / 4], _i % 4);
}

/* Models that weft makes, small ones. */
static wf_language_model_config tiny(bool llama) {
    wf_language_model_config c = wf_language_model_defaults(llama ? WF_LLAMA : WF_GPT2);
    c.vocab = 11;
    c.d_model = 12;
    c.num_heads = 2;
    c.num_kv_heads = llama ? 1 : 0;
    c.dim_feedforward = 10;
    c.layers = 1;
    c.max_len = 9;
    c.start_first = true;
    return c;
}

static wf_hf made(const wf_language_model_config *c) {
    char message[WF_MESSAGE] = "";
    wf_hf hf = { .generation.options = wf_decode_defaults() };
    hf.model = wf_language_model_new(c, NULL, WF_F32, 3, message);
    ck_assert_msg(hf.model != NULL, "%s", message);
    return hf;
}

/* Computes the log-probabilities of a row's tokens and of the end, without a prompt. wf_score puts
 * the start token before the row, also for imported models. */
static void scores_of(const wf_hf *hf, double p[5]) {
    const int32_t row[] = { 3, 9, 1, 7 }, n = 4, none = 0;
    wf_decoder *d = wf_decoder_new(hf->model, NULL, NULL);
    ck_assert_msg(wf_score(d, 1, 0, NULL, &none, 4, row, &n, p, NULL), "%s", wf_decoder_error(d));
    wf_decoder_free(d);
}

/* Models that weft makes are exported, and imported with the same bits of the scores. Scaled
 * embeddings and sinusoids are exported as tables of their values. */
TEST_ROWS(what_is_made_here_computes_the_same_there, 8) {
    char message[WF_MESSAGE] = "";
    double ours[5], theirs[5];
    wf_language_model_config c = tiny(_i & 1);
    c.scale_embedding = _i & 2;
    if (_i & 4 && !(_i & 1)) c.positions = WF_POSITIONS_SINUSOIDAL;
    if (_i & 4 && _i & 1) c.tied = true;
    wf_hf hf = made(&c);
    ck_assert_msg(wf_hf_export(&hf, folder, &whole_files, message), "%s", message);
    assert_contains(hf.notes, "the folder has no tokenizer");
    wf_hf again = import(folder);
    scores_of(&hf, ours);
    scores_of(&again, theirs);
    ck_assert(memcmp(ours, theirs, sizeof ours) == 0);
    wf_hf_free(&hf), wf_hf_free(&again);
}

/* Functions that change a configuration, so that its model belongs to another family than GPT-2 or
 * Llama. */
static void starcoder2(wf_language_model_config *c) {
    c->positions = WF_POSITIONS_ROTARY;
    c->num_kv_heads = 1;
    c->window = 3;
}
static void bigcode(wf_language_model_config *c) {
    c->num_kv_heads = 1;
}
static void gemma(wf_language_model_config *c) {
    c->activation = WF_GELU_TANH;
    c->scale_embedding = c->tied = true;
}

TEST_ROWS(forms_of_other_families_go_out_and_in, 3) {
    static const struct {
        bool llama;
        void (*change)(wf_language_model_config *c);
        const char *config;
    } rows[] = { { false, starcoder2, "\"model_type\": \"starcoder2\"" },
                 { false, bigcode, "\"model_type\": \"gpt_bigcode\"" },
                 { true, gemma, "\"model_type\": \"gemma\"" } };
    char message[WF_MESSAGE] = "", file[512];
    double ours[5], theirs[5];
    size_t bytes;
    wf_language_model_config c = tiny(rows[_i].llama);
    rows[_i].change(&c);
    wf_hf hf = made(&c);
    ck_assert_msg(wf_hf_export(&hf, folder, &whole_files, message), "%s", message);
    place(file, folder, "config.json");
    char *config = read_whole(file, &bytes);
    assert_contains(config, rows[_i].config);
    free(config);
    wf_hf again = import(folder);
    const wf_language_model_config *back = &wf_language_model_of(again.model)->config;
    ck_assert(back->scale_embedding == c.scale_embedding && back->tied == c.tied);
    ck_assert(back->num_kv_heads == c.num_kv_heads && back->window == c.window);
    scores_of(&hf, ours);
    scores_of(&again, theirs);
    ck_assert(memcmp(ours, theirs, sizeof ours) == 0);
    wf_hf_free(&hf), wf_hf_free(&again);
}

static void output_bias(wf_language_model_config *c) {
    c->output_bias = true;
}
static void post_norm(wf_language_model_config *c) {
    c->norm_first = false;
}
static void start_between(wf_language_model_config *c) {
    c->start_first = false;
}
static void no_bias(wf_language_model_config *c) {
    c->bias = false;
}
static void learned(wf_language_model_config *c) {
    c->positions = WF_POSITIONS_LEARNED;
}
static void out_bias(wf_language_model_config *c) {
    c->out_bias = true;
}

TEST(what_no_family_has_is_not_written) {
    static const struct {
        bool llama;
        void (*change)(wf_language_model_config *c);
        const char *sentence;
    } rows[] = {
        { false, output_bias, "its output has a bias" },
        { false, post_norm, "its norms are not those of transformers" },
        { false, start_between, "its start token stands between a prompt and its output" },
        { false, no_bias, "its form is neither that of GPT-2 nor that of Llama" },
        { true, learned, "its form is neither that of GPT-2 nor that of Llama" },
        { true, out_bias, "its form is neither that of GPT-2 nor that of Llama" },
    };
    for (int i = 0; i < COUNT_OF(rows); i++) {
        char message[WF_MESSAGE] = "";
        wf_language_model_config c = tiny(rows[i].llama);
        rows[i].change(&c);
        wf_hf hf = made(&c);
        ck_assert(!wf_hf_export(&hf, folder, &whole_files, message));
        assert_contains(message, rows[i].sentence);
        wf_hf_free(&hf);
    }
}

/* ---- folders that are refused ---------------------------------------------------------------- */

static const changed_folder changed[] = {
    { "lm_gpt2", "config.json", "\"n_embd\": 8", "\"n_embd\": 9", "9 is not divisible by 2 heads" },
    { "lm_gpt2", "config.json", "\"n_embd\": 8", "\"n_embd\": 16",
      "'wte.weight' is not [320,16], as config.json says" },
    { "lm_gpt2", "config.json", "\"n_embd\": 8,", "", "'n_embd' is missing, and nothing is" },
    { "lm_gpt2", "config.json", "\"n_embd\": 8", "\"n_embd\": 8, \"n_mbd\": 8",
      "'n_mbd' is not known of this family" },
    { "lm_gpt2", "config.json", "\"n_inner\": null", "\"n_inner\": 31",
      "'h.0.mlp.c_fc.weight' is not [8,31], as config.json says" },
    { "lm_gpt2", "config.json", "\"n_positions\": 24", "\"n_positions\": 25",
      "'wpe.weight' is not [25,8]" },
    { "lm_gpt2", "config.json", "\"n_layer\": 2", "\"n_layer\": 3",
      "'transformer.h.2.attn.c_attn.weight' is missing" },
    { "lm_gpt2", "config.json", "\"n_layer\": 2", "\"n_layer\": 1",
      "'h.1.attn.c_attn.bias' is in the weights but not in a model" },
    { "lm_gpt2", "config.json", "\"scale_attn_weights\": true", "\"scale_attn_weights\": false",
      "'scale_attn_weights' is false, not true" },
    { "lm_gpt2", "config.json", "\"eos_token_id\": 1", "\"eos_token_id\": 320",
      "generation_config.json: 'eos_token_id' is 1, but 320 in config.json" },
    { "lm_gpt2", "config.json", "\"bos_token_id\": 0", "\"bos_token_id\": 320",
      "config.json: 'bos_token_id' is not in the vocabulary of 320" },
    { "lm_gpt2", "config.json", "\"GPT2LMHeadModel\"", "\"GPT2Model\"", "'architectures' is [" },
    { "lm_gpt2", "config.json", "\"gelu_new\"", "\"quick_gelu\"", "not one of swish, silu" },
    { "lm_gpt2", "config.json", "1e-05", "\"a\"", "'layer_norm_epsilon' is \"a\", not a number" },
    { "lm_gpt2", "config.json", "1e-05", "-1", "the layer norm's eps is -1" },
    { "lm_gpt2", "config.json", "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false",
      "'lm_head.weight' is missing" },
    { "lm_gpt2", "model.safetensors", "h.0.ln_1.bias", "h.0.ln_9.bias", "ln_1.bias' is missing" },
    { "lm_gpt2", "tokenizer.json", "\"BPE\"", "\"BPX\"", "tokenizer.json: " },
    { "lm_llama", "config.json", "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3",
      "4 heads can't share 3 heads of keys and values evenly" },
    { "lm_llama", "config.json", "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 1",
      "k_proj.weight' is not [2,8], as config.json says" },
    { "lm_llama", "config.json", "\"head_dim\": 2", "\"head_dim\": 3",
      "rotary positions need heads of an even width, not 3" },
    { "lm_llama", "config.json", "\"head_dim\": 2", "\"head_dim\": 4",
      "q_proj.weight' is not [16,8]" },
    { "lm_llama", "config.json", "\"llama3\"", "\"yarn\"",
      "'rope_type' is \"yarn\", not one of default, linear, llama3" },
    { "lm_llama", "config.json", "\"low_freq_factor\": 1.0, ", "",
      "'low_freq_factor' of the rotary positions is missing" },
    { "lm_llama", "config.json", "\"low_freq_factor\": 1.0", "\"low_freq_factor\": 4.0",
      "turn 4 to 4 times" },
    { "lm_llama", "config.json", "\"factor\": 8.0", "\"factor\": 0.5", "scaled by 0.5, not 1 to" },
    { "lm_llama", "config.json", "\"factor\": 8.0", "\"factor\": 8.0, \"beta_fast\": 32",
      "'beta_fast' of the rotary positions is not known of their type" },
    { "lm_llama", "config.json", "\"rope_theta\": 500.0", "\"rope_theta\": 0.5",
      "the base of rotary positions is 0.5" },
    { "lm_llama", "config.json", "\"mlp_bias\": false", "\"mlp_bias\": true",
      "'mlp_bias' is true and 'attention_bias' false" },
    { "lm_llama", "config.json", "\"attention_bias\": false", "\"attention_bias\": true",
      "q_proj.bias' is missing" },
    { "lm_llama", "config.json", "\"pretraining_tp\": 1", "\"partial_rotary_factor\": 0.5",
      "'partial_rotary_factor' is 0.5, not 1" },
    { "lm_llama", "config.json", "\"pretraining_tp\": 1", "\"partial_rotary_factor\": 1.0", NULL },
    { "lm_llama", "config.json", "\"eos_token_id\": 1", "\"eos_token_id\": [1, 3]", NULL },
    { "lm_llama", "generation_config.json", "\"eos_token_id\": 1", "\"eos_token_id\": [2, 3]",
      "'eos_token_id' has not 1, which it is in config.json" },
    { "lm_llama", "config.json", "\"vocab_size\": 320", "\"vocab_size\": 300",
      "embed_tokens.weight' is not [300,8]" },
    { "lm_mistral", "config.json", "\"sliding_window\": 5", "\"sliding_window\": 32", NULL },
    { "lm_mistral", "config.json", "\"sliding_window\": 5",
      "\"layer_types\": [\"full_attention\", \"sliding_attention\"], \"sliding_window\": 5",
      "'sliding_window' is 5 in 1 of 2 layers" },
    { "lm_mistral", "config.json", "\"sliding_window\": 5",
      "\"layer_types\": [\"linear_attention\"], \"sliding_window\": 5",
      "'layer_types' is [\"linear_attention\"], not" },
    { "lm_qwen2", "config.json", "\"use_sliding_window\": false", "\"use_sliding_window\": 1",
      "'use_sliding_window' is 1, not true or false" },
    { "lm_qwen2", "config.json", "\"full_attention\"", "\"sliding_attention\"",
      "'layer_types' has 'sliding_attention', but there is no window" },
    { "lm_bigcode", "config.json", "\"multi_query\": true", "\"multi_query\": false",
      "'multi_query' is false, not true" },
    { "lm_gemma", "config.json", "\"head_dim\": 6,", "", "q_proj.weight' is not [1024,8]" },
    { "lm_gemma", "config.json", "\"attention_bias\": false",
      "\"attention_bias\": false, \"hidden_activation\": \"relu\"",
      "'hidden_activation' is \"relu\", not \"gelu_pytorch_tanh\"" },
    { "lm_gemma", "config.json", "\"gelu_pytorch_tanh\"", "\"gelu\"", NULL },
    { "lm_gemma", "config.json", "\"use_bidirectional_attention\": null",
      "\"use_bidirectional_attention\": true", "'use_bidirectional_attention' is true, not false" },
    { "lm_starcoder2", "config.json", "\"use_bias\": true", "\"use_bias\": false",
      "'use_bias' is false, not true" },
    { "lm_qwen3", "config.json", "\"head_dim\": 6,", "", "q_proj.weight' is not [512,8]" },
};

static const char *const files[] = { "config.json", "generation_config.json", "model.safetensors",
                                     "tokenizer.json" };

TEST_ROWS(a_changed_folder_is_refused_in_a_sentence, COUNT_OF(changed)) {
    assert_changed(&changed[_i], files, COUNT_OF(files));
}

/* weft has one end token. Further ones are named in the notes and kept in the model's file. */
TEST(more_than_one_end_is_told) {
    for (int i = 0; i < COUNT_OF(files); i++) {
        bool search = i == 1;
        copy_changed_of("lm_llama", files[i], search ? "\"eos_token_id\": 1" : NULL,
                        "\"eos_token_id\": [7, 1], \"max_length\": 20, \"max_new_tokens\": 12");
    }
    wf_hf hf = import(folder);
    assert_contains(hf.notes, "'eos_token_id' is [7,1], which weft's search does not do");
    ck_assert_str_eq(hf.generation.not_done, "eos_token_id=[7,1]");
    ck_assert_int_eq(hf.model->end_id, 1);
    ck_assert(hf.generation.options.max_len_b == 12 && hf.generation.options.max_len_a == 0);
    wf_hf_free(&hf);
}

/* A folder without a tokenizer is a model of token ids. */
TEST(without_a_tokenizer_there_are_ids) {
    for (int i = 0; i < 3; i++) copy_changed_of("lm_qwen3", files[i], NULL, NULL);
    wf_hf hf = import(folder);
    assert_contains(hf.notes, "there is no tokenizer.json");
    ck_assert(!hf.src && !hf.tgt);
    wf_hf_free(&hf);
}
