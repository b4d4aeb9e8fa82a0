/* models/decode/decoder.c - the decoder: reads a batch of sources once, then takes one cached step
 * per token.
 *
 * Its plans and its state over the model's graph are made once and used for every batch; it records
 * no node. An encoder-decoder encodes the sources, and every step is fed the encoder's outputs. A
 * decoder-only model runs its prompts through the KV cache, in a single run up to the length of the
 * shortest prompt. search.c decides which hypotheses are extended and which end. */
#include "decoder.h"
#include "core/run_internal.h"
#include "models/model_internal.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/lend.h"

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

bool wf_decoder_enter(wf_decoder *d) {
    if (!d) return false;
    if (d->busy)
        return wf_decoder_fail(d, "the decoder is at work: a callback can't make it do more");
    d->busy = true;
    return true;
}

void wf_decoder_leave(wf_decoder *d) {
    d->busy = false;
}

const char *wf_decoder_error(const wf_decoder *d) {
    return d ? d->error : "there is no decoder";
}

static void give_back(grown *g) {
    wf_memory_free(g->data, g->bytes);
    *g = (grown){ 0 };
}

void wf_decoder_free(wf_decoder *d) {
    if (!d) return;
    wf_state_free(d->state);
    wf_plan_free(d->encode), wf_plan_free(d->prompt);
    wf_plan_free(d->step), wf_plan_free(d->hidden_step), wf_plan_free(d->score);
    for (int i = 0; d->memory && i < d->model->n_memory; i++) give_back(&d->memory[i].sentences);
    give_back(&d->prompts);
    free(d->memory), free(d->row_index);
    free(d);
}

static bool open_decoder(wf_decoder *d, wf_model *m, wf_pool *pool) {
    d->model = m;
    d->pool = pool;
    d->memory = calloc((size_t)m->n_memory + 1, sizeof *d->memory);
    if (!d->memory) return wf_decoder_fail(d, "out of memory");
    for (int i = 0; i < m->n_memory; i++) d->memory[i].tensor = m->memory[i];
    wf_plan *start = *(m->src ? &d->encode : &d->prompt) =
        (m->src ? wf_model_encode_plan : wf_model_prompt_plan)(m, pool);
    if (!wf_plan_ok(start)) return wf_decoder_fail_plan(d, start);
    d->step = wf_model_step_plan(m, pool);
    return wf_plan_ok(d->step) || wf_decoder_fail_plan(d, d->step);
}

wf_decoder *wf_decoder_new(wf_model *m, wf_pool *pool, char *message) {
    bool encodes = wf_encoder_of(m) != NULL;
    const char *why = !m ? "there is no model" : wf_error(m->graph);
    if (encodes) why = "an encoder has no outputs to decode: embed prints its vectors";
    wf_decoder *d = m && !encodes && wf_ok(m->graph) ? calloc(1, sizeof *d) : NULL;
    if (d && open_decoder(d, m, pool)) return d;
    if (d) why = d->error;
    if (message) snprintf(message, WF_MESSAGE, "%.255s", why[0] ? why : "out of memory");
    wf_decoder_free(d);
    return NULL;
}

bool wf_decoder_lengths_ok(wf_decoder *d, int b, int s, const int32_t *src,
                           const int32_t *src_length) {
    int least = d->model->src ? 1 : 0;
    if ((!src && s > 0) || !src_length)
        return wf_decoder_fail(d, "the sentences, or their lengths, are NULL");
    if (b < 1 || s < least)
        return wf_decoder_fail(d, least ? "a batch and its length are at least 1"
                                        : "a batch is at least 1, and its length at least 0");
    for (int i = 0; i < b; i++) {
        if (src_length[i] < least || src_length[i] > s)
            return wf_decoder_fail(d, "sentence %d has %d tokens, not %d to %d", i,
                                   (int)src_length[i], least, s);
        if (wf_model_room(d->model, src_length[i]) < 0)
            return wf_decoder_fail(
                d, "sentence %d has %d tokens: this model goes on from %lld at most", i,
                (int)src_length[i], (long long)wf_model_longest_source(d->model));
    }
    return true;
}

/* ---- encoding -------------------------------------------------------------------------------- */

