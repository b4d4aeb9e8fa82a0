/* models/text/learn/json_learn.h - inside models: learns the vocabulary of a tokenizer.json, and
 * writes the file. See wf_json_learn in text_internal.h.
 *
 * json_learn.c cuts lines into words with the very normalizer and pre-tokenizer that the file will
 * have, and counts them. A kind is a row of a table: what the file says around its model, and the
 * function that learns from the counted words and writes the model. learn_pieces.c is for BPE and
 * WordPiece, learn_unigram.c for Unigram, whose first pieces come from unigram_seeds.c. */
#ifndef WEFT_MODELS_TEXT_LEARN_JSON_LEARN_H
#define WEFT_MODELS_TEXT_LEARN_JSON_LEARN_H

#include "models/json_tokenizer.h"
#include "models/text/sentencepiece/spm.h"
#include "models/text/tally.h"
#include "models/text_internal.h"

/* Ids of special tokens by their purpose, which their names tell. -1: there is no such token. */
typedef struct wf_learn_roles {
    int32_t unknown, start, end;
} wf_learn_roles;

typedef struct wf_json_learner {
    const wf_json_learn_options *o;
    wf_strings pieces; /* the vocabulary by id; special tokens first */
    int32_t n_special;
    wf_learn_roles roles;
    wf_tally words;
    wf_spm_text out;  /* the file, as far as it is written */
    bool out_of_room; /* writing it failed for want of memory */
    char *message;
} wf_json_learner;

/* Append to the file. Failures are remembered. */
void wf_learn_put(wf_json_learner *l, const char *json);
void wf_learn_put_text(wf_json_learner *l, const char *text); /* in quotes */
void wf_learn_put_number(wf_json_learner *l, int64_t number);

/* Adds the words' characters to the tally, which must be empty: the most frequent ones first, and
 * no more than the options allow. Characters that are special tokens are left out. False: out of
 * memory. */
bool wf_learn_alphabet(const wf_json_learner *l, wf_tally *characters);
/* True if the vocabulary, with n ids, reached its size. False with message. */
bool wf_learn_enough(const wf_json_learner *l, int64_t n);
/* True if the size has room for the characters and special tokens. False with message. */
bool wf_learn_room(const wf_json_learner *l, int64_t characters);

/* Call `take` for each word of a line, as the model of the file would get it. False with message,
 * also if `take` returns false. (json_tokenizer.c) */
bool wf_json_tokenizer_words(wf_json_tokenizer *t, wf_span line,
                             bool (*take)(void *user, wf_span word), void *user, char *message);

/* The functions in the table of kinds: learn from the words, and write the object "model". False
 * with message. */
bool wf_learn_bpe(wf_json_learner *l);
bool wf_learn_wordpiece(wf_json_learner *l);
bool wf_learn_unigram(wf_json_learner *l);

/* ---- unigram_seeds.c ------------------------------------------------------------------------- */

enum { WF_LONGEST_PIECE = 16, WF_MOST_SEEDS = 1000000 }; /* characters; pieces */

/* Adds pieces to begin with, and their weights, to the tally: substrings of the words that occur at
 * least twice and have 2 to 16 characters. Of several that begin at the same places, only the
 * longest is taken. If there are too many, those with the greatest count times length are taken.
 * False: out of memory. */
bool wf_unigram_seeds(wf_tally *seeds, const wf_tally *words);

#endif
