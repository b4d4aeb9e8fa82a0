/* tools/draw/emit_model.h - a model's file as one C file, with the search that `generate` makes with
 * it: graph --emit-c. */
#ifndef WEFT_TOOLS_DRAW_EMIT_MODEL_H
#define WEFT_TOOLS_DRAW_EMIT_MODEL_H

#include "models/model_emit.h"

typedef struct emitted {
    char *text;
    char sizes[WF_MESSAGE]; /* the bytes of memory, of weights and of the text, as text */
} emitted;

/* beam, max_length (most tokens of a source and of an output) and prefix: 0 or NULL for the model's
 * own. The caller frees the text. False with message[256]. */
bool emit_model(emitted *e, const wf_file *f, int beam, int64_t max_length, const char *prefix,
                char *message);

#endif
