/* models/hf/family.c - the tables of the families; see family.h.
 *
 * The source is transformers 5.23.0: configuration_*.py and modeling_*.py of marian, bart, mbart,
 * m2m_100, t5, mt5, umt5. A new family needs a row below, and tables of its keys and tensors if
 * they differ, as those of T5 do (t5_family.c). */
#include "family.h"
#include "object.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- families -------------------------------------------------------------------------------- */

#define AT(field) offsetof(hf_config, field)
/* Keys that transformers added later have a default for older files, which lack them. */
static const hf_key bart_keys[] = {
    { "vocab_size", HF_COUNT, AT(c.src_vocab), NULL },
    { "decoder_vocab_size", HF_COUNT, AT(c.tgt_vocab), "0" }, /* 0: that of the encoder */
    { "max_position_embeddings", HF_COUNT, AT(c.max_len), NULL },
    { "d_model", HF_COUNT, AT(c.d_model), NULL },
    { "encoder_layers", HF_COUNT, AT(c.encoder_layers), NULL },
    { "decoder_layers", HF_COUNT, AT(c.decoder_layers), NULL },
    { "encoder_attention_heads", HF_COUNT, AT(c.num_heads), NULL },
    { "decoder_attention_heads", HF_COUNT, AT(decoder_heads), NULL },
    { "encoder_ffn_dim", HF_COUNT, AT(c.dim_feedforward), NULL },
    { "decoder_ffn_dim", HF_COUNT, AT(decoder_ffn), NULL },
    { "activation_function", HF_ACTIVATION, AT(c.activation), NULL },
    { "scale_embedding", HF_FLAG, AT(c.scale_embedding), NULL },
    { "share_encoder_decoder_embeddings", HF_FLAG, AT(shared), "true" },
    { "tie_word_embeddings", HF_FLAG, AT(tied), "true" },
    { "pad_token_id", HF_ID, AT(pad), NULL },
    { "eos_token_id", HF_ID, AT(end), NULL },
    /* may be in generation_config.json instead */
    { "decoder_start_token_id", HF_ID, AT(start), "-1" },
    { NULL, HF_COUNT, 0, NULL },
};

static const char *const bart_tables[4] = { "model.encoder.embed_tokens.weight",
                                            "model.decoder.embed_tokens.weight", "lm_head.weight",
                                            "model.shared.weight" };

static const hf_stem bart_stems[] = {
    { "transformer.encoder.layers.#.self_attn.in_proj_",
      "model.encoder.layers.#.self_attn.@_proj." },
    { "transformer.encoder.layers.#.self_attn.", "model.encoder.layers.#.self_attn." },
    { "transformer.encoder.layers.#.norm1.", "model.encoder.layers.#.self_attn_layer_norm." },
    { "transformer.encoder.layers.#.linear1.", "model.encoder.layers.#.fc1." },
    { "transformer.encoder.layers.#.linear2.", "model.encoder.layers.#.fc2." },
    { "transformer.encoder.layers.#.norm2.", "model.encoder.layers.#.final_layer_norm." },
    { "transformer.encoder.norm.", "model.encoder.layer_norm." },
    { "transformer.decoder.layers.#.self_attn.in_proj_",
      "model.decoder.layers.#.self_attn.@_proj." },
    { "transformer.decoder.layers.#.self_attn.", "model.decoder.layers.#.self_attn." },
    { "transformer.decoder.layers.#.norm1.", "model.decoder.layers.#.self_attn_layer_norm." },
    { "transformer.decoder.layers.#.multihead_attn.in_proj_",
      "model.decoder.layers.#.encoder_attn.@_proj." },
    { "transformer.decoder.layers.#.multihead_attn.", "model.decoder.layers.#.encoder_attn." },
    { "transformer.decoder.layers.#.norm2.", "model.decoder.layers.#.encoder_attn_layer_norm." },
    { "transformer.decoder.layers.#.linear1.", "model.decoder.layers.#.fc1." },
    { "transformer.decoder.layers.#.linear2.", "model.decoder.layers.#.fc2." },
    { "transformer.decoder.layers.#.norm3.", "model.decoder.layers.#.final_layer_norm." },
    { "transformer.decoder.norm.", "model.decoder.layer_norm." },
    { "src_embedding_norm.", "model.encoder.layernorm_embedding." },
    { "tgt_embedding_norm.", "model.decoder.layernorm_embedding." },
    { "src_position.", "model.encoder.embed_positions." },
    { "tgt_position.", "model.decoder.embed_positions." },
    { "output.bias", HF_OUTPUT_BIAS },
    { NULL, NULL },
};

#define IS(key, value)                                                                             \
    { key, value, NULL } /* clang wants every field */
