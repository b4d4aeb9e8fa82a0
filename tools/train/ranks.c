/* tools/train/ranks.c - a training by several ranks. See ranks.h. */
#include "ranks.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/random.h"
#include "diagnose.h"
#include "signals.h"
#include "step.h"

/* What is exchanged in a step: first of each rank, then of each part of the update. */
struct rank_row {
    union {
        struct {
            float signal, late; /* that it got; its time is up */
        } notice;
        batch_sums sums;
    };
};

/* ---- one of several -------------------------------------------------------------------------- */

/* Whom failures are told; a program is one rank. */
static wf_transport *others;

static void on_failure(int code, const char *sentence) {
    if (others->code) exit(others->code); /* this one follows from another, which is told */
    wf_transport_fail(others, code, sentence);
}

void ranks_take(session *s, wf_transport *t) {
    s->ranks = t;
    s->set->own_rank = t->rank, s->set->all_ranks = t->size;
    s->rank.at = calloc((size_t)t->size + 1, sizeof *s->rank.at);
    if (!s->rank.at) fail(&train_program, "out of memory");
}

void ranks_join(session *s, wf_transport *t) {
    s->leads = wf_transport_rank(t) == 0;
    if (wf_transport_size(t) == 1) return;
    others = t;
    tell_failures(on_failure);
    ranks_take(s, t);
}

/* Why is said by whoever failed, or by who watches over them. */
void ranks_leave(session *s) {
    int code = s->ranks->code ? s->ranks->code : EXIT_FAILED;
    if (s->leads && s->started > 0 && s->set->model && s->saved_step >= 0)
        say(&s->report, "%s keeps step %lld; go on with: train --resume -o %s", s->set->model,
            (long long)s->saved_step, s->set->model);
    jsonl *e = event(&s->report, "end");
    json_int(e, "step", s->at.step);
    json_int(e, "status", code);
    event_send(&s->report);
    report_close(&s->report);
    exit(code);
}

void ranks_failed(session *s, const char *message) {
    if (!s->ranks || !s->ranks->code) fail(&train_program, "%s", message);
    ranks_leave(s);
}

/* ---- what they agree on ---------------------------------------------------------------------- */

void ranks_exchange(session *s, const void *mine, void *all, size_t bytes) {
    for (int r = 0; r <= s->ranks->size; r++) s->rank.at[r] = r * (int64_t)bytes;
    if (!wf_allgatherv(s->ranks, mine, all, s->rank.at)) ranks_leave(s);
}

bool ranks_agree(session *s, bool yes) {
    if (!s->ranks) return yes;
    bool *all = calloc((size_t)s->ranks->size, sizeof *all);
    if (!all) fail(&train_program, "out of memory");
    ranks_exchange(s, &yes, all, sizeof yes);
    yes = all[0];
    free(all);
    return yes;
}

/* What a rank brings along. */
typedef struct greeting {
    char version[32], kernels[32];
    uint64_t training; /* a hash of its settings, its data and where it stands */
    double best_kept;
} greeting;

static uint64_t hash_store(uint64_t hash, const store *s) {
    return wf_hash_bytes(hash, s->data, s->size);
}

/* Each judges its share of it, and rank 0 all of their answers. */
static uint64_t hash_held(uint64_t hash, const dataset *m) {
    const holdout *held = &m->valid;
    const token_stream *stream = &m->stream[HELD];
    const windows *cut = &m->windows[HELD];
    const int64_t sizes[] = { held->n, stream->n, stream->bytes, cut->n, cut->T, cut->rows };
    hash = wf_hash_bytes(hash, sizes, sizeof sizes);
    hash = hash_store(hash_store(hash, &held->corpus.tokens), &held->corpus.index);
    for (int64_t i = 0; i < held->n; i++)
        hash = wf_hash_bytes(hash, held->reference[i], strlen(held->reference[i]));
    return hash_store(hash, &stream->ids);
}

static uint64_t hash_training(const session *s) {
    const settings *set = s->set;
    const int64_t turns[] = { set->max_steps,  set->valid_every,
                              set->save_every, set->patience,
                              set->valid_size, s->model ? wf_model_parameter_count(s->model) : 0 };
    settings_meta meta;
    settings_to_meta(set, &s->at, &s->dataset, &meta);
    uint64_t hash = hash_held(wf_hash_bytes(0, turns, sizeof turns), &s->dataset);
    for (int i = 0; i < meta.n; i++) {
        hash = wf_hash_bytes(hash, meta.pairs[i].key, strlen(meta.pairs[i].key));
        hash = wf_hash_bytes(hash, meta.pairs[i].value, strlen(meta.pairs[i].value));
    }
    return hash;
}

