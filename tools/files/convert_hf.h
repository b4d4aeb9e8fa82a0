/* tools/files/convert_hf.h - converts a folder of Hugging Face to a model file, and back. */
#ifndef WEFT_TOOLS_FILES_CONVERT_HF_H
#define WEFT_TOOLS_FILES_CONVERT_HF_H

#include "models/hf.h"
#include "tools/cli/options/options.h"

/* Exits if the folder has no model, or with `adapters` no adapters of PEFT; or if an output of the
 * program is a file that is read in the folder, or could be. */
void check_source(program *p, const char *folder, bool adapters);
/* Reads the folder, and prints its differences from transformers. Exits if it cannot be read. */
void import_folder(const program *p, const char *folder, wf_hf *hf);
/* Writes the model, its tokenizers and its search settings to one file. head: the number, as text,
 * of the cross-attention head that was trained to align; NULL: none is known. */
bool save_imported(const wf_hf *hf, const char *head, const char *target, char *message);

/* Exits if the model's file would be replaced, or if the folder contains a model. Files of an
 * interrupted export may be replaced, and with `overwrite` all files. */
void check_destination(program *p, const char *folder, bool overwrite);
void export_folder(const program *p, const char *model, const char *folder);

/* Reads a folder of PEFT for the model in the file `base`, and writes its adapters as one file. */
void import_adapters(const program *p, const char *folder, const char *base, const char *target);
/* Writes a file of adapters as a folder of PEFT. False: the file does not have adapters. */
bool export_adapters(const program *p, const char *path, const char *folder);

#endif
