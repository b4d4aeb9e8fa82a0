/* core/file/file_load.c - an entry of a file into a leaf of a graph, converting the element type.
 *
 * Real types convert to real types, integer types to i32; anything else is an error. So is a value
 * that does not fit the leaf's type; NaN and infinities are accepted. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "file_format.h"

/* Read an element of each stored type, at any alignment. */
#define READ(name, type)                                                                           \
    static double name(const void *p) {                                                            \
        type value;                                                                                \
        memcpy(&value, p, sizeof value);                                                           \
        return (double)value;                                                                      \
    }
READ(from_f32, float)
READ(from_f64, double)
READ(from_i32, int32_t)
READ(from_i64, int64_t) /* rounded only far outside the range of i32 */

static double from_bf16(const void *p) { /* the upper half of an f32 */
    unsigned char f32[4] = { 0 };
    memcpy(f32 + 2, p, 2);
    return from_f32(f32);
}

static double from_f16(const void *p) { /* IEEE 754: a sign, 5 bits of exponent, 10 of fraction */
    uint16_t bits;
    memcpy(&bits, p, sizeof bits);
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double size = exponent == 0   ? ldexp(fraction, -24)
                  : exponent < 31 ? ldexp(1024 + fraction, exponent - 25)
                                  : (fraction ? NAN : INFINITY);
    return bits & 0x8000 ? -size : size;
}

static const struct stored {
    const char *dtype;
    size_t size;
    bool real;
    double (*read)(const void *p);
} types[] = {
    { "F32", 4, true, from_f32 },   { "F64", 8, true, from_f64 },  { "F16", 2, true, from_f16 },
    { "BF16", 2, true, from_bf16 }, { "I32", 4, false, from_i32 }, { "I64", 8, false, from_i64 },
};

static const struct stored *find_type(const char *dtype, wf_dtype into) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].dtype, dtype) == 0 && types[i].real == (into != WF_I32))
            return &types[i];
    return NULL;
}

static bool put(void *to, wf_dtype dtype, size_t i, double value) {
    if (dtype == WF_F64) return ((double *)to)[i] = value, true;
    if (dtype == WF_F32)
        return ((float *)to)[i] = (float)value, !isinf((float)value) || isinf(value);
    if (value < INT32_MIN || value > INT32_MAX) return false;
    return ((int32_t *)to)[i] = (int32_t)value, true;
}

static bool convert(const wf_entry *e, const struct stored *from, wf_dtype into, void *to,
                    char *message) {
    for (size_t i = 0; i < e->bytes / from->size; i++) {
        double value = from->read((const char *)e->data + i * from->size);
        if (!put(to, into, i, value))
            return wf_file_fail(message, "tensor '%.80s': element %zu is %.17g, too large for %s",
                                e->name, i, value, wf_dtype_name(into));
    }
    return true;
}

bool wf_file_load(const wf_entry *e, wf_tensor *leaf, char *message) {
    char have[192], want[192];
    if (!e || !e->name || !e->dtype || (!e->data && e->bytes > 0) || !leaf)
        return wf_file_fail(message, "wf_file_load: no entry, or no leaf");
    const struct stored *from = find_type(e->dtype, leaf->dtype);
    if (!from)
        return wf_file_fail(message, "tensor '%.80s': %.20s in the file cannot become %s", e->name,
                            e->dtype, wf_dtype_name(leaf->dtype));
    if (e->ndim != leaf->ndim || memcmp(e->shape, leaf->shape, (size_t)e->ndim * sizeof *e->shape))
        return wf_file_fail(message, "tensor '%.60s': shape %.80s in the file, %.80s in the model",
                            e->name, wf_shape_text(NULL, e->ndim, e->shape, have, sizeof have),
                            wf_shape_text(NULL, leaf->ndim, leaf->shape, want, sizeof want));
    size_t bytes = wf_bytes(leaf), n = bytes / wf_dtype_size(leaf->dtype);
    if (e->bytes != n * from->size)
        return wf_file_fail(message, "tensor '%.80s': %zu bytes, %zu expected", e->name, e->bytes,
                            n * from->size);
    void *values = malloc(bytes + 1);
    bool ok = values ? convert(e, from, leaf->dtype, values, message)
                     : wf_file_fail(message, "tensor '%.80s': out of memory", e->name);
    if (ok && !wf_write(leaf, values, bytes))
        ok = wf_file_fail(message, "tensor '%.80s': the model does not take it", e->name);
    free(values);
    return ok;
}
