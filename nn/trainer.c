/* nn/trainer.c - a training in progress: an optimizer, its plans and the number of steps. */
#include "trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char step_key[] = "trainer.step";
static const char averaged_key[] = "trainer.averaged_since";

struct wf_trainer {
    wf_graph *g;
    wf_tensor *loss, *count;
    wf_optimizer_options options;
    wf_optimizer optimizer;
    wf_schedule schedule;
    int micro_batches, micro_batch; /* of an update; that of the next run, from 0 */
    int64_t steps;
    int64_t averaged_since;           /* the steps when the averages began */
    double loss_sum, count_sum;       /* of the update in progress */
    wf_plan *step, *update, *average; /* update: with micro-batches; average: if there are any */
    char error[256];
};

static bool failed(wf_trainer *t, const char *why) {
    snprintf(t->error, sizeof t->error, "%s", why);
    return false;
}

/* ---- plans ----------------------------------------------------------------------------------- */

typedef struct tensor_list {
    wf_tensor **data;
    int n;
} tensor_list;

static void add(tensor_list *l, wf_tensor *t) {
    if (t) l->data[l->n++] = t;
}

static void add_all(tensor_list *l, wf_tensor *const *t, int n) {
    for (int i = 0; i < n; i++) add(l, t[i]);
}

/* The inputs that the listed tensors are computed from. Operands come before results, so that one
 * pass from the last node to the first finds all. seen has an entry per node. */
static void add_inputs(tensor_list *feed, wf_graph *g, const tensor_list *of, bool *seen) {
    for (int i = 0; i < of->n; i++) seen[of->data[i]->id] = true;
    for (int id = wf_node_count(g) - 1; id >= 0; id--) {
        wf_tensor *t = wf_node(g, id);
        if (!seen[id]) continue;
        if (t->kind == WF_INPUT) add(feed, t);
        for (int k = 0; k < t->n_in; k++)
            if (t->in[k]) seen[t->in[k]->id] = true;
    }
}

static wf_plan *plan_of(wf_trainer *t, const tensor_list *fetch, const tensor_list *feed,
                        wf_pool *pool, bool training) {
    return wf_plan_new(t->g, &(wf_plan_options){ .fetch = fetch->data,
                                                 .n_fetch = fetch->n,
                                                 .feed = feed->data,
                                                 .n_feed = feed->n,
                                                 .pool = pool,
                                                 .training = training });
}

/* The plan of a step: values and updates, or values and sums of gradients. */
static wf_plan *step_plan(wf_trainer *t, const wf_trainer_options *o, tensor_list fetch,
                          tensor_list feed, bool *seen) {
    const wf_optimizer *r = &t->optimizer;
    bool parts = t->micro_batches > 1;
    add(&fetch, t->loss), add(&fetch, t->count);
    add_all(&fetch, o->fetch, o->n_fetch);
    add_inputs(&feed, t->g, &fetch, seen);
    if (parts) {
        add_all(&fetch, r->accumulation.adds, r->n + 1);
        add(&feed, r->accumulation.at);
    } else {
        add(&fetch, r->norm);
        add_all(&fetch, r->updates, r->n);
        add(&feed, r->rates);
    }
    return plan_of(t, &fetch, &feed, o->pool, true);
}

static wf_plan *update_plan(wf_trainer *t, wf_pool *pool, tensor_list fetch, tensor_list feed) {
    const wf_accumulation *a = &t->optimizer.accumulation;
    add(&fetch, a->norm);
    add_all(&fetch, a->updates, t->optimizer.n);
    add(&feed, t->optimizer.rates);
    return plan_of(t, &fetch, &feed, pool, false);
}

static wf_plan *average_plan(wf_trainer *t, wf_pool *pool, tensor_list fetch, tensor_list feed) {
    add_all(&fetch, t->optimizer.average_updates, t->optimizer.n);
    add(&feed, t->optimizer.average_rate);
    return plan_of(t, &fetch, &feed, pool, false);
}

static bool plan_failed(wf_trainer *t, wf_plan *p) {
    return p && !wf_plan_ok(p) && !failed(t, wf_plan_error(p));
}

/* Room for the lists: every input is fed at most, and the fetches of a step are the most. */
static bool make_plans(wf_trainer *t, const wf_trainer_options *o) {
    size_t nodes = (size_t)wf_node_count(t->g);
    size_t most = 4 + (size_t)o->n_fetch + (size_t)t->optimizer.n;
    wf_tensor **room = calloc(most + nodes + 2, sizeof *room);
    bool *seen = calloc(nodes + 1, sizeof *seen);
    tensor_list fetch = { room, 0 }, feed = { room + most, 0 };
    bool ok = room && seen;
    if (ok) t->step = step_plan(t, o, fetch, feed, seen);
    if (ok && t->micro_batches > 1) t->update = update_plan(t, o->pool, fetch, feed);
    if (ok && t->optimizer.averages) t->average = average_plan(t, o->pool, fetch, feed);
    free(room), free(seen);
    if (!ok) return failed(t, "out of memory");
    return !plan_failed(t, t->step) && !plan_failed(t, t->update) && !plan_failed(t, t->average);
}

