/* tools/draw/subject.h - what `graph` draws: one attention, one layer, or a whole model, as a
 * graph to be planned and pictured. Nothing here is trained or saved. */
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
    bool is_formula;   /* of the command line: formula.h */
    wf_tensor *result; /* of the forward pass: a model's logits */
    wf_tensor **fetch; /* the result; with a backward pass the loss and the gradients */
    int n;
} subject;

/* Record it: a part with layers of these sizes; or the model in f, or, if that is NULL, a
 * Transformer of so many layers on each side. False: message[256]. */
bool subject_new(subject *s, subject_kind kind, const wf_block_options *sizes, int64_t layers,
                 const wf_file *f, bool backward, char *message);
void subject_free(subject *s);

/* For those who record a subject: fetch its result; with a backward pass the loss and the gradients of
 * all parameters. False: message[256]. */
bool subject_fetch(subject *s, wf_tensor *result, bool backward, char *message);
/* The scalar that is differentiated: a model's loss, the sum of the squares of a layer's result, the
 * sum of a formula's. */
wf_tensor *subject_loss(const subject *s);

/* Bind the extents of its graph to so many sentences of so many tokens. */
bool subject_bind(const subject *s, wf_plan *p, int64_t batch, int64_t length);
/* Is this input of a layer a mask, whose ones leave all open? */
bool subject_is_mask(const wf_tensor *input);

/* A plan for it that has run with every input full of ones, batch sentences of length tokens:
 * once to warm up, then `runs` times under the clock. NULL: message[256]. */
wf_plan *subject_plan(const subject *s, int64_t batch, int64_t length, int runs, wf_pool *pool,
                      char *message);

#endif
