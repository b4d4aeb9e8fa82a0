/* models/transformer/transformer_config.c - the configuration of a Transformer: its defaults,
 * limits, and fields in files.
 *
 * Configurations also come from damaged or hostile files, so every number is checked before
 * anything is computed from it. */
#include <stdio.h>
#include <string.h>

#include "models/choices.h"
#include "models/file/model_file.h"
#include "models/kind.h"
#include "models/message.h"
#include "models/model_internal.h"
#include "models/transformer.h"
#include "nn/layers_internal.h"
#include "tied.h"

const char *const wf_tables[WF_TABLES] = { "src_embedding.weight", "tgt_embedding.weight",
                                           "output.weight" };

int wf_first_tied(wf_tie tie) {
    static const int first[] = {
        [WF_TIE_NONE] = WF_TABLES, [WF_TIE_DECODER] = 1, [WF_TIE_ALL] = 0, [WF_TIE_INPUTS] = 0
    };
    return first[tie];
}

int wf_n_tied(wf_tie tie) {
    return tie == WF_TIE_INPUTS ? 2 : WF_TABLES - wf_first_tied(tie);
}

wf_transformer_config wf_transformer_defaults(void) {
    /* clang-format off */
    return (wf_transformer_config){
        .max_len = 512, /* the vocabularies stay 0: they have no default */
        .d_model = 512, .num_heads = 8, .dim_feedforward = 2048,
        .encoder_layers = 6, .decoder_layers = 6,
        .activation = WF_RELU, .positions = WF_POSITIONS_SINUSOIDAL, .tie = WF_TIE_NONE,
        .scale_embedding = true, .bias = true, .output_bias = true,
        .layer_norm_eps = 1e-5, .pad_id = -1,
    };
    /* clang-format on */
}

/* The options of the layers, without dropout. */
static wf_block_options block(const void *config) {
    const wf_transformer_config *c = config;
    return (wf_block_options){ .d_model = c->d_model,
                               .num_heads = c->num_heads,
                               .dim_feedforward = c->dim_feedforward,
                               .activation = c->activation,
                               .norm_first = c->norm_first,
                               .bias = c->bias,
                               .layer_norm_eps = c->layer_norm_eps,
                               .norm = c->norm,
                               .gated = c->gated,
                               .head_dim = c->head_dim,
                               .attention_scale = c->attention_scale,
                               .decoder = c->decoder,
                               .average_width = c->average_width,
                               .average_activation = c->average_activation,
                               .raw_keys = c->raw_keys };
}

/* True if every offset between two positions has a bucket, in the encoder (offsets of both signs)
 * and in the decoder (of one sign). */
static bool relative_ok(const wf_transformer_config *c, char *message) {
    int64_t buckets = c->relative_buckets, distance = c->relative_distance;
    if (!buckets && !distance && !c->relative_per_layer) return true;
    return (wf_relative_fits(buckets, distance, true) &&
            wf_relative_fits(buckets, distance, false)) ||
           fail(message, "%lld buckets do not divide distances up to %lld", (long long)buckets,
                (long long)distance);
}

bool wf_transformer_check(const wf_transformer_config *c, char *message) {
    if (!c) return fail(message, "there is no configuration");
    const wf_limit limits[] = {
        { "the source vocabulary", c->src_vocab, 1, 1 << 24 },
        { "the target vocabulary", c->tgt_vocab, 1, 1 << 24 },
        { "the maximum length", c->max_len, 1, 1 << 20 },
        { "the number of encoder layers", c->encoder_layers, 0, 256 },
        { "the number of decoder layers", c->decoder_layers, 0, 256 },
        { "the kind of tying", c->tie, WF_TIE_NONE, WF_TIE_INPUTS },
        { "the padding id", c->pad_id, INT32_MIN, wf_last_id(c->src_vocab) },
        { "the start id", c->start_id, 0, wf_last_id(c->tgt_vocab) },
        { "the end id", c->end_id, 0, wf_last_id(c->tgt_vocab) },
    };
    const wf_block_options layers = block(c);
    if (!wf_limits_ok(limits, sizeof limits / sizeof *limits, message)) return false;
    if (wf_first_tied(c->tie) == 0 && c->src_vocab != c->tgt_vocab)
        return fail(message,
                    "tying all embeddings needs vocabularies of one size, not %lld and %lld",
                    (long long)c->src_vocab, (long long)c->tgt_vocab);
    return wf_stack_ok(&layers, c->positions, message) && relative_ok(c, message);
}

/* ---- in files -------------------------------------------------------------------------------- */

