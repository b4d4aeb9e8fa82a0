/* tools/cli/utf8.h - code points out of bytes, strictly: no overlong form, no surrogate, nothing
 * above U+10FFFF (RFC 3629). */
#ifndef WEFT_TOOLS_CLI_UTF8_H
#define WEFT_TOOLS_CLI_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* The code point at s[*at], *at < n; *at moves past it. Where there is none: -1, and *at moves by
 * one byte. */
int32_t utf8_next(const char *s, size_t n, size_t *at);

#endif
