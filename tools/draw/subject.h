/* tools/draw/subject.h - the graph that `graph` draws: one attention, one layer, a whole model, or
 * a formula. Nothing here is trained or saved. */
#ifndef WEFT_TOOLS_DRAW_SUBJECT_H
#define WEFT_TOOLS_DRAW_SUBJECT_H

#include "models/model.h"

#define SUBJECT_WORDS "attention|encoder-layer|decoder-layer|transformer"
typedef enum {
    SUBJECT_ATTENTION,
    SUBJECT_ENCODER_LAYER,
    SUBJECT_DECODER_LAYER,
    SUBJECT_TRANSFORMER
} subject_kind;

typedef struct subject {
    char title[160];
    wf_graph *graph;
    wf_model *model;   /* the owner of the graph, or NULL */
    bool is_formula;   /* it is a formula of the command line: formula.h */
    wf_tensor *result; /* result of the forward pass, such as a model's logits */
    wf_tensor **fetch; /* the result, or with a backward pass the loss and the gradients */
    int n;
} subject;

/* Record what `kind` names. SUBJECT_TRANSFORMER is the model in f; if f is NULL, a new Transformer
 * with `layers` layers in each stack. The other kinds are one part of a model, with these sizes and
 * in the form of the model in f; if f is NULL, in that of an encoder-decoder. False with
 * message[256], for example if the model has no such part. */
bool subject_new(subject *s, subject_kind kind, const wf_block_options *sizes, int64_t layers,
                 const wf_file *f, bool backward, char *message);
void subject_free(subject *s);

/* For functions that record a subject: fetch its result, or with a backward pass the loss and the
 * gradients of all parameters. False: message[256]. */
bool subject_fetch(subject *s, wf_tensor *result, bool backward, char *message);
/* True if a message of the library or of this folder says that there was no memory. */
bool says_no_memory(const char *message);
/* The scalar that is differentiated: a model's loss, the sum of squares of a layer's result, or the
 * sum of a formula's result. */
wf_tensor *subject_loss(const subject *s);

/* Bind the extents of the subject's graph to `batch` sentences of `length` tokens. */
bool subject_bind(const subject *s, wf_plan *p, int64_t batch, int64_t length);
/* True if this input of a layer is a mask. A mask of ones hides nothing. */
bool subject_is_mask(const wf_tensor *input);

/* A plan for the subject that has run with every input full of ones, on `batch` sentences of
 * `length` tokens. It ran once to warm up, then `runs` times with timing. NULL: message[256]. */
wf_plan *subject_plan(const subject *s, int64_t batch, int64_t length, int runs, wf_pool *pool,
                      char *message);

#endif
