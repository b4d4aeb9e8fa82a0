/* tools/tokenize/tokenize_learn.h - learns a tokenizer.json from lines, and writes it. */
#ifndef WEFT_TOOLS_TOKENIZE_TOKENIZE_LEARN_H
#define WEFT_TOOLS_TOKENIZE_TOKENIZE_LEARN_H

#include "models/text_internal.h"
#include "tools/cli/options/options.h"

/* Learn from the lines of `input` (NULL: stdin), and write the file `path`. Exits with a message if
 * that fails. */
void tokenizer_learn(const program *p, const wf_json_learn_options *o, const char *input,
                     const char *path);

#endif
