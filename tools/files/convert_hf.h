/* tools/files/convert_hf.h - a folder of Hugging Face into a model's file, and back. */
#ifndef WEFT_TOOLS_FILES_CONVERT_HF_H
#define WEFT_TOOLS_FILES_CONVERT_HF_H

#include "models/hf.h"
#include "tools/cli/options/options.h"

/* Exits if an output of the program is a file that is read in the folder, or would be. */
void check_source(program *p, const char *folder);
/* Reads the folder and tells how it differs from transformers; exits if it can't be read. */
void import_folder(const program *p, const char *folder, wf_hf *hf);
/* The model, its tokenizers and its search as one file. */
bool save_imported(const wf_hf *hf, const char *target, char *message);

/* Exits if the model's file would be replaced, or if a model's file is in the folder. Files of an
 * export that was stopped may be replaced, and with `overwrite` all may. */
void check_destination(program *p, const char *folder, bool overwrite);
void export_folder(const program *p, const char *model, const char *folder);

#endif
