/* models/text_internal.h - inside models, and for the programs: kinds of tokenizers, and the
 * options that they were made with. Not installed. */
#ifndef WEFT_MODELS_TEXT_INTERNAL_H
#define WEFT_MODELS_TEXT_INTERNAL_H

#include "models/text_formats.h"

/* True for a kind of running text. */
bool wf_tokenizer_running(const wf_tokenizer *t);
/* The number of merges; 0 unless BPE. */
int64_t wf_tokenizer_merges(const wf_tokenizer *t);
/* Check a line as text.h describes it, other than running text. False with "not UTF-8 at byte 17",
 * counted from 0. */
bool wf_text_check(const char *line, size_t bytes, char *message);
/* True if the file has a tokenizer with this prefix. */
bool wf_tokenizer_in_file(const wf_file *f, const char *prefix);
/* The options that the tokenizer was made with. They point to memory of the tokenizer. False: it is
 * of another kind. */
bool wf_tokenizer_sentencepiece(const wf_tokenizer *t, wf_sentencepiece_options *o);
bool wf_tokenizer_byte_level(const wf_tokenizer *t, wf_byte_level_options *o);
/* Like wf_tokenizer_encode without the special tokens that a tokenizer.json puts around a text. */
int64_t wf_tokenizer_encode_text(wf_tokenizer *t, const char *line, size_t bytes, int32_t *ids,
                                 int64_t capacity, char *message);
bool wf_tokenizer_json(const wf_tokenizer *t, wf_json_text_options *o);

#endif
