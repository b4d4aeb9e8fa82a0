/* models/hf/tokenizer/tokenizer_parts.h - inside models/hf: reads a tokenizer.json, and makes parts
 * of one from a vocabulary of weft. */
#ifndef WEFT_MODELS_HF_TOKENIZER_TOKENIZER_PARTS_H
#define WEFT_MODELS_HF_TOKENIZER_TOKENIZER_PARTS_H

#include "models/hf/folder.h"

/* Reads the folder's tokenizer.json for a model with `rows` ids as the tokenizer of both sides.
 * special [WF_SPECIAL_IDS]: ids of padding, unknown, start, end; -1: none. False with message. */
bool wf_hf_read_json_tokenizer(const char *folder, int64_t rows, const int32_t *special, wf_hf *out,
                               char *message);
/* Writes the beginning of a tokenizer.json, with the special tokens as "added_tokens". */
void wf_hf_begin_json(wf_text *t, const wf_tokenizer *from);
/* Writes the model BPE with the vocabulary's merges, and the end of the file. `unknown` and
 * `suffix` are JSON; `put` writes the pieces with their ids. */
void wf_hf_put_bpe(wf_text *t, const wf_tokenizer *from, const char *unknown, const char *suffix,
                   void (*put)(wf_text *t, const wf_tokenizer *from));

#endif