/* clang-format off */
#define IS_AS(key, other) { key, NULL, other }
#define PAIRS IS("is_encoder_decoder", "true"), IS("is_decoder", "false"), \
    IS_AS("hidden_size", "d_model")
#define BART_PARTS .keys = bart_keys, .stems = bart_stems, .tables = bart_tables
#define BART_PAIRS PAIRS, IS_AS("num_hidden_layers", "encoder_layers"), \
    IS_AS("num_attention_heads", "encoder_attention_heads")
#define T5_PARTS(keys_of) \
    .positions = WF_POSITIONS_NONE, .norm_first = true, .final_norms = true, .t5 = true, \
    .pad = -1, \
    .keys = keys_of, .ignored = wf_hf_t5_ignored, .stems = wf_hf_t5_stems, \
    .gated_stems = wf_hf_t5_gated_stems, .tables = wf_hf_t5_tables, \
    .constants = { PAIRS, IS_AS("num_hidden_layers", "num_layers"), \
                   IS_AS("num_attention_heads", "num_heads"), IS_AS("head_dim", "d_kv") }
static const hf_family families[] = {
    { .name = "marian", .architecture = "MarianMTModel",
      .positions = WF_POSITIONS_HALVES, .output_bias = true, .may_separate = true, .pad = -1,
      BART_PARTS,
      .constants = { BART_PAIRS, IS("static_position_embeddings", "true"),
                     IS("normalize_before", "false"), IS("normalize_embedding", "false"),
                     IS("add_final_layer_norm", "false") } },
    { .name = "bart", .architecture = "BartForConditionalGeneration",
      .positions = WF_POSITIONS_LEARNED, .embedding_norm = true, .output_bias = true, .pad = -1,
      BART_PARTS,
      .constants = { BART_PAIRS, IS("static_position_embeddings", "false"),
                     IS("normalize_before", "false"), IS("normalize_embedding", "true"),
                     IS("add_final_layer_norm", "false") } },
    { .name = "mbart", .architecture = "MBartForConditionalGeneration",
      .positions = WF_POSITIONS_LEARNED, .norm_first = true, .final_norms = true,
      .embedding_norm = true, .output_bias = true, .pad = -1,
      BART_PARTS,
      .constants = { BART_PAIRS, IS("static_position_embeddings", "false"),
                     IS("normalize_before", "true"), IS("normalize_embedding", "true"),
                     IS("add_final_layer_norm", "true") } },
    { .name = "m2m_100", .architecture = "M2M100ForConditionalGeneration",
      .positions = WF_POSITIONS_FAIRSEQ, .norm_first = true, .final_norms = true, .pad = 1,
      BART_PARTS,
      .constants = { BART_PAIRS } },
    { .name = "t5", .architecture = "T5ForConditionalGeneration", .older = "T5WithLMHeadModel",
      T5_PARTS(wf_hf_t5_keys) },
    { .name = "mt5", .architecture = "MT5ForConditionalGeneration", .unscaled = true,
      T5_PARTS(wf_hf_mt5_keys) },
    { .name = "umt5", .architecture = "UMT5ForConditionalGeneration", .per_layer = true,
      T5_PARTS(wf_hf_umt5_keys) },
};
/* clang-format on */
enum { FAMILIES = sizeof families / sizeof *families };

const hf_family *wf_hf_family(const char *model_type) {
    for (int i = 0; i < FAMILIES; i++)
        if (strcmp(families[i].name, model_type) == 0) return &families[i];
    return NULL;
}

/* True if models of f, which is no family of T5, can have this configuration. */
static bool is_of(const hf_family *f, const wf_transformer_config *c) {
    bool plain = !c->relative_buckets && c->norm == WF_LAYER_NORM && !c->gated && !c->head_dim &&
                 c->attention_scale == 0 && !c->scale_output && c->tie != WF_TIE_INPUTS;
    return plain && f->positions == c->positions && f->norm_first == c->norm_first &&
           f->final_norms == c->encoder_norm && f->final_norms == c->decoder_norm &&
           f->embedding_norm == c->embedding_norm && f->output_bias == c->output_bias &&
           (f->may_separate || c->tie != WF_TIE_DECODER);
}

const hf_family *wf_hf_family_of(const wf_transformer_config *c) {
    bool t5 = wf_hf_is_t5(c);
    if (c->decoder != WF_DECODER_ATTENTION || c->raw_keys || c->zero_start) return NULL;
    for (const hf_family *f = families; f < families + FAMILIES; f++)
        if (f->t5 ? t5 && !f->unscaled && f->per_layer == c->relative_per_layer : is_of(f, c))
            return f;
    return NULL;
}

const char *wf_hf_family_names(void) {
    return "marian, bart, mbart, m2m_100, t5, mt5, umt5";
}

/* ---- config.json ----------------------------------------------------------------------------- */

