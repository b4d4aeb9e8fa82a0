/* tools/cli/options/nearest.h - what to say of an option that a program does not have.
 *
 * Names that other programs use (Marian, fairseq, OpenNMT, Hugging Face, nanoGPT, llama.cpp) stand in
 * a table with the name used here, or with a sentence. A misspelt name is compared with all rows. */
#ifndef WEFT_TOOLS_CLI_NEAREST_H
#define WEFT_TOOLS_CLI_NEAREST_H

#include "options.h"

/* True if both names are alike in n bytes; '-' and '_' are one. */
bool option_same_name(const char *a, const char *b, size_t n);

/* The end of the sentence "there is no option --NAME": "; here it is --lr", "; the nearest is --lr",
 * ": weft computes on the processor alone", or "" if nothing is near. `length` bytes of name count. */
void option_hint(const program *p, const char *name, size_t length, char *hint, size_t size);

#endif
