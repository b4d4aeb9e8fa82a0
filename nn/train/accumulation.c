/* nn/train/accumulation.c - see accumulation.h. */
#include "accumulation.h"
#include "core/graph_internal.h"

#include <stdlib.h>

#include "nn/module.h"
#include "ops/update/sums.h"

/* A transient buffer, which files leave out: a stack of n tensors with the shape of x. */
static wf_tensor *stack_of(wf_tensor *x, const char *name, int n) {
    int64_t shape[WF_MAX_DIMS] = { n };
    if (x->ndim == WF_MAX_DIMS)
        return wf_poison(x->graph, "'%s' has %d axes: its gradients can't be summed", x->name,
                         x->ndim);
    for (int i = 0; i < x->ndim; i++) shape[i + 1] = x->shape[i];
    return wf_transient_buffer(x->graph, name, wf_real(x->graph), x->ndim + 1, shape,
                               wf_init_zeros());
}

/* The bottom of a stack, which holds the sum of all micro-batches once they are added. */
static wf_tensor *bottom(wf_tensor *stack) {
    return wf_squeeze(wf_slice(stack, 0, 0, 1), WF_AXIS(0));
}

static bool allocate(wf_accumulation *a) {
    wf_tensor ***lists[] = { &a->sums, &a->adds, &a->grads, &a->updates };
    bool ok = true;
    for (int i = 0; i < 4; i++)
        ok &= (*lists[i] = calloc((size_t)a->n + 1, sizeof(wf_tensor *))) != NULL;
    return ok;
}

static void record(wf_accumulation *a, const wf_optimizer *o, wf_tensor *count,
                   const wf_optimizer_options *options, int partial_sums) {
    wf_graph *g = count->graph;
    int n = a->n;
    a->at = wf_input(g, "at", wf_real(g), 1, (int64_t[]){ 2 });
    for (int i = 0; i < n && wf_ok(g); i++) {
        const char *outer = wf_scope_push(g, o->params[i]->name);
        a->sums[i] = leave(outer, stack_of(o->params[i], "sum", partial_sums));
    }
    a->sums[n] = stack_of(count, "count", partial_sums);
    for (int i = 0; i < n && wf_ok(g); i++)
        a->adds[i] = wf_accumulate(a->sums[i], o->grads[i], a->at);
    a->adds[n] = wf_accumulate(a->sums[n], count, a->at);
    for (int i = 0; i < n && wf_ok(g); i++) a->grads[i] = bottom(a->sums[i]);
    if (!wf_ok(g)) return;
    const wf_gradients of = wf_gradients_of(a->grads, bottom(a->sums[n]), options);
    a->norm = wf_record_updates(o, &of, options, a->updates);
}

bool wf_accumulation_new(wf_accumulation *a, const wf_optimizer *o, wf_tensor *count,
                         const wf_optimizer_options *options, int partial_sums) {
    wf_graph *g = count->graph;
    *a = (wf_accumulation){ .n = o->n };
    if (!allocate(a)) return false;
    const char *outer = wf_optimizer_scope(g, options);
    record(a, o, count, options, partial_sums);
    wf_scope(g, outer);
    return wf_ok(g);
}

void wf_accumulation_free(wf_accumulation *a) {
    free(a->sums), free(a->adds), free(a->grads), free(a->updates);
    *a = (wf_accumulation){ 0 };
}

size_t wf_accumulation_memory(const wf_accumulation *a) {
    size_t bytes = 0;
    for (int i = 0; a->sums && i <= a->n; i++) bytes += wf_bytes(a->sums[i]);
    return bytes;
}

int wf_partial_sums(int64_t micro_batches) {
    int n = 1;
    while (n < 62 && micro_batches >= (int64_t)2 << n) n++;
    return n;
}

bool wf_feed_micro_batch(wf_plan *p, const wf_accumulation *a, int64_t i, int64_t of) {
    wf_sum_tree t = wf_sum_tree_of(of);
    double at[2] = { 0 };
    if (i < 0 || i >= of) return false;
    wf_sum_tree_add(&t, 0, i);
    at[0] = t.depth;
    at[1] = wf_sum_tree_push(&t, i, i + 1);
    return wf_feed_reals(p, a->at, at, 2);
}

bool wf_fetch_real(wf_plan *p, const wf_tensor *x, double *out) {
    float single;
    if (x->dtype == WF_F64) return wf_fetch(p, x, out, sizeof *out);
    bool ok = wf_fetch(p, x, &single, sizeof single);
    if (ok) *out = (double)single;
    return ok;
}
