/* models/transformer/config.c - what a Transformer may be: defaults, and the limits that a configuration is
 * held to.
 *
 * Configurations also come from files that lie, so every number is checked before anything is
 * computed from it. */
#include "models/message.h"

wf_transformer_config wf_transformer_defaults(void) {
    /* clang-format off */
    return (wf_transformer_config){
        .max_len = 512, /* the vocabularies stay 0: there is no default */
        .d_model = 512, .num_heads = 8, .dim_feedforward = 2048,
        .encoder_layers = 6, .decoder_layers = 6,
        .activation = WF_RELU, .positions = WF_POSITIONS_SINUSOIDAL, .tie = WF_TIE_NONE,
        .scale_embedding = true, .bias = true, .output_bias = true,
        .layer_norm_eps = 1e-5, .pad_id = -1,
    };
    /* clang-format on */
}

/* The highest id; of a vocabulary that is none, a number that is not looked at. */
static int64_t last_id(int64_t vocab) {
    return vocab > 0 ? vocab - 1 : 0;
}

static bool ranges_ok(const wf_transformer_config *c, char *message) {
    const struct {
        const char *what;
        int64_t value, low, high;
    } limits[] = {
        { "the source vocabulary", c->src_vocab, 1, 1 << 24 },
        { "the target vocabulary", c->tgt_vocab, 1, 1 << 24 },
        { "the maximum length", c->max_len, 1, 1 << 20 },
        { "d_model", c->d_model, 1, 1 << 16 },
        { "the number of heads", c->num_heads, 1, 1 << 16 },
        { "the feed-forward width", c->dim_feedforward, 1, 1 << 20 },
        { "the number of encoder layers", c->encoder_layers, 0, 256 },
        { "the number of decoder layers", c->decoder_layers, 0, 256 },
        { "the activation", c->activation, 0, WF_ACTIVATION_COUNT - 1 },
        { "the kind of positions", c->positions, WF_POSITIONS_NONE, WF_POSITIONS_LEARNED },
        { "the kind of tying", c->tie, WF_TIE_NONE, WF_TIE_ALL },
        { "the padding id", c->pad_id, INT32_MIN, last_id(c->src_vocab) },
        { "the start id", c->start_id, 0, last_id(c->tgt_vocab) },
        { "the end id", c->end_id, 0, last_id(c->tgt_vocab) },
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (limits[i].value < limits[i].low || limits[i].value > limits[i].high)
            return fail(message, "%s is %lld, not between %lld and %lld", limits[i].what,
                        (long long)limits[i].value, (long long)limits[i].low,
                        (long long)limits[i].high);
    return true;
}

bool wf_transformer_check(const wf_transformer_config *c, char *message) {
    if (!c) return fail(message, "there is no configuration");
    if (!ranges_ok(c, message)) return false;
    if (c->d_model % c->num_heads)
        return fail(message, "d_model %lld is not divisible by %lld heads", (long long)c->d_model,
                    (long long)c->num_heads);
    if (c->positions == WF_POSITIONS_SINUSOIDAL && c->d_model % 2)
        return fail(message, "sinusoidal positions need an even d_model, not %lld",
                    (long long)c->d_model);
    if (c->tie == WF_TIE_ALL && c->src_vocab != c->tgt_vocab)
        return fail(message,
                    "tying all embeddings needs vocabularies of one size, not %lld and %lld",
                    (long long)c->src_vocab, (long long)c->tgt_vocab);
    if (!(c->layer_norm_eps > 0 && c->layer_norm_eps < 1))
        return fail(message, "the layer norm's eps is %g, not between 0 and 1", c->layer_norm_eps);
    return true;
}
