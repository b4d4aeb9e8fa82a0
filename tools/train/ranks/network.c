/* tools/train/ranks/network.c - estimates the time of exchanges on a network. See network.h. */
#include "network.h"
#include "core/file_internal.h"

#include <string.h>

#include "core/file.h"

/* ---- what is said of it ---------------------------------------------------------------------- */

static bool read_unit(const char *text, const char *const units[3], const double worth[3],
                      double *value) {
    char number[32];
    size_t n = strspn(text, "0123456789.");
    if (n == 0 || n >= sizeof number) return false;
    memcpy(number, text, n);
    number[n] = '\0';
    if (!wf_parse_real(number, value)) return false;
    for (int i = 0; i < 3; i++)
        if (strcmp(text + n, units[i]) == 0) {
            *value *= worth[i];
            return *value > 0;
        }
    return false;
}

bool network_read(const char *text, network *n) {
    static const char *const rates[] = { "Gb", "Mb", "kb" }, *const times[] = { "s", "ms", "us" };
    static const double bytes[] = { 1e9 / 8, 1e6 / 8, 1e3 / 8 }, seconds[] = { 1, 1e-3, 1e-6 };
    char rate[32];
    const char *comma = strchr(text, ',');
    size_t length = comma ? (size_t)(comma - text) : 0;
    if (!comma || length >= sizeof rate) return false;
    memcpy(rate, text, length);
    rate[length] = '\0';
    return read_unit(rate, rates, bytes, &n->rate) &&
           read_unit(comma + 1, times, seconds, &n->delay);
}

/* ---- how long it takes ----------------------------------------------------------------------- */

double network_seconds(const network *n, const traffic *t) {
    return (double)t->delays * n->delay + (double)t->bytes / n->rate;
}

/* Bytes to or from all other ranks, and the most of them to or from a single rank. */
typedef struct direction {
    int64_t bytes, largest;
} direction;

static direction with_others(const int64_t *at, int rank, int ranks) {
    direction d = { 0 };
    for (int r = 0; r < ranks; r++) {
        int64_t bytes = r == rank ? 0 : at[r + 1] - at[r];
        d.bytes += bytes;
        if (bytes > d.largest) d.largest = bytes;
    }
    return d;
}

static void add(traffic *t, direction out, direction in) {
    t->bytes += out.bytes > in.bytes ? out.bytes : in.bytes;
    int64_t largest = out.largest > in.largest ? out.largest : in.largest;
    t->delays += largest ? 1 + (largest - 1) / (MPI_PIECE * MPI_AT_ONCE) : 1;
}

void traffic_alltoallv(traffic *t, const int64_t *send_at, const int64_t *receive_at, int rank,
                       int ranks) {
    add(t, with_others(send_at, rank, ranks), with_others(receive_at, rank, ranks));
}

void traffic_allgatherv(traffic *t, const int64_t *receive_at, int rank, int ranks) {
    int64_t mine = receive_at[rank + 1] - receive_at[rank];
    add(t, (direction){ mine * (ranks - 1), mine }, with_others(receive_at, rank, ranks));
}
