/* models/hf/tokenizer/tokenizer_parts.h - inside models/hf: parts of a tokenizer.json that is made
 * from a vocabulary of weft. */
#ifndef WEFT_MODELS_HF_TOKENIZER_TOKENIZER_PARTS_H
#define WEFT_MODELS_HF_TOKENIZER_TOKENIZER_PARTS_H

#include "models/hf/folder.h"

/* The special symbols as "added_tokens". */
void wf_hf_put_special(hf_text *t, const wf_tokenizer *from);
/* The text of the codes file, or "" without merges. The caller frees it. NULL: out of memory. */
char *wf_hf_codes(const wf_tokenizer *from);
/* Writes the merges in the text of a codes file as pairs in JSON. Each line after its header has
 * two pieces with a space between them. */
void wf_hf_put_merges(hf_text *t, const char *codes);

#endif
