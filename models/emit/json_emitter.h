/* models/emit/json_emitter.h - inside models: a tokenizer.json while it is written as C.
 *
 * emit_json.c         the form as a whole, added tokens, what stands around a line
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
    const char *side; /* "source" or "target": how names of tables begin */
    wf_text *tables, *body;
    wf_text *sets; /* [n_sets] the text of each set that is written */
    size_t n_sets, sets_capacity;
    int n_expressions;
    /* the most bytes and characters of a text so far: of a line, or of a token */
    double bytes, characters;
    bool has_form[2], has_lower, has_map; /* tables that are written */
    int64_t n_classes, n_pairs;           /* of their rows */
    bool cuts;                            /* a step before may have cut the text */
    /* Steps so far: several characters may stand for one of the line; such text may have been cut;
     * or replaced, so that it is not known where it begins. */
    bool expands, parts, loses_begin;
    char *message;
} json_emitter;

/* How a type of step is written. False with message. */
typedef struct step_row {
    const char *type;
    bool (*write)(json_emitter *e, const wf_text_step *s);
} step_row;

extern const step_row wf_emitted_normalizers[], wf_emitted_cutters[], wf_emitted_decoders[];

/* The `what` of this type has no form. Returns false. */
bool wf_refuse_part(char *message, const char *what, const char *type);
/* Write a text as a string of C. False with message: it is too long, or has a zero byte. */
bool wf_write_span(json_emitter *e, wf_text *t, wf_span text);

/* ---- emit_expressions.c ---------------------------------------------------------------------- */

/* Write a set, or find the one that is written: its number in the names SIDE_set_NUMBER; -1 with
 * message. */
int wf_write_set(json_emitter *e, const wf_code_set *s);
int wf_write_set_of(json_emitter *e, bool (*has)(uint32_t code));
/* Write an expression; its number in the names SIDE_expression_NUMBER; -1 with message. */
int wf_write_expression(json_emitter *e, const wf_expression *x);
/* The expression that matches one character of a set. */
int wf_write_character(json_emitter *e, const wf_code_set *s);
int wf_write_character_of(json_emitter *e, bool (*has)(uint32_t code));

/* ---- emit_word_models.c ---------------------------------------------------------------------- */

/* Write the tables of the model, and the call that encodes words. */
bool wf_write_word_model(json_emitter *e, const wf_word_model *m);

#endif
