/* tests/fuzz/fuzz_vocabulary.c - any bytes as the vocabulary (and codes) of a model or of a file:
 * refused with a sentence, or a tokenizer that keeps its promises.
 *
 * The first byte chooses the kind; codes come after the first '\0', the lines to encode after the
 * second. */
#include "round_trip.h"

/* Takes the bytes up to the next '\0', and moves *at behind it. */
static const char *field(const char **at, size_t *left, size_t *bytes) {
    const char *begin = *at, *end = memchr(begin, '\0', *left);
    *bytes = end ? (size_t)(end - begin) : *left;
    *at += *bytes + (end != NULL), *left -= *bytes + (end != NULL);
    return begin;
}

FUZZ_TARGET(vocabulary) {
    if (size < 1) return 0;
    char message[256] = "";
    const char *at = (const char *)data + 1;
    size_t left = size - 1, n, m;
    wf_token_kind kind = (wf_token_kind)(data[0] % 3);
    const char *vocabulary = field(&at, &left, &n), *codes = field(&at, &left, &m);
    wf_tokenizer *t =
        wf_tokenizer_read(kind, vocabulary, n, kind == WF_BPE ? codes : NULL, m, message);
    fuzz_must(t || *message);
    if (!t) return 0;
    files_return(t);
    lines_return(t, vocabulary, n);
    lines_return(t, at, left);
    wf_tokenizer_free(t);
    return 0;
}
