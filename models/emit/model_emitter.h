/* models/emit/model_emitter.h - inside models: the C file of a model while it is written.
 *
 * model_emit.c      the file's parts in order
 * emit_search.c     the constants of the search, and the functions by which it runs the model
 * emit_attention.c  the attention weights of a given output
 * plain_file.c      copies an embedded C file with the model's prefix
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
    wf_tokenizer *tokenizers[2]; /* for sources, for outputs; NULL: lines are ids */
    int64_t line;                /* most bytes of a line */
    bool has_line;               /* the caller chose `line` */
    int64_t source, output;      /* most tokens of a source, of an output */
    int64_t positions;           /* in each row of the KV caches */
    int64_t batch;               /* sources that are decoded at once */
    int64_t recomputed;          /* layers that recompute keys and values */
    bool sized;                  /* the encoder takes the length of a source */
    bool sees_logits;            /* the search reads logits without a copy */
    int64_t arena, memory;       /* bytes for the plans; bytes for plans, search and text */
    int64_t text_at;             /* offset of the text buffers in memory */
    int64_t weights, int8;       /* numbers of float and of int8 weights */
    wf_emit_weights *file;       /* receives the weights; NULL: the C file has them */
    const char *file_name;       /* of the file of weights, for the program */
    bool attention;              /* the C file computes attention weights too */
    int64_t attended;            /* tokens of a row of the attention plan */
    wf_text text;                /* the C file */
} model_emitter;

/* An upper bound of sizeof(searches) in plain_search.c. */
int64_t wf_search_bytes(const model_emitter *e);
/* Append the constants of the search, and the functions that plain_search.c calls. */
void wf_write_search_numbers(model_emitter *e);

/* The plan that computes all attention weights and log-probabilities. The caller frees it. NULL:
 * out of memory. */
wf_plan *wf_attention_values_plan(model_emitter *e);
/* Append model_weights, model_log_probs and model_attend. `plans` is the C text of the plans, with
 * the attention plan among them. False with message[256]. */
bool wf_write_attention(model_emitter *e, const char *plans, char *message);

/* The bytes of `plans` before the arrays of weights. The arrays are long, so they go to the end of
 * the C file. */
size_t wf_code_length(const char *plans);

/* Is the name an identifier in these lines, outside comments? */
bool wf_plain_has_word(const char *const *lines, const char *name);
/* Append the lines of a file of plain C, with the prefix `name` in place of "model". */
void wf_add_plain_file(wf_text *t, const char *const *lines, const char *name);
/* Append the functions by which the program reads its file of weights. By default it looks in its
 * own folder, for the last part of `path`; path NULL: for NAME.weights. */
void wf_write_weights_reader(wf_text *t, const char *path, const char *name);

#endif
