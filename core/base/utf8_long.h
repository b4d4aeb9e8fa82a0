/* core/base/utf8_long.h - inside the library: whether a long text is UTF-8. Not installed. */
#ifndef WEFT_CORE_BASE_UTF8_LONG_H
#define WEFT_CORE_BASE_UTF8_LONG_H

#include <stddef.h>

/* The length of the longest prefix that is valid UTF-8. Does what wf_utf8_prefix does, and is
 * several times as fast for a text of kilobytes. */
size_t wf_utf8_valid(const char *text, size_t bytes);

#endif
