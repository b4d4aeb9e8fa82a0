/* tools/data/stream.c - running text: its documents, its token ids, its windows. See stream.h. */
#include "stream.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"
#include "core/base/utf8.h"
#include "tools/cli/refused.h"

enum { BUFFER = 1024 };

/* ---- documents ------------------------------------------------------------------------------- */

void documents_start(documents *d, spool *s, size_t from, size_t stop, const char *marker) {
    assert(from <= stop);
    *d = (documents){ .from = s, .at = from, .stop = stop, .marker = marker };
}

void documents_close(documents *d) {
    free(d->buffer);
    *d = (documents){ 0 };
}

size_t documents_at(const documents *d) {
    return d->at - (d->end - d->begin);
}

/* Fills the free space of the buffer. False: the text cannot be read, or out of memory: errno. */
static bool fill(documents *d) {
    if (!d->buffer && !(d->buffer = malloc(LONGEST_PART + 1))) {
        errno = ENOMEM;
        return false;
    }
    if (d->begin) memmove(d->buffer, d->buffer + d->begin, d->end - d->begin);
    d->end -= d->begin;
    d->begin = 0;
    while (d->end < LONGEST_PART) {
        ssize_t got = spool_read(d->from, d->at, d->buffer + d->end, LONGEST_PART - d->end);
        if (got < 0) return false;
        if (got == 0) break;
        d->at += (size_t)got;
        d->end += (size_t)got;
    }
    return true;
}

/* The length of a prefix that ends between UTF-8 characters. A last character of several bytes is
 * left out, even if it is complete; it has at most three continuation bytes. */
static size_t whole_characters(const char *text, size_t n) {
    size_t end = n;
    while (end + 3 > n && end > 1 && wf_utf8_continues(text[end - 1])) end--;
    bool leads = wf_utf8_announced(text + end - 1, WF_UTF8_MOST) > 1;
    return leads && end > 1 ? end - 1 : n;
}

static bool is_marker(const documents *d, const char *line, size_t bytes) {
    if (!d->marker || d->inside) return false;
    if (bytes && line[bytes - 1] == '\n') bytes--;
    if (bytes && line[bytes - 1] == '\r') bytes--;
    return bytes == strlen(d->marker) && memcmp(line, d->marker, bytes) == 0;
}

text_status documents_next(documents *d, const char **part, size_t *bytes) {
    size_t left = d->end - d->begin;
    if (!d->inside && documents_at(d) >= d->stop) return TEXT_END;
    char *stop = left ? memchr(d->buffer + d->begin, '\n', left) : NULL;
    if (!stop) {
        if (!fill(d)) return TEXT_FAILED;
        left = d->end;
        if (!left) return TEXT_END;
        stop = memchr(d->buffer, '\n', left);
    }
    const char *line = d->buffer + d->begin;
    bool full = !stop && left == LONGEST_PART;
    size_t n = full ? whole_characters(line, left) : left;
    if (stop) n = (size_t)(stop - line) + 1;
    d->begin += n;
    if (is_marker(d, line, n)) return TEXT_MARKER;
    d->inside = full;
    *part = line;
    *bytes = n;
    return TEXT_PART;
}

/* ---- ids ------------------------------------------------------------------------------------- */

bool stream_new(token_stream *s, int64_t vocab, int32_t end, size_t in_memory, char *message) {
    assert(end >= 0 && end < vocab);
    *s = (token_stream){ .end = end, .id_bytes = vocab <= 1 << 16 ? 2 : 4 };
    store_new(&s->ids, in_memory);
    return stream_add(s, &end, 1, 0, message);
}

void stream_free(token_stream *s) {
    store_free(&s->ids);
    *s = (token_stream){ 0 };
}

bool stream_add(token_stream *s, const int32_t *ids, int64_t n, int64_t bytes, char *message) {
    assert(n >= 0 && bytes >= 0);
    uint16_t narrow[BUFFER];
    s->n += n;
    s->bytes += bytes;
    if (s->id_bytes == 4) return store_append(&s->ids, ids, (size_t)n * sizeof *ids, message);
    for (int64_t at = 0; at < n; at += BUFFER) {
        int64_t part = n - at < BUFFER ? n - at : BUFFER;
        for (int64_t i = 0; i < part; i++) narrow[i] = (uint16_t)ids[at + i];
        if (!store_append(&s->ids, narrow, (size_t)part * sizeof *narrow, message)) return false;
    }
    return true;
}

bool stream_end_document(token_stream *s, char *message) {
    int64_t bytes = s->bytes;
    if (bytes == s->ended) return true;
    s->ended = bytes;
    s->documents++;
    return stream_add(s, &s->end, 1, 0, message);
}

bool stream_seal(token_stream *s, char *message) {
    return stream_end_document(s, message) && store_seal(&s->ids, message);
}

