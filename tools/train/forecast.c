/* tools/train/forecast.c - ranks that are not there. See forecast.h. */
#include "forecast.h"

#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "ranks.h"

/* ---- the network ----------------------------------------------------------------------------- */

static bool read_unit(const char *text, const char *const units[3], const double worth[3],
                      double *value) {
    char number[32];
    size_t n = strspn(text, "0123456789.");
    if (n == 0 || n >= sizeof number) return false;
    memcpy(number, text, n), number[n] = '\0';
    if (!wf_parse_real(number, value)) return false;
    for (int i = 0; i < 3; i++)
        if (strcmp(text + n, units[i]) == 0) return *value *= worth[i], *value > 0;
    return false;
}

bool network_read(const char *text, network *n) {
    static const char *const rates[] = { "Gb", "Mb", "kb" }, *const times[] = { "s", "ms", "us" };
    static const double bytes[] = { 1e9 / 8, 1e6 / 8, 1e3 / 8 }, seconds[] = { 1, 1e-3, 1e-6 };
    char rate[32];
    const char *comma = strchr(text, ',');
    size_t length = comma ? (size_t)(comma - text) : 0;
    if (!comma || length >= sizeof rate) return false;
    memcpy(rate, text, length), rate[length] = '\0';
    return read_unit(rate, rates, bytes, &n->rate) &&
           read_unit(comma + 1, times, seconds, &n->delay);
}

double network_seconds(const network *n, int64_t exchanges, int64_t bytes) {
    return (double)exchanges * n->delay + (double)bytes / n->rate;
}

/* ---- ranks that are not there ---------------------------------------------------------------- */

static int64_t exchanges;

/* The others send what it sends, as far as it goes. */
static bool repeat(const wf_transport *t, const char *own, int64_t n, char *receive,
                   const int64_t *at) {
    exchanges++;
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
    return repeat(t, (const char *)send + from, send_at[t->rank + 1] - from, receive, receive_at);
}

static bool allgatherv(wf_transport *t, const void *send, void *receive, const int64_t *at) {
    return repeat(t, send, at[t->rank + 1] - at[t->rank], receive, at);
}

static bool barrier(wf_transport *t) {
    (void)t;
    exchanges++;
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

/* Seconds of an update, of which it computes so many; share: of its batches to this rank's. */
static double say_network(session *s, const rank_work *did, double compute, double share,
                          int64_t calls) {
    network n;
    int ranks = s->ranks->size;
    network_read(s->set->network, &n);
    double moving =
        network_seconds(&n, calls, did->sent > did->received ? did->sent : did->received);
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
    return s->set->network ? say_network(s, &last, seconds, share, exchanges / steps) : seconds;
}
