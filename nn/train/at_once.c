/* nn/train/at_once.c - updates from one micro-batch: one plan computes gradients and makes the
 * update. Also functions that all ways of training without ranks share (way.h). */
#include "nn/optimizer_internal.h"
#include "way.h"

/* ---- one process ----------------------------------------------------------------------------- */

bool wf_alone_open(wf_trainer *t, int64_t in_flight) {
    const wf_optimizer *o = &t->optimizer;
    (void)in_flight;
    if (!o->averages) return true;
    t->average = wf_trainer_plan_updates(t, o->average_updates, NULL, o->average_rate);
    return wf_plan_ok(t->average) || wf_trainer_failed(t, wf_plan_error(t->average));
}

bool wf_alone_average(wf_trainer *t, double rate) {
    return !t->average ||
           (wf_feed_reals(t->average, t->optimizer.average_rate, &rate, 1) && wf_run(t->average)) ||
           wf_trainer_failed(t, wf_plan_error(t->average));
}

bool wf_alone_swap(wf_trainer *t) {
    return wf_optimizer_swap_averages(&t->optimizer) || wf_trainer_failed(t, "out of memory");
}

static bool add_plan(wf_trainer *t, wf_plan *p, size_t *bytes) {
    size_t own = p ? wf_plan_memory(p) : 0;
    if (p && !own && *wf_plan_error(p)) return wf_trainer_failed(t, wf_plan_error(p));
    *bytes += own;
    return true;
}

bool wf_alone_memory(wf_trainer *t, size_t *bytes) {
    const wf_optimizer *o = &t->optimizer;
    size_t each = (size_t)o->n_moments + (o->averages != NULL);
    *bytes = wf_accumulation_memory(&t->accumulation);
    for (int i = 0; i < o->n; i++) *bytes += each * wf_bytes(o->params[i]);
    return add_plan(t, t->update, bytes) && add_plan(t, t->average, bytes);
}

/* ---- at once --------------------------------------------------------------------------------- */

static void list(const wf_trainer *t, wf_tensor_list *fetch, wf_tensor_list *feed) {
    wf_list_add(fetch, t->optimizer.norm);
    wf_list_add_all(fetch, t->optimizer.updates, t->optimizer.n);
    wf_list_add(feed, t->optimizer.rates);
}

static bool add(wf_trainer *t, int64_t i) {
    const wf_tensor *norm = t->optimizer.norm;
    (void)i;
    return (wf_feed_reals(t->step, t->optimizer.rates, t->rates, 3) && wf_run(t->step) &&
            (!norm || wf_fetch_real(t->step, norm, &t->norm))) ||
           wf_trainer_failed(t, wf_plan_error(t->step));
}

const wf_way wf_at_once = {
    .list = list,
    .open = wf_alone_open,
    .add = add,
    .average = wf_alone_average,
    .swap = wf_alone_swap,
    .memory = wf_alone_memory,
};
