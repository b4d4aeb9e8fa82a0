/* models/sample.c - tokens drawn at random: temperature, then the top k, then the top p.
 *
 * p(v) ~ exp(logit(v) / temperature); of these the k likeliest (Fan et al. 2018), of these the
 * fewest whose share is at least p (Holtzman et al. 2020). The number that decides is a function
 * of (seed, sentence, step, draw) alone, so that batches and threads change nothing. */
#include "../core/random.h"
#include "../ops/kernels/kernels.h"
#include "decode.h"

#include <math.h>

typedef struct urn {
    const logit_row *row;
    const void *share; /* softmax, in the model's type */
    int32_t *heap;     /* ids, the likeliest on top: only with a top k or a top p */
    int64_t n;
} urn;

size_t draw_scratch(int64_t vocab) {
    size_t bytes = (size_t)vocab * (sizeof(double) + sizeof(int32_t));
    return (bytes + 127) & ~(size_t)127; /* no two threads in one line of the cache */
}

static double share(const urn *u, int64_t v) {
    return logit_at(u->row, u->share, v);
}

/* ---- a heap of tokens ------------------------------------------------------------------------ */

static bool likelier(const urn *u, int32_t a, int32_t b) {
    double pa = share(u, a), pb = share(u, b);
    return pa > pb || (pa == pb && a < b);
}

static void sink(const urn *u, int64_t at, int64_t n) {
    int32_t *heap = u->heap, v = heap[at];
    for (int64_t below; (below = 2 * at + 1) < n; at = below) {
        if (below + 1 < n && likelier(u, heap[below + 1], heap[below])) below++;
        if (!likelier(u, heap[below], v)) break;
        heap[at] = heap[below];
    }
    heap[at] = v;
}

static void build_heap(urn *u) {
    for (int64_t v = 0; v < u->row->vocab; v++)
        if (logit_at(u->row, u->row->open, v) != 0) u->heap[u->n++] = (int32_t)v;
    for (int64_t at = u->n / 2; at-- > 0;) sink(u, at, u->n);
}

/* The k likeliest, or as many as it takes to hold `mass`, move to the heap's end: the likeliest
 * is its last. Returns how many; their mass into *held. */
static int64_t take_out(const urn *u, int64_t k, double mass, double *held) {
    int64_t taken = 0;
    for (*held = 0; taken < k && taken < u->n && *held < mass; taken++) {
        int64_t last = u->n - 1 - taken;
        int32_t v = u->heap[0];
        u->heap[0] = u->heap[last];
        if (last) sink(u, 0, last);
        u->heap[last] = v, *held += share(u, v);
    }
    return taken;
}

/* ---- drawing --------------------------------------------------------------------------------- */

/* Where `at` of [0, 1) falls when the n tokens stand in a row, each as wide as its share. */
static int32_t fall(const urn *u, const int32_t *tokens, int64_t n, double at) {
    double total = 0, sum = 0;
    for (int64_t i = 0; i < n; i++) total += share(u, tokens ? tokens[i] : i);
    int32_t last = -1;
    for (int64_t i = 0; i < n; i++) {
        double width = share(u, tokens ? tokens[i] : i);
        if (width > 0) last = (int32_t)(tokens ? tokens[i] : i);
        if ((sum += width) > at * total) break;
    }
    return last;
}

/* The tokens that may be drawn move to the heap's end; their number. */
static int64_t choose(const urn *u, const wf_decode_options *o) {
    double held, mass = 0;
    for (int64_t i = 0; i < u->n; i++) mass += share(u, u->heap[i]);
    if (o->top_k == 0) return take_out(u, u->n, o->top_p * mass, &held);
    int64_t k = take_out(u, o->top_k, INFINITY, &mass), kept = 0;
    for (held = 0; kept < k && held < o->top_p * mass; kept++)
        held += share(u, u->heap[u->n - 1 - kept]);
    return kept;
}

static double uniform(const wf_decode_options *o, int64_t index, int64_t step, int sample) {
    uint64_t key = wf_hash_bytes(o->seed, "decode", 6);
    uint64_t place = (uint64_t)step << 32 | (uint32_t)sample;
    wf_philox word = wf_philox4x32(key, (uint64_t)index, place);
    return wf_unit_double(word.v[0], word.v[1]);
}

void draw_tokens(const search *q, const logit_row *r, double normaliser, int64_t index, int first,
                 int n, char *scratch, candidate *out) {
    double sharpness = 1 / q->o->temperature;
    if (r->real == WF_F64)
        wf_f64()->softmax_row(r->vocab, r->vocab, r->logits, sharpness, r->open, 1, false,
                              (double *)scratch);
    else
        wf_f32()->softmax_row(r->vocab, r->vocab, r->logits, sharpness, r->open, 1, false,
                              (float *)scratch);
    urn u = { .row = r, .share = scratch };
    const int32_t *tokens = NULL;
    int64_t among = r->vocab;
    if (q->o->top_k > 0 || q->o->top_p < 1) {
        u.heap = (int32_t *)(scratch + (size_t)r->vocab * sizeof(double));
        build_heap(&u);
        among = choose(&u, q->o);
        tokens = u.heap + u.n - among;
    }
    for (int i = 0; i < n; i++) {
        int32_t token = fall(&u, tokens, among, uniform(q->o, index, q->length, first + i));
        if (token >= 0)
            out[i] = (candidate){ logit_at(r, r->logits, token) - normaliser, token };
        else
            likeliest(r, normaliser, 1, &out[i]); /* all that is allowed has probability 0 */
    }
}

int sample_advance(search *q, sentence *s) {
    int n = 0;
    for (int i = 0; i < s->n_live; i++) {
        const live *h = &s->live[i];
        for (int k = 0; k < q->n_candidates[h->row]; k++) {
            const candidate *c = &candidates_of(q, h)[k];
            child next = { i, h->sample + k, c->token, c->log_prob, h->total + c->log_prob };
            if (c->token != q->d->model->config.end_id)
                q->next[n++] = next;
            else
                end_hypothesis(q, s, h, c, next.sample), s->n_ended++;
        }
    }
    return n;
}
