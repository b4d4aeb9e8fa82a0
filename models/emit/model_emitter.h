/* models/emit/model_emitter.h - inside models: the C file of a model while it is written.
 *
 * model_emit.c      what is written, and its parts in order
 * emit_search.c     the numbers of the search, and what it asks of the model
 * emit_attention.c  the weights of attention, for an output that is known
 * plain_file.c      a file of plain C with the model's prefix
 * plain_search.c    the search, which is embedded as text; plain_generate.c, plain_batch.c: of one
 *                   source or of several at once
 * program/          the program around the file, and how it reads weights
 * text_emitter.h    lines of text */
#ifndef WEFT_MODELS_EMIT_MODEL_EMITTER_H
#define WEFT_MODELS_EMIT_MODEL_EMITTER_H

#include "core/emit/c_text.h"
#include "models/model_emit.h"

extern const char *const wf_search_text[], *const wf_attention_text[];
extern const char *const wf_generate_text[], *const wf_batch_text[];
extern const char *const wf_translate_batch_text[];
extern const char *const wf_main_lines_text[], *const wf_main_batch_text[];
extern const char *const wf_blocks_text[], *const wf_translate_text[], *const wf_weights_text[];
extern const char *const wf_main_text[], *const wf_main_array_text[], *const wf_main_file_text[];

typedef struct model_emitter {
    wf_model *model;
    const char *name;
    wf_decode_options search;
    wf_tokenizer *tokenizers[2]; /* of a source and of an output; NULL: they are ids */
    int64_t line;                /* most bytes of a line */
    bool has_line;               /* the caller has chosen that */
    int64_t source, output;      /* most tokens */
    int64_t positions;           /* of a row of the caches */
    int64_t batch;               /* sources that are decoded at once */
    int64_t recomputed;          /* layers that compute keys and values again */
    bool sized;                  /* a run of the encoder has a length */
    bool sees_logits;            /* the search reads them where they lie */
    int64_t arena, memory;       /* bytes: of the model, and with the search and the text */
    int64_t text_at;             /* where the memory of a line begins */
    int64_t weights, int8;       /* floats; weights in int8 */
    wf_emit_weights *file;       /* receives the weights; NULL: they are an array */
    const char *file_name;       /* where the program finds them */
    bool attention;              /* it computes the weights of attention too */
    int64_t attended;            /* tokens of a row that it then reads */
    wf_text text;                /* all of it */
} model_emitter;

/* The bytes of the search in plain_search.c, or more. */
int64_t wf_search_bytes(const model_emitter *e);
/* Append the numbers of the search, and the functions that it calls. */
void wf_write_search_numbers(model_emitter *e);

/* The plan of all attention weights and log-probabilities, which the caller frees. NULL: out of
 * memory. */
wf_plan *wf_attention_values_plan(model_emitter *e);
/* Append the functions for these, which the text of the plans computes. False with message[256]. */
bool wf_write_attention(model_emitter *e, const char *plans, char *message);

/* The bytes of the text of plans before the values of the weights. These are many lines of numbers,
 * so they follow all that is read. */
size_t wf_code_length(const char *plans);

/* Is the name a word of this text, outside comments? */
bool wf_plain_has_word(const char *const *lines, const char *name);
/* Append the lines of a file of plain C, with the prefix `name` in place of "model". */
void wf_add_plain_file(wf_text *t, const char *const *lines, const char *name);
/* Append the functions that read the file of weights. The program looks in its own folder for the
 * last part of `path`; path NULL: for NAME.weights. */
void wf_write_weights_reader(wf_text *t, const char *path, const char *name);

#endif
