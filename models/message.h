/* models/message.h - inside models: the sentence for a caller who handed in message[WF_MESSAGE], or
 * NULL.
 *
 *     if (!m) return fail(message, "there is no model"); */
#ifndef WEFT_MODELS_MESSAGE_H
#define WEFT_MODELS_MESSAGE_H

#include <stdarg.h>
#include <stdio.h>

#include "transformer.h"

WF_PRINTF(2, 3) static inline bool fail(char *message, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (message) vsnprintf(message, WF_MESSAGE, format, args);
    va_end(args);
    return false;
}

#endif
