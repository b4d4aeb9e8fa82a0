/* models/encoder/encoder_config.c - the configuration of an encoder: defaults, limits, and its
 * fields in files. */
#include <stdio.h>

#include "models/choices.h"
#include "models/encoder.h"
#include "models/kind.h"
#include "models/message.h"
#include "models/model_internal.h"
#include "nn/layers_internal.h"

wf_encoder_config wf_encoder_defaults(void) {
    /* clang-format off */
    return (wf_encoder_config){
        .max_len = 512, /* the vocabulary stays 0: it has no default */
        .d_model = 384, .num_heads = 12, .dim_feedforward = 1536, .layers = 6,
        .activation = WF_GELU, .head_activation = WF_GELU, .layer_norm_eps = 1e-12, .tied = true,
        .pooler_activation = WF_DENSE_TANH, .pooling = WF_POOLING_MEAN, .normalize = true,
        .dense_bias = true, .similarity_scale = 20,
    };
    /* clang-format on */
}

/* The options of the layers, without dropout. */
static wf_block_options block(const void *config) {
    const wf_encoder_config *c = config;
    return (wf_block_options){ .d_model = c->d_model,
                               .num_heads = c->num_heads,
                               .dim_feedforward = c->dim_feedforward,
                               .activation = c->activation,
                               .bias = true,
                               .layer_norm_eps = c->layer_norm_eps };
}

int64_t wf_encoder_positions(const wf_encoder_config *c) {
    if (!c || c->max_len < 0 || c->max_len > INT32_MAX) return 0;
    return c->max_len + (c->counted_positions ? (int64_t)c->pad_id + 1 : 0);
}

bool wf_encoder_check(const wf_encoder_config *c, char *message) {
    if (!c) return fail(message, "there is no configuration");
    const wf_limit limits[] = {
        { "the vocabulary", c->vocab, 1, 1 << 24 },
        { "the maximum length", c->max_len, 1, 1 << 20 },
        { "the number of layers", c->layers, 0, 256 },
        { "the number of token types", c->types, 0, 1 << 16 },
        { "the padding id", c->pad_id, 0, wf_last_id(c->vocab) },
        { "the start id", c->start_id, 0, wf_last_id(c->vocab) },
        { "the end id", c->end_id, 0, wf_last_id(c->vocab) },
        { "the head's activation", (int64_t)c->head_activation, 0, WF_ACTIVATION_COUNT - 1 },
        { "the width of the layer after pooling", c->dense, 0, 1 << 16 },
        { "its activation", (int64_t)c->dense_activation, 0, WF_DENSE_SILU },
        { "the pooler's activation", (int64_t)c->pooler_activation, 0, WF_DENSE_SILU },
        { "the number of classes", c->classes, 0, WF_MOST_CLASSES },
    };
    const wf_block_options layers = block(c);
    if (!wf_limits_ok(limits, sizeof limits / sizeof *limits, message) ||
        !wf_stack_ok(&layers, WF_POSITIONS_LEARNED, message))
        return false;
    if (c->positions && (c->positions < wf_encoder_positions(c) || c->positions > 1 << 25))
        return fail(message, "there are %lld positions for lines of up to %lld tokens",
                    (long long)c->positions, (long long)c->max_len);
    if ((c->relative_buckets || c->relative_distance) &&
        !wf_relative_fits(c->relative_buckets, c->relative_distance, true))
        return fail(message, "%lld buckets do not divide distances up to %lld",
                    (long long)c->relative_buckets, (long long)c->relative_distance);
    if (!wf_encoder_pooled_width(c) || c->pooling >= WF_POOLING_LAST << 1)
        return fail(message, "no pooling makes a vector of a line: the mean or another one does");
    if (c->classes && (c->masked_lm || !c->pooler || c->classes < 2))
        return fail(message,
                    "a head of %lld classes needs two of them, a pooler, and no other head",
                    (long long)c->classes);
    return (c->similarity_scale > 0 && c->similarity_scale <= 1e6) ||
           fail(message, "similarities are multiplied by %g, not by more than 0 and up to 1e6",
                c->similarity_scale);
}

/* ---- in files -------------------------------------------------------------------------------- */

