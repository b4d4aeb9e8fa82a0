/* tools/cli/utf8.c - code points out of bytes. See utf8.h. */
#include "utf8.h"

/* How many bytes follow the first byte c, and the smallest code point that needs so many. */
static int followers(unsigned char c, int32_t *least) {
    static const int32_t leasts[] = { 0, 0x80, 0x800, 0x10000 };
    int n = c < 0x80 ? 0 : c < 0xC0 ? -1 : c < 0xE0 ? 1 : c < 0xF0 ? 2 : c < 0xF8 ? 3 : -1;
    if (n >= 0) *least = leasts[n];
    return n;
}

int32_t utf8_next(const char *s, size_t n, size_t *at) {
    size_t begin = (*at)++;
    unsigned char c = (unsigned char)s[begin];
    int32_t least, code = c;
    int more = followers(c, &least);
    if (more <= 0) return more == 0 ? code : -1;
    if (n - begin <= (size_t)more) return -1;
    code = c & (0x3F >> more);
    for (int i = 1; i <= more; i++) {
        c = (unsigned char)s[begin + (size_t)i];
        if ((c & 0xC0) != 0x80) return -1;
        code = code << 6 | (c & 0x3F);
    }
    if (code < least || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return -1;
    *at = begin + (size_t)more + 1;
    return code;
}
