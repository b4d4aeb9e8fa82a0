/* ops/elementwise/dropout.c - inverted dropout (Srivastava et al. 2014), only in training plans.
 *
 * y = keep ? x / (1 - rate) : 0. Whether element e is kept is a pure function of (seed, step,
 * micro-batch, site, e). So the gradient, the decomposition, any number of threads and a resumed
 * run keep the same elements. A site is a module path and a name. Without a name, it is a number:
 * dropouts of one path are counted in the order of recording.
 *
 * Each element takes 16 random bits, so the rate is rounded to a multiple of 2^-16, and to at most
 * 1 - 2^-16. x is divided by the probability after rounding, so that the mean of y is exactly x. */
#include <math.h>
#include <string.h>

#include "core/base/random.h"
#include "core/graph_internal.h"
#include "dropout.h"
#include "ops/base/op_base.h"
#include "ops/base/shapes.h"
#include "ops/base/walk.h"
#include "ops/emit/loops.h"

typedef struct dropout_attrs {
    double rate;
    uint64_t site;
} dropout_attrs;

/* ---- the random bits ------------------------------------------------------------------------- */

/* The first site without a name has the hash of the path alone. */
uint64_t wf_site(const wf_tensor *x, const char *site) {
    if (!x) return 0;
    const char *scope = wf_scope(x->graph, NULL);
    wf_scope(x->graph, scope);
    uint64_t h = wf_hash_bytes(0, scope, strlen(scope));
    if (site) return wf_hash_bytes(h, site, strlen(site));
    uint32_t number = wf_next_site(x->graph);
    return number ? wf_mix64(h ^ number) : h;
}

wf_drop_params wf_drop_of(const wf_call *c, double rate, uint64_t site) {
    double keep = fmax(nearbyint((1 - rate) * 0x1p16), 1); /* of 2^16 numbers */
    return (wf_drop_params){
        .scale = 0x1p16 / keep,
        .threshold = (uint32_t)keep,
        .key = wf_mix64(wf_mix64(wf_seed(c->graph)) ^ site),
        .stream = wf_mix64(c->step << 32 | c->micro_batch),
    };
}

bool wf_want_rate(wf_call *c, double rate) {
    return (rate >= 0 && rate < 1) || wf_fail(c, "a dropout rate of %g is not in [0, 1)", rate);
}

/* ---- dropout --------------------------------------------------------------------------------- */

static bool shape_dropout(wf_call *c) {
    return wf_want_rate(c, ((const dropout_attrs *)c->attrs)->rate) && wf_same_as_operand(c);
}

static int64_t view_dropout(wf_call *c) {
    return c->training ? -1 : wf_same_memory(c);
}

static bool eval_dropout(const wf_call *c, int phase, int64_t task, void *scratch) {
    const dropout_attrs *a = c->attrs;
    wf_drop_params d = wf_drop_of(c, a->rate, a->site);
    const wf_view *y = &c->out[0];
    int64_t from, to;
    (void)phase;
    (void)scratch;
    wf_task_range(wf_view_count(y), WF_GRAIN, task, &from, &to);
    WF_KERNEL(y->dtype, dropout(to - from, wf_at(&c->in[0], from), d.scale, d.threshold, d.key,
                                d.stream, (uint64_t)from, wf_at(y, from)));
    return true;
}

/* y is linear in x with a diagonal matrix, so dx is the same function of dy: the same site gives
 * the same diagonal (Srivastava et al. 2014, section 5.1). */
static void grad_dropout(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    (void)need;
    dx[0] = wf_record(&wf_op_dropout, 1, dy, y->attrs);
}

static bool emit_dropout(wf_emitter *e, const wf_call *c) {
    const dropout_attrs *a = c->attrs;
    wf_drop_params d = wf_drop_of(c, a->rate, a->site);
    wf_emit_stream(e);
    wf_emit_text(e, "dropout(%n, x, %f, %n, %u, stream, 0, out);\n", wf_view_count(&c->out[0]),
                 d.scale, (int64_t)d.threshold, d.key);
    return true;
}

/* Shapes: x real, of any shape -> y as x.
 * Limits: The rate is in [0, 1), rounded to a multiple of 2^-16. In plans that do not train y is
 * x. */
const wf_op wf_op_dropout = {
    .name = "dropout",
    .family = "random",
    .formula =
        "dropout(x): x / (1 - rate) where it is kept, else 0; x in a plan that does not train",
    .arity = 1,
    .attr_bytes = sizeof(dropout_attrs),
    .attributes = "double rate, uint64_t site",
    .shape = shape_dropout,
    .view = view_dropout,
    .grad = grad_dropout,
    .run = &(const wf_kernel){ .tasks = wf_elementwise_tasks,
                               .eval = eval_dropout,
                               .in_place = 1,
                               .emit = emit_dropout },
};

wf_tensor *wf_dropout_at(wf_tensor *x, double rate, uint64_t site) {
    if (rate == 0 && x) return x;
    return wf_record(&wf_op_dropout, 1, &x, &(dropout_attrs){ rate, site });
}

wf_tensor *wf_dropout(wf_tensor *x, double rate, const char *site) {
    return wf_dropout_at(x, rate, wf_site(x, site));
}
