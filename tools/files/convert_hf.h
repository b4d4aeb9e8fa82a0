/* tools/files/convert_hf.h - a folder of Hugging Face into a model's file, and back. */
#ifndef WEFT_TOOLS_FILES_CONVERT_HF_H
#define WEFT_TOOLS_FILES_CONVERT_HF_H

#include "models/hf.h"
#include "tools/cli/options.h"

/* check_uses of the folder's files: those that are read, or written. Writing makes the folder. */
void check_folder(program *p, const char *folder, file_use use);
/* Exit with a sentence if it can't be. */
void import_folder(const program *p, const char *folder, wf_hf *hf);
bool save_imported(const wf_hf *hf, const char *target, char *message);
void export_folder(const program *p, const char *model, const char *folder);

#endif