/* ---- made and freed -------------------------------------------------------------------------- */

static bool record_optimizer(wf_trainer *t, const wf_trainer_options *o) {
    int n = o->params ? o->n_params : wf_parameters(t->g, NULL, 0);
    wf_tensor **all = calloc((size_t)(n > 0 ? n : 0) + 1, sizeof *all);
    if (!all) return failed(t, "out of memory");
    if (!o->params) wf_parameters(t->g, all, n);
    t->optimizer =
        wf_optimizer_new(t->g, t->loss, t->count, o->params ? o->params : all, n, &t->options);
    free(all);
    return wf_ok(t->g) || failed(t, wf_error(t->g));
}

/* The error in the arguments, or NULL. */
static const char *missing(const wf_graph *g, const wf_tensor *loss, const wf_tensor *count,
                           const wf_trainer_options *o) {
    const char *other = "the loss, the count or a fetch of a trainer is of another graph";
    if (!g) return "the graph of a trainer is NULL";
    if (!wf_ok(g)) return wf_error(g);
    if (!loss || !count) return "the loss or the count of a trainer is NULL";
    if (!o) return "the options of a trainer are NULL";
    if (!(o->schedule.peak > 0) || !isfinite(o->schedule.peak))
        return "a trainer's schedule has no learning rate: set .schedule.peak, as in "
               "{ WF_CONSTANT_RATE, 1e-3 }";
    if (o->n_fetch < 0 || (o->n_fetch > 0 && !o->fetch)) return "the fetches are NULL";
    for (int i = 0; i < o->n_fetch; i++)
        if (!o->fetch[i] || o->fetch[i]->graph != g)
            return o->fetch[i] ? other : "a fetch of a trainer is NULL";
    return loss->graph == g && count->graph == g ? NULL : other;
}

wf_trainer *wf_trainer_new(wf_graph *g, wf_tensor *loss_sum, wf_tensor *count,
                           const wf_trainer_options *options) {
    wf_trainer *t = calloc(1, sizeof *t);
    const char *why = missing(g, loss_sum, count, options);
    if (!t) return NULL;
    if (why) return failed(t, why), t;
    t->g = g, t->loss = loss_sum, t->count = count;
    t->options = options->optimizer, t->schedule = options->schedule;
    t->micro_batches = options->micro_batches > 1 ? options->micro_batches : 1;
    t->options.partial_sums = t->micro_batches > 1 ? wf_partial_sums(t->micro_batches) : 0;
    if (record_optimizer(t, options)) make_plans(t, options);
    return t;
}

void wf_trainer_free(wf_trainer *t) {
    if (!t) return;
    wf_plan_free(t->step), wf_plan_free(t->update), wf_plan_free(t->average);
    wf_optimizer_free(&t->optimizer);
    free(t);
}

bool wf_trainer_ok(const wf_trainer *t) {
    bool made = t && t->step && wf_plan_ok(t->step);
    return made && (!t->update || wf_plan_ok(t->update)) && (!t->average || wf_plan_ok(t->average));
}

