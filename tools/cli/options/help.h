/* tools/cli/options/help.h - texts made from the table of options (options.h): those of --help and
 * --version, manual pages and shell completions.
 *
 * The build installs the output of --man and --completion, so that pages, help and options have one
 * source. Installed programs and their pages are called weft-NAME. */
#ifndef WEFT_TOOLS_CLI_HELP_H
#define WEFT_TOOLS_CLI_HELP_H

#include <stdio.h>

#include "options.h"

void help_print(const program *p, FILE *out);
void version_print(const program *p, FILE *out);
/* Write the manual page in the language mdoc(7), for section 1. */
void manual_print(const program *p, FILE *out);

#define SHELL_WORDS "bash|zsh|fish"
typedef enum { SHELL_BASH, SHELL_ZSH, SHELL_FISH } shell;
void completion_print(const program *p, shell s, FILE *out);

enum { HELP_TEXT = 1024, DEFAULT_TEXT = 400 };
/* Writes the help text of an option, then its default and range: "(default 64; 1..4096)". */
void help_describe(const program *p, const option *o, char *text, size_t size);
/* The *n options that every program has. */
const option *help_always(int *n);

/* A bound of the row's range as text. */
const char *range_text(const option *o, double bound, char buffer[OPTION_TEXT_SIZE]);

/* Writes the default as the help shows it, "12; 256 with --task add, date or text". The text is ""
 * if there is none. */
void describe_default(const program *p, const option *o, char *text, size_t size);

#endif
