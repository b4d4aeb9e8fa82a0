/* tools/files/convert_marian.h - converts a file of Marian to a model file, and back. */
#ifndef WEFT_TOOLS_FILES_CONVERT_MARIAN_H
#define WEFT_TOOLS_FILES_CONVERT_MARIAN_H

#include "models/marian_internal.h"
#include "tools/cli/options/options.h"
#include "tools/cli/output.h"

/* Reads a model.npz or a binary file, and the SentencePiece models of both sides. If one is NULL,
 * the other serves both sides; if both are, there is no vocabulary. The configuration of a decoder
 * beside the model sets the length penalty; decoder becomes its path. Exits if a file cannot be
 * read. */
void import_marian(const program *p, const char *path, const char *src, const char *tgt, wf_hf *out,
                   char decoder[PATH_SIZE]);
/* How a file of Marian is written. By default it is a model.npz. like: it gets the form and scales
 * of this file, from which the model was converted before a further training. calibrate: it is in
 * int8, with scales found by running the lines of this file; `like` is not used then. model: the
 * path of the model, for messages. */
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

/* Scales of activations for the lines of form->calibrate: the lines are decoded greedily, then run
 * through the model together with their outputs. Exits if it cannot be done. */
wf_marian_scales *calibrate_marian(const program *p, const wf_file *f, wf_model *m,
                                   marian_form *form);

#endif
