/* tools/train/ranks.c - a training by several ranks. See ranks.h. */
#include "ranks.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/random.h"
#include "diagnose.h"
#include "signals.h"

/* ---- one of several -------------------------------------------------------------------------- */

/* Whom failures are told; a program is one rank. */
static wf_transport *others;

static void on_failure(int code, const char *sentence) {
    if (others->code) exit(others->code); /* this one follows from another, which is told */
    wf_transport_fail(others, code, sentence);
}

void ranks_take(session *s, wf_transport *t) {
    s->ranks = t;
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
    int64_t *at = calloc((size_t)s->ranks->size + 1, sizeof *at);
    if (!at) fail(&train_program, "out of memory");
    for (int r = 0; r <= s->ranks->size; r++) at[r] = r * (int64_t)bytes;
    bool ok = wf_allgatherv(s->ranks, mine, all, at);
    free(at);
    if (!ok) ranks_leave(s);
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

/* Signals and clocks, which differ between ranks. */
typedef struct notice {
    int signal; /* that it got, or 0 */
    bool late;  /* its time is up */
} notice;

void ranks_notice(session *s) {
    const settings *set = s->set;
    notice mine = { caught_signal(),
                    set->max_time > 0 && wf_seconds_now() - s->started >= set->max_time };
    notice *all = calloc((size_t)s->ranks->size, sizeof *all);
    if (!all) fail(&train_program, "out of memory");
    ranks_exchange(s, &mine, all, sizeof mine);
    s->late = all[0].late;
    for (int r = 0; r < s->ranks->size; r++)
        if (all[r].signal) s->signalled = all[r].signal;
    free(all);
}

/* What a rank brings along. */
typedef struct greeting {
    char version[32];
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
    greeting *all = calloc((size_t)s->ranks->size, sizeof *all);
    if (!all) fail(&train_program, "out of memory");
    ranks_exchange(s, &mine, all, sizeof mine);
    for (int r = 1; r < s->ranks->size; r++) compare(r, &all[r], &all[0]);
    s->best_kept = all[0].best_kept; /* the files are rank 0's */
    free(all);
}

/* ---- a step that failed ----------------------------------------------------------------------- */

bool ranks_find_non_finite(session *s, int64_t step, char name[256], char why[256]) {
    struct {
        char name[256], why[256]; /* what is not finite; or else what went wrong */
    } mine = { "", "" }, *all = calloc((size_t)s->ranks->size, sizeof *all);
    const char *error = wf_trainer_error(s->trainer);
    if (!all) fail(&train_program, "out of memory");
    if (!find_non_finite(s->model, wf_trainer_optimizer(s->trainer),
                         s->did.batches ? &s->batch : NULL, (uint64_t)step, mine.name))
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
