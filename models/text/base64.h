/* models/text/base64.h - inside models: bytes as text in base 64 (RFC 4648). */
#ifndef WEFT_MODELS_TEXT_BASE64_H
#define WEFT_MODELS_TEXT_BASE64_H

#include "tokenizer.h"

void wf_base64_put(wf_sink *to, const unsigned char *bytes, size_t n);
/* Decodes groups of four characters; the last group may end in one or two '='. The caller frees the
 * bytes. NULL with message: out of memory, or wrong characters; `what` is the name of the text in
 * the message. */
char *wf_base64_decode(wf_span text, size_t *bytes, const char *what, char *message);

#endif
