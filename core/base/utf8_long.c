/* core/base/utf8_long.c - checks long texts; see utf8_long.h. */
#include "utf8_long.h"

#include "utf8.h"

/* 1 if a byte cannot follow the three before it, the nearest of which is a; else 0. There are no
 * branches, so the compiler checks a vector of bytes at a time. */
static inline unsigned char bad_byte(unsigned char a, unsigned char b, unsigned char c,
                                     unsigned char byte) {
    unsigned char inside = wf_utf8_continues((char)byte),
                  due = (a >= 0xC0) | (b >= 0xE0) | (c >= 0xF0);
    return (inside ^ due) | (byte == 0xC0) | (byte == 0xC1) | (byte > 0xF4) |
           ((a == 0xE0) & (byte < 0xA0)) | ((a == 0xED) & (byte > 0x9F)) |
           ((a == 0xF0) & (byte < 0x90)) | ((a == 0xF4) & (byte > 0x8F));
}

enum { CHECKED = 128 }; /* bytes that are checked together */

size_t wf_utf8_valid(const char *text, size_t bytes) {
    const unsigned char *s = (const unsigned char *)text;
    size_t at = 0;
    for (; bytes - at >= CHECKED + 3; at += CHECKED) {
        unsigned char bad = at ? 0
                               : bad_byte(0, 0, 0, s[0]) | bad_byte(s[0], 0, 0, s[1]) |
                                     bad_byte(s[1], s[0], 0, s[2]);
        for (size_t i = at; i < at + CHECKED; i++)
            bad |= bad_byte(s[i + 2], s[i + 1], s[i], s[i + 3]);
        if (bad) break;
    }
    /* the bytes before at + 3 are right, but the last of them may begin a longer code point */
    if (at) at += 2;
    while (at && wf_utf8_continues(text[at])) at--;
    return at + wf_utf8_prefix(text + at, bytes - at);
}