const hf_activation wf_hf_activations[] = {
    { "swish", WF_SILU }, { "silu", WF_SILU },          { "relu", WF_RELU },
    { "gelu", WF_GELU },  { "gelu_new", WF_GELU_TANH }, { "gelu_pytorch_tanh", WF_GELU_TANH },
};
const int wf_hf_n_activations = sizeof wf_hf_activations / sizeof *wf_hf_activations;

bool wf_hf_find_activation(const char *name, wf_activation *out) {
    int i = 0;
    while (i < wf_hf_n_activations && strcmp(wf_hf_activations[i].name, name) != 0) i++;
    if (i < wf_hf_n_activations) *out = wf_hf_activations[i].activation;
    return i < wf_hf_n_activations;
}

bool wf_hf_ignored_key(const char *name) {
    static const char *const names[] = {
        /* of training */
        "dropout",
        "attention_dropout",
        "activation_dropout",
        "classifier_dropout",
        "classif_dropout",
        "encoder_layerdrop",
        "decoder_layerdrop",
        "init_std",
        "gradient_checkpointing",
        "save_step",
        "replacing_rate",
        "student_encoder_layers",
        "student_decoder_layers",
        /* keys for other uses of the class */
        "id2label",
        "label2id",
        "num_labels",
        "_num_labels",
        "problem_type",
        "task_specific_params",
        "finetuning_task",
        "prefix",
        "tokenizer_class",
        "sep_token_id",
        "cls_token_id",
        "bos_token_id",
        "add_bias_logits",
        "extra_pos_embeddings",
        "cross_attention_hidden_size",
        "chunk_size_feed_forward",
        "pruned_heads",
        "add_cross_attention",
        "tie_encoder_decoder",
        /* keys about running and storing the model */
        "_name_or_path",
        "name_or_path",
        "_commit_hash",
        "transformers_version",
        "torch_dtype",
        "dtype",
        "architectures",
        "model_type",
        "use_cache",
        "output_past",
        "output_attentions",
        "output_hidden_states",
        "output_scores",
        "return_dict",
        "return_dict_in_generate",
        "torchscript",
        "use_bfloat16",
        "tf_legacy_loss",
        "attn_implementation",
        "_attn_implementation_autoset",
    };
    return HF_LISTED(names, name);
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* The rest of a name after a stem; *number becomes the beginning of the digits that match its #.
 * NULL: the name does not begin with the stem. */
static const char *after_stem(const char *stem, const char *name, const char **number) {
    for (; *stem; stem++) {
        if (*stem != '#') {
            if (*stem != *name++) return NULL;
            continue;
        }
        *number = name;
        while (isdigit((unsigned char)*name)) name++;
    }
    return name;
}

static void compose(const char *to, const char *number, int part, const char *tail,
                    char name[HF_NAME]) {
    static const char *const words[] = { "query", "key", "value" };
    size_t n = 0;
    for (; *to && n + 8 < HF_NAME; to++) {
        if (*to == '@')
            name[n++] = "qkv"[part];
        else if (*to == '&')
            n += (size_t)snprintf(name + n, HF_NAME - n, "%s", words[part]);
        else if (*to != '#')
            name[n++] = *to;
        else
            for (const char *c = number; isdigit((unsigned char)*c) && n + 1 < HF_NAME; c++)
                name[n++] = *c;
    }
    snprintf(name + n, HF_NAME - n, "%s", tail);
}

int wf_hf_name_by(const hf_stem *rows, int n, const char *parameter, int part, char name[HF_NAME]) {
    assert(part >= 0 && part < 3);
    for (int i = 0; i < n; i++) {
        const char *number = "", *tail = after_stem(rows[i].from, parameter, &number);
        if (!tail) continue;
        compose(rows[i].to, number, part, tail, name);
        return strpbrk(rows[i].to, "@&") ? 3 : 1;
    }
    return 0;
}

int wf_hf_tensor_name(const hf_family *family, bool gated, const char *parameter, int part,
                      char name[HF_NAME]) {
    const hf_stem *stems = gated ? family->gated_stems : family->stems;
    int n = 0;
    while (stems && stems[n].from) n++;
    return wf_hf_name_by(stems, n, parameter, part, name);
}

bool wf_hf_is_positions(const char *tensor) {
    static const char *const names[] = { "model.encoder.embed_positions.weight",
                                         "model.decoder.embed_positions.weight",
                                         "model.encoder.embed_positions.weights",
                                         "model.decoder.embed_positions.weights" };
    return HF_LISTED(names, tensor);
}

bool wf_hf_ignored_tensor(const char *tensor) {
    static const char *const names[] = {
        "model.encoder.version",
        "model.decoder.version",
        "encoder.version",
        "decoder.version",
        /* a table of T5's oldest files */
        "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",
    };
    return HF_LISTED(names, tensor);
}
