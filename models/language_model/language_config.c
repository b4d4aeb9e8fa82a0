/* models/language_model/language_config.c - the configuration of a language model: defaults,
 * limits, and its fields in files. */
#include <stdio.h>

#include "models/choices.h"
#include "models/kind.h"
#include "models/language_model.h"
#include "models/message.h"
#include "models/model_internal.h"

wf_language_model_config wf_language_model_defaults(wf_language_model_form form) {
    /* clang-format off */
    wf_language_model_config c = {
        .max_len = 1024, /* the vocabulary stays 0: it has no default */
        .d_model = 512, .num_heads = 8, .dim_feedforward = 2048, .layers = 6,
        .activation = WF_GELU_TANH, .positions = WF_POSITIONS_LEARNED,
        .tied = true, .norm_first = true, .final_norm = true, .bias = true,
        .layer_norm_eps = 1e-5, .rotary_base = 10000,
    };
    /* clang-format on */
    if (form != WF_LLAMA) return c;
    c.activation = WF_SILU;
    c.gated = true;
    c.dim_feedforward = 1376; /* 2/3 of 2048, rounded up to a multiple of 32 */
    c.positions = WF_POSITIONS_ROTARY;
    c.norm = WF_RMS_NORM;
    c.num_kv_heads = 2;
    c.tied = c.bias = false;
    return c;
}

/* The options of the layers, without dropout. */
static wf_block_options block(const void *config) {
    const wf_language_model_config *c = config;
    return (wf_block_options){ .d_model = c->d_model,
                               .num_heads = c->num_heads,
                               .dim_feedforward = c->dim_feedforward,
                               .activation = c->activation,
                               .norm_first = c->norm_first,
                               .bias = c->bias,
                               .layer_norm_eps = c->layer_norm_eps,
                               .norm = c->norm,
                               .num_kv_heads = c->num_kv_heads,
                               .gated = c->gated,
                               .head_dim = c->head_dim,
                               .qkv_bias = c->qkv_bias,
                               .out_bias = c->out_bias,
                               .qk_norm = c->qk_norm };
}

/* Checks the settings of rotary positions. False with message. */
static bool rotary_ok(const wf_language_model_config *c, char *message) {
    const wf_rotary_scaling *s = &c->rotary_scaling;
    if (c->rotary_base != 0 && !(c->rotary_base > 1 && c->rotary_base <= 1e12))
        return fail(message, "the base of rotary positions is %g, not between 1 and 1e12",
                    c->rotary_base);
    if (!wf_rotary_stretch_name((int)s->kind))
        return fail(message, "there is no scaling of rotary positions number %d", (int)s->kind);
    if (s->kind == WF_ROTARY_PLAIN) return true;
    if (!(s->factor >= 1 && s->factor <= 1e6))
        return fail(message, "rotary positions are scaled by %g, not 1 to 1e6", s->factor);
    if (s->kind == WF_ROTARY_LINEAR) return true;
    bool ok = s->low > 0 && s->low < s->high && s->high <= 1e6 && s->original >= 1 &&
              s->original <= 1 << 30;
    return ok || fail(message, "rotary positions turn %g to %g times in %g positions: no range",
                      s->low, s->high, s->original);
}

bool wf_language_model_check(const wf_language_model_config *c, char *message) {
    if (!c) return fail(message, "there is no configuration");
    const wf_limit limits[] = {
        { "the vocabulary", c->vocab, 1, 1 << 24 },
        { "the maximum length", c->max_len, 1, 1 << 20 },
        { "the number of layers", c->layers, 0, 256 },
        { "the start id", c->start_id, 0, wf_last_id(c->vocab) },
        { "the end id", c->end_id, 0, wf_last_id(c->vocab) },
        { "the window of attention", c->window, 0, 1 << 20 },
    };
    const wf_block_options layers = block(c);
    if (c->start_if_empty && !c->start_first)
        return fail(message, "a row that begins with its source has its start token first");
    return wf_limits_ok(limits, sizeof limits / sizeof *limits, message) &&
           wf_stack_ok(&layers, c->positions, message) && rotary_ok(c, message);
}

/* ---- in files -------------------------------------------------------------------------------- */

