/* core/file_load.c - an entry of a file into a leaf of a graph, converting the element type.
 *
 * Real types convert into real types, integers into i32; nothing else is guessed. A value that the leaf's
 * type cannot hold is an error; NaN and infinities are values like others. */
#include "file_format.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* An element of each stored type; the bytes may lie anywhere. */
static double from_f32(const void *p) { float v; return memcpy(&v, p, sizeof v), v; }
static double from_f64(const void *p) { double v; return memcpy(&v, p, sizeof v), v; }
static double from_i32(const void *p) { int32_t v; return memcpy(&v, p, sizeof v), v; }

static double from_i64(const void *p) {
    int64_t v;
    memcpy(&v, p, sizeof v);
    return (double)v; /* exact wherever it matters: in the range of i32 */
}

static double from_bf16(const void *p) { /* the upper half of an f32 */
    unsigned char f32[4] = { 0 };
    memcpy(f32 + 2, p, 2);
    return from_f32(f32);
}

static double from_f16(const void *p) { /* IEEE 754 binary16: sign, 5 bits of exponent, 10 of fraction */
    uint16_t v;
    memcpy(&v, p, sizeof v);
    int exponent = v >> 10 & 31, fraction = v & 1023;
    double size = exponent == 31 ? (fraction ? NAN : INFINITY)
                  : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                 : ldexp(fraction, -24);
    return v & 0x8000 ? -size : size;
}

typedef double read_element(const void *p);

static const struct stored {
    const char *dtype;
    size_t size;
    bool real;
    read_element *read;
} stored_types[] = {
    { "F32", 4, true, from_f32 }, { "F64", 8, true, from_f64 },  { "BF16", 2, true, from_bf16 },
    { "F16", 2, true, from_f16 }, { "I32", 4, false, from_i32 }, { "I64", 8, false, from_i64 },
};

static bool put(void *to, wf_dtype dtype, size_t i, double value) {
    switch (dtype) {
    case WF_F32: ((float *)to)[i] = (float)value; return !isinf(((float *)to)[i]) || isinf(value);
    case WF_F64: ((double *)to)[i] = value; return true;
    case WF_I32:
        if (value < INT32_MIN || value > INT32_MAX) return false;
        ((int32_t *)to)[i] = (int32_t)value;
        return true;
    }
    return false;
}

static bool convert(const wf_entry *e, const struct stored *from, wf_dtype dtype, void *to, char *message) {
    for (size_t i = 0; i < e->bytes / from->size; i++) {
        double value = from->read((const char *)e->data + i * from->size);
        if (!put(to, dtype, i, value))
            return wf_file_fail(message, "tensor '%.80s': element %zu is %.17g, which %s cannot hold", e->name,
                                i, value, wf_dtype_name(dtype));
    }
    return true;
}

static const struct stored *find_stored(const wf_entry *e, wf_dtype into) {
    for (size_t i = 0; i < sizeof stored_types / sizeof *stored_types; i++)
        if (strcmp(stored_types[i].dtype, e->dtype) == 0 && stored_types[i].real == (into != WF_I32))
            return &stored_types[i];
    return NULL;
}

static bool check_shape(const wf_entry *e, const wf_tensor *leaf, char *message) {
    char have[192], want[192];
    size_t bytes;
    if (!wf_file_size(e, &bytes, message)) return false;
    if (bytes != e->bytes || (bytes > 0 && !e->data))
        return wf_file_fail(message, "tensor '%.80s': %zu bytes given, %zu expected", e->name, e->bytes, bytes);
    if (e->ndim == leaf->ndim && memcmp(e->shape, leaf->shape, (size_t)e->ndim * sizeof *e->shape) == 0)
        return true;
    return wf_file_fail(message, "tensor '%.60s': shape %.80s in the file, %.80s in the model", e->name,
                        wf_file_shape_text(e->ndim, e->shape, have),
                        wf_file_shape_text(leaf->ndim, leaf->shape, want));
}

bool wf_file_load(const wf_entry *entry, wf_tensor *leaf, char *message) {
    if (!entry || !entry->name || !leaf) return wf_file_fail(message, "wf_file_load: nothing to load");
    if (!check_shape(entry, leaf, message)) return false;
    const struct stored *from = find_stored(entry, leaf->dtype);
    if (!from)
        return wf_file_fail(message, "tensor '%.80s': %s in the file cannot become %s", entry->name, entry->dtype,
                            wf_dtype_name(leaf->dtype));
    size_t bytes = entry->bytes / from->size * wf_dtype_size(leaf->dtype);
    void *values = malloc(bytes + 1);
    if (!values) return wf_file_fail(message, "tensor '%.80s': out of memory (%zu bytes)", entry->name, bytes);
    bool ok = convert(entry, from, leaf->dtype, values, message);
    if (ok && !wf_write(leaf, values, bytes))
        ok = wf_file_fail(message, "tensor '%.80s' could not be written to the model", entry->name);
    free(values);
    return ok;
}
