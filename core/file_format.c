/* core/file_format.c - dtypes, sizes, checksum and messages of safetensors files; see file_format.h. */
#include "file_format.h"

#include "op.h"
#include "random.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int wf_file_dtype(const char **name) {
    static const struct {
        char name[12];
        int bits;
    } dtypes[] = {
        { "BOOL", 8 },    { "F4", 4 },          { "F6_E2M3", 6 },     { "F6_E3M2", 6 }, { "U8", 8 },
        { "I8", 8 },      { "F8_E5M2", 8 },     { "F8_E4M3", 8 },     { "F8_E8M0", 8 },
        { "I16", 16 },    { "F8_E4M3FNUZ", 8 }, { "F8_E5M2FNUZ", 8 }, { "U16", 16 },    { "F16", 16 },
        { "BF16", 16 },   { "I32", 32 },        { "U32", 32 },        { "F32", 32 },    { "C64", 64 },
        { "F64", 64 },    { "I64", 64 },        { "U64", 64 },
    };
    for (size_t i = 0; *name && i < sizeof dtypes / sizeof *dtypes; i++)
        if (strcmp(*name, dtypes[i].name) == 0) {
            *name = dtypes[i].name;
            return dtypes[i].bits;
        }
    return 0;
}

bool wf_file_size(const wf_entry *e, size_t *bytes, char *message) {
    const char *dtype = e->dtype;
    int64_t bits = wf_file_dtype(&dtype);
    char shape[192];
    if (bits == 0)
        return wf_file_fail(message, "tensor '%.80s': unknown dtype '%.40s'", e->name, dtype ? dtype : "");
    if (e->ndim < 0 || e->ndim > WF_MAX_DIMS)
        return wf_file_fail(message, "tensor '%.80s': %d axes, 0 to %d allowed", e->name, e->ndim, WF_MAX_DIMS);
    for (int i = 0; i < e->ndim; i++)
        if (!wf_mul_size(bits, e->shape[i], &bits) || (uint64_t)bits / 8 > SIZE_MAX)
            return wf_file_fail(message, "tensor '%.60s': the shape %.120s is too large", e->name,
                                wf_file_shape_text(e->ndim, e->shape, shape));
    if (bits % 8 != 0)
        return wf_file_fail(message, "tensor '%.60s': shape %.90s of %s is %lld bits, not whole bytes",
                            e->name, wf_file_shape_text(e->ndim, e->shape, shape), dtype, (long long)bits);
    *bytes = (size_t)(bits / 8);
    return true;
}

/* ---- checksum --------------------------------------------------------------------------------- */

/* Each step is a bijection of h for a given word and of the word for a given h: no change within one
 * 8-byte word, and so no change of a single byte or bit, leaves the hash as it was. */
static uint64_t hash(uint64_t h, const void *data, size_t n) {
    const unsigned char *p = data;
    uint64_t word;
    h = wf_mix64(h ^ n);
    for (; n >= sizeof word; n -= sizeof word, p += sizeof word) {
        memcpy(&word, p, sizeof word);
        h = (h ^ word) * 0x9E3779B97F4A7C15u;
        h ^= h >> 32;
    }
    word = 0;
    if (n > 0) memcpy(&word, p, n);
    return wf_mix64(h ^ word);
}

static uint64_t hash_string(uint64_t h, const char *s) { return hash(h, s, strlen(s)); }

uint64_t wf_file_hash_entry(uint64_t h, const wf_entry *e) {
    h = hash_string(hash_string(h, e->name), e->dtype);
    h = hash(h, e->shape, (size_t)e->ndim * sizeof *e->shape);
    return hash(h, e->data, e->bytes);
}

uint64_t wf_file_hash_meta(uint64_t h, wf_meta pair) {
    if (strcmp(pair.key, WF_FILE_CHECKSUM) == 0) return h;
    return hash_string(hash_string(h, pair.key), pair.value);
}

void wf_file_hash_text(uint64_t h, char text[17]) { snprintf(text, 17, "%016llx", (unsigned long long)h); }

/* ---- messages --------------------------------------------------------------------------------- */

bool wf_file_fail(char *message, const char *format, ...) {
    if (!message) return false;
    va_list args;
    va_start(args, format);
    vsnprintf(message, WF_MESSAGE, format, args);
    va_end(args);
    for (char *c = message; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7F) *c = '?';
    return false;
}

const char *wf_file_reason(char buffer[64]) { /* strerror is not for threads */
    int error = errno;
    if (strerror_r(error, buffer, 64) != 0) snprintf(buffer, 64, "error %d", error);
    return buffer;
}

const char *wf_file_shape_text(int ndim, const int64_t *shape, char buffer[192]) {
    int n = snprintf(buffer, 192, "[");
    for (int i = 0; i < ndim && i < WF_MAX_DIMS; i++)
        n += snprintf(buffer + n, 192 - (size_t)n, "%s%lld", i ? "," : "", (long long)shape[i]);
    snprintf(buffer + n, 192 - (size_t)n, "]");
    return buffer;
}
