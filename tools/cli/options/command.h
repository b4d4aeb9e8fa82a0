/* tools/cli/options/command.h - a command line that goes on with the work of this one. */
#ifndef WEFT_TOOLS_CLI_COMMAND_H
#define WEFT_TOOLS_CLI_COMMAND_H

#include "options.h"

/* "name more --option value ...": the options of this command line but those that a checkpoint holds
 * (`stored`) and those that only new work has (`of_new`), quoted for the shell. To be freed; NULL:
 * out of memory. */
char *command_again(const program *p, const char *name, const char *more);

#endif
