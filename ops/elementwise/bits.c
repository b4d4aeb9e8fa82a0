/* ops/elementwise/bits.c - elementwise ops on the bits of i32, with broadcasting: for hashes, sets
 * of flags and packed numbers. Each op is a row of bits.inc.
 *
 * A shift by a count outside of 0..31 moves every bit out, as in PyTorch: the result is 0, or after
 * bitwise_right_shift, which copies the sign, 0 or -1. Integers have no gradient. */
#include "core/compose.h"
#include "ops/base/op_base.h"
#include "ops/base/shapes.h"
#include "ops/base/walk.h"
#include "two.h"

static bool shape_bits(wf_call *c) {
    if (!wf_want(c, 0, WF_I32) || !wf_want(c, 1, WF_I32)) return false;
    if (!wf_broadcast_shapes(c, &c->in[0], &c->in[1], &c->out[0])) return false;
    c->out[0].dtype = WF_I32;
    return true;
}

/* Shapes: a and b i32; they broadcast -> y i32, of their common shape.
 * Limits: A count of bits outside of 0..31 moves every bit out. */
#define BITS(NAME, text, value)                                                                    \
    static bool eval_##NAME(const wf_call *c, int phase, int64_t task, void *scratch) {            \
        wf_runs r;                                                                                 \
        (void)phase, (void)scratch;                                                                \
        for (wf_runs_start(&r, c, task, true); wf_runs_next(&r);)                                  \
            wf_f32()->bits[WF_BITS_##NAME](r.n, r.in[0], r.step[0], r.in[1], r.step[1], r.out);    \
        return true;                                                                               \
    }                                                                                              \
    static bool emit_##NAME(wf_emitter *e, const wf_call *c) {                                     \
        return wf_emit_choice(e, c, #value);                                                       \
    }                                                                                              \
    ELEMENTWISE_OF_TWO(NAME, shape_bits, .formula = #NAME "(a, b): " text,                         \
                       .no_grad = "integers have no gradient")
#include "bits.inc"

/* x xor -1: all bits of -1 are set, so every bit of x changes. */
wf_tensor *wf_bitwise_not(wf_tensor *x) {
    WF_COMPOSE("bitwise_not", x);
    return wf_composed(wf_bitwise_xor(x, wf_constant_i32(x ? x->graph : NULL, -1)));
}
