/* models/text/byte_level/unicode.h - inside models: classes of code points for the rule by which
 * GPT-2 cuts text. */
#ifndef WEFT_MODELS_TEXT_UNICODE_H
#define WEFT_MODELS_TEXT_UNICODE_H

#include <stddef.h>
#include <stdint.h>

/* General categories L and N, the property White_Space, and all others; Unicode 16.0. */
typedef enum { UNICODE_OTHER, UNICODE_LETTER, UNICODE_NUMBER, UNICODE_BLANK } wf_unicode_class;
wf_unicode_class wf_unicode_class_of(uint32_t code_point);
/* The table: in ascending order, code point * 4 + the class of all code points from there on. */
const uint32_t *wf_unicode_changes(size_t *n);

#endif