/* All of them see the same, and the first failure is told. */
static void compare(int rank, const greeting *it, const greeting *first) {
    if (strcmp(it->version, first->version) != 0)
        fail(&train_program, "rank %d is version %s of weft, and rank 0 %s", rank, it->version,
             first->version);
    if (strcmp(it->kernels, first->kernels) != 0)
        fail(&train_program,
             "rank %d computes with %s kernels and rank 0 with %s, which round otherwise: "
             "WEFT_ISA=%s on all of them",
             rank, it->kernels, first->kernels,
             strcmp(it->kernels, "avx512") == 0 ? first->kernels : it->kernels);
    if (it->training != first->training)
        fail(&train_program,
             "rank %d has other settings, another text (to learn or held out) or another "
             "checkpoint than rank 0",
             rank);
}

void ranks_compare(session *s) {
    if (!s->ranks || s->set->ranks) return;
    greeting mine = { .training = hash_training(s), .best_kept = s->best_kept };
    snprintf(mine.version, sizeof mine.version, "%s", wf_version());
    snprintf(mine.kernels, sizeof mine.kernels, "%s", wf_isa());
    greeting *all = calloc((size_t)s->ranks->size, sizeof *all);
    if (!all) fail(&train_program, "out of memory");
    ranks_exchange(s, &mine, all, sizeof mine);
    for (int r = 1; r < s->ranks->size; r++) compare(r, &all[r], &all[0]);
    s->best_kept = all[0].best_kept; /* the files are rank 0's */
    free(all);
}

/* ---- the optimizer --------------------------------------------------------------------------- */

void ranks_open(session *s) {
    char message[WF_MESSAGE] = "out of memory";
    const wf_model *m = s->model;
    s->rank.rows = calloc((size_t)(s->set->accum + 1), sizeof *s->rank.rows);
    s->rank.all_rows = calloc((size_t)(s->set->accum + s->ranks->size), sizeof *s->rank.all_rows);
    if (s->rank.rows && s->rank.all_rows)
        s->rank.optimizer =
            wf_sharded_new(m->graph, &m->optimizer, m->optimizer.params, &m->training.optimizer,
                           s->set->accum, s->ranks, s->pool, message);
    if (!s->rank.optimizer) ranks_failed(s, message);
}

void ranks_close(session *s) {
    wf_sharded_free(s->rank.optimizer);
    free(s->rank.rows), free(s->rank.all_rows), free(s->rank.at);
}

bool ranks_swap_averages(session *s) {
    return s->rank.optimizer ? wf_sharded_swap_averages(s->rank.optimizer)
                             : wf_optimizer_swap_averages(&s->model->optimizer);
}

void ranks_gather(session *s) {
    if (s->rank.optimizer && !wf_sharded_gather(s->rank.optimizer))
        ranks_failed(s, wf_sharded_error(s->rank.optimizer));
}

void ranks_release(session *s) {
    if (s->rank.optimizer) wf_sharded_release(s->rank.optimizer);
}

/* ---- a step ---------------------------------------------------------------------------------- */

static int64_t first_part(int64_t parts, int rank, int ranks) {
    return parts * rank / ranks;
}

static bool run_part(session *s, int64_t step, int64_t part, int64_t parts, batch_sums *sums) {
    wf_plan *p = s->plan;
    wf_random_step(p, (uint64_t)step, (uint32_t)part);
    next_batch(s, step, part);
    return batch_feed(&s->batch, p, s->model) &&
           wf_sharded_feed(s->rank.optimizer, p, part, parts) && wf_run(p) &&
           fetch_sums(s, p, sums);
}

/* All know the sums of each part, and add them in their order. What stops the training is agreed
 * on: any rank's signal, and rank 0's clock. */
