/* core/base/utf8.h - inside the library and its programs: functions that read and write UTF-8.
 *
 * Reading is strict (Unicode 15, table 3-7): overlong forms, surrogates and code points above
 * U+10FFFF are rejected. Not installed.
 *
 *     for (size_t at = 0; at < n;)
 *         if ((code = wf_utf8_next(text, n, &at)) < 0) ...    a byte that is not UTF-8 */
#ifndef WEFT_CORE_BASE_UTF8_H
#define WEFT_CORE_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WF_UTF8_MOST = 4 }; /* the most bytes of a code point */

/* True if the byte is a continuation byte, which never begins a code point. */
static inline bool wf_utf8_continues(char c) {
    return ((unsigned char)c & 0xC0) == 0x80;
}

/* The length of a code point according to its first byte, but at most n > 0, the number of bytes
 * left. The bytes after the first are not checked. A continuation byte gives 1; other bytes that
 * UTF-8 never begins with, such as 0xFF, are not recognised and give more. */
static inline size_t wf_utf8_announced(const char *text, size_t n) {
    unsigned char c = (unsigned char)*text;
    size_t length = c < 0xC0 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
    return length < n ? length : n;
}

/* The length of the longest beginning of a code point at the start of n > 0 bytes; at least 1.
 * *whole is true if the code point is complete. */
static inline size_t wf_utf8_beginning(const char *text, size_t n, bool *whole) {
    const unsigned char *c = (const unsigned char *)text;
    size_t length = c[0] < 0x80 ? 1 : c[0] < 0xC2 || c[0] > 0xF4 ? 0 : wf_utf8_announced(text, 4);
    unsigned char low = c[0] == 0xE0 ? 0xA0 : c[0] == 0xF0 ? 0x90 : 0x80;  /* overlong below */
    unsigned char high = c[0] == 0xED ? 0x9F : c[0] == 0xF4 ? 0x8F : 0xBF; /* surrogates above */
    size_t i = 1;
    while (i < length && i < n && c[i] >= low && c[i] <= high) {
        low = 0x80;
        high = 0xBF;
        i++;
    }
    *whole = i == length;
    return i;
}

/* The length of the code point at the start of n > 0 bytes; 0 if they do not begin with a complete,
 * valid one. */
static inline size_t wf_utf8_length(const char *text, size_t n) {
    bool whole;
    size_t length = wf_utf8_beginning(text, n, &whole);
    return whole ? length : 0;
}

/* The code point that is encoded in 1 to 4 bytes of text; their number, `bytes`, is the result of
 * wf_utf8_length. */
static inline int32_t wf_utf8_code(const char *text, size_t bytes) {
    int32_t code = (unsigned char)*text & (bytes == 1 ? 0x7F : 0x7F >> bytes);
    for (size_t i = 1; i < bytes; i++) code = code << 6 | (text[i] & 0x3F);
    return code;
}

/* The code point at text[*at], where *at < n; moves *at past it. Invalid UTF-8 gives -1, and *at
 * moves by one byte. */
static inline int32_t wf_utf8_next(const char *text, size_t n, size_t *at) {
    const char *from = text + *at;
    size_t length = wf_utf8_length(from, n - *at);
    *at += length ? length : 1;
    return length ? wf_utf8_code(from, length) : -1;
}

/* The length of the longest prefix that is valid UTF-8. */
static inline size_t wf_utf8_prefix(const char *text, size_t n) {
    size_t at = 0;
    for (size_t length = 1; at < n && length; at += length)
        length = wf_utf8_length(text + at, n - at);
    return at;
}

/* Writes a code point; returns its length. */
static inline size_t wf_utf8_put(char to[WF_UTF8_MOST], int32_t code) {
    static const unsigned char first[] = { 0, 0, 0xC0, 0xE0, 0xF0 };
    size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length; --i > 0; code >>= 6) to[i] = (char)(0x80 | (code & 0x3F));
    to[0] = (char)(first[length] | code);
    return length;
}

#endif
