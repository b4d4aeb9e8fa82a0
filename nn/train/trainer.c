/* nn/train/trainer.c - a training in progress: an optimizer, its plans, the loop of an update. An
 * update is made in one of three ways: see way.h. */
#include "nn/optimizer_internal.h"
#include "nn/trainer_internal.h"
#include "way.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sharded.h"

/* ---- plans ----------------------------------------------------------------------------------- */

static wf_plan *plan_of(wf_trainer *t, const wf_tensor_list *fetch, const wf_tensor_list *feed,
                        bool training) {
    return wf_plan_new(t->g, &(wf_plan_options){ .fetch = fetch->data,
                                                 .n_fetch = fetch->n,
                                                 .feed = feed->data,
                                                 .n_feed = feed->n,
                                                 .pool = t->pool,
                                                 .training = training });
}

wf_plan *wf_trainer_plan_updates(wf_trainer *t, wf_tensor *const *updates, wf_tensor *more,
                                 wf_tensor *feed) {
    wf_tensor_list fetch = { calloc((size_t)t->optimizer.n + 1, sizeof(wf_tensor *)), 0 };
    if (!fetch.data) return wf_plan_new(NULL, NULL);
    wf_list_add(&fetch, more);
    wf_list_add_all(&fetch, updates, t->optimizer.n);
    wf_plan *p = plan_of(t, &fetch, &(wf_tensor_list){ &feed, 1 }, false);
    free(fetch.data);
    return p;
}

/* The inputs that the listed tensors are computed from. Operands come before results, so one pass
 * from the last node to the first finds all of them. seen has an entry per node. */
static void add_inputs(wf_tensor_list *feed, wf_graph *g, const wf_tensor_list *of, bool *seen) {
    for (int i = 0; i < of->n; i++) seen[of->data[i]->id] = true;
    for (int id = wf_node_count(g) - 1; id >= 0; id--) {
        wf_tensor *t = wf_node(g, id);
        if (!seen[id]) continue;
        if (t->kind == WF_INPUT) wf_list_add(feed, t);
        for (int k = 0; k < t->n_in; k++)
            if (t->in[k]) seen[t->in[k]->id] = true;
    }
}

/* Makes a plan of a micro-batch. It fetches the loss, the count, the sums, n further values, and
 * the tensors that the way of making updates (way.h) adds. The lists have room for every input and
 * every node. NULL: out of memory. */
static wf_plan *step_plan(wf_trainer *t, wf_tensor *const *more, int n) {
    size_t nodes = (size_t)wf_node_count(t->g), most = nodes + 2 + (size_t)n + (size_t)t->width;
    wf_tensor **room = calloc(most + nodes + 2, sizeof *room);
    bool *seen = calloc(nodes + 1, sizeof *seen);
    wf_tensor_list fetch = { room, 0 }, feed = { room + most, 0 };
    wf_plan *p = NULL;
    if (room && seen) {
        wf_list_add(&fetch, t->loss);
        wf_list_add(&fetch, t->count);
        wf_list_add_all(&fetch, more, n);
        wf_list_add_all(&fetch, t->sums, t->width - 2);
        add_inputs(&feed, t->g, &fetch, seen);
        t->way->list(t, &fetch, &feed);
        p = plan_of(t, &fetch, &feed, true);
    }
    free(room);
    free(seen);
    return p;
}

static bool make_step_plan(wf_trainer *t, const wf_trainer_options *o) {
    t->step = step_plan(t, o->fetch, o->n_fetch);
    if (!t->step) return wf_trainer_failed(t, "out of memory");
    return wf_plan_ok(t->step) || wf_trainer_failed(t, wf_plan_error(t->step));
}

/* ---- made and freed -------------------------------------------------------------------------- */

static bool record_optimizer(wf_trainer *t, const wf_trainer_options *o) {
    int n = o->params ? o->n_params : wf_parameters(t->g, NULL, NULL, 0);
    wf_tensor **all = calloc((size_t)(n > 0 ? n : 0) + 1, sizeof *all);
    if (!all) return wf_trainer_failed(t, "out of memory");
    if (!o->params) wf_parameters(t->g, NULL, all, n);
    t->optimizer =
        wf_optimizer_new(t->g, t->loss, t->count, o->params ? o->params : all, n, &t->options);
    free(all);
    return wf_ok(t->g) || wf_trainer_failed(t, wf_error(t->g));
}

/* An error message if one of the tensors is NULL or belongs to another graph; otherwise NULL. */
static const char *strange(const wf_graph *g, wf_tensor *const *tensors, int n) {
    if (n < 0 || (n > 0 && !tensors)) return "the fetches or sums of a trainer are NULL";
    for (int i = 0; i < n; i++) {
        if (!tensors[i]) return "a fetch or a sum of a trainer is NULL";
        if (tensors[i]->graph != g) return "a fetch or a sum of a trainer is of another graph";
    }
    return NULL;
}

/* An error message if the transport is invalid; otherwise NULL. */
static const char *wrong_transport(const wf_transport *t) {
    if (!t || t->size == 1) return NULL;
    if (t->rank < 0 || t->rank >= t->size) return "the transport's rank is none of its ranks";
    bool whole = t->alltoallv && t->allgatherv && t->fail;
    return whole ? NULL : "the transport lacks alltoallv, allgatherv or fail";
}

