/* models/text/base64.c - base 64; see base64.h. */
#include "base64.h"

#include <stdlib.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void wf_base64_put(wf_sink *to, const unsigned char *bytes, size_t n) {
    for (size_t i = 0; i < n; i += 3) {
        uint32_t bits = (uint32_t)bytes[i] << 16;
        if (i + 1 < n) bits |= (uint32_t)bytes[i + 1] << 8;
        if (i + 2 < n) bits |= bytes[i + 2];
        char four[4] = { digits[bits >> 18], digits[bits >> 12 & 63],
                         i + 1 < n ? digits[bits >> 6 & 63] : '=',
                         i + 2 < n ? digits[bits & 63] : '=' };
        put(to, four, sizeof four);
    }
}

char *wf_base64_decode(wf_span s, size_t *bytes, const char *what, char *message) {
    size_t n = s.bytes, used = 0;
    signed char value[256];
    memset(value, -1, sizeof value);
    for (int i = 0; i < 64; i++) value[(unsigned char)digits[i]] = (signed char)i;
    char *out = malloc(n / 4 * 3 + 1);
    if (!out) return fail(message, "out of memory"), NULL;
    size_t padding = n && s.text[n - 1] == '=';
    if (padding && n > 1 && s.text[n - 2] == '=') padding = 2;
    bool ok = n % 4 == 0;
    uint32_t bits = 0;
    for (size_t i = 0; ok && i < n; i++) {
        int v = i < n - padding ? value[(unsigned char)s.text[i]] : 0;
        ok = v >= 0;
        bits = (bits << 6 | (uint32_t)(v & 63)) & 0xFFFFFF;
        if (i % 4 != 3) continue;
        out[used++] = (char)(bits >> 16);
        out[used++] = (char)(bits >> 8);
        out[used++] = (char)bits;
    }
    *bytes = used - padding;
    if (ok) return out;
    free(out);
    fail(message, "%s is not in base 64", what);
    return NULL;
}
