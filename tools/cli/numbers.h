/* tools/cli/numbers.h - numbers as people read them; "?" where there is none to show. */
#ifndef WEFT_TOOLS_CLI_NUMBERS_H
#define WEFT_TOOLS_CLI_NUMBERS_H

#include "tools/cli/options/options.h"

const char *duration(double seconds, char buffer[OPTION_TEXT_SIZE]); /* "0.8 s", "1:02:03" */
const char *thousands(double value, char buffer[OPTION_TEXT_SIZE]);  /* "171,540" */
const char *bytes_text(double bytes, char buffer[OPTION_TEXT_SIZE]); /* "2.1 MB" */

#endif
