/* weft/models/json_tokenizer.h - tokenizers of Hugging Face: a file tokenizer.json, whole.
 *
 * Most models of Hugging Face have this file: added tokens, a normalizer, a pre-tokenizer, a model
 * (BPE, WordPiece, Unigram, WordLevel), a post-processor, a decoder, truncation and padding. Ids,
 * type ids, offsets and decoded text are those of the library tokenizers 0.23.3. A part of a type
 * that is not known here is refused by its name.
 *
 *     wf_json_tokenizer *t = wf_json_tokenizer_load(json, bytes, message);
 *     int64_t n = wf_json_tokenizer_encode(t, "a line", 6, NULL, 0, true, tokens, 100,
 *                                          message);
 *     int32_t id = tokens[0].id;
 *     wf_json_tokenizer_decode(t, &id, 1, true, text, sizeof text, message);
 *
 * No graph and no model is needed. Every function accepts NULL as the tokenizer, and then fails or
 * returns nothing. Every `message` has room for 256 bytes, or is NULL. Only one thread at a time
 * may use a tokenizer, because encoding caches words. text.h has tokenizers that are learned
 * here. */
#ifndef WEFT_MODELS_JSON_TOKENIZER_H
#define WEFT_MODELS_JSON_TOKENIZER_H

#include "../core/export.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wf_json_tokenizer wf_json_tokenizer;

/* A token, and the bytes [begin, end) of the text that it stands for. A token that is put around a
 * text, or pads it, stands for none: [0, 0). */
typedef struct wf_json_token {
    int32_t id;
    int32_t type; /* such as 0 for a first text and 1 for a second one */
    int64_t begin, end;
} wf_json_token;

/* Read a tokenizer.json, which is copied. NULL with message: the file is not JSON, or has a part
 * that is wrong or not known here. */
WF_API wf_json_tokenizer *wf_json_tokenizer_load(const char *json, size_t bytes, char *message);
/* NULL is allowed. */
WF_API void wf_json_tokenizer_free(wf_json_tokenizer *t);

/* One more than the highest id. */
WF_API int64_t wf_json_tokenizer_size(const wf_json_tokenizer *t);
/* The text of a token in the file, such as "<s>" or "Ġthe"; it may contain U+0000. NULL: there is
 * no such id. */
WF_API const char *wf_json_tokenizer_piece(const wf_json_tokenizer *t, int32_t id);

/* Convert a text to tokens, or a pair of texts, such as a question and an answer; second NULL: one
 * text. Offsets of tokens are those in their own text. special: put special tokens around them, as
 * the file says. The first `capacity` tokens are written; returns how many there are. -1 with
 * message: a text is not UTF-8, a character is unknown and the file has no token for that, a
 * regular expression of the file takes too long for a text, or out of memory. */
WF_API int64_t wf_json_tokenizer_encode(wf_json_tokenizer *t, const char *line, size_t bytes,
                                        const char *second, size_t second_bytes, bool special,
                                        wf_json_token *tokens, int64_t capacity, char *message);

/* Convert n ids to text. Ids that do not exist give no text, and with skip_special neither do
 * special tokens. Like snprintf it returns the length needed, and writes at most size - 1 bytes and
 * a '\0'. -1 with message: out of memory. */
WF_API int64_t wf_json_tokenizer_decode(wf_json_tokenizer *t, const int32_t *ids, int64_t n,
                                        bool skip_special, char *text, size_t size, char *message);

#ifdef __cplusplus
}
#endif
#endif