/* The error in the arguments, or NULL. */
static const char *missing(const wf_graph *g, const wf_tensor *loss, const wf_tensor *count,
                           const wf_trainer_options *o) {
    if (!g) return "the graph of a trainer is NULL";
    if (!wf_ok(g)) return wf_error(g);
    if (!loss || !count) return "the loss or the count of a trainer is NULL";
    if (!o) return "the options of a trainer are NULL";
    if (!(o->schedule.peak > 0) || !isfinite(o->schedule.peak))
        return "a trainer's schedule has no learning rate: set .schedule.peak, as in "
               "{ WF_CONSTANT_RATE, 1e-3 }";
    if (o->micro_batches > WF_MOST_MICRO_BATCHES)
        return "the option micro_batches of a trainer is more than 65,536";
    if (loss->graph != g || count->graph != g)
        return "the loss or the count of a trainer is of another graph";
    for (int i = 0; i < o->n_sums; i++)
        if (o->sums && o->sums[i] && o->sums[i]->ndim) return "a sum of a trainer is not a scalar";
    const char *why = strange(g, o->fetch, o->n_fetch);
    if (!why) why = strange(g, o->sums, o->n_sums);
    return why ? why : wrong_transport(o->transport);
}

static bool allocate(wf_trainer *t, const wf_trainer_options *o) {
    t->width = 2 + o->n_sums;
    t->numbers = calloc((size_t)t->most * (size_t)t->width, sizeof *t->numbers);
    t->totals = calloc((size_t)t->width, sizeof *t->totals);
    t->sums = calloc((size_t)t->width, sizeof(wf_tensor *));
    if (!t->numbers || !t->totals || !t->sums) return wf_trainer_failed(t, "out of memory");
    if (o->n_sums) memcpy(t->sums, o->sums, (size_t)o->n_sums * sizeof *t->sums);
    return true;
}

static bool open_trainer(wf_trainer *t, const wf_trainer_options *o, int64_t in_flight) {
    t->options = o->optimizer;
    t->schedule = o->schedule;
    t->pool = o->pool;
    t->transport = wf_transport_size(o->transport) > 1 ? o->transport : NULL;
    t->most = o->micro_batches > 1 ? o->micro_batches : 1;
    t->way = t->transport ? &wf_in_shards : t->most > 1 ? &wf_in_parts : &wf_at_once;
    assert(!t->way->gather == !t->way->release && !t->way->gather == !t->way->scatter);
    return allocate(t, o) && record_optimizer(t, o) && (!t->way->record || t->way->record(t)) &&
           make_step_plan(t, o) && t->way->open(t, in_flight);
}

wf_trainer *wf_trainer_open(wf_graph *g, wf_tensor *loss_sum, wf_tensor *count,
                            const wf_trainer_options *options, int64_t in_flight) {
    wf_trainer *t = calloc(1, sizeof *t);
    const char *why = missing(g, loss_sum, count, options);
    if (!t) return NULL;
    t->g = g;
    t->loss = loss_sum;
    t->count = count;
    t->made = why ? wf_trainer_failed(t, why) : open_trainer(t, options, in_flight);
    return t;
}

wf_trainer *wf_trainer_new(wf_graph *g, wf_tensor *loss_sum, wf_tensor *count,
                           const wf_trainer_options *options) {
    return wf_trainer_open(g, loss_sum, count, options, WF_IN_FLIGHT);
}

void wf_trainer_free(wf_trainer *t) {
    if (!t) return;
    if (t->sharded) t->way->close(t);
    wf_plan_free(t->step);
    wf_plan_free(t->update);
    wf_plan_free(t->average);
    wf_accumulation_free(&t->accumulation);
    wf_optimizer_free(&t->optimizer);
    free(t->numbers);
    free(t->totals);
    free(t->sums);
    free(t);
}

bool wf_trainer_ok(const wf_trainer *t) {
    return t && t->made;
}

const char *wf_trainer_error(const wf_trainer *t) {
    if (!t) return "a trainer is NULL: out of memory";
    return *t->error ? t->error : wf_plan_error(t->step);
}

wf_plan *wf_trainer_plan(wf_trainer *t) {
    return t ? t->step : NULL;
}

int64_t wf_trainer_steps(const wf_trainer *t) {
    return t ? t->steps : 0;
}

const wf_optimizer *wf_trainer_optimizer(const wf_trainer *t) {
    return t ? &t->optimizer : NULL;
}

bool wf_trainer_parts_of(const wf_trainer *t, wf_trainer_parts *parts) {
    if (!wf_trainer_ok(t) || !parts || t->transport) return false;
    const wf_optimizer *o = &t->optimizer;
    const wf_accumulation *a = &t->accumulation;
    *parts = (wf_trainer_parts){ .update = t->update,
                                 .average = t->average,
                                 .loss = t->loss,
                                 .count = t->count,
                                 .norm = t->update ? a->norm : o->norm,
                                 .rates = o->rates,
                                 .average_rate = o->average_rate,
                                 .at = a->at,
                                 .options = &t->options,
                                 .schedule = &t->schedule,
                                 .micro_batches = t->most,
                                 .steps = t->steps,
                                 .averaged_since = t->averaged_since };
    return true;
}