#define CONFIG_OF wf_encoder_config
/* clang-format off */
static const wf_config_field fields[] = {
    WF_FIELD(vocab) WF_FIELD(max_len) WF_FIELD(positions)
    WF_FIELD(d_model) WF_FIELD(num_heads) WF_FIELD(dim_feedforward) WF_FIELD(layers)
    WF_FIELD(types) WF_FIELD(layer_norm_eps) WF_FIELD(counted_positions)
    WF_FIELD(pad_id) WF_FIELD(start_id) WF_FIELD(end_id)
    WF_FIELD_NAMED(wf_activation, activation, WF_ACTIVATION_NAMES)
    WF_FIELD(pooler) WF_FIELD(masked_lm) WF_FIELD(tied)
    WF_FIELD_NAMED(wf_activation, head_activation, WF_ACTIVATION_NAMES)
    WF_FIELD_IN(pool_first, pooling, WF_POOLING_FIRST)
    WF_FIELD_IN(pool_max, pooling, WF_POOLING_MAX)
    WF_FIELD_IN(pool_mean, pooling, WF_POOLING_MEAN)
    WF_FIELD_IN(pool_root, pooling, WF_POOLING_ROOT)
    WF_FIELD_IN(pool_weighted, pooling, WF_POOLING_WEIGHTED)
    WF_FIELD_IN(pool_last, pooling, WF_POOLING_LAST)
    WF_FIELD(dense) WF_FIELD(dense_bias)
    WF_FIELD_NAMED(wf_dense_activation, dense_activation, WF_DENSE_ACTIVATION_NAMES)
    WF_FIELD(normalize) WF_FIELD(similarity_scale)
    WF_FIELD_NAMED_SINCE(wf_dense_activation, pooler_activation, WF_DENSE_ACTIVATION_NAMES, "tanh")
    WF_FIELD_SINCE(classes, "0")
    WF_FIELD_SINCE(relative_buckets, "0") WF_FIELD_SINCE(relative_distance, "0")
};
/* clang-format on */

WF_FIELDS_FIT(CONFIG_OF, fields);

enum { BERT_TYPES = 2 };

static void configure(void *config, const wf_model_sizes *s) {
    wf_encoder_config *c = config;
    *c = wf_encoder_defaults();
    c->vocab = s->src_vocab;
    c->max_len = s->longest;
    c->d_model = s->d_model;
    c->num_heads = s->num_heads;
    c->dim_feedforward = s->dim_feedforward;
    c->layers = s->encoder_layers;
    c->activation = c->head_activation = s->activation;
    c->pad_id = s->pad_id;
    c->start_id = s->start_id;
    c->end_id = s->end_id;
    if (!s->masked && !s->classes) return;
    c->masked_lm = s->masked;
    c->classes = s->classes;
    c->pooler = s->classes > 0;
    c->types = BERT_TYPES;
}

static bool check(const void *config, char *message) {
    return wf_encoder_check(config, message);
}

static wf_model *record(const void *config, const wf_training_config *training, wf_dtype real,
                        uint64_t seed, char *message) {
    return wf_encoder_new(config, training, real, seed, message);
}

static void describe(const void *config, char text[WF_MESSAGE]) {
    const wf_encoder_config *c = config;
    const wf_block_options layers = block(c);
    char stack[WF_STACK_TEXT], head[64] = "";
    int64_t width = c->dense ? c->dense : wf_encoder_pooled_width(c);
    if (c->masked_lm) snprintf(head, sizeof head, "a head of masked tokens, ");
    if (c->classes) snprintf(head, sizeof head, "a head of %lld classes, ", (long long)c->classes);
    snprintf(text, WF_MESSAGE,
             "an encoder of width %lld, %lld heads, %lld layers, feed-forward %lld, %s, %s"
             "vectors of %lld%s, vocabulary %lld, up to %lld tokens",
             (long long)c->d_model, (long long)c->num_heads, (long long)c->layers,
             (long long)c->dim_feedforward, wf_stack_text(&layers, WF_POSITIONS_LEARNED, stack),
             head, (long long)width, c->normalize ? " and length 1" : "", (long long)c->vocab,
             (long long)c->max_len);
}

const wf_model_kind wf_encoder_kind = {
    .name = "encoder",
    .title = "Encoder",
    .fields = fields,
    .n_fields = sizeof fields / sizeof *fields,
    .configure = configure,
    .check = check,
    .record = record,
    .describe = describe,
    .block = block,
};
