/* models/text/json/json_text.h - inside models: a tokenizer.json as one of the kinds of tokenizers
 * of text.h. The text of the file is kept, so that a model's file holds it as it is. */
#ifndef WEFT_MODELS_TEXT_JSON_JSON_TEXT_H
#define WEFT_MODELS_TEXT_JSON_JSON_TEXT_H

#include "models/json_tokenizer.h"
#include "models/text/fields.h"

typedef struct wf_json_text {
    wf_json_tokenizer *tokenizer;
    char *json; /* [bytes] and a '\0' */
    size_t bytes;
    int64_t rows;
    int32_t special[WF_SPECIAL_IDS];
    wf_json_token *tokens; /* [capacity]: tokens of the line that is being encoded */
    size_t capacity;
} wf_json_text;

void wf_json_text_free(wf_json_text *j);
/* special: true puts special tokens around the line, truncates and pads it as the file says; false
 * does none of these. */
int64_t wf_json_text_encode(wf_json_text *j, wf_span line, bool special, int32_t *ids,
                            int64_t capacity, char *message);
int64_t wf_json_text_decode(const wf_json_text *j, const int32_t *ids, int64_t n, char *text,
                            size_t size);

/* Encodes a text without truncation, padding and special tokens, whatever the file says. Otherwise
 * like wf_json_tokenizer_encode. (json_tokenizer.c) */
int64_t wf_json_tokenizer_encode_text(wf_json_tokenizer *t, wf_span line, wf_json_token *tokens,
                                      int64_t capacity, char *message);

size_t wf_json_text_field(const wf_json_text *j, const char *field, char *text, size_t size);
wf_tokenizer *wf_json_text_from_fields(const wf_fields *f, char *message);

#endif
