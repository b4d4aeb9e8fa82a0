/* tools/files/convert_marian.h - converts a file of Marian to a model file, and back. */
#ifndef WEFT_TOOLS_FILES_CONVERT_MARIAN_H
#define WEFT_TOOLS_FILES_CONVERT_MARIAN_H

#include "models/marian_internal.h"
#include "tools/cli/options/options.h"

/* Reads a model.npz or a binary file, and the SentencePiece models of both sides, or NULL for both.
 * Exits if one cannot be read. */
void import_marian(const program *p, const char *path, const char *src, const char *tgt,
                   wf_hf *out);
/* Writes the model as model.npz; or like a binary file of it before it was trained on. Exits if
 * Marian has no such model, or if a file cannot be read or written. */
void export_marian(const program *p, const wf_model *m, const char *model, const char *like,
                   const char *target);

#endif
