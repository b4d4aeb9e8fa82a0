/* ops/elementwise/random.c - random tensors: rand and randn, and bernoulli and categorical, which
 * are composed of rand and other ops.
 *
 * Element e is a pure function of (seed, step, micro-batch, site, e), as in dropout.c. So it does
 * not depend on the number of threads, and it repeats when the step is set again (wf_random_step).
 * Unlike dropout, these ops are active in every plan. */
#include <string.h>

#include "core/base/random.h"
#include "core/compose.h"
#include "dropout.h"
#include "ops/base/draw.h"
#include "ops/base/op_base.h"
#include "ops/base/shapes.h"
#include "ops/base/walk.h"
#include "ops/emit/loops.h"

static void put_block(const wf_view *y, int64_t from, int64_t n, const double *value) {
    float *narrow = y->data;
    if (y->dtype == WF_F32)
        for (int64_t i = 0; i < n; i++) narrow[from + i] = (float)value[i];
    else
        memcpy(wf_at(y, from), value, (size_t)n * sizeof *value);
}

/* The op's only attribute, a uint64_t, is a hash of the site and the op's name. */
static bool eval_random(const wf_call *c, int64_t task, bool normal) {
    const wf_view *y = &c->out[0];
    wf_drop_params at = wf_drop_of(c, 0, *(const uint64_t *)c->attrs);
    double value[WF_DRAWN];
    float single[WF_DRAWN];
    int64_t e, to;
    wf_task_range(wf_view_count(y), WF_GRAIN, task, &e, &to);
    for (int64_t n; e < to; e += n) {
        n = to - e < WF_DRAWN ? to - e : WF_DRAWN;
        if (!normal && y->dtype == WF_F32) {
            wf_draw_single(at.key, at.stream, (uint64_t)e, single);
            memcpy(wf_at(y, e), single, (size_t)n * sizeof *single);
            continue;
        }
        if (normal)
            wf_draw_normal(1, at.key, at.stream, (uint64_t)e, value);
        else
            wf_draw_uniform(at.key, at.stream, (uint64_t)e, value);
        put_block(y, e, n, value);
    }
    return true;
}

static bool emit_random(wf_emitter *e, const wf_call *c, const char *function) {
    wf_drop_params at = wf_drop_of(c, 0, *(const uint64_t *)c->attrs);
    wf_emit_stream(e);
    wf_emit_text(e, "for (int i = 0; i < %n; i++)\nout[i] = %s(%u, stream, (uint64_t)i);\n",
                 wf_view_count(&c->out[0]), function, at.key);
    return true;
}

/* Shapes: like of any shape -> real, of that shape.
 * Limits: Numbers depend on seed, step, micro-batch, site and element alone, so threads and
 * resumed runs draw the same. */
#define RANDOM(NAME, text, normal, function)                                                       \
    static bool eval_##NAME(const wf_call *c, int phase, int64_t task, void *scratch) {            \
        (void)phase, (void)scratch;                                                                \
        return eval_random(c, task, normal);                                                       \
    }                                                                                              \
    static bool emit_##NAME(wf_emitter *e, const wf_call *c) {                                     \
        return emit_random(e, c, function);                                                        \
    }                                                                                              \
    const wf_op wf_op_##NAME = {                                                                   \
        .name = #NAME,                                                                             \
        .family = "random",                                                                        \
        .formula = #NAME "(like): " text,                                                          \
        .arity = 1,                                                                                \
        .attr_bytes = sizeof(uint64_t),                                                            \
        .attributes = "uint64_t site",                                                             \
        .shape = wf_real_like_operand,                                                             \
        .no_grad = "it reads only a shape",                                                        \
        .shape_only = 1,                                                                           \
        .run = &(const wf_kernel){ .tasks = wf_elementwise_tasks,                                  \
                                   .eval = eval_##NAME,                                            \
                                   .strided = 1,                                                   \
                                   .emit = emit_##NAME },                                          \
    };                                                                                             \
    wf_tensor *wf_##NAME(wf_tensor *like, const char *site) {                                      \
        uint64_t at = wf_mix64(wf_site(like, site) ^ wf_hash_bytes(0, #NAME, strlen(#NAME)));      \
        return wf_record(&wf_op_##NAME, 1, &like, &at);                                            \
    }
RANDOM(rand, "random numbers, uniform in [0, 1)", false, "random_uniform")
RANDOM(randn, "random numbers, normal: mean 0, variance 1", true, "random_normal")
#undef RANDOM

/* The draw is a constant for the gradient, as in PyTorch. */
wf_tensor *wf_bernoulli(wf_tensor *p, const char *site) {
    WF_COMPOSE("bernoulli", p);
    return wf_composed(wf_less(wf_rand(p, site), wf_detach(p)));
}

/* The index of the largest logits + g is i with probability softmax(logits)[i], if the g are
 * independent Gumbel variables, -log(-log(u)) (Gumbel 1954; Maddison et al. 2014). The largest
 * logit is subtracted first, so that rounding does not lose g beside large logits. The largest
 * logit is not finite if the row has a NaN or +inf, or only -inf. Such a row has no distribution,
 * and the run fails. */
wf_tensor *wf_categorical(wf_tensor *logits, const char *site) {
    WF_COMPOSE("categorical", logits);
    if (logits && wf_rank(logits) < 1)
        return wf_poison(logits->graph, "categorical: a scalar has no last axis");
    wf_tensor *gumbel = wf_neg(wf_log(wf_neg(wf_log(wf_rand(logits, site)))));
    wf_tensor *constant = wf_detach(logits), *top = wf_max(constant, WF_LAST_AXIS, true);
    top = wf_check_finite(top, "the largest logit of a row");
    return wf_composed(wf_argmax(wf_add(wf_sub(constant, top), gumbel), -1));
}
