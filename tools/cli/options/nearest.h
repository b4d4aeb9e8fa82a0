/* tools/cli/options/nearest.h - suggestions for an option that a program does not have.
 *
 * A table maps names that other programs use (Marian, fairseq, OpenNMT, Hugging Face, nanoGPT,
 * llama.cpp) to the name here, or to a sentence. Misspelt names are compared with all options. */
#ifndef WEFT_TOOLS_CLI_NEAREST_H
#define WEFT_TOOLS_CLI_NEAREST_H

#include "options.h"

/* True if the first n bytes of both names are equal, where '-' and '_' count as equal. */
bool option_same_name(const char *a, const char *b, size_t n);

/* Write the end of the sentence "there is no option --NAME". It is "; here it is --lr", "; the
 * nearest is --lr", ": weft computes on the processor alone", or "" if no name is near. The name
 * has `length` bytes. */
void option_hint(const program *p, const char *name, size_t length, char *hint, size_t size);

#endif
