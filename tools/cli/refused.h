/* tools/cli/refused.h - writes an error message for a caller that passed message[WF_MESSAGE].
 *
 *     if (!n) return refused(message, "%s is empty", path); */
#ifndef WEFT_TOOLS_CLI_REFUSED_H
#define WEFT_TOOLS_CLI_REFUSED_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "core/op.h"

/* Write the sentence, cut to the size of the message. Returns false. */
WF_PRINTF(2, 3) static inline bool refused(char *message, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, WF_MESSAGE, format, arguments);
    va_end(arguments);
    return false;
}

#endif
