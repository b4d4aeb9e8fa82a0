/* models/decode.c - greedy decoding: encode a batch once, then one cached step per token.
 *
 * Two plans and a state over the model's graph, made once and used from batch to batch; no node
 * is recorded. A sentence that has ended leaves the batch at once, and never changes what its
 * mates get. */
#include "transformer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What encoding handed over, on the host: one tensor's rows, to be thinned as sentences end. */
typedef struct handed {
    wf_tensor *tensor;
    char *data;
    size_t bytes, row; /* of the batch as encoded; of one sentence */
} handed;

struct wf_decoder {
    wf_transformer *model;
    wf_plan *encode, *decode;
    wf_state *state;
    int capacity;   /* sentences that the state has room for */
    handed *handed; /* cross_k, cross_v of every layer, and the memory's mask */
    int n_handed;
    void *logits; /* of one step, [rows, V] in the model's type */
    int32_t *ids; /* the newest token of each sentence still alive */
    int *alive;   /* which sentence of the batch a row is */
    int32_t *keep;
    char error[512];
};

static bool fail(wf_decoder *d, const char *why) {
    snprintf(d->error, sizeof d->error, "%s", why && why[0] ? why : "out of memory");
    return false;
}

const char *wf_decoder_error(const wf_decoder *d) {
    return d ? d->error : "there is no decoder";
}

void wf_decoder_free(wf_decoder *d) {
    if (!d) return;
    wf_state_free(d->state);
    wf_plan_free(d->encode);
    wf_plan_free(d->decode);
    for (int i = 0; d->handed && i < d->n_handed; i++) free(d->handed[i].data);
    free(d->handed), free(d->logits), free(d->ids), free(d->alive), free(d->keep);
    free(d);
}

static bool open_decoder(wf_decoder *d, wf_transformer *m, wf_pool *pool) {
    d->model = m;
    int64_t layers = m->config.decoder_layers;
    d->encode = wf_transformer_encode_plan(m, pool);
    d->decode = wf_transformer_decode_plan(m, pool);
    if (!wf_plan_ok(d->encode)) return fail(d, wf_plan_error(d->encode));
    if (!wf_plan_ok(d->decode)) return fail(d, wf_plan_error(d->decode));
    d->n_handed = (int)(2 * layers + 1);
    d->handed = calloc((size_t)d->n_handed, sizeof *d->handed);
    if (!d->handed) return fail(d, NULL);
    for (int64_t i = 0; i < layers; i++) {
        d->handed[2 * i].tensor = m->cross_k[i];
        d->handed[2 * i + 1].tensor = m->cross_v[i];
    }
    d->handed[2 * layers].tensor = m->memory_mask;
    return true;
}

wf_decoder *wf_decoder_new(wf_transformer *m, wf_pool *pool, char *message) {
    const char *why = !m ? "there is no model" : wf_error(m->graph);
    wf_decoder *d = m && wf_ok(m->graph) ? calloc(1, sizeof *d) : NULL;
    if (d && open_decoder(d, m, pool)) return d;
    if (d) why = d->error;
    if (message) snprintf(message, WF_MESSAGE, "%.255s", why[0] ? why : "out of memory");
    wf_decoder_free(d);
    return NULL;
}

/* ---- room for a batch ------------------------------------------------------------------------ */

static bool bind(wf_decoder *d, int b, int s, int64_t position) {
    wf_plan *p = d->decode;
    bool ok =
        wf_bind(p, "B", b) && wf_bind(p, "S", s) && wf_bind(p, "T", 1) && wf_bind(p, "P", position);
    return ok || fail(d, wf_plan_error(p));
}

static bool make_room(wf_decoder *d, int b) {
    size_t n = (size_t)b, vocab = (size_t)d->model->config.tgt_vocab;
    if (b <= d->capacity) return true;
    wf_state_free(d->state);
    free(d->logits), free(d->ids), free(d->alive), free(d->keep);
    d->capacity = 0;
    d->state = wf_state_new(d->decode);
    d->logits = calloc(n * vocab, wf_dtype_size(wf_real(d->model->graph)));
    d->ids = calloc(n, sizeof *d->ids);
    d->alive = calloc(n, sizeof *d->alive);
    d->keep = calloc(n, sizeof *d->keep);
    if (!d->state) return fail(d, wf_plan_error(d->decode));
    if (!d->logits || !d->ids || !d->alive || !d->keep) return fail(d, NULL);
    d->capacity = b;
    return true;
}

/* ---- encoding -------------------------------------------------------------------------------- */

static bool take(wf_decoder *d, handed *h, int b) {
    size_t bytes = wf_bound_bytes(d->encode, h->tensor);
    if (bytes > h->bytes || !h->data) {
        char *more = realloc(h->data, bytes ? bytes : 1);
        if (!more) return fail(d, NULL);
        h->data = more, h->bytes = bytes;
    }
    h->row = bytes / (size_t)b;
    return wf_fetch(d->encode, h->tensor, h->data) || fail(d, wf_plan_error(d->encode));
}

