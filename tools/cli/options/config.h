/* tools/cli/options/config.h - options in a file: --config FILE reads one, --dump-config writes one.
 *
 *     # a comment
 *     train = "pairs.tsv"
 *     lr = 0.001
 *     share-vocab = true
 *
 * This is the part of TOML that options need: a name, '=' and a value on each line. Text may stand
 * without quotes if it has no '#'. The command line goes before the file. */
#ifndef WEFT_TOOLS_CLI_CONFIG_H
#define WEFT_TOOLS_CLI_CONFIG_H

#include <stdio.h>

#include "options.h"

/* Set all options that stand in the file and were not on the command line. Exits with 1 if the file
 * can't be read, with 2 and the number of the line if it says what can't be. */
void config_read(program *p, const char *path);

/* Write all options in the file's form: those that were given, and as comments the others. */
void config_write(const program *p, FILE *out);

#endif
