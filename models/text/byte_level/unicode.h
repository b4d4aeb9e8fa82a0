/* models/text/byte_level/unicode.h - inside models: classes of code points for the rule by which
 * GPT-2 cuts text. */
#ifndef WEFT_MODELS_TEXT_UNICODE_H
#define WEFT_MODELS_TEXT_UNICODE_H

#include <stdint.h>

/* General categories L and N, the property White_Space, and all others; Unicode 16.0. */
typedef enum { UNICODE_OTHER, UNICODE_LETTER, UNICODE_NUMBER, UNICODE_BLANK } wf_unicode_class;
wf_unicode_class wf_unicode_class_of(uint32_t code_point);

#endif
