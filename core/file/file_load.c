/* core/file/file_load.c - entries of a file into leaves of a graph, converting the element type.
 *
 * Real types convert to real types, integer types to i32; anything else is an error. So is a value
 * that does not fit the leaf's type; NaN and infinities are accepted, but not by a leaf in int8. All that can fail is done
 * before the first leaf changes: what fits is looked at, and memory reserved. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/record/record.h"
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
READ(from_i8, int8_t)
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
    { "F32", 4, true, from_f32 },   { "F64", 8, true, from_f64 }, { "F16", 2, true, from_f16 },
    { "BF16", 2, true, from_bf16 }, { "I8", 1, true, from_i8 },   { "I32", 4, false, from_i32 },
    { "I64", 8, false, from_i64 },
};

static const struct stored *find_type(const char *dtype, wf_dtype into) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].dtype, dtype) == 0 && types[i].real == (into != WF_I32))
            return &types[i];
    return NULL;
}

static const struct stored *type_of(const wf_entry *e, const wf_tensor *t) {
    return find_type(e->dtype, t->dtype);
}

static bool put(void *to, wf_dtype dtype, size_t i, double value) {
    if (dtype == WF_F64) return ((double *)to)[i] = value, true;
    if (dtype == WF_F32)
        return ((float *)to)[i] = (float)value, !isinf((float)value) || isinf(value);
    if (value < INT32_MIN || value > INT32_MAX) return false;
    return ((int32_t *)to)[i] = (int32_t)value, true;
}

/* Is it a matter of copying bytes? */
static bool same_type(const struct stored *from, wf_dtype into) {
    return from->read == (into == WF_F32 ? from_f32 : into == WF_F64 ? from_f64 : from_i32);
}

/* Element i. Those of I8 are multiplied with the scale of their row. */
static double value_at(const wf_entry *e, const wf_entry *scale, const struct stored *from,
                       size_t i) {
    double value = from->read((const char *)e->data + i * from->size);
    if (from->read != from_i8) return value;
    return value * from_f32((const char *)scale->data + i / (size_t)e->shape[1] * sizeof(float));
}

/* to NULL: only look whether every value fits. */
static bool convert(const wf_entry *e, const wf_entry *scale, const struct stored *from,
                    wf_dtype into, void *to, char *message) {
    double unwanted;
    size_t n = e->bytes / from->size;
    if (same_type(from, into)) {
        if (to && n) memcpy(to, e->data, e->bytes);
        return true;
    }
    for (size_t i = 0; i < n; i++) {
        double value = value_at(e, scale, from, i);
        if (!put(to ? to : &unwanted, into, to ? i : 0, value))
            return wf_file_fail(message, "tensor '%.80s': element %zu is %.17g, too large for %s",
                                e->name, i, value, wf_dtype_name(into));
    }
    return true;
}

/* -128 has no counterpart above 0, and is nothing that weft writes. */
static bool check_scaled(const wf_entry *e, const wf_entry *scale, const struct stored *from,
                         char *message) {
    if (from->read != from_i8) return true;
    bool fits = scale && scale->data && strcmp(scale->dtype, "F32") == 0 && scale->ndim == 1 &&
                e->ndim == 2 && scale->shape[0] == e->shape[0] &&
                scale->bytes == (size_t)e->shape[0] * sizeof(float);
    if (!fits)
        return wf_file_fail(
            message, "tensor '%.80s': I8 without '%.80s" WF_FILE_SCALE "', an F32 for each row",
            e->name, e->name);
    for (int64_t r = 0; r < e->shape[0]; r++) {
        double one = from_f32((const char *)scale->data + (size_t)r * sizeof(float));
        if (!(one >= 0 && isfinite(one)))
            return wf_file_fail(message,
                                "tensor '%.80s" WF_FILE_SCALE
                                "': element %lld is %g: a scale is finite and not negative",
                                e->name, (long long)r, one);
    }
    const void *lowest = e->bytes ? memchr(e->data, 0x80, e->bytes) : NULL;
    return !lowest ||
           wf_file_fail(message,
                        "tensor '%.80s': element %lld is -128: int8 weights are from "
                        "-127 to 127",
                        e->name, (long long)((const char *)lowest - (const char *)e->data));
}

static bool check_finite(const wf_entry *e, const wf_entry *scale, const struct stored *from,
                         const wf_tensor *t, char *message) {
    if (leaf_of(t)->layout != WF_PANELS_INT8) return true;
    for (size_t i = 0; i < e->bytes / from->size; i++)
        if (!isfinite(value_at(e, scale, from, i)))
            return wf_file_fail(message,
                                "tensor '%.80s': element %zu is NaN or infinite: it cannot be kept "
                                "as int8",
                                e->name, i);
    return true;
}