const char *wf_trainer_error(const wf_trainer *t) {
    return t ? t->error : "a trainer is NULL: out of memory";
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

/* ---- a step ---------------------------------------------------------------------------------- */

static bool fetch_real(wf_plan *p, const wf_tensor *x, double *out) {
    float single;
    if (x->dtype == WF_F64) return wf_fetch(p, x, out, sizeof *out);
    bool ok = wf_fetch(p, x, &single, sizeof single);
    if (ok) *out = (double)single;
    return ok;
}

/* Run a plan that makes an update, and read the norm. */
static bool run_update(wf_trainer *t, wf_plan *p, const wf_tensor *norm, wf_progress *now) {
    double rates[3], rate = wf_schedule_rate(&t->schedule, t->steps + 1);
    wf_optimizer_rates(&t->options, rate, t->steps + 1, rates);
    return (wf_feed_reals(p, t->optimizer.rates, rates, 3) && wf_run(p) &&
            (!norm || fetch_real(p, norm, &now->norm))) ||
           failed(t, wf_plan_error(p));
}

/* After the update that has just been counted. */
static bool run_average(wf_trainer *t) {
    if (!t->average) return true;
    double rate = wf_optimizer_average_rate(&t->options, t->steps - t->averaged_since);
    return (wf_feed_reals(t->average, t->optimizer.average_rate, &rate, 1) && wf_run(t->average)) ||
           failed(t, wf_plan_error(t->average));
}

/* The run that the caller has fed; the whole update if there are no micro-batches. */
static bool run_fed(wf_trainer *t, wf_progress *now) {
    double loss = 0, count = 0;
    wf_random_step(t->step, (uint64_t)(t->steps + 1), (uint32_t)t->micro_batch);
    if (t->micro_batches == 1) {
        if (!run_update(t, t->step, t->optimizer.norm, now)) return false;
    } else if (!wf_feed_micro_batch(t->step, &t->optimizer, t->micro_batch, t->micro_batches) ||
               !wf_run(t->step))
        return failed(t, wf_plan_error(t->step));
    if (!fetch_real(t->step, t->loss, &loss) || !fetch_real(t->step, t->count, &count))
        return failed(t, wf_plan_error(t->step));
    t->loss_sum = t->micro_batch > 0 ? t->loss_sum + loss : loss;
    t->count_sum = t->micro_batch > 0 ? t->count_sum + count : count;
    t->micro_batch++;
    return true;
}

bool wf_trainer_step(wf_trainer *t, wf_progress *out) {
    wf_progress now = { .norm = NAN };
    if (!wf_trainer_ok(t)) return false;
    t->error[0] = '\0';
    if (!run_fed(t, &now)) return false;
    now.updated = t->micro_batch == t->micro_batches;
    if (now.updated) t->micro_batch = 0; /* if it fails the update begins anew */
    if (now.updated && t->update && !run_update(t, t->update, t->optimizer.accumulation.norm, &now))
        return false;
    now.rate = wf_schedule_rate(&t->schedule, t->steps + 1);
    t->steps += now.updated;
    now.step = t->steps;
    now.count = t->count_sum;
    now.loss = t->count_sum > 0 ? t->loss_sum / t->count_sum : t->loss_sum;
    if (out) *out = now;
    return !now.updated || run_average(t);
}

/* ---- saving and resuming --------------------------------------------------------------------- */

bool wf_trainer_save(wf_trainer *t, const char *path, const wf_meta *meta, int n_meta) {
    char number[32], since[32], message[256] = "";
    if (!wf_trainer_ok(t)) return false;
    if (t->micro_batch > 0)
        return failed(t, "an update is not complete: save after its last micro-batch");
    if (n_meta < 0 || (n_meta > 0 && !meta)) return failed(t, "the metadata are NULL");
    wf_meta *all = calloc((size_t)n_meta + 2, sizeof *all);
    if (!all) return failed(t, "out of memory");
    int own = 0;
    snprintf(number, sizeof number, "%lld", (long long)t->steps);
    snprintf(since, sizeof since, "%lld", (long long)t->averaged_since);
    all[own++] = (wf_meta){ step_key, number };
    if (t->averaged_since > 0) all[own++] = (wf_meta){ averaged_key, since };
    if (n_meta > 0) memcpy(all + own, meta, (size_t)n_meta * sizeof *all);
    bool ok = wf_save(t->g, path, NULL, all, n_meta + own, message);
    free(all);
    return ok || failed(t, message);
}

/* A whole number of steps, or -1. */
static int64_t steps_in(const wf_file *f, const char *key) {
    const char *text = wf_file_meta(f, key);
    double value;
    bool whole = text && wf_parse_real(text, &value) && value >= 0 && value <= 1e15;
    return whole && value == floor(value) ? (int64_t)value : -1;
}

/* Passes on what a load tells the caller, and counts the averages that were loaded. */
typedef struct listener {
    const wf_optimizer *optimizer;
    const wf_load_options *options;
    int loaded;
} listener;

static void hear(void *user, const wf_load_item *item) {
    listener *l = user;
    const wf_optimizer *o = l->optimizer;
    for (int i = 0; o->averages && i < o->n && item->outcome == WF_LOADED; i++)
        l->loaded += item->leaf == o->averages[i];
    if (l->options->each) l->options->each(l->options->user, item);
}

/* Averages that the file lacks begin with the next update; so do all of them then. */
static bool load(wf_trainer *t, const wf_file *f, const wf_load_options *options) {
    listener l = { &t->optimizer, options, 0 };
    int averages = t->optimizer.averages ? t->optimizer.n : 0;
    wf_load_options heard = *options;
    wf_load_report report;
    int64_t steps = steps_in(f, step_key), since = steps_in(f, averaged_key);
    heard.each = hear, heard.user = &l;
    if (!wf_file_ok(f)) return failed(t, wf_file_error(f));
    if (steps < 0)
        return failed(t, "the file does not say after how many steps it was saved: it is not a "
                         "trainer's");
    if (!wf_load(t->g, f, &heard, &report)) return failed(t, report.message);
    bool averaged = l.loaded == averages && since > 0 && since <= steps;
    t->averaged_since = averaged ? since : l.loaded < averages ? steps : 0;
    t->steps = steps, t->micro_batch = 0, t->error[0] = '\0';
    return true;
}

bool wf_trainer_load(wf_trainer *t, const char *path, const wf_load_options *options) {
    if (!wf_trainer_ok(t)) return false;
    wf_file *f = wf_file_open(path);
    bool ok = load(t, f, options ? options : &(wf_load_options){ 0 });
    wf_file_free(f);
    return ok;
}
