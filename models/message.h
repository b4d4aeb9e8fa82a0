/* models/message.h - inside models: writes an error message for a caller that passed
 * message[WF_MESSAGE], or NULL. The message may quote an untrusted file, so control characters
 * become '?'.
 *
 *     if (!m) return fail(message, "there is no model"); */
#ifndef WEFT_MODELS_MESSAGE_H
#define WEFT_MODELS_MESSAGE_H

#include <stdarg.h>
#include <stdio.h>

#include "core/file/file_format.h"
#include "core/op.h"

WF_PRINTF(2, 3) static inline bool fail(char *message, const char *format, ...) {
    va_list args;
    va_start(args, format);
    wf_file_say(message, format, args);
    va_end(args);
    return false;
}

#endif
