/* models/common/limits.c - the limits of every configuration: ranges, and conditions between
 * widths, heads and positions. */
#include <stdio.h>

#include "models/kind.h"
#include "models/message.h"
#include "nn/layers_internal.h"

bool wf_limits_ok(const wf_limit *limits, size_t n, char *message) {
    for (const wf_limit *l = limits; l < limits + n; l++)
        if (l->value < l->low || l->value > l->high)
            return fail(message, "%s is %lld, not between %lld and %lld", l->what,
                        (long long)l->value, (long long)l->low, (long long)l->high);
    return true;
}

/* The highest valid id. For an invalid vocabulary it is 0, and the check of the vocabulary
 * fails. */
int64_t wf_last_id(int64_t vocab) {
    return vocab > 0 ? vocab - 1 : 0;
}

bool wf_stack_ok(const wf_block_options *o, wf_positions positions, char *message) {
    const wf_limit limits[] = {
        { "d_model", o->d_model, 1, 1 << 16 },
        { "the number of heads", o->num_heads, 1, 1 << 16 },
        { "the feed-forward width", o->dim_feedforward, 1, 1 << 20 },
        { "the activation", (int64_t)o->activation, 0, WF_ACTIVATION_COUNT - 1 },
        { "the kind of positions", (int64_t)positions, WF_POSITIONS_NONE,
          WF_POSITIONS_TENSOR2TENSOR },
        { "the kind of norm", (int64_t)o->norm, WF_LAYER_NORM, WF_RMS_NORM },
        { "the kind of decoder", (int64_t)o->decoder, WF_DECODER_ATTENTION, WF_DECODER_AVERAGE },
        { "the width of average attention", o->average_width, 0, 1 << 20 },
        { "the activation of average attention", (int64_t)o->average_activation, 0,
          WF_ACTIVATION_COUNT - 1 },
        { "the number of heads of keys and values", o->num_kv_heads, 0, o->num_heads },
    };
    if (!wf_limits_ok(limits, sizeof limits / sizeof *limits, message)) return false;
    if (o->head_dim < 0 || o->head_dim > 1 << 16)
        return fail(message, "heads are %lld wide, not between 1 and 65536",
                    (long long)o->head_dim);
    if (!o->head_dim && o->d_model % o->num_heads)
        return fail(message, "d_model %lld is not divisible by %lld heads", (long long)o->d_model,
                    (long long)o->num_heads);
    if (o->num_kv_heads && o->num_heads % o->num_kv_heads)
        return fail(message, "%lld heads can't share %lld heads of keys and values evenly",
                    (long long)o->num_heads, (long long)o->num_kv_heads);
    if (wf_rotates(positions) && wf_head_dim(o) % 2)
        return fail(message, "rotary positions need heads of an even width, not %lld",
                    (long long)wf_head_dim(o));
    bool exact = positions == WF_POSITIONS_FAIRSEQ || positions == WF_POSITIONS_TENSOR2TENSOR;
    bool halves = positions == WF_POSITIONS_HALVES;
    bool sinusoidal = positions == WF_POSITIONS_SINUSOIDAL || halves || exact;
    if (sinusoidal && (o->d_model % 2 || (exact && o->d_model < 4)))
        return fail(message, "sinusoidal positions need an even d_model%s, not %lld",
                    exact ? " of 4 or more" : "", (long long)o->d_model);
    if (o->raw_keys && (wf_rotates(positions) || !o->norm_first))
        return fail(message, "keys without a norm need pre-norm, and positions that do not rotate");
    if (!(o->attention_scale >= 0 && o->attention_scale <= 1e6))
        return fail(message, "scores of attention are scaled by %g, not by 0 to 1e6",
                    o->attention_scale);
    if (!(o->layer_norm_eps > 0 && o->layer_norm_eps < 1))
        return fail(message, "the layer norm's eps is %g, not between 0 and 1", o->layer_norm_eps);
    return true;
}

const char *wf_stack_text(const wf_block_options *o, wf_positions positions,
                          char text[WF_STACK_TEXT]) {
    snprintf(text, WF_STACK_TEXT, "%s%s, %s-norm%s, %s positions", o->gated ? "gated " : "",
             wf_activation_name((int)o->activation),
             wf_norm_place_name(o->norm_first ? WF_NORM_PRE : WF_NORM_POST),
             o->norm == WF_RMS_NORM ? " (RMS)" : "", wf_positions_name((int)positions));
    return text;
}
