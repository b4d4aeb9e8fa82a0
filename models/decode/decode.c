/* models/decode/decode.c - the decoder: encode a batch once, then one cached step per token.
 *
 * Two plans and a state over the model's graph, made once and used from batch to batch; no node
 * is recorded. What goes on and what ends is a matter of search.c. */
#include "decode.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool wf_decoder_fail(wf_decoder *d, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(d->error, sizeof d->error, format, args);
    va_end(args);
    return false;
}

bool wf_decoder_fail_plan(wf_decoder *d, wf_plan *p) {
    const char *why = wf_plan_error(p);
    return wf_decoder_fail(d, "%s", why[0] ? why : "out of memory");
}

const char *wf_decoder_error(const wf_decoder *d) {
    return d ? d->error : "there is no decoder";
}

void wf_decoder_free(wf_decoder *d) {
    if (!d) return;
    wf_state_free(d->state);
    wf_plan_free(d->encode), wf_plan_free(d->decode), wf_plan_free(d->score);
    for (int i = 0; d->handed && i < d->n_handed; i++) free(d->handed[i].data);
    free(d->handed), free(d->staged), free(d->logits);
    free(d);
}

static bool open_decoder(wf_decoder *d, wf_transformer *m, wf_pool *pool) {
    d->model = m, d->pool = pool;
    int64_t layers = m->config.decoder_layers;
    d->encode = wf_transformer_encode_plan(m, pool);
    d->decode = wf_transformer_decode_plan(m, pool);
    if (!wf_plan_ok(d->encode)) return wf_decoder_fail_plan(d, d->encode);
    if (!wf_plan_ok(d->decode)) return wf_decoder_fail_plan(d, d->decode);
    d->n_handed = (int)(2 * layers + 1);
    d->handed = calloc((size_t)d->n_handed, sizeof *d->handed);
    if (!d->handed) return wf_decoder_fail(d, "out of memory");
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

bool wf_decoder_lengths_ok(wf_decoder *d, int b, int s, const int32_t *src,
                           const int32_t *src_length) {
    if (!src || !src_length) return wf_decoder_fail(d, "the sentences, or their lengths, are NULL");
    if (b < 1 || s < 1) return wf_decoder_fail(d, "a batch and its length are at least 1");
    for (int i = 0; i < b; i++)
        if (src_length[i] < 1 || src_length[i] > s)
            return wf_decoder_fail(d, "sentence %d has %d tokens, not 1 to %d", i,
                                   (int)src_length[i], s);
    return true;
}

/* ---- encoding -------------------------------------------------------------------------------- */

/* Room for `bytes` in a block that only ever grows. */
static bool reserve(wf_decoder *d, char **data, size_t *have, size_t bytes) {
    if (bytes <= *have && *data) return true;
    char *more = realloc(*data, bytes ? bytes : 1);
    if (!more) return wf_decoder_fail(d, "out of memory");
    *data = more, *have = bytes;
    return true;
}

static bool take(wf_decoder *d, handed *h, int b) {
    size_t bytes = wf_bound_bytes(d->encode, h->tensor);
    if (!reserve(d, &h->data, &h->bytes, bytes)) return false;
    h->slice = bytes / (size_t)b;
    return wf_fetch(d->encode, h->tensor, h->data) || wf_decoder_fail_plan(d, d->encode);
}

static bool encode(wf_decoder *d, int b, int s, const int32_t *src, const int32_t *src_length) {
    wf_plan *p = d->encode;
    bool ok = wf_bind(p, "B", b) && wf_bind(p, "S", s) && wf_feed(p, d->model->src, src) &&
              wf_feed(p, d->model->src_length, src_length) && wf_run(p);
    if (!ok) return wf_decoder_fail_plan(d, p);
    for (int i = 0; i < d->n_handed; i++)
        if (!take(d, &d->handed[i], b)) return false;
    d->source_length = s;
    return true;
}

/* ---- decoding -------------------------------------------------------------------------------- */

static bool bind_rows(wf_decoder *d, int rows) {
    wf_plan *p = d->decode;
    bool ok = wf_bind(p, "B", rows) && wf_bind(p, "S", d->source_length) && wf_bind(p, "T", 1);
    return ok || wf_decoder_fail_plan(d, p);
}

static bool make_room(wf_decoder *d, int rows) {
    size_t vocab = (size_t)d->model->config.tgt_vocab;
    if (rows <= d->capacity) return true;
    wf_state_free(d->state), free(d->logits);
    d->capacity = 0, d->state = NULL;
    d->logits = calloc((size_t)rows * vocab, wf_dtype_size(wf_real(d->model->graph)));
    if (!d->logits) return wf_decoder_fail(d, "out of memory");
    if (!bind_rows(d, rows) || !wf_bind(d->decode, "P", 0))
        return wf_decoder_fail_plan(d, d->decode);
    d->state = wf_state_new(d->decode);
    if (!d->state) return wf_decoder_fail_plan(d, d->decode);
    d->capacity = rows;
    return true;
}

bool wf_decoder_begin(wf_decoder *d, int b, int s, const int32_t *src, const int32_t *src_length,
                      int most_rows) {
    return encode(d, b, s, src, src_length) && make_room(d, most_rows);
}

bool wf_decoder_rows(wf_decoder *d, int n, const int *owner) {
    if (!bind_rows(d, n)) return false;
    for (int i = 0; i < d->n_handed; i++) {
        const handed *h = &d->handed[i];
        if (!reserve(d, &d->staged, &d->staged_bytes, (size_t)n * h->slice)) return false;
        for (int row = 0; row < n; row++)
            memcpy(d->staged + (size_t)row * h->slice, h->data + (size_t)owner[row] * h->slice,
                   h->slice);
        if (!wf_feed(d->decode, h->tensor, d->staged)) return wf_decoder_fail_plan(d, d->decode);
    }
    return true;
}

bool wf_decoder_step(wf_decoder *d, const int32_t *ids, int64_t position) {
    wf_plan *p = d->decode;
    bool ok = wf_bind(p, "P", position) && wf_feed(p, d->model->tgt, ids) &&
              wf_run_state(p, d->state) && wf_fetch(p, d->model->logits, d->logits);
    return ok || wf_decoder_fail_plan(d, p);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* What encoding hands over: fetched, fed, and one tensor of it on the way. */
static size_t handed_bytes(wf_decoder *d) {
    size_t all = 0, largest = 0;
    for (int i = 0; i < d->n_handed; i++) {
        size_t bytes = wf_bound_bytes(d->encode, d->handed[i].tensor);
        all += bytes;
        if (bytes > largest) largest = bytes;
    }
    return 2 * all + largest;
}

size_t wf_decoder_memory(wf_decoder *d, int b, int s, int64_t n) {
    if (!d) return 0;
    int64_t most = d->model->config.max_len - 1;
    size_t logits =
        (size_t)b * (size_t)d->model->config.tgt_vocab * wf_dtype_size(wf_real(d->model->graph));
    bool ok = wf_bind(d->encode, "B", b) && wf_bind(d->encode, "S", s);
    size_t encode = ok ? wf_plan_memory(d->encode) : 0;
    if (!encode) return wf_decoder_fail_plan(d, d->encode), 0;
    size_t between = handed_bytes(d);
    d->source_length = s;
    if (!bind_rows(d, b) || !wf_bind(d->decode, "P", n < most ? n : most))
        return wf_decoder_fail_plan(d, d->decode), 0;
    wf_state *state = wf_state_new(d->decode);
    size_t decode = state ? wf_plan_memory(d->decode) + wf_state_bytes(state) : 0;
    wf_state_free(state);
    if (!decode) return wf_decoder_fail_plan(d, d->decode), 0;
    return encode + between + decode + logits;
}
