/* models/emit/json_emitter.h - inside models: a tokenizer.json while it is written as C.
 *
 * emit_json.c         the whole of it: added tokens, and the ids around a line
 * emit_expressions.c  sets of code points and programs of regular expressions
 * emit_normalizers.c, emit_cutters.c, emit_decoders.c: a row for each type of step, which writes
 *                     its tables and the call of its function in plain C
 * emit_word_models.c  a row for each type of model */
#ifndef WEFT_MODELS_EMIT_JSON_EMITTER_H
#define WEFT_MODELS_EMIT_JSON_EMITTER_H

#include "models/text/json/json_parts.h"
#include "text_emitter.h"

typedef struct json_emitter {
    text_emitter *x;
    const char *side; /* "source" or "target": prefix of the tables' names */
    wf_text *tables, *body;
    wf_text *sets; /* [n_sets] C text of each set written so far */
    size_t n_sets, sets_capacity;
    int n_expressions;
    /* upper bounds after the steps so far: bytes and characters of a line, or of one token's
     * text */
    double bytes, characters;
    bool has_form[2], has_lower, has_map; /* tables already written */
    int64_t n_classes, n_pairs;           /* rows of classes and compositions */
    bool cuts; /* an earlier step may have split the line into words, up to one for a character */
    /* expands: an earlier step may have made several characters of one. parts: a later one may have
     * split that text into words. loses_begin: a later one may have replaced that text, so that it
     * is unknown which word begins the line */
    bool expands, parts, loses_begin;
    char *message;
} json_emitter;

/* A type of step, and the function that writes such a step as C. It returns false with message on
 * failure. */
typedef struct step_row {
    const char *type;
    bool (*write)(json_emitter *e, const wf_text_step *s);
} step_row;

extern const step_row wf_emitted_normalizers[], wf_emitted_cutters[], wf_emitted_decoders[];

/* Write the message that a part of this type has no form in C; `what` is its role, such as
 * "decoder". Returns false. */
bool wf_refuse_part(char *message, const char *what, const char *type);
/* Write a text as a C string literal. False with message: it is too long, or has a zero byte. */
bool wf_write_span(json_emitter *e, wf_text *t, wf_span text);

/* ---- emit_expressions.c ---------------------------------------------------------------------- */

/* Write a set of code points as a table, unless an equal one was written. Returns the NUMBER of its
 * name SIDE_set_NUMBER, or -1 with message. */
int wf_write_set(json_emitter *e, const wf_code_set *s);
int wf_write_set_of(json_emitter *e, bool (*has)(uint32_t code));
/* Write an expression. Returns the NUMBER of its name SIDE_expression_NUMBER, or -1 with
 * message. */
int wf_write_expression(json_emitter *e, const wf_expression *x);
/* Write the expression that matches one character of a set. Returns its NUMBER, or -1 with
 * message. */
int wf_write_character(json_emitter *e, const wf_code_set *s);
int wf_write_character_of(json_emitter *e, bool (*has)(uint32_t code));

/* ---- emit_word_models.c ---------------------------------------------------------------------- */

/* Write the tables of the model, and the call of the function that encodes words. False with
 * message. */
bool wf_write_word_model(json_emitter *e, const wf_word_model *m);

#endif
