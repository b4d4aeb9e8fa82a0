/* tests/fuzz/fuzz_codes.c - any bytes as a codes file, with a vocabulary learned from lines:
 * refused with a message, or a tokenizer that keeps the promises of round_trip.h. Another tokenizer
 * learns merges from the same lines.
 *
 * Codes end at the first '\0'. The lines follow it: they are learned from, and encoded. */
#include "round_trip.h"

typedef struct rest {
    const char *at;
    size_t left;
} rest;

static int next_line(void *from, const char **line, size_t *bytes) {
    rest *r = from;
    if (!r->left) return 0;
    const char *end = memchr(r->at, '\n', r->left);
    *line = r->at, *bytes = end ? (size_t)(end - r->at) + 1 : r->left;
    r->at += *bytes, r->left -= *bytes;
    return 1;
}

static void learn(const wf_tokenizer_options *o, rest text) {
    char message[256] = "";
    rest lines = text;
    wf_tokenizer *t = wf_tokenizer_learn(o, next_line, &lines, message);
    fuzz_must(t || *message);
    if (!t) return;
    files_return(t);
    lines_return(t, text.at, text.left);
    wf_tokenizer_free(t);
}

FUZZ_TARGET(codes) {
    const char *codes = (const char *)data, *end = size ? memchr(codes, '\0', size) : NULL;
    size_t n = end ? (size_t)(end - codes) : size, after = end ? n + 1 : size;
    rest text = { codes + after, size - after };
    wf_tokenizer_options o = wf_tokenizer_defaults(WF_BPE);
    o.vocab_size = 0, o.codes = n ? codes : "", o.codes_bytes = n;
    learn(&o, text);
    o.codes = NULL, o.codes_bytes = 0, o.merges = 100;
    learn(&o, text);
    return 0;
}
