/* models/marian/marian_file.c - the tensors of Marian's binary files.
 *
 *     u64 1; u64 n; n times u64 { length of the name, type, number of axes, bytes of the data };
 *     n names, each with a NUL; n shapes of i32; u64 gap, and as many bytes; the data of each
 *
 * A tensor in int8 has a f32 behind its numbers, the multiplier; a value is a number divided by it.
 * Everything is little-endian, and the data are aligned, so that they may be mapped. There is no
 * checksum: all lengths must add up to the file's. */
#include "marian_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph_internal.h"
#include "core/op_internal.h"
#include "models/message.h"

enum { HEADER = 32, MOST_ITEMS = 1 << 16, MOST_PADDING = 1 << 12 };
/* bits of types: size in bytes, class, and intgemm's layout */
enum { TYPE_F32 = 0x0404, TYPE_F16 = 0x0402, TYPE_I8 = 0x0101, TYPE_INTGEMM8 = 0x4101 };

typedef struct reading {
    marian_file *f;
    const char *bytes;
    size_t size, at;
    char *message;
} reading;

static uint64_t number_at(const char *at, int bytes) {
    const unsigned char *p = (const unsigned char *)at;
    uint64_t n = 0;
    while (bytes-- > 0) n = n << 8 | p[bytes];
    return n;
}

/* The next n bytes. NULL with message: there are fewer. */
static const char *take(reading *r, uint64_t n) {
    const char *at = r->bytes + r->at;
    if (n > r->size - r->at) return fail(r->message, "cut off, or damaged"), NULL;
    r->at += (size_t)n;
    return at;
}

static bool read_type(const reading *r, uint64_t type, marian_item *item) {
    item->type = type == TYPE_F32 ? MARIAN_F32 : MARIAN_INT8;
    if (type == TYPE_I8) item->type = MARIAN_TEXT;
    return type == TYPE_F32 || type == TYPE_I8 || type == TYPE_INTGEMM8 ||
           fail(r->message, "'%.100s' is of type 0x%04llx%s: f32 and intgemm8 are read", item->name,
                (unsigned long long)type, type == TYPE_F16 ? ", f16" : "");
}

static bool read_shape(reading *r, uint64_t axes, marian_item *item) {
    const char *at = axes <= MARIAN_DIMS ? take(r, 4 * axes) : NULL;
    if (!at)
        return fail(r->message, "'%.100s' has %llu axes", item->name, (unsigned long long)axes);
    item->ndim = (int)axes;
    item->count = 1;
    for (int i = 0; i < item->ndim; i++) {
        item->shape[i] = (int32_t)(uint32_t)number_at(at + 4 * i, 4);
        if (item->shape[i] < 1 || !wf_mul_size(item->count, item->shape[i], &item->count))
            return fail(r->message, "'%.100s' has an axis of %lld", item->name,
                        (long long)item->shape[i]);
    }
    return true;
}

static bool read_data(reading *r, uint64_t bytes, marian_item *item) {
    int64_t size = item->type == MARIAN_F32 ? 4 : 1, need;
    bool int8 = item->type == MARIAN_INT8;
    if (!wf_mul_size(item->count, size, &need) || need > INT64_MAX / 2)
        return fail(r->message, "'%.100s' is too large", item->name);
    need += int8 ? (int64_t)sizeof item->multiplier : 0;
    if (bytes < (uint64_t)need || bytes - (uint64_t)need > MOST_PADDING)
        return fail(r->message, "'%.100s' has %llu bytes, not %lld", item->name,
                    (unsigned long long)bytes, (long long)need);
    item->data = take(r, bytes);
    if (!item->data) return false;
    if (int8) memcpy(&item->multiplier, item->data + item->count, sizeof item->multiplier);
    return !int8 || (isfinite(item->multiplier) && item->multiplier > 0) ||
           fail(r->message, "'%.100s' has a multiplier of %g", item->name,
                (double)item->multiplier);
}

static bool read_items(reading *r, const char *headers, int n) {
    bool ok = true;
    for (int i = 0; ok && i < n; i++) {
        uint64_t length = number_at(headers + HEADER * i, 8);
        const char *name = length && length <= MARIAN_NAME ? take(r, length) : NULL;
        if (!name || memchr(name, 0, length) != name + length - 1)
            return fail(r->message, "damaged: the name of tensor %d", i);
        r->f->items[i].name = name;
        ok = read_type(r, number_at(headers + HEADER * i + 8, 8), &r->f->items[i]);
    }
    for (int i = 0; ok && i < n; i++)
        ok = read_shape(r, number_at(headers + HEADER * i + 16, 8), &r->f->items[i]);
    const char *gap = ok ? take(r, 8) : NULL;
    ok = gap && take(r, number_at(gap, 8));
    for (int i = 0; ok && i < n; i++)
        ok = read_data(r, number_at(headers + HEADER * i + 24, 8), &r->f->items[i]);
    return ok && (r->at == r->size ||
                  fail(r->message, "%zu bytes behind the last tensor", r->size - r->at));
}

static bool open_binary(marian_file *f, const char *bytes, size_t size, char *message) {
    reading r = { .f = f, .bytes = bytes, .size = size, .message = message };
    const char *start = take(&r, 16);
    uint64_t n = start ? number_at(start + 8, 8) : 0;
    if (!start) return false;
    if (n < 1 || n > MOST_ITEMS)
        return fail(message, "damaged: %llu tensors", (unsigned long long)n);
    const char *headers = take(&r, HEADER * n);
    if (!headers) return false;
    f->n = (int)n;
    f->items = calloc((size_t)n, sizeof *f->items);
    return f->items ? read_items(&r, headers, f->n) : fail(message, "out of memory");
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const marian_item *)a)->name, ((const marian_item *)b)->name);
}

/* Sorts the items, of which no two may have one name. */
static bool sort(marian_file *f, char *message) {
    qsort(f->items, (size_t)f->n, sizeof *f->items, by_name);
    for (int i = 1; i < f->n; i++)
        if (by_name(&f->items[i - 1], &f->items[i]) == 0)
            return fail(message, "'%.100s' is there twice", f->items[i].name);
    return true;
}

bool wf_marian_open(marian_file *f, const void *bytes, size_t size, char *message) {
    *f = (marian_file){ .n = 0 };
    if (!wf_file_order(message)) return false;
    bool archive = size >= 4 && memcmp(bytes, "PK\3\4", 4) == 0;
    if (!archive && (size < 8 || number_at(bytes, 8) != 1))
        return fail(message, "it is neither a model.npz nor a binary file of Marian, version 1");
    return (archive ? wf_marian_open_npz(f, bytes, size, message)
                    : open_binary(f, bytes, size, message)) &&
           sort(f, message);
}

void wf_marian_close(marian_file *f) {
    free(f->items);
    wf_zip_close(&f->zip);
    *f = (marian_file){ .n = 0 };
}

const marian_item *wf_marian_find(marian_file *f, const char *name) {
    const marian_item key = { .name = name };
    marian_item *found =
        f->n ? bsearch(&key, f->items, (size_t)f->n, sizeof *f->items, by_name) : NULL;
    if (found) found->used = true;
    return found;
}

float wf_marian_value(const marian_item *item, int64_t i) {
    float value = 0;
    if (item->type == MARIAN_F32)
        memcpy(&value, item->data + 4 * i, sizeof value);
    else if (item->type == MARIAN_INT8)
        value = (float)(signed char)item->data[i] / item->multiplier;
    return value;
}