/* Makes room for `bytes` bytes. If the block grows, its contents are lost. */
static bool reserve(wf_decoder *d, grown *r, size_t bytes) {
    if (bytes <= r->bytes && r->data) return true;
    wf_memory_free(r->data, r->bytes);
    r->bytes = 0;
    r->data = wf_memory_new(bytes);
    if (!r->data) return wf_decoder_fail(d, "out of memory");
    r->bytes = bytes;
    return true;
}

static bool take(wf_decoder *d, memory_part *h, int b) {
    size_t bytes = wf_bound_bytes(d->encode, h->tensor);
    if (!reserve(d, &h->sentences, bytes)) return false;
    h->slice = bytes / (size_t)b;
    return wf_fetch(d->encode, h->tensor, h->sentences.data, bytes) ||
           wf_decoder_fail_plan(d, d->encode);
}

/* Encodes the sources. The result is copied, and the plan's memory is freed before decoding needs
 * more. */
static bool encode(wf_decoder *d, int b, int s, const int32_t *src, const int32_t *src_length) {
    wf_plan *p = d->encode;
    size_t row = (size_t)b * sizeof *src;
    bool ok = wf_bind(p, "B", b) && wf_bind(p, "S", s) &&
              wf_feed(p, d->model->src, src, row * (size_t)s) &&
              wf_feed(p, d->model->src_length, src_length, row) && wf_run(p);
    if (!ok) return wf_decoder_fail_plan(d, p);
    for (int i = 0; i < d->model->n_memory; i++)
        if (!take(d, &d->memory[i], b)) return false;
    wf_plan_release(p);
    d->source_length = s;
    return true;
}

/* ---- decoding -------------------------------------------------------------------------------- */

/* Binds a plan with a state to n tokens in each row. */
static bool bind_rows(wf_decoder *d, wf_plan *p, int rows, int64_t n) {
    bool apart = d->model->src, ok = wf_bind(p, "B", rows) && wf_bind(p, "T", n);
    ok = ok && (!apart || wf_bind(p, "S", d->source_length));
    return ok || wf_decoder_fail_plan(d, p);
}

static bool make_room(wf_decoder *d, int rows) {
    if (rows <= d->capacity) return true;
    int32_t *more = realloc(d->row_index, (size_t)rows * sizeof *more);
    if (!more) return wf_decoder_fail(d, "out of memory");
    d->row_index = more;
    wf_state_free(d->state);
    d->capacity = 0;
    d->state = NULL;
    if (!bind_rows(d, d->step, rows, 1) || !wf_bind(d->step, "P", 0))
        return wf_decoder_fail_plan(d, d->step);
    d->state = wf_state_new(d->step);
    if (!d->state) return wf_decoder_fail_plan(d, d->step);
    d->capacity = rows;
    return true;
}

bool wf_decoder_begin(wf_decoder *d, int b, int s, const int32_t *src, const int32_t *src_length,
                      int most_rows) {
    bool encoded = !d->model->src || encode(d, b, s, src, src_length);
    d->running = d->step;
    return encoded && make_room(d, most_rows);
}

/* Rows of one sentence read its encoder outputs from the same memory. */
bool wf_decoder_rows(wf_decoder *d, int n, const int *owner) {
    if (!bind_rows(d, d->running, n, 1)) return false;
    assert(n >= 1 && n <= d->capacity);
    for (int row = 0; row < n; row++) d->row_index[row] = owner[row];
    for (int i = 0; i < d->model->n_memory; i++) {
        memory_part *h = &d->memory[i];
        size_t bytes = (size_t)n * h->slice;
        if (!wf_feed_lent(d->running, h->tensor, h->sentences.data, bytes, d->row_index))
            return wf_decoder_fail_plan(d, d->running);
    }
    return true;
}

int32_t wf_decoder_prompted(const wf_decoder *d, const int32_t *src, int64_t n, int64_t position) {
    assert(position >= 0 && position <= n);
    const wf_model *m = d->model;
    if (m->start_if_empty && src) return src[position];
    int64_t start = m->start_first ? 0 : n;
    if (position == start) return m->start_id;
    return src[position < start ? position : position - 1];
}

