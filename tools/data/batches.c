/* tools/data/batches.c - a corpus in batches. See batches.h. */
#include "batches.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"
#include "tools/cli/refused.h"

enum { SOURCE, TARGET };
enum { OF_PAIRS, OF_BATCHES }; /* the shuffles; each has random numbers of its own */

static int32_t length(const batches *b, int64_t pair, int side) {
    return corpus_at(b->corpus, pair)->length[side];
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* ---- by length ------------------------------------------------------------------------------- */

/* A stable counting sort of from[n] by the length of one side. count has room for longest + 2. */
static void sort_by(const batches *b, int side, const uint32_t *from, uint32_t *to,
                    int64_t *count) {
    int64_t n = b->corpus->pairs, longest = b->corpus->longest[side];
    memset(count, 0, (size_t)(longest + 2) * sizeof *count);
    for (int64_t i = 0; i < n; i++) count[length(b, i, side) + 1]++;
    for (int64_t k = 0; k <= longest; k++) count[k + 1] += count[k];
    for (int64_t i = 0; i < n; i++) to[count[length(b, from[i], side)]++] = from[i];
}

/* Makes source lengths rise and fall alternately from one target length to the next. So a batch
 * with two target lengths has sources of similar lengths. */
static void reverse_every_other(batches *b) {
    int64_t n = b->corpus->pairs;
    for (int64_t begin = 0, end; begin < n; begin = end) {
        int32_t T = length(b, b->sorted[begin], TARGET);
        for (end = begin; end < n && length(b, b->sorted[end], TARGET) == T;) end++;
        for (int64_t i = begin, k = end - 1; T % 2 && i < k; i++, k--) {
            uint32_t pair = b->sorted[i];
            b->sorted[i] = b->sorted[k];
            b->sorted[k] = pair;
        }
    }
}

static bool sort_pairs(batches *b) {
    const corpus *c = b->corpus;
    size_t bins = (size_t)larger(c->longest[SOURCE], c->longest[TARGET]) + 2;
    int64_t *count = calloc(bins, sizeof *count);
    if (!count) return false;
    for (int64_t i = 0; i < c->pairs; i++) b->sorted[i] = (uint32_t)i;
    sort_by(b, SOURCE, b->sorted, b->order, count);
    sort_by(b, TARGET, b->order, b->sorted, count);
    reverse_every_other(b);
    free(count);
    return true;
}

/* The end of the batch that begins at `begin` in `sorted`. It depends only on the lengths, whose
 * order is the same in every epoch. */
static int64_t cut(const batches *b, int64_t begin) {
    int64_t end = begin, S = 0, T = 0;
    for (; end < b->corpus->pairs; end++) {
        int64_t rows = end - begin + 1;
        S = larger(S, length(b, b->sorted[end], SOURCE));
        T = larger(T, length(b, b->sorted[end], TARGET) + 1);
        if (b->limits.sentences && rows > b->limits.sentences) break;
        if (b->limits.tokens && rows * (S + T) > b->limits.tokens) break;
    }
    return end;
}

/* Cuts the pairs into batches, or only counts the batches while b->first is NULL. False with
 * message: a pair fits in no batch. */
static bool cut_all(batches *b, char *message) {
    b->n = 0;
    for (int64_t begin = 0, end; begin < b->corpus->pairs; begin = end) {
        end = cut(b, begin);
        if (end == begin) {
            const corpus_pair *p = corpus_at(b->corpus, b->sorted[begin]);
            return refused(
                message,
                "the pair of line %lld takes %lld tokens and a batch at most %lld: raise "
                "--max-tokens or lower --max-len",
                (long long)p->line, (long long)p->length[SOURCE] + p->length[TARGET] + 1,
                (long long)b->limits.tokens);
        }
        b->n++;
        if (b->first) b->first[b->n] = end;
    }
    return true;
}

/* ---- shuffled -------------------------------------------------------------------------------- */

/* The i-th random number of this epoch in 0..n-1. kind: which shuffle it is for. */
static int64_t draw(const batches *b, uint64_t epoch, uint64_t kind, int64_t i, int64_t n) {
    wf_philox words = wf_philox4x32(wf_mix64(b->limits.seed + 1), (uint64_t)i, epoch << 1 | kind);
    return (int64_t)(wf_unit_double(words.v[0], words.v[1]) * (double)n);
}

/* Shuffles order[begin..end-1] (Fisher and Yates). */
static void shuffle_pairs(batches *b, uint64_t epoch, int64_t begin, int64_t end) {
    for (int64_t i = end - 1; i > begin; i--) {
        int64_t k = begin + draw(b, epoch, OF_PAIRS, i, i - begin + 1);
        uint32_t pair = b->order[i];
        b->order[i] = b->order[k];
        b->order[k] = pair;
    }
}

static void shuffle_batches(batches *b, uint64_t epoch) {
    for (int64_t i = b->n - 1; i > 0; i--) {
        int64_t k = draw(b, epoch, OF_BATCHES, i, i + 1), turn = b->turn[i];
        b->turn[i] = b->turn[k];
        b->turn[k] = turn;
    }
}

static bool same_length(const batches *b, uint32_t x, uint32_t y) {
    return length(b, x, SOURCE) == length(b, y, SOURCE) &&
           length(b, x, TARGET) == length(b, y, TARGET);
}

void batches_epoch(batches *b, int64_t epoch) {
    assert(epoch >= 0);
    int64_t pairs = b->corpus->pairs;
    memcpy(b->order, b->sorted, (size_t)pairs * sizeof *b->order);
    for (int64_t i = 0; i < b->n; i++) b->turn[i] = i;
    if (!b->limits.shuffle) return;
    for (int64_t begin = 0, end; begin < pairs; begin = end) {
        for (end = begin + 1; end < pairs; end++)
            if (!same_length(b, b->sorted[begin], b->sorted[end])) break;
        shuffle_pairs(b, (uint64_t)epoch, begin, end);
    }
    shuffle_batches(b, (uint64_t)epoch);
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Cuts the pairs into batches, in new arrays with an element for each batch. False with message. */
static bool cut_into_batches(batches *b, char *message) {
    if (!cut_all(b, message)) return false;
    b->first = calloc((size_t)b->n + 1, sizeof *b->first);
    b->turn = calloc((size_t)b->n, sizeof *b->turn);
    if (b->first && b->turn) return cut_all(b, message);
    return refused(message, "out of memory for %lld batches", (long long)b->n);
}

bool batches_new(batches *b, const corpus *c, const batches_limits *limits, char *message) {
    assert(limits->sentences >= 0 && limits->tokens >= 0);
    *b = (batches){ .corpus = c, .limits = *limits };
    if (c->pairs > UINT32_MAX) return refused(message, "more than %u pairs", (unsigned)UINT32_MAX);
    assert(c->index.data);
    size_t pairs = (size_t)c->pairs;
    b->sorted = calloc(pairs, sizeof *b->sorted);
    b->order = calloc(pairs, sizeof *b->order);
    bool room = b->sorted && b->order && sort_pairs(b);
    if (!room) snprintf(message, 256, "out of memory for the order of %zu pairs", pairs);
    if (!room || !cut_into_batches(b, message)) {
        batches_free(b);
        return false;
    }
    batches_epoch(b, 0);
    return true;
}

void batches_free(batches *b) {
    free(b->sorted), free(b->order), free(b->first), free(b->turn);
    *b = (batches){ 0 };
}

int64_t batches_rows(const batches *b, int64_t i) {
    assert(i >= 0 && i < b->n);
    return b->first[b->turn[i] + 1] - b->first[b->turn[i]];
}

int64_t batches_pair(const batches *b, int64_t i, int64_t row) {
    assert(row >= 0 && row < batches_rows(b, i));
    return b->order[b->first[b->turn[i]] + row];
}

/* The longest source and the longest target + 1 of batch i. */
static void extents(const batches *b, int64_t i, int64_t *S, int64_t *T) {
    *S = *T = 0;
    for (int64_t row = 0; row < batches_rows(b, i); row++) {
        *S = larger(*S, length(b, batches_pair(b, i, row), SOURCE));
        *T = larger(*T, length(b, batches_pair(b, i, row), TARGET) + 1);
    }
}

bool batches_fill(const batches *b, int64_t i, batch_ids ids, batch *out) {
    int64_t S, T, B = batches_rows(b, i);
    extents(b, i, &S, &T);
    bool aligned = b->corpus->limits.aligned;
    if (!batch_shape(out, B, S, T) || (aligned && !batch_align(out))) return false;
    for (int64_t row = 0; row < B; row++) {
        int64_t pair = batches_pair(b, i, row);
        /* the ids are read directly to where batch_row needs them */
        int32_t *src = out->src + row * S, *answer = out->answer + row * (T - 1);
        corpus_ids(b->corpus, pair, SOURCE, src);
        corpus_ids(b->corpus, pair, TARGET, answer);
        batch_row(out, row, ids, length(b, pair, SOURCE), src, length(b, pair, TARGET), answer);
        if (aligned) link_store_cells(&b->corpus->links, pair, S, out->alignment + row * T * S);
    }
    return true;
}

void batches_largest(const batches *b, int side, int64_t *B, int64_t *S, int64_t *T) {
    *B = *S = *T = 0;
    int64_t most = -1; /* below 0, because batches of targets alone have 0 source tokens */
    for (int64_t i = 0; i < b->n; i++) {
        int64_t s, t, rows = batches_rows(b, i);
        extents(b, i, &s, &t);
        int64_t tokens = rows * ((side != 1 ? s : 0) + (side != 0 ? t : 0));
        if (tokens > most) {
            most = tokens;
            *B = rows;
            *S = s;
            *T = t;
        }
    }
}
