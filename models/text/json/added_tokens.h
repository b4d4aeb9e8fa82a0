/* models/text/json/added_tokens.h - inside models: tokens that are cut out of a text before
 * anything else, such as "<s>". */
#ifndef WEFT_MODELS_TEXT_ADDED_TOKENS_H
#define WEFT_MODELS_TEXT_ADDED_TOKENS_H

#include "word_models.h"

typedef struct wf_added_token {
    /* content: the token's text; normal: that text after the normalizer, if `normalized` is true,
     * else the same; a '\0' follows both */
    wf_span content, normal;
    bool single_word, left_strip, right_strip, normalized, special;
    int32_t id;
    char *owned; /* the memory of `normal`, or NULL */
} wf_added_token;

typedef struct wf_added_tokens {
    wf_added_token *at; /* [n] by ascending id; no id twice */
    size_t n, capacity;
    wf_strings specials;  /* contents of special tokens */
    wf_pairs places;      /* the index in `at` of each id, while tokens are read */
    wf_trie raw, normal;  /* raw: tokens that are not normalized; normal: the others */
    uint32_t first[2][8]; /* raw, normal: 256 bits, the bytes with which their tokens begin */
} wf_added_tokens;

/* Reads the field "added_tokens", which may be missing. Ids are as Hugging Face's tokenizers
 * library gives them: the id of an equal text in the vocabulary, or the next free one. The ids in
 * the file are ignored. */
bool wf_added_read(wf_added_tokens *t, const json_tree *tree, size_t value, wf_word_model *m,
                   wf_text_steps *normalizers, wf_aligned *a, char *message);
void wf_added_free(wf_added_tokens *t);
const wf_added_token *wf_added_find(const wf_added_tokens *t, int32_t id); /* NULL: none */
/* Cuts the added tokens out of the pieces: if `normal`, those that are normalized, else the others.
 * False with message. */
bool wf_added_cut(const wf_added_tokens *t, wf_aligned *a, bool normal);
/* Applies all normalizers to a piece. */
bool wf_normalize_piece(wf_text_steps *s, wf_aligned *a, wf_piece *p);

#endif
