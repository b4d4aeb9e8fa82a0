/* nn/train/one_process.c - updates in one process. From one micro-batch: one plan computes
 * gradients and makes the update. From several: gradient accumulation (accumulation.h), then a
 * plan for the update. */
#include "nn/optimizer_internal.h"
#include "way.h"

static bool alone_open(wf_trainer *t, int64_t in_flight) {
    const wf_optimizer *o = &t->optimizer;
    (void)in_flight;
    if (!o->averages) return true;
    t->average = wf_trainer_plan_updates(t, o->average_updates, NULL, o->average_rate);
    return wf_plan_ok(t->average) || wf_trainer_failed(t, wf_plan_error(t->average));
}

static bool alone_average(wf_trainer *t, double rate) {
    return !t->average ||
           (wf_feed_reals(t->average, t->optimizer.average_rate, &rate, 1) && wf_run(t->average)) ||
           wf_trainer_failed(t, wf_plan_error(t->average));
}

static bool alone_swap(wf_trainer *t) {
    return wf_optimizer_swap_averages(&t->optimizer) || wf_trainer_failed(t, "out of memory");
}

static bool add_plan(wf_trainer *t, wf_plan *p, size_t *bytes) {
    size_t own = p ? wf_plan_memory(p) : 0;
    if (p && !own && *wf_plan_error(p)) return wf_trainer_failed(t, wf_plan_error(p));
    *bytes += own;
    return true;
}

/* The bytes of moments, averages, sums, and of all plans but that of a micro-batch. */
static bool alone_memory(wf_trainer *t, size_t *bytes) {
    const wf_optimizer *o = &t->optimizer;
    size_t each = (size_t)o->n_moments + (o->averages != NULL);
    *bytes = wf_accumulation_memory(&t->accumulation);
    for (int i = 0; i < o->n; i++) *bytes += each * wf_bytes(o->params[i]);
    return add_plan(t, t->update, bytes) && add_plan(t, t->average, bytes);
}

/* ---- at once --------------------------------------------------------------------------------- */

static void list_updates(const wf_trainer *t, wf_tensor_list *fetch, wf_tensor_list *feed) {
    wf_list_add(fetch, t->optimizer.norm);
    wf_list_add_all(fetch, t->optimizer.updates, t->optimizer.n);
    wf_list_add(feed, t->optimizer.rates);
}

/* Runs the plan that makes the update, and fetches the norm of the gradient; NULL: there is
 * none. */
static bool run_update(wf_trainer *t, wf_plan *p, const wf_tensor *norm) {
    return (wf_feed_reals(p, t->optimizer.rates, t->rates, 3) && wf_run(p) &&
            (!norm || wf_fetch_real(p, norm, &t->norm))) ||
           wf_trainer_failed(t, wf_plan_error(p));
}

static bool add_and_update(wf_trainer *t, int64_t i) {
    (void)i;
    return run_update(t, t->step, t->optimizer.norm);
}

const wf_way wf_at_once = {
    .list = list_updates,
    .open = alone_open,
    .add = add_and_update,
    .average = alone_average,
    .swap = alone_swap,
    .memory = alone_memory,
};

/* ---- in parts -------------------------------------------------------------------------------- */

bool wf_record_sums(wf_trainer *t, int partial_sums) {
    if (wf_accumulation_new(&t->accumulation, &t->optimizer, t->count, &t->options, partial_sums))
        return true;
    return wf_trainer_failed(t, wf_ok(t->g) ? "out of memory" : wf_error(t->g));
}

void wf_list_sums(const wf_trainer *t, wf_tensor_list *fetch, wf_tensor_list *feed) {
    wf_list_add_all(fetch, t->accumulation.adds, t->optimizer.n + 1);
    wf_list_add(feed, t->accumulation.at);
}

static bool record(wf_trainer *t) {
    return wf_record_sums(t, wf_partial_sums(t->most));
}

static bool open_plans(wf_trainer *t, int64_t in_flight) {
    const wf_accumulation *a = &t->accumulation;
    t->update = wf_trainer_plan_updates(t, a->updates, a->norm, t->optimizer.rates);
    if (!wf_plan_ok(t->update)) return wf_trainer_failed(t, wf_plan_error(t->update));
    return alone_open(t, in_flight);
}

static bool add(wf_trainer *t, int64_t i) {
    return (wf_feed_micro_batch(t->step, &t->accumulation, i, t->micro_batches) &&
            wf_run(t->step)) ||
           wf_trainer_failed(t, wf_plan_error(t->step));
}

static bool update(wf_trainer *t) {
    return run_update(t, t->update, t->accumulation.norm);
}

const wf_way wf_in_parts = {
    .record = record,
    .list = wf_list_sums,
    .open = open_plans,
    .add = add,
    .update = update,
    .average = alone_average,
    .swap = alone_swap,
    .memory = alone_memory,
};
