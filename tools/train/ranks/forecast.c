/* tools/train/ranks/forecast.c - simulates the time of a training on more ranks. See forecast.h. */
#include "forecast.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/clock.h"
#include "network.h"
#include "ranks.h"
#include "tools/cli/numbers.h"

/* ---- time on a network ----------------------------------------------------------------------- */

/* The simulated time: computing takes as long as on this machine. Exchanges take no time here, so
 * the network's time is added, one exchange after another. The training's thread waits for its own
 * exchanges; those of the optimizer's thread overlap with the training. */
static struct {
    network n;
    pthread_t trains;
    /* seconds by which simulated time is ahead of the clock: the training's waits so far */
    double behind;
    double before; /* `behind` when this step began */
    double until;  /* simulated time at which the last exchange ends */
    double worked; /* processor time of the optimizer's thread when it began its last exchange */
    pthread_mutex_t mutex;
} in_use = { .mutex = PTHREAD_MUTEX_INITIALIZER };

/* Processor time of the calling thread. For the optimizer's thread it is the time in which that
 * packs and adds gradients between its exchanges. */
static double seconds_worked(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void carry(const traffic *t) {
    if (!in_use.n.rate) return;
    pthread_mutex_lock(&in_use.mutex);
    bool trains = pthread_equal(pthread_self(), in_use.trains);
    double now = wf_seconds_now(), begin = now + in_use.behind, after = in_use.until;
    if (!trains) {
        double worked = seconds_worked();
        after += worked - in_use.worked;
        in_use.worked = worked;
    }
    if (after > begin) begin = after;
    in_use.until = begin + network_seconds(&in_use.n, t);
    if (trains) in_use.behind = in_use.until - now;
    pthread_mutex_unlock(&in_use.mutex);
}

void forecast_step(void) {
    in_use.before = in_use.behind;
}

/* ---- ranks that are not there ---------------------------------------------------------------- */

/* Fills the part of each rank with this rank's own bytes, and the rest of the part with zeros. */
static bool repeat(const wf_transport *t, const char *own, int64_t n, char *receive,
                   const int64_t *at) {
    for (int r = 0; r < t->size; r++) {
        int64_t room = at[r + 1] - at[r], bytes = room < n ? room : n;
        if (bytes && own != receive + at[r]) memmove(receive + at[r], own, (size_t)bytes);
        if (room > bytes) memset(receive + at[r] + bytes, 0, (size_t)(room - bytes));
    }
    return true;
}

static bool alltoallv(wf_transport *t, const void *send, const int64_t *send_at, void *receive,
                      const int64_t *receive_at) {
    int64_t from = send_at[t->rank];
    traffic seen = { 0 };
    traffic_alltoallv(&seen, send_at, receive_at, t->rank, t->size);
    carry(&seen);
    return repeat(t, (const char *)send + from, send_at[t->rank + 1] - from, receive, receive_at);
}

static bool allgatherv(wf_transport *t, const void *send, void *receive, const int64_t *at) {
    traffic seen = { 0 };
    traffic_allgatherv(&seen, at, t->rank, t->size);
    carry(&seen);
    return repeat(t, send, at[t->rank + 1] - at[t->rank], receive, at);
}

static bool barrier(wf_transport *t) {
    (void)t;
    return true;
}

static void nobody_hears(wf_transport *t, int code, const char *why) {
    (void)t;
    (void)code;
    (void)why;
}

void forecast_join(session *s) {
    assert(s->set->run.simulated_ranks >= 2 && !s->transport);
    static wf_transport alone;
    int ranks = (int)s->set->run.simulated_ranks;
    if (s->set->run.network && !network_read(s->set->run.network, &in_use.n))
        usage_error(&train_program,
                    "--network %s: give a rate in Gb, Mb or kb per second and a delay in s, ms or "
                    "us, as 10Gb,50us",
                    s->set->run.network);
    alone = (wf_transport){ .rank = ranks - 1,
                            .size = ranks,
                            .any_thread = true,
                            .alltoallv = alltoallv,
                            .allgatherv = allgatherv,
                            .barrier = barrier,
                            .fail = nobody_hears };
    in_use.trains = pthread_self();
    s->transport = &alone; /* a failure ends only this process */
    s->leads = true;
}

/* ---- what is said ---------------------------------------------------------------------------- */

/* Reports an update that computes for `compute` seconds and exchanges for `moving`. share: batches
 * of the update per batch of this rank. Returns its seconds. */
static double say_network(session *s, double compute, double share, double moving) {
    int ranks = s->transport->size;
    double all = compute + moving, efficiency = share * compute / (ranks * all);
    say(&s->report,
        "network  %s: an update in %.3g s, %.3g s of it exchanging; as fast as %.1f of the %d",
        s->set->run.network, all, moving, efficiency * ranks, ranks);
    jsonl *e = event(&s->report, "network");
    json_real(e, "seconds", all);
    json_real(e, "exchanging", moving);
    json_real(e, "efficiency", efficiency);
    event_send(&s->report);
    return all;
}

double forecast_say(session *s, double seconds) {
    int ranks = s->transport->size;
    char size[OPTION_TEXT_SIZE];
    const double waited = in_use.behind - in_use.before;
    step_work *all = ranks_gather(s, &s->work.last, sizeof *all);
    const step_work last = all[ranks - 1];
    free(all);
    say(&s->report,
        "ranks    %d, at most %lld of the %lld batches of an update each; %s sent by one", ranks,
        (long long)last.batches, (long long)last.parts, bytes_text((double)last.sent, size));
    jsonl *e = event(&s->report, "ranks");
    json_int(e, "ranks", ranks);
    json_int(e, "batches", last.batches);
    json_int(e, "sent", last.sent);
    json_int(e, "received", last.received);
    event_send(&s->report);
    if (!s->set->run.simulated_ranks) return seconds;
    double share = (double)last.parts / (double)last.batches;
    seconds = last.seconds - last.exchanging;
    if (!s->set->run.network) return seconds;
    return say_network(s, seconds, share, waited);
}
