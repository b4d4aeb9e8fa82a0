/* core/file/file_load.c - copies entries of a file into leaves of a graph, converting the element
 * type.
 *
 * Real types convert to real types, integer types to i32; anything else is an error. So is a value
 * that does not fit the leaf's type; NaN and infinities are accepted, but not by a leaf in int8.
 * Everything that can fail is done before the first leaf changes: values are checked, and memory is
 * allocated. Then values are written part by part, in the order of the file's data if its memory is
 * freed meanwhile. */
#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bf16.h"
#include "core/base/int8_row.h"
#include "core/base/memory.h"
#include "core/file_internal.h"
#include "core/graph_internal.h"
#include "core/record/record.h"
#include "loader.h"
#include "reader.h"

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
READ(from_i64, int64_t) /* rounds only numbers that are refused, as they do not fit in i32 */

static double from_bf16(const void *p) {
    uint16_t half;
    memcpy(&half, p, sizeof half);
    return wf_from_bf16(half);
}

/* IEEE 754 half precision: a sign, 5 bits of exponent, 10 of fraction */
static double from_f16(const void *p) {
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

static const struct stored *type_of(const wf_entry *e, wf_dtype into) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].dtype, e->dtype) == 0 && types[i].real == (into != WF_I32))
            return &types[i];
    return NULL;
}

static bool put(void *to, wf_dtype dtype, size_t i, double value) {
    if (dtype == WF_F64) {
        ((double *)to)[i] = value;
        return true;
    }
    if (dtype == WF_F32) {
        ((float *)to)[i] = (float)value;
        return !isinf((float)value) || isinf(value);
    }
    if (value < INT32_MIN || value > INT32_MAX) return false;
    ((int32_t *)to)[i] = (int32_t)value;
    return true;
}

/* True if the bytes can be copied without a conversion. */
static bool same_type(const struct stored *from, wf_dtype into) {
    return from->read == (into == WF_F32 ? from_f32 : into == WF_F64 ? from_f64 : from_i32);
}

/* The value of element i. An I8 number is multiplied by the scale of its row. */
static double value_at(const wf_entry *e, const wf_entry *scale, const struct stored *from,
                       size_t i) {
    double value = from->read((const char *)e->data + i * from->size);
    if (from->read != from_i8) return value;
    return value * from_f32((const char *)scale->data + i / (size_t)e->shape[1] * sizeof(float));
}

double wf_entry_value(const wf_entry *e, const wf_entry *scale, int64_t i) {
    const struct stored *from = type_of(e, WF_F64);
    if (!from) from = type_of(e, WF_I32);
    return from && (from->read != from_i8 || scale) ? value_at(e, scale, from, (size_t)i) : NAN;
}

/* Multiply I8 elements by the scales of their rows, a piece of a row at a time. Each product is
 * rounded once. */
static void widen(const wf_entry *e, const wf_entry *scale, wf_dtype into, size_t first, size_t n,
                  void *to) {
    const size_t k = (size_t)e->shape[1];
    const int8_t *q = (const int8_t *)e->data + first;
    for (size_t i = 0, end; i < n; i = end) {
        size_t row = (first + i) / k;
        double one = from_f32((const char *)scale->data + row * sizeof(float));
        end = (row + 1) * k - first < n ? (row + 1) * k - first : n;
        for (size_t j = i; into == WF_F64 && j < end; j++) ((double *)to)[j] = one * q[j];
        for (size_t j = i; into == WF_F32 && j < end; j++) ((float *)to)[j] = (float)one * q[j];
    }
}

/* Convert elements, beginning with number `first`, into `to`. If `to` is NULL, only check that
 * every value fits. */
static bool convert(const wf_entry *e, const wf_entry *scale, wf_dtype into, size_t first, size_t n,
                    void *to, char *message) {
    const struct stored *from = type_of(e, into);
    double unwanted;
    if (to && from->read == from_i8) {
        widen(e, scale, into, first, n, to);
        return true;
    }
    for (size_t i = 0; i < n; i++) {
        double value = value_at(e, scale, from, first + i);
        if (!put(to ? to : &unwanted, into, to ? i : 0, value))
            return wf_file_fail(message, "tensor '%.80s': element %zu is %.17g, too large for %s",
                                e->name, first + i, value, wf_dtype_name(into));
    }
    return true;
}

