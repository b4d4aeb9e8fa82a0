/* tools/cli/options/manual.h - manual pages and completions of shells, from the table of options.
 *
 * The build installs what --man and --completion print, so that a page, the help and the options
 * are one text. Installed programs are called weft-NAME, and so is each page. */
#ifndef WEFT_TOOLS_CLI_MANUAL_H
#define WEFT_TOOLS_CLI_MANUAL_H

#include <stdio.h>

#include "options.h"

/* In the language of mdoc(7), for section 1. */
void manual_print(const program *p, FILE *out);

#define SHELL_WORDS "bash|zsh|fish"
typedef enum { SHELL_BASH, SHELL_ZSH, SHELL_FISH } shell;
void completion_print(const program *p, shell s, FILE *out);

#endif
