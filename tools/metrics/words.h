/* tools/metrics/words.h - lines as code points, and cut into words the way that sacreBLEU does.
 *
 * White space is that of Python's str.split(). A byte that is not valid UTF-8 becomes a code point
 * of its own, U+DC00 + the byte, so that no output is rejected. If memory runs out, `failed` is set
 * until the next codes_decode into the same struct. */
#ifndef WEFT_TOOLS_METRICS_WORDS_H
#define WEFT_TOOLS_METRICS_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ngrams.h"

typedef struct codes {
    int32_t *at; /* [n] */
    int64_t n;
    size_t capacity;
    bool failed;
} codes;

void codes_free(codes *c);
void codes_decode(codes *c, const char *text, size_t bytes);
bool code_is_space(int32_t code);

/* The code points without white space, which chrF compares. out must not be in. */
void codes_without_space(const codes *in, codes *out);

/* The words of mteval-v13a, sacreBLEU's default tokenizer, with spaces between them. `spare` is
 * used in between; all three must differ. */
void codes_13a(const codes *in, codes *out, codes *spare);

/* Symbols as nodes of the trie: codes_words makes one of each word between white space,
 * codes_letters one of each code point. */
void codes_words(const codes *in, ngrams *trie, codes *out);
void codes_letters(const codes *in, ngrams *trie, codes *out);

#endif
