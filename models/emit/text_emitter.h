/* models/emit/text_emitter.h - inside models: the text of a model's C file while it is written.
 *
 * emit_text.c           numbers, and what every text has
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
    wf_text tables, encode, decode; /* the bodies of encode_line and decode_line */
    int64_t links, room, raw;       /* sizes of arrays; 0: there is none */
    bool has_paths;
    /* a tokenizer.json: its texts of ROOM bytes, code points, and paths; entries of the stack of an
     * expression; bytes of a prefix with a suffix; texts in the lists of RAW bytes */
    bool has_words, has_codes, has_best;
    int64_t choices, affix, tokens;
    int64_t bytes;   /* of its memory */
    int64_t longest; /* bytes of the text of an output token, or more */
    /* both sides have one tokenizer; its pieces are written */
    bool is_joint, has_pieces;
} text_emitter;

/* Write the tables, which tells the sizes. The model's numbers must be known. Free x in either
 * case. */
bool wf_begin_text(text_emitter *x, model_emitter *e, char *message);
/* Append the text to the file, whose search is written. */
bool wf_write_text(text_emitter *x, char *message);
void wf_free_text(text_emitter *x);

/* The names of the pieces of a side, 0 or 1. */
const char *wf_pieces_name(const text_emitter *x, int side);

/* Write the tables of a side, and what encodes or decodes. False with message: a table has no form,
 * or memory is lacking. */
bool wf_emit_encoder(text_emitter *x, wf_tokenizer *t, char *message);
bool wf_emit_decoder(text_emitter *x, const wf_tokenizer *t, char *message);
bool wf_emit_sentencepiece(text_emitter *x, const wf_tokenizer *t, char *message);
bool wf_emit_sentencepiece_text(text_emitter *x, const wf_tokenizer *t, char *message);
bool wf_emit_json(text_emitter *x, wf_tokenizer *t, char *message);
bool wf_emit_json_text(text_emitter *x, const wf_tokenizer *t, char *message);

/* Write merges in the order in which they are looked up. */
void wf_write_merges(wf_text *t, const wf_merges *m);
/* Write how a side normalises its lines. `pieces` is the name of the array that holds the user's
 * symbols. */
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
/* Write a string with its quotes. */
void wf_write_string(wf_text *t, const char *text);
/* Write strings; NULL: "". False with message: one is too long. */
bool wf_write_pieces(wf_text *t, const char *name, const char *says, const char *const *pieces,
                     int64_t n, char *message);
/* Write the order of the pieces, without those that are NULL or empty. Returns how many there
 * are. */
int64_t wf_write_order(wf_text *t, const char *name, const char *const *pieces, int64_t n);

#endif