/* True if every value that the entry could hold fits: its type is the leaf's own, or has at most
 * half its bits. For I8, 128 times the scale of each row must be finite. */
static bool always_fits(const wf_entry *e, const wf_entry *scale, const struct stored *from,
                        wf_dtype into) {
    if (from->read != from_i8) return same_type(from, into) || (from->real && from->size <= 4);
    for (int64_t r = 0; into == WF_F32 && r < e->shape[0]; r++)
        if (from_f32((const char *)scale->data + (size_t)r * sizeof(float)) > FLT_MAX / 128)
            return false;
    return true;
}

/* Checks the scales of an I8 matrix and its numbers. -128 is refused: weft never writes it. */
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

/* Counts the elements that are NaN or infinite: those in which all bits of the exponent are set. */
#define COUNT(type, exponent)                                                                      \
    for (size_t i = 0; i < e->bytes / sizeof(type); i++) {                                         \
        type bits;                                                                                 \
        memcpy(&bits, (const char *)e->data + i * sizeof bits, sizeof bits);                       \
        n += (bits & (exponent)) == (exponent);                                                    \
    }
int64_t wf_file_not_finite(const wf_entry *e) {
    const struct stored *from = e && e->dtype && e->data ? type_of(e, WF_F32) : NULL;
    int64_t n = 0;
    if (!from) return 0;
    if (from->read == from_f64) COUNT(uint64_t, UINT64_C(0x7FF) << 52)
    if (from->read == from_f32) COUNT(uint32_t, UINT32_C(0xFF) << 23)
    if (from->read == from_bf16) COUNT(uint16_t, 0x7F80)
    if (from->read == from_f16) COUNT(uint16_t, 0x7C00)
    return n;
}

static bool check_finite(const wf_entry *e, const wf_entry *scale, const struct stored *from,
                         const wf_tensor *t, char *message) {
    if (leaf_of(t)->layout != WF_PANELS_INT8 || !wf_file_not_finite(e)) return true;
    for (size_t i = 0; i < e->bytes / from->size; i++)
        if (!isfinite(value_at(e, scale, from, i)))
            return wf_file_fail(message,
                                "tensor '%.80s': element %zu is NaN or infinite: it cannot be kept "
                                "as int8",
                                e->name, i);
    return true;
}

/* ---- does it fit? ---------------------------------------------------------------------------- */

bool wf_file_shape_fits(const wf_entry *e, const wf_tensor *t, int k, char *message) {
    char have[192], want[192];
    int64_t shape[WF_MAX_DIMS];
    memcpy(shape, t->shape, sizeof shape);
    if (k > 1) shape[0] = t->ndim && shape[0] % k == 0 ? shape[0] / k : -1;
    return (e->ndim == t->ndim &&
            memcmp(e->shape, shape, (size_t)e->ndim * sizeof *e->shape) == 0) ||
           wf_file_fail(message, "'%.90s' is %.60s in the file, not %.60s as in the model", e->name,
                        wf_shape_text(NULL, e->ndim, e->shape, have, sizeof have),
                        wf_shape_text(NULL, t->ndim, shape, want, sizeof want));
}