wf_plan *wf_trainer_step_plan(wf_trainer *t) {
    return wf_trainer_ok(t) ? step_plan(t, NULL, 0) : wf_plan_new(NULL, NULL);
}

bool wf_trainer_memory(wf_trainer *t, size_t *bytes) {
    return wf_trainer_ok(t) && bytes && t->way->memory(t, bytes);
}

/* ---- an update ------------------------------------------------------------------------------- */

/* The plan of the averages allocates its memory before an update begins, so that running out of
 * memory changes nothing. */
static bool prepare_average(wf_trainer *t) {
    double rate = 0;
    return !t->average || wf_feed_reals(t->average, t->optimizer.average_rate, &rate, 1) ||
           wf_trainer_failed(t, wf_plan_error(t->average));
}

bool wf_trainer_begin(wf_trainer *t, int64_t micro_batches, int64_t *from, int64_t *to) {
    if (!wf_trainer_ok(t)) return false;
    t->error[0] = '\0';
    if (!prepare_average(t)) return false;
    if (micro_batches < 1 || micro_batches > t->most)
        return wf_trainer_failed(t,
                                 "an update has at least one micro-batch, and at most as many as "
                                 "the trainer's option micro_batches");
    int64_t was = t->micro_batches;
    t->micro_batches = micro_batches;
    t->from = 0;
    t->to = micro_batches;
    if (t->way->range && !t->way->range(t)) {
        t->micro_batches = was;
        return false;
    }
    t->next = t->from;
    t->norm = NAN;
    assert(0 <= t->from && t->from <= t->to && t->to <= micro_batches);
    wf_optimizer_rates(&t->options, wf_schedule_rate(&t->schedule, t->steps + 1), t->steps + 1,
                       t->rates);
    if (from) *from = t->from;
    if (to) *to = t->to;
    return true;
}

/* Fetches the numbers of the micro-batch that has run: its loss, its count, and the values of the
 * option `sums`. */
static bool fetch_numbers(wf_trainer *t, double *row) {
    bool ok = wf_fetch_real(t->step, t->loss, &row[0]) && wf_fetch_real(t->step, t->count, &row[1]);
    for (int k = 2; ok && k < t->width; k++) ok = wf_fetch_real(t->step, t->sums[k - 2], &row[k]);
    return ok || wf_trainer_failed(t, wf_plan_error(t->step));
}

bool wf_trainer_add(wf_trainer *t, int64_t i) {
    if (!wf_trainer_ok(t)) return false;
    if (!t->micro_batches)
        return wf_trainer_failed(t, "a micro-batch of no update: wf_trainer_begin");
    if (i != t->next || i >= t->to)
        return wf_trainer_failed(t, "micro-batches of this rank are added in order, each once");
    wf_random_step(t->step, (uint64_t)(t->steps + 1), (uint32_t)i);
    if (!t->way->add(t, i) || !fetch_numbers(t, t->numbers + i * t->width)) return false;
    t->next++;
    return true;
}

/* Adds the numbers in the order of micro-batches. */
static void add_numbers(wf_trainer *t) {
    for (int k = 0; k < t->width; k++) {
        t->totals[k] = t->numbers[k];
        for (int64_t i = 1; i < t->micro_batches; i++) t->totals[k] += t->numbers[i * t->width + k];
    }
}

static wf_progress progress_of(const wf_trainer *t) {
    double loss = t->totals[0], count = t->totals[1];
    return (wf_progress){ .step = t->steps,
                          .loss = count > 0 ? loss / count : loss,
                          .count = count,
                          .norm = t->norm,
                          .rate = t->rates[0],
                          .sums = t->totals + 2,
                          .sent = t->sent,
                          .received = t->received,
                          .exchanging = t->exchanging };
}

static bool average(wf_trainer *t) {
    if (!t->optimizer.averages) return true;
    int64_t k = t->steps - t->averaged_since;
    return t->way->average(t, wf_optimizer_average_rate(&t->options, k));
}

bool wf_trainer_update(wf_trainer *t, wf_progress *out) {
    if (!wf_trainer_ok(t)) return false;
    t->error[0] = '\0';
    if (!t->micro_batches || (!t->transport && t->next < t->to))
        return wf_trainer_failed(t, "an update lacks micro-batches: wf_trainer_begin, then "
                                    "wf_trainer_add of each");
    bool ok = !t->way->update || t->way->update(t);
    if (ok) add_numbers(t);
    t->micro_batches = 0;
    if (!ok) return false;
    t->steps++;
    if (out) *out = progress_of(t);
    return average(t);
}

bool wf_trainer_swap_averages(wf_trainer *t) {
    if (!wf_trainer_ok(t)) return false;
    if (!t->optimizer.averages)
        return wf_trainer_failed(t, "a trainer without averages: set .optimizer.average_decay");
    return t->way->swap(t);
}
