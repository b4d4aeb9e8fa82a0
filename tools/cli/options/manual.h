/* tools/cli/options/manual.h - manual pages and shell completions, made from the table of options.
 *
 * The build installs the output of --man and --completion, so that pages, help and options have one
 * source. Installed programs and their pages are called weft-NAME. */
#ifndef WEFT_TOOLS_CLI_MANUAL_H
#define WEFT_TOOLS_CLI_MANUAL_H

#include <stdio.h>

#include "options.h"

/* Write the page in the language mdoc(7), for section 1. */
void manual_print(const program *p, FILE *out);

#define SHELL_WORDS "bash|zsh|fish"
typedef enum { SHELL_BASH, SHELL_ZSH, SHELL_FISH } shell;
void completion_print(const program *p, shell s, FILE *out);

#endif
