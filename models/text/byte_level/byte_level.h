/* models/text/byte_level/byte_level.h - inside models: byte-pair encoding as GPT-2 has it (Radford et al. 2019), with
 * a vocabulary and merges that were made elsewhere, such as those of BART and RoBERTa, or learned here.
 *
 * byte_level.c makes, uses and ends it; byte_level_cut.c cuts a line into the chunks that it merges
 * within; byte_level_learn.c keeps what was learned; byte_level_fields.c writes it into a model's file
 * and reads it from there. */
#ifndef WEFT_MODELS_TEXT_BYTE_LEVEL_H
#define WEFT_MODELS_TEXT_BYTE_LEVEL_H

#include "models/text/tokenizer.h"

typedef struct wf_byte_level {
    wf_byte_level_options o; /* as it was made, of what is here */
    const char **pieces;     /* by id; NULL: none */
    char *texts, *merges_text;
    int32_t *around; /* before, after, silent */
    wf_strings known;
    int32_t *known_ids; /* of each known string */
    int32_t bytes[256]; /* the id of each byte alone */
    wf_merges merges;   /* of ids */
    wf_merger merger;   /* the chunk at hand */
} wf_byte_level;

void wf_byte_level_free(wf_byte_level *b);
int64_t wf_byte_level_encode(wf_byte_level *b, wf_span line, int32_t *ids, int64_t capacity,
                             char *message);
int64_t wf_byte_level_decode(const wf_byte_level *b, const int32_t *ids, int64_t n, wf_sink *to);

/* The first chunk of text that is not empty and is UTF-8: its bytes. */
size_t wf_byte_level_chunk(wf_span text);

size_t wf_byte_level_field(const wf_byte_level *b, const char *field, char *text, size_t size);
wf_tokenizer *wf_byte_level_from_fields(const char *const *fields, const char *const *values, int n,
                                        char *message);

/* The next chunk to learn merges within; false: there is none. */
bool wf_byte_level_chunk_next(wf_span *rest, wf_span *chunk);
/* A tokenizer in the form of GPT-2 and BART, of one learned as byte-bpe is. NULL with message. */
wf_tokenizer *wf_byte_level_learned(const wf_tokenizer *learned, char *message);

#endif
