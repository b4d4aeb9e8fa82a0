/* nn/train/in_shards.c - updates by several ranks: each accumulates the gradients of its
 * micro-batches, and owns a shard of the optimizer (sharded.h). */
#include "sharded.h"
#include "way.h"

static bool failed(wf_trainer *t) {
    return wf_trainer_failed(t, t->sharded->error);
}

static bool record(wf_trainer *t) {
    const wf_transport *ranks = t->transport;
    return wf_record_sums(t, wf_sharded_partial_sums(t->most, ranks->rank, ranks->size));
}

static bool open_shard(wf_trainer *t, int64_t in_flight) {
    t->sharded = wf_sharded_new(t->g,
                                &(wf_sharded_options){ .optimizer = &t->optimizer,
                                                       .accumulation = &t->accumulation,
                                                       .options = &t->options,
                                                       .micro_batches = t->most,
                                                       .in_flight = in_flight,
                                                       .numbers = t->width,
                                                       .transport = t->transport,
                                                       .pool = t->pool },
                                t->error);
    return t->sharded != NULL;
}

static void close_shard(wf_trainer *t) {
    wf_sharded_free(t->sharded);
}

static bool range(wf_trainer *t) {
    if (wf_sharded_in_update(t->sharded)) return failed(t);
    wf_sharded_range(t->sharded, t->micro_batches, &t->from, &t->to);
    t->exchanging = t->transport->seconds - t->sharded->hidden;
    t->sent = t->transport->sent;
    t->received = t->transport->received;
    return true;
}

static bool add(wf_trainer *t, int64_t i) {
    if (!wf_sharded_feed(t->sharded, t->step, i, t->micro_batches)) return failed(t);
    return wf_run(t->step) || wf_trainer_failed(t, wf_plan_error(t->step));
}

/* Makes the update. exchanging, sent and received held the transport's counters at its beginning,
 * and become this update's own amounts. */
static bool update(wf_trainer *t) {
    if (!wf_sharded_update(t->sharded, t->micro_batches, t->rates, &t->norm, t->numbers))
        return failed(t);
    t->exchanging = t->transport->seconds - t->sharded->hidden - t->exchanging;
    t->sent = t->transport->sent - t->sent;
    t->received = t->transport->received - t->received;
    return true;
}

static bool average(wf_trainer *t, double rate) {
    return wf_sharded_average(t->sharded, rate) || failed(t);
}

static bool swap(wf_trainer *t) {
    return wf_sharded_swap_averages(t->sharded) || failed(t);
}

static bool gather(wf_trainer *t) {
    return wf_sharded_gather(t->sharded) || failed(t);
}

/* Ends a save: `yes` says on rank 0 whether the file was written. If it is false there, rank 0 has
 * already reported why. */
static bool release(wf_trainer *t, bool yes) {
    wf_sharded_release(t->sharded);
    if (wf_sharded_agree(t->sharded, yes)) return true;
    if (*wf_transport_error(t->transport)) return failed(t);
    return yes ? wf_trainer_failed(t, "rank 0 could not write the file") : false;
}

static bool scatter(wf_trainer *t) {
    return wf_sharded_scatter(t->sharded) || failed(t);
}

static bool memory(wf_trainer *t, size_t *bytes) {
    *bytes = wf_sharded_memory(t->sharded) + wf_accumulation_memory(&t->accumulation);
    return !wf_sharded_in_update(t->sharded) || failed(t);
}

const wf_way wf_in_shards = {
    .record = record,
    .list = wf_list_sums,
    .open = open_shard,
    .close = close_shard,
    .range = range,
    .add = add,
    .update = update,
    .average = average,
    .swap = swap,
    .gather = gather,
    .release = release,
    .scatter = scatter,
    .memory = memory,
};
