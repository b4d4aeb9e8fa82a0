/* models/message.h - inside models: writes an error message for a caller that passed
 * message[WF_MESSAGE], or NULL. The message may quote an untrusted file, so control characters
 * become '?'.
 *
 *     if (!m) return fail(message, "there is no model"); */
#ifndef WEFT_MODELS_MESSAGE_H
#define WEFT_MODELS_MESSAGE_H

#include <stdarg.h>
#include <stdio.h>

#include "core/op.h"

WF_PRINTF(2, 3) static inline bool fail(char *message, const char *format, ...) {
    va_list args;
    if (!message) return false;
    va_start(args, format);
    vsnprintf(message, WF_MESSAGE, format, args);
    va_end(args);
    for (char *c = message; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7F) *c = '?';
    return false;
}

#endif
