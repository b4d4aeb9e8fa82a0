/* tests/fuzz/round_trip.h - promises that every tokenizer must keep, whatever it was read from. */
#ifndef WEFT_TESTS_FUZZ_ROUND_TRIP_H
#define WEFT_TESTS_FUZZ_ROUND_TRIP_H

#include "fuzz.h"
#include "models/text.h"
#include "models/text_internal.h"

typedef size_t writer(const wf_tokenizer *t, char *text, size_t size);

static inline char *written(const wf_tokenizer *t, writer *write, size_t *bytes) {
    *bytes = write(t, NULL, 0);
    char *text = malloc(*bytes + 1);
    fuzz_must(text && write(t, text, *bytes + 1) == *bytes && strlen(text) == *bytes);
    return text;
}

/* Encodes a line, decodes the ids, and encodes the result: the ids are the same, unless there are
 * unknown tokens. */
static inline void line_returns(wf_tokenizer *t, const char *line, size_t bytes) {
    char message[256] = "";
    int64_t n = wf_tokenizer_encode(t, line, bytes, NULL, 0, message);
    fuzz_must(n >= 0 || *message);
    fuzz_must((n >= 0) == wf_text_check(line, bytes, NULL));
    if (n <= 0) return;
    int32_t *ids = malloc(2 * (size_t)n * sizeof *ids);
    fuzz_must(ids && wf_tokenizer_encode(t, line, bytes, ids, n, message) == n);
    bool known = true;
    for (int64_t i = 0; i < n; i++) {
        fuzz_must(wf_tokenizer_piece(t, ids[i]));
        fuzz_must(ids[i] == WF_UNK_ID || ids[i] >= WF_SPECIAL_IDS);
        known &= ids[i] != WF_UNK_ID;
    }
    int64_t length = wf_tokenizer_decode(t, ids, n, NULL, 0);
    fuzz_must(length >= 0);
    char *text = malloc((size_t)length + 1);
    fuzz_must(text && wf_tokenizer_decode(t, ids, n, text, (size_t)length + 1) == length);
    fuzz_must((int64_t)strlen(text) == length);
    if (known) {
        fuzz_must(wf_tokenizer_encode(t, text, (size_t)length, ids + n, n, message) == n);
        fuzz_must(memcmp(ids, ids + n, (size_t)n * sizeof *ids) == 0);
    }
    free(ids), free(text);
}

/* Checks the whole text as one line, and then each of its lines. */
static inline void lines_return(wf_tokenizer *t, const char *text, size_t bytes) {
    line_returns(t, text, bytes);
    while (bytes) {
        const char *end = memchr(text, '\n', bytes);
        size_t n = end ? (size_t)(end - text) + 1 : bytes;
        line_returns(t, text, n);
        text += n, bytes -= n;
    }
}

/* Writes the tokenizer's files, reads them, and writes them again: they are the same bytes. */
static inline void files_return(const wf_tokenizer *t) {
    size_t n, m, n_again, m_again;
    char message[256];
    bool bpe = wf_tokenizer_kind(t) == WF_BPE;
    char *v = written(t, wf_tokenizer_vocabulary, &n), *c = written(t, wf_tokenizer_codes, &m);
    wf_tokenizer *u = wf_tokenizer_read(wf_tokenizer_kind(t), v, n, bpe ? c : NULL, m, message);
    fuzz_must(u);
    fuzz_must(wf_tokenizer_size(u) == wf_tokenizer_size(t));
    fuzz_must(wf_tokenizer_merges(u) == wf_tokenizer_merges(t));
    char *v_again = written(u, wf_tokenizer_vocabulary, &n_again);
    char *c_again = written(u, wf_tokenizer_codes, &m_again);
    fuzz_must(strcmp(v, v_again) == 0 && strcmp(c, c_again) == 0);
    free(v), free(c), free(v_again), free(c_again);
    wf_tokenizer_free(u);
}

#endif