static void share_sums(session *s, int64_t parts) {
    int ranks = s->ranks->size;
    const settings *set = s->set;
    bool late = set->max_time > 0 && wf_seconds_now() - s->started >= set->max_time;
    s->rank.rows[0].notice.signal = (float)caught_signal(), s->rank.rows[0].notice.late = late;
    s->rank.at[0] = 0;
    for (int r = 0; r < ranks; r++) {
        int64_t n = first_part(parts, r + 1, ranks) - first_part(parts, r, ranks);
        s->rank.at[r + 1] = s->rank.at[r] + (n + 1) * (int64_t)sizeof *s->rank.rows;
    }
    if (!wf_allgatherv(s->ranks, s->rank.rows, s->rank.all_rows, s->rank.at)) ranks_leave(s);
    s->rank.late = s->rank.all_rows[0].notice.late > 0;
    const struct rank_row *row = s->rank.all_rows;
    for (int r = 0; r < ranks; r++) {
        int64_t n = (s->rank.at[r + 1] - s->rank.at[r]) / (int64_t)sizeof *row;
        if (row->notice.signal > 0) s->rank.signalled = (int)row->notice.signal;
        for (int64_t i = 1; i < n; i++) add_to_interval(s, &row[i].sums);
        row += n;
    }
}

/* What this rank has done since `before`. */
static rank_work work_since(const session *s, rank_work before) {
    const wf_transport *t = s->ranks;
    return (rank_work){ .sent = t->sent - before.sent,
                        .received = t->received - before.received,
                        .exchanging =
                            t->seconds - wf_sharded_hidden(s->rank.optimizer) - before.exchanging,
                        .seconds = wf_seconds_now() - before.seconds };
}

/* Its batches, the update of all of them, and the averages after it. */
static bool share_step(session *s, int64_t step, int64_t parts) {
    const wf_model *m = s->model;
    wf_sharded *o = s->rank.optimizer;
    double rates[3], norm;
    int64_t from, to;
    wf_sharded_range(o, parts, &from, &to);
    assert(from == first_part(parts, s->ranks->rank, s->ranks->size) &&
           to == first_part(parts, s->ranks->rank + 1, s->ranks->size));
    for (int64_t part = from; part < to; part++)
        if (!run_part(s, step, part, parts, &s->rank.rows[1 + part - from].sums))
            fail(&train_program, "step %lld: %s", (long long)step, wf_plan_error(s->plan));
    s->rank.has_batch = to > from;
    wf_optimizer_rates(&m->training.optimizer, wf_schedule_rate(&s->schedule, step), step, rates);
    bool ok = wf_sharded_update(o, parts, rates, &norm);
    if (!ok && s->ranks->code) ranks_leave(s);
    share_sums(s, parts);
    if (ok) s->norm = (float)norm; /* as one process reads it */
    double rate = wf_optimizer_average_rate(&m->training.optimizer, step);
    if (ok && s->set->ema > 0 && !wf_sharded_average(o, rate)) ranks_failed(s, wf_sharded_error(o));
    return ok;
}

bool ranks_step(session *s, int64_t step) {
    const rank_work before = work_since(s, (rank_work){ 0 });
    int64_t parts = dataset_parts(&s->dataset, step);
    if (!share_step(s, step, parts)) return false;
    int rank = s->ranks->rank, ranks = s->ranks->size;
    s->rank.did = work_since(s, before);
    s->rank.did.parts = parts;
    s->rank.did.batches = first_part(parts, rank + 1, ranks) - first_part(parts, rank, ranks);
    s->recent.exchanging += s->rank.did.exchanging, s->exchanged += s->rank.did.exchanging;
    return true;
}

bool ranks_find_non_finite(session *s, int64_t step, char name[256], char why[256]) {
    struct {
        char name[256], why[256]; /* what is not finite; or else what went wrong */
    } mine = { "", "" }, *all = calloc((size_t)s->ranks->size, sizeof *all);
    const char *error = wf_sharded_error(s->rank.optimizer);
    if (!all) fail(&train_program, "out of memory");
    if (!find_non_finite(s->model, s->rank.has_batch ? &s->batch : NULL, (uint64_t)step, mine.name))
        mine.name[0] = '\0';
    if (!strstr(error, "another rank")) snprintf(mine.why, sizeof mine.why, "%.255s", error);
    ranks_exchange(s, &mine, all, sizeof mine);
    name[0] = why[0] = '\0';
    for (int r = 0; r < s->ranks->size; r++) {
        if (!*name) strcpy(name, all[r].name);
        if (!*why) strcpy(why, all[r].why);
    }
    free(all);
    return *name;
}
