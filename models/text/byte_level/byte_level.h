/* models/text/byte_level/byte_level.h - inside models: byte-level byte-pair encoding as in GPT-2
 * (Radford et al. 2019). The vocabulary and merges come from other software, such as those of BART
 * and RoBERTa, or are learned here. */
#ifndef WEFT_MODELS_TEXT_BYTE_LEVEL_H
#define WEFT_MODELS_TEXT_BYTE_LEVEL_H

#include "models/text/fields.h"

typedef struct wf_byte_level {
    wf_byte_level_options o; /* the options it was made with, whose arrays are stored here */
    wf_known_pieces pieces;
    char *merges_text;
    int32_t *around;    /* before, after, silent */
    int32_t bytes[256]; /* id of each single byte */
    wf_merges merges;   /* pairs of ids, and the ids of their results */
    wf_merger merger;   /* the chunk that is being merged */
} wf_byte_level;

void wf_byte_level_free(wf_byte_level *b);
int64_t wf_byte_level_encode(wf_byte_level *b, wf_span line, int32_t *ids, int64_t capacity,
                             char *message);
int64_t wf_byte_level_decode(const wf_byte_level *b, const int32_t *ids, int64_t n, wf_sink *to);
bool wf_byte_level_is_text(const wf_byte_level *b, int32_t id); /* false: it gives no text */

/* Classes of code points for the rule by which GPT-2 cuts text: general categories L and N, the
 * property White_Space, and all others; Unicode 16.0. */
typedef enum { UNICODE_OTHER, UNICODE_LETTER, UNICODE_NUMBER, UNICODE_BLANK } wf_unicode_class;
wf_unicode_class wf_unicode_class_of(uint32_t code_point);

/* The length of the first chunk of a text, which is not empty and is UTF-8. */
size_t wf_byte_level_chunk(wf_span text);

size_t wf_byte_level_field(const wf_byte_level *b, const char *field, char *text, size_t size);
wf_tokenizer *wf_byte_level_from_fields(const wf_fields *f, char *message);

/* The next chunk within which merges are learned; false: there are no more. */
bool wf_byte_level_chunk_next(wf_span *rest, wf_span *chunk);
/* Turns a tokenizer that was learned like byte-bpe into the form of GPT-2 and BART. NULL with
 * message. */
wf_tokenizer *wf_byte_level_learned(const wf_tokenizer *learned, char *message);

#endif
