/* tools/metrics/words.h - lines as code points, and cut into words the way that sacreBLEU does.
 *
 * White space is Python's: what str.split() splits at. A byte that is not UTF-8 is one code point
 * of its own, U+DC00 + the byte, so that no output is refused here. Memory that runs out
 * sets `failed`, which stays until the next codes_decode into the same. */
#ifndef WEFT_TOOLS_METRICS_WORDS_H
#define WEFT_TOOLS_METRICS_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ngrams.h"

typedef struct codes {
    int32_t *at; /* [n] */
    int64_t n, capacity;
    bool failed;
} codes;

void codes_free(codes *c);
void codes_decode(codes *c, const char *text, size_t bytes);
bool code_is_space(int32_t code);

/* Without white space: what chrF looks at. out is not in. */
void codes_without_space(const codes *in, codes *out);

/* mteval-v13a's words, with spaces between them: sacreBLEU's default tokenizer. `spare` is used on
 * the way; all three differ. */
void codes_13a(const codes *in, codes *out, codes *spare);

/* Words as nodes of the trie: each word between white space, or each code point. */
void codes_words(const codes *in, ngrams *trie, codes *out);
void codes_letters(const codes *in, ngrams *trie, codes *out);

#endif