#define CONFIG_OF wf_language_model_config
/* clang-format off */
static const wf_config_field fields[] = {
    WF_FIELD(vocab) WF_FIELD(max_len)
    WF_FIELD(d_model) WF_FIELD(num_heads) WF_FIELD(dim_feedforward) WF_FIELD(layers)
    WF_FIELD(tied) WF_FIELD(norm_first) WF_FIELD(final_norm)
    WF_FIELD(scale_embedding) WF_FIELD(bias) WF_FIELD(output_bias)
    WF_FIELD(start_id) WF_FIELD(end_id)
    WF_FIELD_NAMED(wf_activation, activation, WF_ACTIVATION_NAMES)
    WF_FIELD_NAMED(wf_positions, positions, WF_POSITIONS_NAMES)
    WF_FIELD(layer_norm_eps)
    WF_FIELD_SINCE(start_first, "0")
    WF_FIELD_NAMED_SINCE(wf_norm_kind, norm, WF_NORM_KIND_NAMES, "layer")
    WF_FIELD_SINCE(num_kv_heads, "0") WF_FIELD_SINCE(gated, "0")
    WF_FIELD_SINCE(start_if_empty, "0") WF_FIELD_SINCE(head_dim, "0")
    WF_FIELD_SINCE(qkv_bias, "0") WF_FIELD_SINCE(out_bias, "0") WF_FIELD_SINCE(qk_norm, "0")
    WF_FIELD_SINCE(window, "0") WF_FIELD_SINCE(rotary_base, "10000")
    WF_FIELD_NAMED_SINCE(wf_rotary_stretch, rotary_scaling.kind, WF_ROTARY_STRETCH_NAMES, "plain")
    WF_FIELD_SINCE(rotary_scaling.factor, "0") WF_FIELD_SINCE(rotary_scaling.low, "0")
    WF_FIELD_SINCE(rotary_scaling.high, "0") WF_FIELD_SINCE(rotary_scaling.original, "0")
};
/* clang-format on */

WF_FIELDS_FIT(CONFIG_OF, fields);

/* Derives a configuration from sizes. If they do not give the length of a whole sequence (`row`),
 * there is room for a longest prompt, the start token and a longest output, and for at least 128
 * tokens. */
static void configure(void *config, const wf_model_sizes *s) {
    wf_language_model_config *c = config;
    int64_t pair = 2 * s->longest + 1;
    *c = wf_language_model_defaults(WF_GPT2);
    c->vocab = s->tgt_vocab;
    c->max_len = s->row ? s->row : pair < 128 ? 128 : pair;
    c->d_model = s->d_model;
    c->num_heads = s->num_heads;
    c->dim_feedforward = s->dim_feedforward;
    c->layers = s->decoder_layers;
    c->activation = s->activation;
    c->positions = s->positions;
    c->tied = s->tie == WF_TIE_DECODER || s->tie == WF_TIE_ALL;
    c->norm = s->norm_kind;
    c->num_kv_heads = s->num_kv_heads;
    c->gated = s->gated;
    c->scale_embedding = true;
    c->bias = !s->no_bias;
    /* the output of a model of running text has no bias, as in GPT-2 */
    c->output_bias = c->bias && !s->start_first;
    c->norm_first = c->final_norm = s->norm_first;
    c->start_id = s->start_id;
    c->end_id = s->end_id;
    c->start_first = s->start_first;
    c->start_if_empty = s->start_first && s->start_if_empty;
}

static bool check(const void *config, char *message) {
    return wf_language_model_check(config, message);
}

static wf_model *record(const void *config, const wf_training_config *training, wf_dtype real,
                        uint64_t seed, char *message) {
    return wf_language_model_new(config, training, real, seed, message);
}

static void describe(const void *config, char text[WF_MESSAGE]) {
    const wf_language_model_config *c = config;
    const wf_block_options layers = block(c);
    char stack[WF_STACK_TEXT], shared[40] = "";
    if (c->num_kv_heads && c->num_kv_heads < c->num_heads)
        snprintf(shared, sizeof shared, " (%lld of keys)", (long long)c->num_kv_heads);
    snprintf(text, WF_MESSAGE,
             "a language model of width %lld, %lld heads%s, %lld layers, feed-forward %lld, %s, "
             "vocabulary %lld, up to %lld tokens",
             (long long)c->d_model, (long long)c->num_heads, shared, (long long)c->layers,
             (long long)c->dim_feedforward, wf_stack_text(&layers, c->positions, stack),
             (long long)c->vocab, (long long)c->max_len);
}

const wf_model_kind wf_language_model_kind = {
    .name = "language_model",
    .title = "Language model",
    .fields = fields,
    .n_fields = sizeof fields / sizeof *fields,
    .decoder_only = true,
    .configure = configure,
    .check = check,
    .record = record,
    .describe = describe,
    .block = block,
};
