/* models/decode/sample.c - draws tokens at random: temperature, then top-k, then top-p.
 *
 * p(v) ~ exp(logit(v) / temperature). Top-k keeps the k likeliest tokens (Fan et al. 2018); top-p
 * keeps the fewest whose probabilities sum to at least p (Holtzman et al. 2020). The random number
 * is a function of (seed, sentence, step, draw) alone, so that batches and threads change
 * nothing. */
#include "core/base/random.h"
#include "ops/kernels/kernels.h"
#include "search.h"

#include <assert.h>

/* BLOCK: how many probabilities are summed together. FEW: up to this k, top-k is found without a
 * list of all tokens. */
enum { BLOCK = 256, FEW = 64 };

typedef struct urn {
    const logit_row *row;
    /* softmax in the model's type; 0 for disallowed tokens */
    const void *share;
    /* [n] the tokens that may be drawn; NULL: all tokens */
    int32_t *tokens;
    int64_t n;
} urn;

size_t wf_draw_scratch(int64_t vocab) {
    size_t bytes = (size_t)vocab * (sizeof(double) + sizeof(int32_t));
    return (bytes + 127) & ~(size_t)127; /* rounded up, so that no two threads share a cache line */
}

static double share(const urn *u, int64_t v) {
    return wf_logit_at(u->row, u->share, v);
}

/* The sum of the probabilities of BLOCK tokens, from token BLOCK * block on. */
static double block_share(const urn *u, int64_t block) {
    int64_t from = block * BLOCK, rest = u->row->vocab - from, n = rest < BLOCK ? rest : BLOCK;
    return u->row->real == WF_F64 ? wf_f64()->sum(n, (const double *)u->share + from)
                                  : wf_f32()->sum(n, (const float *)u->share + from);
}

static double total_share(const urn *u) {
    double total = 0;
    for (int64_t block = 0; block * BLOCK < u->row->vocab; block++) total += block_share(u, block);
    return total;
}

/* ---- which tokens may be drawn --------------------------------------------------------------- */

static bool likelier(const urn *u, int32_t a, int32_t b) {
    double pa = share(u, a), pb = share(u, b);
    return pa > pb || (pa == pb && a < b);
}

static void swap(int32_t *a, int32_t *b) {
    int32_t c = *a;
    *a = *b;
    *b = c;
}

/* Partitions tokens [from, to) by a pivot, the middle one: likelier tokens move before it. Returns
 * the pivot's new index. *held becomes the number of these likelier tokens if `counts` is true,
 * else the sum of their probabilities. */
static int64_t part(const urn *u, int64_t from, int64_t to, bool counts, double *held) {
    int32_t *tokens = u->tokens, pivot = tokens[from + (to - from) / 2];
    int64_t at = from;
    swap(&tokens[from + (to - from) / 2], &tokens[to - 1]);
    *held = 0;
    for (int64_t i = from; i < to - 1; i++) {
        if (!likelier(u, tokens[i], pivot)) continue;
        *held += counts ? 1 : share(u, tokens[i]);
        swap(&tokens[i], &tokens[at++]);
    }
    swap(&tokens[at], &tokens[to - 1]);
    return at;
}

/* Keeps the fewest likeliest tokens whose number, or sum of probabilities, reaches `least`.
 * Quickselect (Hoare 1961) with sums in place of ranks: nothing is sorted, and equal probabilities
 * have a fixed order. */
static void keep(urn *u, bool counts, double least) {
    int64_t from = 0, to = u->n;
    double before = 0, held;
    while (from < to) {
        int64_t at = part(u, from, to, counts, &held);
        double pivot = counts ? 1 : share(u, u->tokens[at]);
        if (before + held >= least)
            to = at;
        else if (before + held + pivot >= least)
            from = to = at + 1;
        else {
            before += held + pivot;
            from = at + 1;
        }
    }
    u->n = from;
}

/* Lists the allowed tokens that may belong to the top p. All tokens with probabilities below (1 -
 * p) / V have less than 1 - p together, so none of them belongs to the top p. */
static void list(urn *u, const wf_decode_options *o) {
    double floor = 0;
    if (o->top_k == 0) floor = (1 - o->top_p) * total_share(u) / (double)u->row->vocab;
    for (int64_t v = 0; v < u->row->vocab; v++)
        if (share(u, v) >= floor && wf_logit_at(u->row, u->row->open, v) != 0)
            u->tokens[u->n++] = (int32_t)v;
}