/* Checks an entry as one of k equal parts of a leaf's rows. */
static bool part_fits(const wf_entry *e, const wf_entry *scale, const wf_tensor *t, int k,
                      char *message) {
    if (!e || !e->name || !e->dtype || !t)
        return wf_file_fail(message, "wf_file_load: no entry, or no leaf");
    if (!e->data && e->bytes > 0)
        return wf_file_fail(message, "tensor '%.80s': its data are not there, or not any more",
                            e->name);
    const struct stored *from = type_of(e, t->dtype);
    if (!from)
        return wf_file_fail(message, "tensor '%.80s': %.20s in the file cannot become %s", e->name,
                            e->dtype, wf_dtype_name(t->dtype));
    if (!wf_file_shape_fits(e, t, k, message)) return false;
    size_t n = wf_bytes(t) / wf_dtype_size(t->dtype) / (size_t)k;
    if (e->bytes != n * from->size)
        return wf_file_fail(message, "tensor '%.80s': %zu bytes, %zu expected", e->name, e->bytes,
                            n * from->size);
    if (wf_is_poison(t) || !is_stored(t))
        return wf_file_fail(message, "tensor '%.80s': the model does not take it", e->name);
    return check_scaled(e, scale, from, message) &&
           (always_fits(e, scale, from, t->dtype) ||
            convert(e, scale, t->dtype, 0, n, NULL, message)) &&
           check_finite(e, scale, from, t, message);
}

bool wf_file_fits(const wf_entry *e, const wf_entry *scale, const wf_tensor *t, char *message) {
    return part_fits(e, scale, t, 1, message);
}

/* ---- all or nothing -------------------------------------------------------------------------- */

/* An entry and its destination: a leaf from element `first` on. */
typedef struct item {
    const wf_entry *entry, *scale;
    wf_tensor *leaf;
    size_t first;
    /* memory for a leaf without values so far; all items of the leaf share it */
    void **reserved;
} item;

/* The memory that is allocated before the first write: values of leaves, a buffer for converted
 * values, and copies of entries that are joined into one. */
typedef struct room {
    item *items;
    void **reserved;  /* new memory of leaves without values so far; else NULL */
    wf_entry *joined; /* [2 n] entries whose data must be freed */
    int n, n_joined;
    void *values;
} room;

/* The number of elements that are written at once: few enough to stay in the cache, and a whole
 * number of panels. */
static size_t part_of(const wf_tensor *t) {
    size_t most = WF_FILE_PART / wf_dtype_size(t->dtype);
    if (!leaf_of(t)->layout || t->shape[1] == 0) return most;
    size_t panel = WF_PANEL_MOST * (size_t)t->shape[1];
    return most < panel ? panel : most / panel * panel;
}

/* Sort by the address of the data, but entries with scales first: their scales may be entries to
 * load, too, and loading those would free the scales' memory. */
static int by_data(const void *a, const void *b) {
    const item *x = a, *y = b;
    uintptr_t p = (uintptr_t)x->entry->data, q = (uintptr_t)y->entry->data;
    if (!x->scale != !y->scale) return x->scale ? -1 : 1;
    if (p != q) return p < q ? -1 : 1;
    return (x->entry->bytes > y->entry->bytes) - (x->entry->bytes < y->entry->bytes);
}

/* The number of leaves at the start of the list that are the same leaf. */
static int parts_of(wf_tensor *const *leaves, int n) {
    int k = 1;
    while (k < n && leaves[k] == leaves[0]) k++;
    return k;
}

static bool all_fit(const wf_entry *const *entries, const wf_entry *const *scales,
                    const wf_tensor *t, int k, char *message) {
    for (int i = 0; i < k; i++) {
        if (!part_fits(entries[i], scales ? scales[i] : NULL, t, k, message)) return false;
        if (strcmp(entries[i]->dtype, entries[0]->dtype) != 0)
            return wf_file_fail(message, "tensor '%.80s' is of another type than '%.80s'",
                                entries[i]->name, entries[0]->name);
    }
    return true;
}

/* Joins k entries, one below the other, in a new one with its own memory. NULL: out of memory. */
static const wf_entry *join(room *r, const wf_entry *const *part, int k) {
    char *data = malloc((size_t)k * part[0]->bytes + 1);
    wf_entry *whole = &r->joined[r->n_joined];
    if (!data) return NULL;
    *whole = *part[0];
    whole->data = data;
    whole->bytes *= (size_t)k;
    whole->shape[0] *= k;
    for (int i = 0; i < k; i++)
        memcpy(data + (size_t)i * part[0]->bytes, part[i]->data, part[0]->bytes);
    return &r->joined[r->n_joined++];
}