/* ---- does it fit? ---------------------------------------------------------------------------- */

bool wf_file_fits(const wf_entry *e, const wf_entry *scale, const wf_tensor *t, char *message) {
    char have[192], want[192];
    if (!e || !e->name || !e->dtype || (!e->data && e->bytes > 0) || !t)
        return wf_file_fail(message, "wf_file_load: no entry, or no leaf");
    const struct stored *from = type_of(e, t);
    if (!from)
        return wf_file_fail(message, "tensor '%.80s': %.20s in the file cannot become %s", e->name,
                            e->dtype, wf_dtype_name(t->dtype));
    if (e->ndim != t->ndim || memcmp(e->shape, t->shape, (size_t)e->ndim * sizeof *e->shape))
        return wf_file_fail(message, "tensor '%.60s': shape %.80s in the file, %.80s in the model",
                            e->name, wf_shape_text(NULL, e->ndim, e->shape, have, sizeof have),
                            wf_shape_text(NULL, t->ndim, t->shape, want, sizeof want));
    size_t n = wf_bytes(t) / wf_dtype_size(t->dtype);
    if (e->bytes != n * from->size)
        return wf_file_fail(message, "tensor '%.80s': %zu bytes, %zu expected", e->name, e->bytes,
                            n * from->size);
    if (wf_is_poison(t) || !is_stored(t))
        return wf_file_fail(message, "tensor '%.80s': the model does not take it", e->name);
    return check_scaled(e, scale, from, message) &&
           convert(e, scale, from, t->dtype, NULL, message) &&
           check_finite(e, scale, from, t, message);
}

/* ---- all or nothing -------------------------------------------------------------------------- */

/* What could still fail: the leaves' own memory, and that of the largest for converted values. */
typedef struct room {
    void **reserved; /* for leaves that have no values yet */
    void *values;
} room;

static bool reserve(room *r, wf_tensor *const *leaves, int n) {
    size_t largest = 0;
    bool ok = (r->reserved = calloc((size_t)n + 1, sizeof *r->reserved)) != NULL;
    for (int i = 0; ok && i < n; i++) {
        ok = wf_leaf_reserve(leaves[i], &r->reserved[i]);
        if (wf_bytes(leaves[i]) > largest) largest = wf_bytes(leaves[i]);
    }
    return ok && (r->values = malloc(largest + 1)) != NULL;
}

static void release(room *r, wf_tensor *const *leaves, int n) {
    for (int i = 0; r->reserved && i < n; i++)
        if (r->reserved[i]) wf_leaf_settle(leaves[i], r->reserved[i], false);
}

static void write_all(room *r, const wf_entry *const *entries, const wf_entry *const *scales,
                      wf_tensor *const *leaves, int n) {
    for (int i = 0; i < n; i++) {
        wf_tensor *t = leaves[i];
        if (r->reserved[i]) wf_leaf_settle(t, r->reserved[i], true);
        bool fits = convert(entries[i], scales ? scales[i] : NULL, type_of(entries[i], t), t->dtype,
                            r->values, NULL);
        bool written = wf_write(t, r->values, wf_bytes(t));
        assert(fits && written), (void)fits, (void)written;
    }
}

bool wf_file_load_scaled(const wf_entry *const *entries, const wf_entry *const *scales,
                         wf_tensor *const *leaves, int n, char *message) {
    room r = { 0 };
    if (n < 0 || (n && (!entries || !leaves)))
        return wf_file_fail(message, "no entries, or no leaves");
    for (int i = 0; i < n; i++)
        if (!wf_file_fits(entries[i], scales ? scales[i] : NULL, leaves[i], message)) return false;
    bool ok = reserve(&r, leaves, n);
    if (ok)
        write_all(&r, entries, scales, leaves, n);
    else
        release(&r, leaves, n), wf_file_fail(message, "out of memory");
    free(r.reserved), free(r.values);
    return ok;
}

bool wf_file_load_leaves(const wf_entry *const *entries, wf_tensor *const *leaves, int n,
                         char *message) {
    return wf_file_load_scaled(entries, NULL, leaves, n, message);
}

bool wf_file_load(const wf_entry *e, wf_tensor *t, char *message) {
    return wf_file_load_leaves(&e, &t, 1, message);
}
