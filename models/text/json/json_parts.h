/* models/text/json/json_parts.h - inside models: the parts of a tokenizer.json after it was read,
 * for code that writes them in another form. Implemented in json_tokenizer.c. */
#ifndef WEFT_MODELS_TEXT_JSON_JSON_PARTS_H
#define WEFT_MODELS_TEXT_JSON_JSON_PARTS_H

#include "added_tokens.h"
#include "models/json_tokenizer.h"
#include "post_processors.h"

/* The parts through which a text passes, in this order, and the decoders. The tokenizer owns
 * them. */
typedef struct wf_json_parts {
    const wf_added_tokens *added;
    const wf_text_steps *normalizers, *pre_tokenizers;
    const wf_word_model *model;
    const wf_post *post;
    const wf_text_steps *decoders;
    bool has_decoder;
} wf_json_parts;

wf_json_parts wf_json_tokenizer_parts(const wf_json_tokenizer *t);

#endif
