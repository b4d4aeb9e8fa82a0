/* tools/emit/emit_train.h - one C file that continues a training whose state `train` has saved:
 * graph --emit-c --train. */
#ifndef WEFT_TOOLS_EMIT_EMIT_TRAIN_H
#define WEFT_TOOLS_EMIT_EMIT_TRAIN_H

#include "emit_model.h"

typedef struct emit_train_options {
    const char *path;   /* path of the file, for messages */
    const char *prefix; /* NULL: "model" */
    /* name of the file that gets the weights and that the program reads; NULL: the C file has them
     * as an array */
    const char *weights;
    int64_t batch_size,
        length;      /* of a batch of text, in rows and tokens; 0: the training decides */
    bool from_start; /* begin with the first update, and the initial weights */
} emit_train_options;

/* The caller frees the text and the bytes of weights. False with message[256]. Settings that cannot
 * be read end the program, as they do in a resume. */
bool emit_train(emitted *e, const wf_file *f, const emit_train_options *o, char *message);

#endif