static bool encode(wf_decoder *d, int b, int s, const int32_t *src, const int32_t *src_length) {
    wf_plan *p = d->encode;
    bool ok = wf_bind(p, "B", b) && wf_bind(p, "S", s) && wf_feed(p, d->model->src, src) &&
              wf_feed(p, d->model->src_length, src_length) && wf_run(p);
    if (!ok) return fail(d, wf_plan_error(p));
    for (int i = 0; i < d->n_handed; i++)
        if (!take(d, &d->handed[i], b)) return false;
    return true;
}

static bool hand_over(wf_decoder *d) {
    for (int i = 0; i < d->n_handed; i++)
        if (!wf_feed(d->decode, d->handed[i].tensor, d->handed[i].data))
            return fail(d, wf_plan_error(d->decode));
    return true;
}

/* ---- decoding -------------------------------------------------------------------------------- */

/* The largest logit of row i, the first of equals; -1 if one is not a number. */
static int32_t best_token(const wf_decoder *d, int i) {
    int64_t vocab = d->model->config.tgt_vocab, best = 0;
    bool wide = wf_real(d->model->graph) == WF_F64;
    const float *narrow_row = (const float *)d->logits + i * vocab;
    const double *wide_row = (const double *)d->logits + i * vocab;
    double most = -INFINITY;
    for (int64_t v = 0; v < vocab; v++) {
        double logit = wide ? wide_row[v] : (double)narrow_row[v];
        if (isnan(logit)) return -1;
        if (logit > most) most = logit, best = v;
    }
    return (int32_t)best;
}

static bool step(wf_decoder *d, int rows, int s, int64_t position) {
    wf_plan *p = d->decode;
    if (!bind(d, rows, s, position)) return false;
    bool ok = wf_feed(p, d->model->tgt, d->ids) && wf_run_state(p, d->state) &&
              wf_fetch(p, d->model->logits, d->logits);
    return ok || fail(d, wf_plan_error(p));
}

/* Write down each row's new token; keep the rows that go on. Returns their number, -1 if there
 * is no best token. */
static int advance(wf_decoder *d, int rows, int max_new, int32_t *out, int32_t *out_length) {
    const wf_transformer_config *c = &d->model->config;
    int kept = 0;
    for (int i = 0; i < rows; i++) {
        int32_t token = best_token(d, i);
        int sentence = d->alive[i];
        if (token < 0) return fail(d, "the model gives logits that are not numbers"), -1;
        if (token == c->end_id) continue;
        out[(int64_t)sentence * max_new + out_length[sentence]++] = token;
        if (out_length[sentence] == max_new || out_length[sentence] == c->max_len) continue;
        d->keep[kept] = i, d->ids[kept] = token, d->alive[kept] = sentence;
        kept++;
    }
    return kept;
}

/* Drop the rows of sentences that have ended, here and in the state. */
static bool thin(wf_decoder *d, int kept, int s, int64_t position) {
    for (int t = 0; t < d->n_handed; t++)
        for (int i = 0; i < kept; i++)
            memmove(d->handed[t].data + (size_t)i * d->handed[t].row,
                    d->handed[t].data + (size_t)d->keep[i] * d->handed[t].row, d->handed[t].row);
    if (!wf_state_reorder(d->state, d->keep, kept))
        return fail(d, "the state could not be reordered");
    return bind(d, kept, s, position) && hand_over(d);
}

static bool sizes_ok(wf_decoder *d, int b, int s, const int32_t *src_length, int max_new) {
    if (b < 1 || s < 1 || max_new < 1)
        return fail(d, "a batch, its length and the longest output are at least 1");
    for (int i = 0; i < b; i++) {
        if (src_length[i] >= 1 && src_length[i] <= s) continue;
        snprintf(d->error, sizeof d->error, "sentence %d has %d tokens, not 1 to %d", i,
                 (int)src_length[i], s);
        return false;
    }
    return true;
}

bool wf_decode_greedy(wf_decoder *d, int b, int s, const int32_t *src, const int32_t *src_length,
                      int max_new, int32_t *out, int32_t *out_length) {
    if (!d) return false;
    if (!src || !src_length || !out || !out_length)
        return fail(d, "sentences, or room for them, are NULL");
    if (!sizes_ok(d, b, s, src_length, max_new)) return false;
    if (!encode(d, b, s, src, src_length) || !bind(d, b, s, 0) || !make_room(d, b) || !hand_over(d))
        return false;
    for (int i = 0; i < b; i++)
        out_length[i] = 0, d->alive[i] = i, d->ids[i] = d->model->config.start_id;
    int rows = b;
    for (int64_t position = 0; rows > 0; position++) {
        if (!step(d, rows, s, position)) return false;
        int kept = advance(d, rows, max_new, out, out_length);
        if (kept < 0) return false;
        if (kept && kept < rows && !thin(d, kept, s, position + 1)) return false;
        rows = kept;
    }
    for (int i = 0; i < b; i++)
        for (int t = out_length[i]; t < max_new; t++)
            out[(int64_t)i * max_new + t] = d->model->config.end_id;
    return true;
}
