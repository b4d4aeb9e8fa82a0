/* models/emit/training_emitter.h - inside models: the C file of a training while it is written.
 *
 * emit_training.c    the file's parts in order
 * emit_rates.c       shapes of batches, rates, and the functions by which a step runs the plans
 * emit_checkpoint.c  tables of the tensors and metadata of a saved file
 * plain_training.c   the step; plain_checkpoint.c: saving; plain_begin_array.c, plain_begin_file.c:
 *                    its beginning; program/: the program. These are embedded as text */
#ifndef WEFT_MODELS_EMIT_TRAINING_EMITTER_H
#define WEFT_MODELS_EMIT_TRAINING_EMITTER_H

#include "core/emit/c_text.h"
#include "models/model_emit.h"
#include "nn/trainer_internal.h"

enum { WF_MOST_SHAPES = 36 };

extern const char *const wf_training_text[], *const wf_begin_array_text[],
                                                 *const wf_begin_file_text[],
                                                     *const wf_checkpoint_text[],
                                                         *const wf_stdin_text[],
                                                             *const wf_training_main_text[],
                                                                 *const wf_training_array_text[],
                                                                     *const wf_training_file_text[];

typedef struct training_emitter {
    wf_model *model;
    wf_trainer *trainer;
    wf_trainer_parts parts;
    const wf_training_emit_options *options;
    const char *name;
    wf_batch_shape shapes[WF_MOST_SHAPES]; /* the smallest first */
    int n_shapes;
    wf_batch_shape most; /* the largest B, S and T */
    char runs[WF_MOST_SHAPES][48];
    int64_t weights;            /* floats */
    int64_t arena;              /* bytes that a run of a plan needs */
    int64_t memory, weights_at; /* bytes of all memory; before the weights */
    const char *plan;           /* C text of the plans */
    wf_text text;               /* the C file */
} training_emitter;

/* Append the constants of the training, and the functions that plain_training.c calls. */
void wf_write_training_numbers(training_emitter *e);
/* An upper bound of sizeof(training) in plain_training.c. */
int64_t wf_training_bytes(const training_emitter *e);
/* Append the tables of tensors and metadata that model_save writes. False with message[256]. */
bool wf_write_checkpoint_tables(training_emitter *e, char *message);

#endif
