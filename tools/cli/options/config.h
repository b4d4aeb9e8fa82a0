/* tools/cli/options/config.h - options in a file: --config FILE reads one, --dump-config writes
 * one.
 *
 *     # a comment
 *     train = "pairs.tsv"
 *     lr = 0.001
 *     share-vocab = true
 *
 * The format is a subset of TOML: a name, '=' and a value on each line. Text without a '#' needs no
 * quotes. Options on the command line override those in the file. */
#ifndef WEFT_TOOLS_CLI_CONFIG_H
#define WEFT_TOOLS_CLI_CONFIG_H

#include <stdio.h>

#include "options.h"

/* Set all options in the file that were not on the command line. Exits with 1 if the file cannot be
 * read, and with 2 and the number of the line if a line is invalid. */
void config_read(program *p, const char *path);

/* Write all options in this format. Those that were not given are comments. */
void config_write(const program *p, FILE *out);

#endif
