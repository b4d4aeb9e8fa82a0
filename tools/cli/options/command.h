/* tools/cli/options/command.h - the command line that continues a stopped run. */
#ifndef WEFT_TOOLS_CLI_COMMAND_H
#define WEFT_TOOLS_CLI_COMMAND_H

#include "options.h"

/* "name more --option value ...", quoted for the shell. It has the options of this command line
 * except the one that `more` names, those that a checkpoint stores (`stored`) and those for new
 * work alone (`of_new`). The caller frees it. NULL: out of memory. */
char *command_again(const program *p, const char *name, const char *more);
/* The word as a shell reads it: in quotes if it has special characters. The caller frees it. NULL:
 * out of memory. */
char *command_word(const char *word);

#endif
