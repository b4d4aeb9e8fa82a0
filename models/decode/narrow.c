/* models/decode/narrow.c - a search among the candidates of a shortlist.
 *
 * A sentence's candidates are those for its own source, and the end token. So its output does not
 * depend on the other sentences of the batch. Probabilities sum to 1 over the candidates: their
 * logits are gathered into a short row. Rules find tokens by their ids, so they get a whole row,
 * where all other tokens have minus infinity. */
#include "narrow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "models/model_internal.h"

/* The candidates of sentence i are ids[ends[i - 1]] to ids[ends[i] - 1]; those of sentence 0 begin
 * at ids[0]. */
struct narrow {
    int32_t *ids;
    size_t room;
    int64_t *ends;   /* [b] */
    few_logits *few; /* NULL: steps compute all logits */
};

/* Inserts the end token into n ascending ids, unless it is among them. The array must have room for
 * n + 1. Returns the new number of ids. */
static int64_t with_end(int32_t *ids, int64_t n, int32_t end) {
    int64_t at = 0;
    while (at < n && ids[at] < end) at++;
    if (at < n && ids[at] == end) return n;
    memmove(ids + at + 1, ids + at, (size_t)(n - at) * sizeof *ids);
    ids[at] = end;
    return n + 1;
}

static bool add_sentence(search *q, narrow *n, int64_t i, const int32_t *src, int64_t length) {
    const wf_model *m = q->d->model;
    int64_t from = i ? n->ends[i - 1] : 0, vocab = m->tgt_vocab;
    if (!wf_grow(&n->ids, &n->room, (size_t)(from + vocab), sizeof *n->ids))
        return wf_decoder_fail(q->d, "out of memory");
    int32_t *ids = n->ids + from;
    int64_t count = wf_shortlist_candidates(q->o->shortlist, src, length, ids, vocab);
    if (count < 0)
        return wf_decoder_fail(q->d,
                               "the candidates of sentence %lld: out of memory, or one of its "
                               "tokens is not in the vocabulary",
                               (long long)i);
    n->ends[i] = from + with_end(ids, count, m->end_id);
    return true;
}

bool wf_narrow_open(search *q, int s, const int32_t *src, const int32_t *src_length) {
    if (!q->o->shortlist) return true;
    narrow *n = q->narrow = calloc(1, sizeof *n);
    if (n) n->ends = calloc((size_t)q->b, sizeof *n->ends);
    if (!n || !n->ends) return wf_decoder_fail(q->d, "out of memory");
    for (int64_t i = 0; i < q->b; i++)
        if (!add_sentence(q, n, i, src + i * s, src_length[i])) return false;
    return q->watch || wf_few_logits_open(q, n->ids, n->ends[q->b - 1], &n->few);
}

bool wf_narrow_step(search *q) {
    if (!wf_decoder_step(q->d, q->ids, q->position)) return false;
    return !q->narrow || !q->narrow->few || wf_few_logits_compute(q->narrow->few, q->d, q->rows);
}

void wf_narrow_close(search *q) {
    if (!q->narrow) return;
    free(q->narrow->ids);
    free(q->narrow->ends);
    wf_few_logits_close(q->narrow->few);
    free(q->narrow);
}

/* The bytes of one row, in whole cache lines. The scratch has three rows: the candidates' logits,
 * which of them are allowed, and a whole row. */
static size_t row_bytes(const wf_model *m) {
    return ((size_t)m->tgt_vocab * sizeof(double) + 63) & ~(size_t)63;
}

size_t wf_narrow_scratch(const wf_decode_options *o, const wf_model *m) {
    return o->shortlist ? 3 * row_bytes(m) : 0;
}

#define GATHER(real)                                                                               \
    static void gather_##real(const real *from, real *to, const int32_t *ids, int64_t n) {         \
        for (int64_t i = 0; i < n; i++) to[i] = from[ids[i]];                                      \
    }                                                                                              \
    static void spread_##real(const real *from, real *to, int64_t vocab, const int32_t *ids,       \
                              int64_t n) {                                                         \
        for (int64_t i = 0; i < vocab; i++) to[i] = -(real)INFINITY;                               \
        for (int64_t i = 0; i < n; i++) to[ids[i]] = from[ids[i]];                                 \
    }
GATHER(float)
GATHER(double)

static const int32_t *ids_of(const search *q, const sentence *s, int64_t *n) {
    int64_t i = s - q->sentences, from = i ? q->narrow->ends[i - 1] : 0;
    *n = q->narrow->ends[i] - from;
    return q->narrow->ids + from;
}

logit_row wf_narrow_few(const search *q, const sentence *s, const logit_row *of, char *scratch) {
    logit_row few = *of;
    if (!q->narrow) return few;
    char *open = scratch + row_bytes(q->d->model);
    const int32_t *ids = ids_of(q, s, &few.vocab);
    if (of->real == WF_F64) {
        gather_double(of->logits, (double *)(void *)scratch, ids, few.vocab);
        gather_double(of->open, (double *)(void *)open, ids, few.vocab);
    } else {
        gather_float(of->logits, (float *)(void *)scratch, ids, few.vocab);
        gather_float(of->open, (float *)(void *)open, ids, few.vocab);
    }
    few.logits = scratch;
    few.open = open;
    return few;
}

void wf_narrow_tokens(const search *q, const sentence *s, candidate *c, int n) {
    int64_t count;
    if (!q->narrow) return;
    const int32_t *ids = ids_of(q, s, &count);
    for (int i = 0; i < n; i++) c[i].token = ids[c[i].token];
}

void wf_narrow_row(const search *q, const sentence *s, char *scratch, logit_row *of) {
    int64_t n;
    if (!q->narrow) return;
    const int32_t *ids = ids_of(q, s, &n);
    char *row = scratch + 2 * row_bytes(q->d->model);
    if (of->real == WF_F64)
        spread_double(of->logits, (double *)(void *)row, of->vocab, ids, n);
    else
        spread_float(of->logits, (float *)(void *)row, of->vocab, ids, n);
    of->logits = row;
}

bool wf_narrow_leaves(const search *q, const sentence *s, const logit_row *r) {
    candidate best;
    if (!q->narrow || wf_length_of(q, s) >= q->o->min_len) return true; /* at least the end */
    return wf_likeliest(r, 0, 1, &best) == 1 && best.log_prob > -INFINITY;
}