#define CONFIG_OF wf_transformer_config
/* clang-format off */
static const wf_config_field fields[] = {
    WF_FIELD(src_vocab) WF_FIELD(tgt_vocab) WF_FIELD(max_len)
    WF_FIELD(d_model) WF_FIELD(num_heads) WF_FIELD(dim_feedforward)
    WF_FIELD(encoder_layers) WF_FIELD(decoder_layers)
    WF_FIELD(norm_first) WF_FIELD(encoder_norm) WF_FIELD(decoder_norm)
    WF_FIELD(scale_embedding) WF_FIELD(bias) WF_FIELD(output_bias)
    WF_FIELD(pad_id) WF_FIELD(start_id) WF_FIELD(end_id)
    WF_FIELD_NAMED(wf_activation, activation, WF_ACTIVATION_NAMES)
    WF_FIELD_NAMED(wf_positions, positions, WF_POSITIONS_NAMES)
    WF_FIELD_NAMED(wf_tie, tie, WF_TIE_NAMES)
    WF_FIELD(layer_norm_eps)
    WF_FIELD_SINCE(embedding_norm, "0")
    WF_FIELD_NAMED_SINCE(wf_norm_kind, norm, WF_NORM_KIND_NAMES, "layer")
    WF_FIELD_SINCE(gated, "0") WF_FIELD_SINCE(head_dim, "0") WF_FIELD_SINCE(attention_scale, "0")
    WF_FIELD_SINCE(relative_buckets, "0") WF_FIELD_SINCE(relative_distance, "0")
    WF_FIELD_SINCE(relative_per_layer, "0") WF_FIELD_SINCE(scale_output, "0")
    WF_FIELD_NAMED_SINCE(wf_decoder_kind, decoder, WF_DECODER_KIND_NAMES, "attention")
    WF_FIELD_SINCE(raw_keys, "0") WF_FIELD_SINCE(zero_start, "0") WF_FIELD_SINCE(average_width, "0")
    WF_FIELD_NAMED_SINCE(wf_activation, average_activation, WF_ACTIVATION_NAMES, "relu")
};
/* clang-format on */

WF_FIELDS_FIT(CONFIG_OF, fields);

/* Sets what T5 has at every size of model, such as 32 buckets and the longest distance of 128. */
static void configure_t5(wf_transformer_config *c) {
    c->max_len = WF_RELATIVE_MAX_LEN;
    c->positions = WF_POSITIONS_NONE;
    c->relative_buckets = 32;
    c->relative_distance = 128;
    c->norm = WF_RMS_NORM;
    c->layer_norm_eps = 1e-6;
    c->gated = true;
    c->attention_scale = 1;
    c->scale_embedding = c->bias = c->output_bias = false;
    c->scale_output = c->tie == WF_TIE_ALL;
}

/* Sets Marian's start and norms, which are the same at every size of model. */
static void configure_marian(wf_transformer_config *c) {
    c->zero_start = true;
    c->raw_keys = c->norm_first;
    c->encoder_norm = c->decoder_norm = false;
    c->layer_norm_eps = 1e-6;
}

/* Derives a configuration from sizes. The maximum length includes the start token. Padding is
 * marked by src_length, so there is no pad_id. */
static void configure(void *config, const wf_model_sizes *s) {
    wf_transformer_config *c = config;
    *c = wf_transformer_defaults();
    c->src_vocab = s->src_vocab;
    c->tgt_vocab = s->tgt_vocab;
    c->max_len = s->longest < 64 ? 64 : s->longest + 1;
    c->d_model = s->d_model;
    c->num_heads = s->num_heads;
    c->dim_feedforward = s->dim_feedforward;
    c->encoder_layers = s->encoder_layers;
    c->decoder_layers = s->decoder_layers;
    c->activation = s->activation;
    c->positions = s->positions;
    c->tie = s->tie;
    c->norm_first = c->encoder_norm = c->decoder_norm = s->norm_first;
    c->embedding_norm = s->embedding_norm;
    c->pad_id = -1;
    c->start_id = s->start_id;
    c->end_id = s->end_id;
    c->decoder = s->decoder;
    if (s->t5) configure_t5(c);
    if (s->marian) configure_marian(c);
}

static bool check(const void *config, char *message) {
    return wf_transformer_check(config, message);
}

static wf_model *record(const void *config, const wf_training_config *training, wf_dtype real,
                        uint64_t seed, char *message) {
    return wf_transformer_new(config, training, real, seed, message);
}

static void describe(const void *config, char text[WF_MESSAGE]) {
    const wf_transformer_config *c = config;
    const wf_block_options layers = block(c);
    char stack[WF_STACK_TEXT], relative[40] = "";
    static const char *const decoders[] = { "", ", an SSRU decoder", ", a decoder of averages" };
    const char *decoder = decoders[c->decoder];
    if (c->relative_buckets)
        snprintf(relative, sizeof relative, ", %lld buckets of distances",
                 (long long)c->relative_buckets);
    snprintf(
        text, WF_MESSAGE,
        "a Transformer of width %lld, %lld heads, %lld + %lld layers, feed-forward %lld, %s%s%s, "
        "vocabularies %lld and %lld, up to %lld tokens",
        (long long)c->d_model, (long long)c->num_heads, (long long)c->encoder_layers,
        (long long)c->decoder_layers, (long long)c->dim_feedforward,
        wf_stack_text(&layers, c->positions, stack), relative, decoder, (long long)c->src_vocab,
        (long long)c->tgt_vocab, (long long)c->max_len);
}

const wf_model_kind wf_transformer_kind = {
    .name = "transformer",
    .title = "Transformer",
    .fields = fields,
    .n_fields = sizeof fields / sizeof *fields,
    .configure = configure,
    .check = check,
    .record = record,
    .describe = describe,
    .block = block,
};