/* Adds the k entries of a leaf as items. Entries that do not begin on whole panels are joined
 * first. */
static bool add_items(room *r, const wf_entry *const *entries, const wf_entry *const *scales,
                      wf_tensor *t, int k) {
    size_t n = (size_t)wf_count(t) / (size_t)k;
    const bool whole = k == 1 || !leaf_of(t)->layout || entries[0]->shape[0] % WF_PANEL_MOST == 0;
    item *to = &r->items[r->n];
    void **reserved = &r->reserved[r->n];
    if (whole) {
        for (int i = 0; i < k; i++)
            to[i] = (item){ entries[i], scales ? scales[i] : NULL, t, (size_t)i * n, reserved };
        r->n += k;
        return true;
    }
    const bool scaled = type_of(entries[0], t->dtype)->read == from_i8;
    *to = (item){ join(r, entries, k), scaled ? join(r, scales, k) : NULL, t, 0, reserved };
    r->n++;
    return to->entry && (to->scale || !scaled);
}

static bool list_items(room *r, const wf_entry *const *entries, const wf_entry *const *scales,
                       wf_tensor *const *leaves, int n) {
    const size_t most = (size_t)n + 1;
    r->items = calloc(most, sizeof *r->items);
    r->reserved = calloc(most, sizeof *r->reserved);
    r->joined = calloc(2 * most, sizeof *r->joined);
    bool ok = r->items && r->reserved && r->joined;
    for (int i = 0, k; ok && i < n; i += k) {
        k = parts_of(leaves + i, n - i);
        ok = add_items(r, entries + i, scales ? scales + i : NULL, leaves[i], k);
    }
    return ok;
}

static bool reserve(room *r, bool in_order) {
    size_t largest = 0;
    bool ok = true;
    if (in_order) qsort(r->items, (size_t)r->n, sizeof *r->items, by_data);
    for (int i = 0; ok && i < r->n; i++) {
        const item *it = &r->items[i];
        size_t size = wf_dtype_size(it->leaf->dtype), part = part_of(it->leaf) * size;
        size_t bytes = wf_bytes(it->leaf) < part ? wf_bytes(it->leaf) : part;
        if (bytes > largest) largest = bytes;
        ok = *it->reserved || wf_leaf_reserve(it->leaf, it->reserved);
    }
    return ok && (r->values = wf_memory_raw(largest)) != NULL;
}

static void release(room *r) {
    for (int i = 0; i < r->n; i++)
        if (*r->items[i].reserved) {
            wf_leaf_settle(r->items[i].leaf, *r->items[i].reserved, false);
            *r->items[i].reserved = NULL;
        }
}

static void close_room(room *r) {
    for (int i = 0; i < r->n_joined; i++) free((void *)(uintptr_t)r->joined[i].data);
    free(r->items), free(r->reserved), free(r->joined), free(r->values);
}

/* A contiguous range of a file's data that has been loaded, so that its memory can be freed. */
typedef struct drop {
    const wf_file *file; /* the file; NULL if no memory is freed */
    bool on;
    char *from;
    /* start of the next item's data, which may overlap: free no memory from there on; or NULL */
    const char *limit;
} drop;

static void begin_drop(drop *d, const room *r, int i) {
    const item *it = &r->items[i], *next = i + 1 < r->n ? it + 1 : NULL;
    /* true if the previous item came from this file, too */
    const bool went_on = d->on;
    const char *data = it->entry->data, *end = NULL;
    if (went_on) end = (const char *)it[-1].entry->data + it[-1].entry->bytes;
    d->on = wf_file_place(d->file, it->entry) >= 0; /* only the memory of this file may be freed */
    if (!went_on || data < d->from || data > end) d->from = (char *)(uintptr_t)data;
    d->limit = next && !next->scale == !it->scale ? next->entry->data : NULL;
}

