/* tools/train/forecast.c - ranks that are not there. See forecast.h. */
#include "forecast.h"

#include <stdlib.h>
#include <string.h>

#include "network.h"
#include "ranks.h"

/* ---- ranks that are not there ---------------------------------------------------------------- */

static traffic seen;

/* The others send what it sends, as far as it goes. */
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
    traffic_alltoallv(&seen, send_at, receive_at, t->rank, t->size);
    return repeat(t, (const char *)send + from, send_at[t->rank + 1] - from, receive, receive_at);
}

static bool allgatherv(wf_transport *t, const void *send, void *receive, const int64_t *at) {
    traffic_allgatherv(&seen, at, t->rank, t->size);
    return repeat(t, send, at[t->rank + 1] - at[t->rank], receive, at);
}

static bool barrier(wf_transport *t) {
    (void)t;
    return true;
}

static void nobody_hears(wf_transport *t, int code, const char *why) {
    (void)t, (void)code, (void)why;
}

void forecast_join(session *s) {
    static wf_transport alone;
    network n;
    int ranks = (int)s->set->ranks;
    if (s->set->network && !network_read(s->set->network, &n))
        usage_error(&train_program, "--network %s: bits in a second and a delay, as 10Gb,50us",
                    s->set->network);
    alone = (wf_transport){ .rank = ranks - 1,
                            .size = ranks,
                            .alltoallv = alltoallv,
                            .allgatherv = allgatherv,
                            .barrier = barrier,
                            .fail = nobody_hears };
    ranks_take(s, &alone);
    s->leads = true;
}

/* ---- what is said ---------------------------------------------------------------------------- */

/* Seconds of an update, of which it computes so many and exchanges `moving`; share: of its batches
 * to this rank's. */
static double say_network(session *s, double compute, double share, double moving) {
    int ranks = s->ranks->size;
    double all = compute + moving, efficiency = share * compute / (ranks * all);
    say(&s->report,
        "network  %s: an update in %.3g s, %.3g s of it exchanging; as fast as %.1f of the %d",
        s->set->network, all, moving, efficiency * ranks, ranks);
    jsonl *e = event(&s->report, "network");
    json_real(e, "seconds", all);
    json_real(e, "exchanging", moving);
    json_real(e, "efficiency", efficiency);
    event_send(&s->report);
    return all;
}

double forecast_say(session *s, int64_t steps, double seconds) {
    int ranks = s->ranks->size;
    char size[OPTION_TEXT_SIZE];
    const traffic in_steps = seen;
    rank_work *all = calloc((size_t)ranks, sizeof *all);
    if (!all) fail(&train_program, "out of memory");
    ranks_exchange(s, &s->rank.did, all, sizeof *all);
    const rank_work last = all[ranks - 1];
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
    if (!s->set->ranks) return seconds;
    double share = (double)last.parts / (double)last.batches;
    seconds = last.seconds - last.exchanging;
    if (!s->set->network) return seconds;
    network n;
    network_read(s->set->network, &n);
    return say_network(s, seconds, share, network_seconds(&n, &in_steps) / (double)steps);
}
