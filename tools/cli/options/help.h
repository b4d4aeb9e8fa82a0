/* tools/cli/options/help.h - the text of --help and --version, made from the table of options. See
 * options.h. */
#ifndef WEFT_TOOLS_CLI_HELP_H
#define WEFT_TOOLS_CLI_HELP_H

#include <stdio.h>

#include "options.h"

void help_print(const program *p, FILE *out);
void version_print(const program *p, FILE *out);

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
