/* tools/sources/spm_file.h - the vocabulary of a new model from a .spm file that is there. */
#ifndef WEFT_TOOLS_SOURCES_SPM_FILE_H
#define WEFT_TOOLS_SOURCES_SPM_FILE_H

#include "models/text_formats.h"

/* Makes the tokenizer: ids of weft's special symbols, then the file's pieces in their order. A
 * source ends with an end token, as Marian trains. NULL with message[256]. */
wf_tokenizer *sentencepiece_open(const char *path, bool source, char *message);

#endif