static void drop_to(drop *d, const char *to) {
    if (d->limit && to > d->limit) to = d->limit;
    if (d->on) d->from = wf_memory_drop(d->from, (char *)(uintptr_t)to);
}

/* True if the file's bytes have the leaf's type and are aligned: they need no conversion. */
static bool as_it_is(const item *it, const struct stored *from) {
    return same_type(from, it->leaf->dtype) && (uintptr_t)it->entry->data % from->size == 0;
}

static void write_one(room *r, const item *it, drop *d) {
    const wf_entry *e = it->entry;
    const struct stored *from = type_of(e, it->leaf->dtype);
    size_t n = e->bytes / from->size, part = part_of(it->leaf);
    bool direct = as_it_is(it, from);
    if (*it->reserved) {
        wf_leaf_settle(it->leaf, *it->reserved, true);
        *it->reserved = NULL;
    }
    for (size_t first = 0, some; first < n; first += some) {
        const char *data = (const char *)e->data + first * from->size;
        some = n - first < part ? n - first : part;
        bool fits = direct || convert(e, it->scale, it->leaf->dtype, first, some, r->values, NULL);
        assert(fits);
        (void)fits;
        wf_leaf_write_part(it->leaf, (int64_t)(it->first + first), (int64_t)some,
                           direct ? data : r->values);
        drop_to(d, data + some * from->size);
    }
}

static void write_all(room *r, const wf_file *drops) {
    drop d = { .file = drops };
    for (int i = 0; i < r->n; i++) {
        if (drops) begin_drop(&d, r, i);
        write_one(r, &r->items[i], &d);
    }
}

static int by_place(const void *a, const void *b) {
    const uintptr_t p = (uintptr_t)((const item *)a)->entry->data;
    const uintptr_t q = (uintptr_t)((const item *)b)->entry->data;
    return (p > q) - (p < q);
}

/* Sets the data of loaded entries, and of those that share bytes with them, to NULL: their memory
 * was freed. Both lists are in the order of the data. */
static void forget(const wf_file *f, const room *r) {
    /* the highest end of a loaded entry, of those that begin before this tensor ends */
    const char *end = NULL;
    int i = 0;
    qsort(r->items, (size_t)r->n, sizeof *r->items, by_place);
    for (int k = 0; k < f->count; k++) {
        wf_entry *e = &f->tensors[k].entry;
        const char *data = e->data;
        for (; i < r->n && (const char *)r->items[i].entry->data < data + e->bytes; i++) {
            const char *loaded = (const char *)r->items[i].entry->data + r->items[i].entry->bytes;
            if (!end || loaded > end) end = loaded;
        }
        if (e->bytes && end && end > data) e->data = NULL;
    }
}

bool wf_file_load_from(const wf_file *f, const wf_entry *const *entries,
                       const wf_entry *const *scales, wf_tensor *const *leaves, int n,
                       char *message) {
    const bool drops = wf_file_ok(f) && f->drops;
    room r = { .n = 0 };
    if (n < 0 || (n && (!entries || !leaves)))
        return wf_file_fail(message, "no entries, or no leaves");
    for (int i = 0, k; i < n; i += k) {
        k = parts_of(leaves + i, n - i);
        if (!all_fit(entries + i, scales ? scales + i : NULL, leaves[i], k, message)) return false;
    }
    bool ok = list_items(&r, entries, scales, leaves, n) && reserve(&r, drops);
    if (ok)
        write_all(&r, drops ? f : NULL);
    else {
        release(&r);
        wf_file_fail(message, "out of memory");
    }
    if (ok && drops) forget(f, &r);
    close_room(&r);
    return ok;
}

bool wf_file_load_leaves(const wf_entry *const *entries, wf_tensor *const *leaves, int n,
                         char *message) {
    return wf_file_load_from(NULL, entries, NULL, leaves, n, message);
}

bool wf_file_load(const wf_entry *e, wf_tensor *t, char *message) {
    return wf_file_load_leaves(&e, &t, 1, message);
}
