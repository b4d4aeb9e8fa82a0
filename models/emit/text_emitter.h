/* models/emit/text_emitter.h - inside models: the text of a model's C file while it is written.
 *
 * emit_text.c           ids as text, and the parts that every file has
 * emit_kinds.c          words, characters, byte pairs
 * emit_sentencepiece.c  SentencePiece
 * emit_json.c           a tokenizer.json; json_emitter.h
 * emit_tables.c         constant arrays
 * plain_text.c, plain_merges.c, plain_level.c, plain_sentencepiece.c, plain_pieces.c, and for a
 * tokenizer.json plain_expressions.c, plain_words.c, plain_normal.c, plain_models.c,
 * plain_decoders.c: blocks of C, of which a file gets those that it uses; plain_translate.c,
 * plain_main.c: the rest of the file */
#ifndef WEFT_MODELS_EMIT_TEXT_EMITTER_H
#define WEFT_MODELS_EMIT_TEXT_EMITTER_H

#include "model_emitter.h"
#include "models/text/sentencepiece/spm.h"
#include "models/text/tokenizer.h"

/* The longest string that every compiler takes, in bytes. */
enum { LONGEST_STRING = 4095 };

typedef struct text_emitter {
    model_emitter *e;
    wf_text tables, encode, decode; /* tables in C; the bodies of encode_line and decode_line */
    int64_t links, room, raw;       /* sizes of arrays; 0: no such array */
    bool has_paths;
    /* for a tokenizer.json. has_words, has_codes, has_best: the emitted C file has the types
     * word_texts, code_points, probable_path. Sizes of its arrays: choices, entries of a regular
     * expression's stack; affix, bytes of a prefix and its suffix; tokens, texts in a token_list */
    bool has_words, has_codes, has_best;
    int64_t choices, affix, tokens;
    int64_t bytes;   /* upper bound of sizeof(text_work) */
    int64_t longest; /* upper bound of an output token's bytes of text */
    /* is_joint: both sides share one tokenizer; has_pieces: its pieces have been written */
    bool is_joint, has_pieces;
} text_emitter;

/* Write the tokenizers' tables into x, and set the sizes of arrays in x. e must have its numbers of
 * tokens, source and output. Call wf_free_text even after a failure. */
bool wf_begin_text(text_emitter *x, model_emitter *e, char *message);
/* Append the text functions and the program to the C file, after the search. */
bool wf_write_text(text_emitter *x, char *message);
void wf_free_text(text_emitter *x);

/* The C name of the array of pieces; side 0: the source, 1: the output. */
const char *wf_pieces_name(const text_emitter *x, int side);

/* Write a tokenizer's tables, and the body of encode_line or decode_line. False with message: it
 * has no form in C, or out of memory. */
bool wf_emit_encoder(text_emitter *x, wf_tokenizer *t, char *message);
bool wf_emit_decoder(text_emitter *x, const wf_tokenizer *t, char *message);
bool wf_emit_sentencepiece(text_emitter *x, const wf_tokenizer *t, char *message);
bool wf_emit_sentencepiece_text(text_emitter *x, const wf_tokenizer *t, char *message);
bool wf_emit_json(text_emitter *x, wf_tokenizer *t, char *message);
bool wf_emit_json_text(text_emitter *x, const wf_tokenizer *t, char *message);

/* Write merges sorted by left and right, for binary search. */
void wf_write_merges(wf_text *t, const wf_merges *m);
/* Write a SentencePiece normalizer as SIDE_rules. `pieces` is the name of the array of pieces,
 * n_symbols of which are user-defined symbols. */
void wf_write_rules(wf_text *t, const char *side, const wf_spm_normalizer *r, const char *pieces,
                    int64_t n_symbols);

/* ---- emit_tables.c --------------------------------------------------------------------------- */

/* Write an array. `says` is its comment. */
void wf_write_ids(wf_text *t, const char *name, const char *says, const int32_t *ids, int64_t n);
void wf_write_bytes(wf_text *t, const char *name, const char *says, const unsigned char *bytes,
                    int64_t n);
void wf_write_units(wf_text *t, const char *name, const char *says, const uint32_t *units,
                    int64_t n);
void wf_write_floats(wf_text *t, const char *name, const char *says, const float *x, int64_t n);
/* Write a text without zero bytes as a C string literal. */
void wf_write_literal(wf_text *t, wf_span text);
void wf_write_string(wf_text *t, const char *text);
/* Write an array of strings, "" for NULL. False with message: one is too long. */
bool wf_write_pieces(wf_text *t, const char *name, const char *says, const char *const *pieces,
                     int64_t n, char *message);
/* Write the indices of pieces, sorted by the pieces' bytes, without those that are NULL or empty.
 * Returns how many there are. */
int64_t wf_write_order(wf_text *t, const char *name, const char *const *pieces, int64_t n);

#endif
