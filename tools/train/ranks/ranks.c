/* tools/train/ranks/ranks.c - trains with several ranks. See ranks.h. */
#include "ranks.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/random.h"
#include "tools/train/signals.h"

/* ---- one of several -------------------------------------------------------------------------- */

/* A failure of this rank ends the other ranks, too. If another rank has failed already, this one
 * exits without a report. */
static void on_failure(void *transport, int code, const char *sentence) {
    wf_transport *t = transport;
    if (t->code) exit(t->code);
    wf_transport_fail(t, code, sentence);
}

void ranks_join(session *s, wf_transport *t) {
    s->leads = wf_transport_rank(t) == 0;
    if (wf_transport_size(t) == 1) return;
    tell_failures(on_failure, t);
    s->transport = t;
}

/* Ends this rank; the rank that failed, or its watchdog, has reported why. */
void ranks_leave(session *s) {
    int code = s->transport->code ? s->transport->code : EXIT_FAILED;
    if (s->leads && s->work.started > 0 && s->set->run.model && s->kept.step >= 0)
        say(&s->report, "%s keeps step %lld; go on with the same command and --resume",
            s->set->run.model, (long long)s->kept.step);
    jsonl *e = event(&s->report, "end");
    json_int(e, "step", s->at.step);
    json_int(e, "status", code);
    event_send(&s->report);
    report_close(&s->report);
    exit(code);
}

void ranks_failed(session *s, const char *message) {
    if (!s->transport || !s->transport->code) fail(&train_program, "%s", message);
    ranks_leave(s);
}

/* ---- what they agree on ---------------------------------------------------------------------- */

void *ranks_gather(session *s, const void *mine, size_t bytes) {
    assert(bytes > 0);
    void *all = calloc((size_t)wf_transport_size(s->transport), bytes);
    if (!all) fail(&train_program, "out of memory");
    if (!wf_allgather(s->transport, mine, all, bytes)) ranks_leave(s);
    return all;
}

bool ranks_agree(session *s, bool yes) {
    if (!s->transport) return yes;
    bool *all = ranks_gather(s, &yes, sizeof yes);
    yes = all[0];
    free(all);
    return yes;
}

/* State that differs between ranks, such as signals and clocks. */
typedef struct notice {
    int signal; /* signal that this rank got, or 0 */
    bool late;  /* --max-time is over by its clock */
} notice;

void ranks_notice(session *s) {
    const settings *set = s->set;
    notice mine = { caught_signal(), set->run.max_time > 0 &&
                                         wf_seconds_now() - s->work.started >= set->run.max_time };
    notice *all = ranks_gather(s, &mine, sizeof mine);
    s->late = all[0].late;
    for (int r = 0; r < s->transport->size; r++)
        if (all[r].signal) s->signalled = all[r].signal;
    free(all);
}

/* Ranks compare these before the first step, because all must train the same model. */
typedef struct handshake {
    char version[32];
    uint64_t training; /* hash of its settings, its data and its position */
    double best_kept;
} handshake;

static uint64_t hash_store(uint64_t hash, const store *s) {
    return wf_hash_bytes(hash, s->data, s->size);
}

/* Hashes the held-out data, which must be equal on all ranks. */
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
    const int64_t turns[] = {
        set->run.max_steps, set->run.valid_every, set->run.save_every,
        set->run.patience,  set->data.valid_size, s->model ? wf_model_parameter_count(s->model) : 0
    };
    settings_meta meta;
    settings_to_meta(set, &s->at, &s->dataset, &meta);
    uint64_t hash = hash_held(wf_hash_bytes(0, turns, sizeof turns), &s->dataset);
    for (int i = 0; i < meta.n; i++) {
        hash = wf_hash_bytes(hash, meta.pairs[i].key, strlen(meta.pairs[i].key));
        hash = wf_hash_bytes(hash, meta.pairs[i].value, strlen(meta.pairs[i].value));
    }
    return hash;
}

/* Every rank compares all ranks, so that all find the same difference. */
void ranks_compare(session *s) {
    if (!s->transport || s->set->run.simulated_ranks) return;
    handshake mine = { .training = hash_training(s), .best_kept = s->kept.best };
    snprintf(mine.version, sizeof mine.version, "%s", wf_version());
    handshake *all = ranks_gather(s, &mine, sizeof mine);
    for (int r = 1; r < s->transport->size; r++) {
        if (strcmp(all[r].version, all[0].version) != 0)
            fail(&train_program, "rank %d is version %s of weft, and rank 0 %s", r, all[r].version,
                 all[0].version);
        if (all[r].training != all[0].training)
            fail(&train_program,
                 "rank %d has other settings, another text (to learn or held out) or another "
                 "checkpoint than rank 0",
                 r);
    }
    s->kept.best = all[0].best_kept; /* rank 0 writes the best weights */
    free(all);
}