static void keep_few(urn *u, int k) {
    candidate top[FEW];
    u->n = wf_likeliest(u->row, 0, k, top);
    for (int64_t i = 0; i < u->n; i++) u->tokens[i] = top[i].token;
}

static void restrict_to(urn *u, const wf_decode_options *o) {
    if (o->top_k > 0 && o->top_k <= FEW)
        keep_few(u, o->top_k);
    else
        list(u, o);
    if (o->top_k > FEW) keep(u, true, o->top_k);
    if (o->top_p >= 1) return;
    double mass = o->top_k > 0 ? 0 : total_share(u);
    for (int64_t i = 0; o->top_k > 0 && i < u->n; i++) mass += share(u, u->tokens[i]);
    keep(u, false, o->top_p * mass);
}

/* ---- drawing --------------------------------------------------------------------------------- */

/* Maps `at` in [0, 1) to a token: each token has a part of the interval as long as its probability.
 * If rounding leaves the sum too small, the last token with a probability above 0 is taken. -1: all
 * probabilities are 0. */
static int32_t fall_among(const urn *u, double at) {
    double total = 0, sum = 0;
    int32_t last = -1;
    for (int64_t i = 0; i < u->n; i++) total += share(u, u->tokens[i]);
    for (int64_t i = 0; i < u->n && sum <= at * total; i++) {
        double width = share(u, u->tokens[i]);
        if (width > 0) last = u->tokens[i];
        sum += width;
    }
    return last;
}

static int32_t fall_anywhere(const urn *u, double at) {
    double total = total_share(u), sum = 0;
    int64_t v = 0, n = u->row->vocab;
    int32_t last = -1;
    for (double more; v + BLOCK < n; v += BLOCK, sum += more)
        if (sum + (more = block_share(u, v / BLOCK)) > at * total) break;
    for (; v < n && (last < 0 || sum <= at * total); v++) {
        double width = share(u, v);
        if (width > 0) last = (int32_t)v;
        sum += width;
    }
    return last;
}

static double uniform(const wf_decode_options *o, int64_t index, int64_t step, int sample) {
    uint64_t key = wf_hash_bytes(o->seed, "decode", 6);
    uint64_t place = (uint64_t)step << 32 | (uint32_t)sample;
    wf_philox word = wf_philox4x32(key, (uint64_t)index, place);
    return wf_unit_double(word.v[0], word.v[1]);
}

void wf_draw_tokens(const search *q, const logit_row *r, double normaliser, const sentence *s,
                    int first, int n, char *scratch, candidate *out) {
    assert(n >= 1 && first >= 0 && q->o->temperature > 0);
    double sharpness = 1 / q->o->temperature;
    if (r->real == WF_F64)
        wf_f64()->softmax_row(r->vocab, r->vocab, r->logits, sharpness, r->open, 1, false,
                              (double *)scratch);
    else
        wf_f32()->softmax_row(r->vocab, r->vocab, r->logits, sharpness, r->open, 1, false,
                              (float *)scratch);
    urn u = { .row = r, .share = scratch };
    if (q->o->top_k > 0 || q->o->top_p < 1) {
        u.tokens = (int32_t *)(scratch + (size_t)r->vocab * sizeof(double));
        restrict_to(&u, q->o);
    }
    for (int i = 0; i < n; i++) {
        double at = uniform(q->o, s->index, wf_length_of(q, s), first + i);
        int32_t token = u.tokens ? fall_among(&u, at) : fall_anywhere(&u, at);
        if (token >= 0)
            out[i] = (candidate){ wf_logit_at(r, r->logits, token) - normaliser, token };
        else
            wf_likeliest(r, normaliser, 1, &out[i]); /* all allowed tokens have probability 0 */
    }
}

int wf_sample_advance(search *q, sentence *s) {
    int n = 0;
    for (int i = 0; i < s->n_live; i++) {
        const live *h = &s->live[i];
        for (int k = 0; k < q->n_candidates[h->row]; k++) {
            const candidate *c = &wf_candidates_of(q, h)[k];
            child next = { i, h->sample + k, c->token, c->log_prob, h->total + c->log_prob };
            bool ends = c->token == q->d->model->end_id;
            wf_watch_note(q, s, i, c, ends ? WF_FATE_ENDED : WF_FATE_LIVE);
            if (!ends)
                q->next[n++] = next;
            else {
                wf_end_hypothesis(q, s, h, c, next.sample);
                s->n_ended++;
            }
        }
    }
    return n;
}
