/* tools/train/ranks.c - a training by several ranks. See ranks.h. */
#include "ranks.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"

/* ---- one of several -------------------------------------------------------------------------- */

/* Whom failures are told; a program is one rank. */
static wf_transport *others;

static void on_failure(int code, const char *sentence) {
    if (others->code) exit(others->code); /* this one follows from another, which is told */
    wf_transport_fail(others, code, sentence);
}

void ranks_join(session *s, wf_transport *t) {
    s->leads = wf_transport_rank(t) == 0;
    if (wf_transport_size(t) == 1) return;
    s->ranks = others = t;
    tell_failures(on_failure, s->leads);
    s->set->in_ranks = true;
    s->rank_at = calloc((size_t)t->size + 1, sizeof *s->rank_at);
    if (!s->rank_at) fail(&train_program, "out of memory");
}

void ranks_leave(session *s) {
    report_close(&s->report);
    exit(s->ranks->code ? s->ranks->code : EXIT_FAILED);
}

/* ---- what they agree on ---------------------------------------------------------------------- */

/* `bytes` of each into all, by rank. */
static void exchange(session *s, const void *mine, void *all, size_t bytes) {
    for (int r = 0; r <= s->ranks->size; r++) s->rank_at[r] = r * (int64_t)bytes;
    if (!wf_allgatherv(s->ranks, mine, all, s->rank_at)) ranks_leave(s);
}

bool ranks_agree(session *s, bool yes) {
    if (!s->ranks) return yes;
    bool *all = calloc((size_t)s->ranks->size, sizeof *all);
    if (!all) fail(&train_program, "out of memory");
    exchange(s, &yes, all, sizeof yes);
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

static uint64_t hash_training(const session *s) {
    const settings *set = s->set;
    const int64_t turns[] = { set->max_steps, set->valid_every, set->save_every, set->patience,
                              s->model ? wf_model_parameter_count(s->model) : 0 };
    settings_meta meta;
    settings_to_meta(set, &s->at, &s->dataset, &meta);
    uint64_t hash = wf_hash_bytes(0, turns, sizeof turns);
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
             "rank %d has other settings, another text or another checkpoint than rank 0", rank);
}

void ranks_compare(session *s) {
    if (!s->ranks) return;
    greeting mine = { .training = hash_training(s), .best_kept = s->best_kept };
    snprintf(mine.version, sizeof mine.version, "%s", wf_version());
    snprintf(mine.kernels, sizeof mine.kernels, "%s", wf_isa());
    greeting *all = calloc((size_t)s->ranks->size, sizeof *all);
    if (!all) fail(&train_program, "out of memory");
    exchange(s, &mine, all, sizeof mine);
    for (int r = 1; r < s->ranks->size; r++) compare(r, &all[r], &all[0]);
    s->best_kept = all[0].best_kept; /* the files are rank 0's */
    free(all);
}
