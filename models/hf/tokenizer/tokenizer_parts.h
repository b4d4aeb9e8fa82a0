/* models/hf/tokenizer/tokenizer_parts.h - inside models/hf: reads a tokenizer.json, and makes parts
 * of one from a vocabulary of weft. */
#ifndef WEFT_MODELS_HF_TOKENIZER_TOKENIZER_PARTS_H
#define WEFT_MODELS_HF_TOKENIZER_TOKENIZER_PARTS_H

#include "models/hf/folder.h"

/* Reads the folder's tokenizer.json for a model with `rows` ids as the tokenizer of both sides.
 * special [WF_SPECIAL_IDS]: ids of padding, unknown, start, end; -1: none. False with message. */
bool wf_hf_read_json_tokenizer(const char *folder, int64_t rows, const int32_t *special, wf_hf *out,
                               char *message);
/* Writes the special tokens as "added_tokens". */
void wf_hf_put_special(wf_text *t, const wf_tokenizer *from);
/* The text of a codes file with the vocabulary's merges, or "" without merges. The caller frees it.
 * NULL: out of memory. */
char *wf_hf_codes(const wf_tokenizer *from);
/* Writes the merges in the text of a codes file as pairs in JSON. Each line after its header has
 * two pieces with a space between them. */
void wf_hf_put_merges(wf_text *t, const char *codes);

#endif