bool wf_decoder_prompt(wf_decoder *d, int b, int s, const int32_t *src, int64_t n) {
    wf_plan *p = d->prompt;
    size_t row = (size_t)n * sizeof *src;
    if (!reserve(d, &d->prompts, (size_t)b * row)) return false;
    int32_t *ids = (int32_t *)d->prompts.data;
    for (int64_t i = 0; i < b; i++)
        for (int64_t k = 0; k < n; k++) ids[i * n + k] = wf_decoder_prompted(d, src + i * s, n, k);
    bool ok = bind_rows(d, p, b, n) && wf_bind(p, "P", 0) &&
              wf_feed(p, d->model->tgt, ids, (size_t)b * row) && wf_run_state(p, d->state);
    if (ok) wf_plan_release(p);
    return ok || wf_decoder_fail_plan(d, p);
}

bool wf_decoder_stop_at_hidden(wf_decoder *d) {
    if (!d->hidden_step) d->hidden_step = wf_model_prompt_plan(d->model, d->pool);
    if (!wf_plan_ok(d->hidden_step)) return wf_decoder_fail_plan(d, d->hidden_step);
    d->running = d->hidden_step;
    return true;
}

bool wf_decoder_step(wf_decoder *d, const int32_t *ids, int64_t position) {
    wf_plan *p = d->running;
    const wf_tensor *tgt = d->model->tgt;
    assert(d->state && position >= 0);
    bool ok = wf_bind(p, "P", position) && wf_feed(p, tgt, ids, wf_bound_bytes(p, tgt)) &&
              wf_run_state(p, d->state);
    const wf_tensor *wanted = p == d->step ? d->model->logits : d->model->hidden;
    d->logits = ok ? wf_fetched(p, wanted) : NULL;
    return d->logits || wf_decoder_fail_plan(d, p);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* The bytes of the encoder outputs. */
static size_t memory_bytes(wf_decoder *d) {
    size_t all = 0;
    for (int i = 0; i < d->model->n_memory; i++)
        all += wf_bound_bytes(d->encode, d->memory[i].tensor);
    return all;
}

/* Encoder-decoder: the bytes needed for encoding, and for the encoder outputs. */
static size_t encoding_bytes(wf_decoder *d, int b, int s) {
    bool ok = wf_bind(d->encode, "B", b) && wf_bind(d->encode, "S", s);
    size_t encode = ok ? wf_plan_memory(d->encode) : 0;
    d->source_length = s;
    return encode ? encode + memory_bytes(d) : (wf_decoder_fail_plan(d, d->encode), 0);
}

/* Decoder-only: the bytes needed to run the prompts through the KV cache. */
static size_t prompt_bytes(wf_decoder *d, int b, int s) {
    bool ok = bind_rows(d, d->prompt, b, s > 0 ? s : 1) && wf_bind(d->prompt, "P", 0);
    size_t bytes = ok ? wf_plan_memory(d->prompt) : 0;
    return bytes ? bytes : (wf_decoder_fail_plan(d, d->prompt), 0);
}

static size_t memory(wf_decoder *d, int b, int s, int64_t n) {
    const wf_model *m = d->model;
    int64_t room = wf_model_room(m, s), last = wf_model_begin(m, s) + (n < room ? n : room);
    if (room < 0)
        return wf_decoder_fail(d, "sources of %d tokens: this model reads up to %lld", s,
                               (long long)wf_model_longest_source(m)),
               0;
    size_t start = (m->src ? encoding_bytes : prompt_bytes)(d, b, s);
    if (!start) return 0;
    if (!bind_rows(d, d->step, b, 1) || !wf_bind(d->step, "P", last))
        return wf_decoder_fail_plan(d, d->step), 0;
    wf_state *state = wf_state_new(d->step);
    size_t step = state ? wf_plan_memory(d->step) + wf_state_bytes(state) : 0;
    wf_state_free(state);
    return step ? start + step : (wf_decoder_fail_plan(d, d->step), 0);
}

size_t wf_decoder_memory(wf_decoder *d, int b, int s, int64_t n) {
    if (!wf_decoder_enter(d)) return 0;
    size_t bytes = memory(d, b, s, n);
    wf_decoder_leave(d);
    return bytes;
}
