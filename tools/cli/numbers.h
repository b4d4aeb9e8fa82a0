/* tools/cli/numbers.h - formats numbers for readers; "?" stands for an unknown number. */
#ifndef WEFT_TOOLS_CLI_NUMBERS_H
#define WEFT_TOOLS_CLI_NUMBERS_H

#include "tools/cli/options/options.h"

const char *duration(double seconds, char buffer[OPTION_TEXT_SIZE]); /* "0.8 s", "1:02:03" */
const char *thousands(double value, char buffer[OPTION_TEXT_SIZE]);  /* "171,540" */
const char *bytes_text(double bytes, char buffer[OPTION_TEXT_SIZE]); /* "2.1 MB" */

#endif
