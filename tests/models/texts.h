/* tests/models/texts.h - tokenizers from strings and files, for several suites. */
#ifndef WEFT_TESTS_MODELS_TEXTS_H
#define WEFT_TESTS_MODELS_TEXTS_H

#include "models/text.h"

enum { MESSAGE = 256 };

/* Reads the lines of a string. */
typedef struct lines {
    const char *rest;
} lines;
int next_of(void *from, const char **line, size_t *bytes);

wf_tokenizer *learn(const wf_tokenizer_options *o, const char *text); /* must succeed */
wf_tokenizer *learn_kind(wf_token_kind kind, const char *text);
bool learn_fails(const wf_tokenizer_options *o, const char *text, char *message);

/* The pieces of a line, with spaces between; and the text of its decoded ids. Both in static
 * memory. */
const char *pieces_of(wf_tokenizer *t, const char *line);
const char *there_and_back(wf_tokenizer *t, const char *line);

/* The vocabulary or codes as a string to be freed. */
char *text_of(const wf_tokenizer *t, size_t (*write)(const wf_tokenizer *, char *, size_t));

char *file_text(const char *path, size_t *bytes); /* with a '\0' after it, to be freed */
char *data_text(const char *name, size_t *bytes); /* the same, of tests/data */

#endif