void stream_ids(const token_stream *s, int64_t from, int64_t n, int32_t *ids) {
    assert(s->ids.data);
    assert(from >= 0 && n >= 0 && from + n <= s->n);
    const uint16_t *narrow = (const uint16_t *)(const void *)s->ids.data + from;
    const int32_t *wide = (const int32_t *)(const void *)s->ids.data + from;
    for (int64_t i = 0; i < n; i++) ids[i] = s->id_bytes == 2 ? narrow[i] : wide[i];
}

/* ---- windows --------------------------------------------------------------------------------- */

/* If so many windows or more fit into a text, an epoch has one window less than fit. Then each
 * epoch can be cut at another offset. */
enum { MANY = 16 };

static int64_t count_windows(const windows *w) {
    int64_t tokens = w->of->n - 1; /* tokens that are followed by another one */
    int64_t n = tokens / w->T;
    if (w->whole) return (tokens + w->T - 1) / w->T;
    return n < MANY ? n : n - 1;
}

bool windows_new(windows *w, const token_stream *of, int64_t T, int64_t rows, bool whole,
                 uint64_t seed, char *message) {
    assert(T >= 1 && rows >= 1);
    *w = (windows){ .of = of, .T = T, .rows = rows, .whole = whole, .seed = seed };
    w->n = count_windows(w);
    if (w->n < 1)
        return refused(message,
                       "the text has only %lld tokens, and a training example takes %lld of them: "
                       "give more text, or a --max-len below %lld",
                       (long long)of->n, (long long)T + 1, (long long)of->n);
    if (w->n > UINT32_MAX) return refused(message, "more than %u windows", (unsigned)UINT32_MAX);
    if (w->rows > w->n) w->rows = w->n;
    w->batches = whole ? (w->n + w->rows - 1) / w->rows : w->n / w->rows;
    if (!whole) w->turn = malloc((size_t)w->n * sizeof *w->turn);
    if (!whole && !w->turn)
        return refused(message, "out of memory for the order of %lld windows", (long long)w->n);
    windows_epoch(w, 0);
    return true;
}

void windows_free(windows *w) {
    free(w->turn);
    *w = (windows){ 0 };
}

/* The i-th random number of this epoch in 0..n-1. */
static int64_t draw(const windows *w, int64_t epoch, int64_t i, int64_t n) {
    wf_philox words = wf_philox4x32(wf_mix64(w->seed + 1), (uint64_t)i, (uint64_t)epoch);
    return (int64_t)(wf_unit_double(words.v[0], words.v[1]) * (double)n);
}

void windows_epoch(windows *w, int64_t epoch) {
    assert(epoch >= 0);
    if (w->whole) return;
    int64_t left = w->of->n - 1 - w->n * w->T;
    w->first = draw(w, epoch, 0, left + 1);
    for (int64_t i = 0; i < w->n; i++) w->turn[i] = (uint32_t)i;
    for (int64_t i = w->n - 1; i > 0; i--) { /* Fisher and Yates */
        int64_t k = draw(w, epoch, i, i + 1);
        uint32_t turn = w->turn[i];
        w->turn[i] = w->turn[k];
        w->turn[k] = turn;
    }
}

/* The first token of a row of batch i; *n becomes the number of its tokens. */
static int64_t find_row(const windows *w, int64_t i, int64_t row, int64_t *n) {
    int64_t k = i * w->rows + row;
    int64_t from = w->first + (w->turn ? w->turn[k] : k) * w->T, left = w->of->n - 1 - from;
    *n = left < w->T ? left : w->T;
    return from;
}

int64_t windows_tokens(const windows *w, int64_t i, int64_t row, int32_t *ids) {
    int64_t n, from = find_row(w, i, row, &n);
    stream_ids(w->of, from, n, ids);
    return n;
}

int64_t windows_rows(const windows *w, int64_t i) {
    assert(i >= 0 && i < w->batches);
    int64_t left = w->n - i * w->rows;
    return left < w->rows ? left : w->rows;
}

/* Writes a window as a row. Labels after the end of the text do not count. */
static void fill_row(const windows *w, int64_t i, int64_t row, int32_t *tgt, int32_t *labels) {
    int64_t n, from = find_row(w, i, row, &n);
    stream_ids(w->of, from, n, tgt);
    stream_ids(w->of, from + 1, n, labels);
    for (int64_t t = n; t < w->T; t++) {
        tgt[t] = w->of->end;
        labels[t] = WF_IGNORE_LABEL;
    }
}

bool windows_fill(const windows *w, int64_t i, batch *out) {
    int64_t B = windows_rows(w, i);
    if (!batch_shape(out, B, 0, w->T)) return false;
    for (int64_t row = 0; row < B; row++) {
        out->src_length[row] = 0;
        out->answer_length[row] = 0;
        fill_row(w, i, row, out->tgt + row * w->T, out->labels + row * w->T);
    }
    return true;
}
