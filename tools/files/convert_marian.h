/* tools/files/convert_marian.h - converts a file of Marian to a model file, and back. */
#ifndef WEFT_TOOLS_FILES_CONVERT_MARIAN_H
#define WEFT_TOOLS_FILES_CONVERT_MARIAN_H

#include "models/marian_internal.h"
#include "tools/cli/options/options.h"

/* Reads a model.npz or a binary file, and the SentencePiece models of both sides. NULL: that of the
 * other side, or for both none. Exits if one cannot be read. */
void import_marian(const program *p, const char *path, const char *src, const char *tgt,
                   wf_hf *out);
/* The form of a file of Marian: a model.npz, or one like `like`, which the model was made of before
 * it was trained on, or one in int8 with scales found by running the lines of `calibrate`. */
typedef struct marian_form {
    const char *model, *like, *calibrate;
    /* result: a line about the lines that were run, and those that were empty or too long for the
     * model; "" without `calibrate` */
    char said[WF_MESSAGE];
} marian_form;
/* Writes the model m, which was loaded from f. Exits if Marian has no such model, or if a file
 * cannot be read or written. */
void export_marian(const program *p, const wf_file *f, wf_model *m, marian_form *form,
                   const char *target);

/* ---- calibrate_marian.c ---------------------------------------------------------------------- */

/* Scales of activations for the lines of form->calibrate: outputs are searched greedily, and both
 * are run through the model. Exits if it cannot be done. */
wf_marian_scales *calibrate_marian(const program *p, const wf_file *f, wf_model *m,
                                   marian_form *form);

#endif
