/* models/text_internal.h - inside models, and for the programs: kinds of tokenizers, and the
 * options that they were made with. Not installed. */
#ifndef WEFT_MODELS_TEXT_INTERNAL_H
#define WEFT_MODELS_TEXT_INTERNAL_H

#include "models/text_formats.h"

/* True for a kind of running text. */
bool wf_tokenizer_running(const wf_tokenizer *t);
/* The number of merges of the kinds bpe and byte-bpe; 0 for all others, also for byte level. */
int64_t wf_tokenizer_merges(const wf_tokenizer *t);
/* Check a line for a tokenizer of lines, not of running text, by the rules in text.h. False with
 * message, such as "not UTF-8 at byte 17", where bytes count from 0. */
bool wf_text_check(const char *line, size_t bytes, char *message);
/* True if the file has a tokenizer with this prefix. */
bool wf_tokenizer_in_file(const wf_file *f, const char *prefix);
/* Like wf_tokenizer_from_meta. If the tokenizer has the same SentencePiece model as `beside`, the
 * two share it in memory, and only one thread at a time may use them. beside NULL: nothing is
 * shared. Each is freed as usual. */
wf_tokenizer *wf_tokenizer_from_meta_beside(const wf_file *f, const char *prefix,
                                            const wf_tokenizer *beside, char *message);
/* The options that a tokenizer of SentencePiece or of byte level was made with. They point to
 * memory of the tokenizer. False: it is of another kind. */
bool wf_tokenizer_sentencepiece(const wf_tokenizer *t, wf_sentencepiece_options *o);
bool wf_tokenizer_byte_level(const wf_tokenizer *t, wf_byte_level_options *o);
/* Like wf_tokenizer_encode, but without the special tokens that a tokenizer.json puts around a
 * text, and without its truncation of long texts. */
int64_t wf_tokenizer_encode_text(wf_tokenizer *t, const char *line, size_t bytes, int32_t *ids,
                                 int64_t capacity, char *message);
bool wf_tokenizer_json(const wf_tokenizer *t, wf_json_text_options *o);

/* ---- learn a tokenizer.json ------------------------------------------------------------------ */

typedef enum { WF_LEARN_BPE, WF_LEARN_UNIGRAM, WF_LEARN_WORDPIECE } wf_json_learn_kind;
typedef struct wf_json_learn_options {
    /* byte-level BPE as GPT-2, Unigram with SentencePiece's spaces, WordPiece as BERT */
    wf_json_learn_kind kind;
    int64_t vocab_size; /* number of ids, exactly */
    int64_t min_freq;   /* BPE, WordPiece: less frequent pairs are not merged */
    /* WordPiece, Unigram: the most characters that get ids, the most frequent ones first; 0: all */
    int64_t alphabet;
    bool cased; /* WordPiece: upper case and accents are kept */
    /* special tokens with commas between them, which get the first ids; NULL: the usual ones of the
     * kind, such as BERT's five for WordPiece */
    const char *special;
} wf_json_learn_options;

/* Learn a vocabulary from all lines, and return the text of a tokenizer.json, which the caller
 * frees. Equal lines and options give equal bytes. NULL with message (256 bytes, or NULL). */
char *wf_json_learn(const wf_json_learn_options *o, wf_line_reader next, void *from, char *message);

#endif
