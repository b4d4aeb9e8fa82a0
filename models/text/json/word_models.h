/* models/text/json/word_models.h - inside models: the model of a tokenizer.json, which makes tokens
 * of a word: BPE, WordPiece, WordLevel, Unigram. Each is a row of a table. */
#ifndef WEFT_MODELS_TEXT_WORD_MODELS_H
#define WEFT_MODELS_TEXT_WORD_MODELS_H

#include "text_steps.h"

/* Tokens' texts and their ids. */
typedef struct wf_ids_of_text {
    wf_strings texts;
    int32_t *ids; /* [texts.n] */
    size_t ids_capacity;
    int32_t *by_id; /* [n_ids] the index of a text; -1: no such id */
    size_t n_ids, by_id_capacity;
    size_t longest; /* bytes of the longest text */
} wf_ids_of_text;

/* Adds a text with its id. A text that was there before gets the new id. False with message. */
bool wf_ids_add(wf_ids_of_text *v, wf_span text, int64_t id, char *message);
/* Makes room for n texts. False: out of memory. */
bool wf_ids_reserve(wf_ids_of_text *v, size_t n);
int32_t wf_ids_find(const wf_ids_of_text *v, wf_span text); /* -1: none */
wf_span wf_id_text(const wf_ids_of_text *v, int64_t id);    /* text NULL: none */

typedef struct wf_word_token {
    int32_t id;
    uint32_t begin, end; /* in the word */
    bool unknown;        /* the token's text is that of the word, not of the vocabulary */
} wf_word_token;

typedef struct wf_word_tokens {
    wf_word_token *at;
    size_t n, capacity;
} wf_word_tokens;

typedef struct wf_word_model wf_word_model;

typedef struct wf_word_model_kind {
    const char *type;
    bool (*read)(wf_word_model *m, const wf_step_source *from);
    /* Appends the tokens of a word, which is not empty. False with message. */
    bool (*word)(wf_word_model *m, wf_span word, wf_word_tokens *to, char *message);
} wf_word_model_kind;

/* In Unigram an unknown character scores this much less than the piece with the lowest score. */
#define WF_UNKNOWN_PENALTY 10.0
typedef struct wf_best_path wf_best_path; /* model_unigram.c */

struct wf_word_model {
    const wf_word_model_kind *kind;
    wf_ids_of_text vocabulary;
    int64_t size; /* entries of the vocabulary */
    bool has_unknown, fuse_unknown, byte_fallback, ignore_merges;
    wf_span unknown; /* text of the unknown token */
    int32_t unknown_id;
    wf_span prefix, suffix;  /* prefix of pieces that begin no word; suffix of those that end one */
    int32_t bytes[256];      /* ids of "<0x00>"...; -1: none */
    int64_t most_characters; /* WordPiece: longer words are unknown */

    /* BPE */
    wf_merges merges;
    wf_merger merger;
    wf_strings words; /* words seen before, whose tokens are kept in `seen` */
    size_t *word_ends, word_ends_capacity;
    wf_word_tokens seen;
    wf_spm_text joined; /* work space, also of WordPiece: a text that is being composed */

    /* Unigram */
    wf_trie trie;
    double *scores;
    size_t scores_capacity;
    double lowest;
    wf_best_path *best;
    size_t best_capacity;
};

bool wf_word_model_read(wf_word_model *m, const json_tree *tree, size_t value, char *message);
void wf_word_model_free(wf_word_model *m);
bool wf_word_token_add(wf_word_tokens *to, wf_word_token token, char *message);
/* Finds the ids of "<0x00>" to "<0xFF>". */
void wf_word_model_bytes(wf_word_model *m);
/* Reads "vocab", an object of tokens' texts and their ids. */
bool wf_word_model_vocabulary(wf_word_model *m, const wf_step_source *from);

/* Functions of the models BPE and Unigram, for the table of models. */
bool wf_bpe_read(wf_word_model *m, const wf_step_source *from);
bool wf_bpe_word(wf_word_model *m, wf_span word, wf_word_tokens *to, char *message);
bool wf_unigram_read(wf_word_model *m, const wf_step_source *from);
bool wf_unigram_word(wf_word_model *m, wf_span word, wf_word_tokens *to, char *message);

#endif
