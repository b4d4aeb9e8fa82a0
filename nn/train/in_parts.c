/* nn/train/in_parts.c - updates from several micro-batches in one process: gradient accumulation
 * (accumulation.h), then a plan for the update. */
#include "way.h"

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
    return wf_alone_open(t, in_flight);
}

static bool add(wf_trainer *t, int64_t i) {
    return (wf_feed_micro_batch(t->step, &t->accumulation, i, t->micro_batches) &&
            wf_run(t->step)) ||
           wf_trainer_failed(t, wf_plan_error(t->step));
}

static bool update(wf_trainer *t) {
    const wf_tensor *norm = t->accumulation.norm;
    return (wf_feed_reals(t->update, t->optimizer.rates, t->rates, 3) && wf_run(t->update) &&
            (!norm || wf_fetch_real(t->update, norm, &t->norm))) ||
           wf_trainer_failed(t, wf_plan_error(t->update));
}

const wf_way wf_in_parts = {
    .record = record,
    .list = wf_list_sums,
    .open = open_plans,
    .add = add,
    .update = update,
    .average = wf_alone_average,
    .swap = wf_alone_swap,
    .memory = wf_alone_memory,
};
