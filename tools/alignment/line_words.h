/* tools/alignment/line_words.h - which word of a line each token belongs to.
 *
 * Words are what white space separates in the line as it was written: spaces, tabs, vertical tabs
 * and form feeds. Their positions count from 0. Alignments in Pharaoh's format have these
 * positions, while a model sees tokens. A token of white space belongs to the word after it. */
#ifndef WEFT_TOOLS_ALIGNMENT_LINE_WORDS_H
#define WEFT_TOOLS_ALIGNMENT_LINE_WORDS_H

#include "models/text.h"
#include "tools/data/corpus.h"

/* The word of a token that belongs to none, such as an end or a language. */
enum { NO_WORD = -1 };

/* The number of words in a line. */
int64_t count_words(const char *line, size_t bytes);

/* Write to word[i] the number of the word that token i of a line belongs to. A line of more than n
 * tokens was cropped to n: its beginning, and the tokens that the encoder adds at the end. Returns
 * the number of words. -1 with message[256]: the line cannot be encoded, or out of memory. */
int64_t words_of_line(const text_encoder *e, const char *line, size_t bytes, int64_t n,
                      int32_t *word, char *message);

/* Write to word[i] the number of the word that id i of an output belongs to. t NULL: each id is a
 * word. Returns the number of words; -1: out of memory, or an id does not exist. */
int64_t words_of_output(const wf_tokenizer *t, const int32_t *ids, int64_t n, int32_t *word);

#endif
