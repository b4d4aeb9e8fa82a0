/* models/marian/marian_npz.c - the tensors of a .npz file of numpy, as Marian's training writes it:
 * a ZIP archive of NAME.npy, stored without compression.
 *
 * A .npy has "\x93NUMPY", two bytes of a version, the length of a header (u16, from version 2 on
 * u32), the header, and the numbers. The header is a dict of Python, such as {'descr': '<f4',
 * 'fortran_order': False, 'shape': (2, 3), }. Arrays of f32 are read, and the bytes of the
 * settings. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/op_internal.h"
#include "marian_file.h"
#include "models/message.h"

enum { START = 10, MOST_HEADER = 1 << 12 };

typedef struct header {
    char text[MOST_HEADER + 1];
    marian_item *item;
    char *message;
} header;

/* The text after 'key': in the dict. NULL with message. */
static const char *value_of(const header *h, const char *key) {
    char quoted[32];
    snprintf(quoted, sizeof quoted, "'%s':", key);
    const char *at = strstr(h->text, quoted);
    if (!at) return fail(h->message, "'%.80s': no %s in its header", h->item->name, key), NULL;
    at += strlen(quoted);
    return at + strspn(at, " ");
}

static bool read_type(const header *h) {
    const char *type = value_of(h, "descr"), *order = value_of(h, "fortran_order");
    if (!type || !order) return false;
    bool little = type[0] == '\'' && type[1] && strchr("<|=", type[1]);
    bool f32 = little && strncmp(type + 2, "f4'", 3) == 0;
    bool text = little && strncmp(type + 2, "i1'", 3) == 0;
    if (!f32 && !text)
        return fail(h->message, "'%.80s' is of type %.8s, not f32", h->item->name, type);
    h->item->type = f32 ? MARIAN_F32 : MARIAN_TEXT;
    return strncmp(order, "False", 5) == 0 ||
           fail(h->message, "'%.80s' is not row-major", h->item->name);
}

static bool read_shape(const header *h) {
    const char *at = value_of(h, "shape");
    marian_item *item = h->item;
    if (!at || *at++ != '(') return fail(h->message, "'%.80s' has no shape", item->name);
    item->count = 1;
    for (item->ndim = 0; *at != ')'; item->ndim++) {
        char *end;
        long long size = strtoll(at, &end, 10);
        if (end == at || size < 1 || item->ndim == MARIAN_DIMS ||
            !wf_mul_size(item->count, size, &item->count))
            return fail(h->message, "'%.80s' has the shape %.60s", item->name, at);
        item->shape[item->ndim] = size;
        at = end + strspn(end, ", ");
    }
    return true;
}

/* Reads the array in n bytes. */
static bool read_array(marian_item *item, const char *data, size_t n, char *message) {
    header h = { .item = item, .message = message };
    const unsigned char *p = (const unsigned char *)data;
    if (n < START + 2 || memcmp(data, "\x93NUMPY", 6) != 0 || p[6] < 1 || p[6] > 3)
        return fail(message, "'%.80s' is no array of numpy", item->name);
    size_t start = p[6] == 1 ? START : START + 2, length = (size_t)p[8] | (size_t)p[9] << 8;
    if (p[6] > 1) length |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
    if (length > MOST_HEADER || length > n - start)
        return fail(message, "'%.80s' has a header of %zu bytes", item->name, length);
    memcpy(h.text, data + start, length);
    if (!read_type(&h) || !read_shape(&h)) return false;
    int64_t bytes;
    item->data = data + start + length;
    return (wf_mul_size(item->count, item->type == MARIAN_F32 ? 4 : 1, &bytes) &&
            (uint64_t)bytes == n - start - length) ||
           fail(message, "'%.80s' has %zu bytes, not those of its shape", item->name,
                n - start - length);
}

/* Takes the item's name, such as "decoder_Wemb", from the record's name "decoder_Wemb.npy". */
static bool read_name(marian_item *item, const wf_zip_record *r, char *message) {
    size_t n = strlen(r->name);
    if (n <= 4 || n > MARIAN_NAME || strcmp(r->name + n - 4, ".npy") != 0)
        return fail(message, "'%.80s' is no .npy of a name", r->name);
    char *name = (char *)(uintptr_t)r->name; /* of our own copy of the directory */
    name[n - 4] = '\0';
    item->name = name;
    return true;
}

bool wf_marian_open_npz(marian_file *f, const void *bytes, size_t size, char *message) {
    wf_file scratch = { .n_parts = 0 };
    struct source s = { .memory = bytes, .size = (int64_t)size };
    bool ok = size <= INT64_MAX && wf_zip_open(&scratch, &s, &f->zip);
    f->n = ok ? f->zip.count : 0;
    f->items = calloc((size_t)f->n + 1, sizeof *f->items);
    for (int i = 0; ok && i < f->n; i++)
        ok = wf_zip_read(&scratch, &s, &f->zip, &f->zip.records[i], NULL);
    if (!ok) return fail(message, "%s", scratch.error);
    if (!f->items) return fail(message, "out of memory");
    for (int i = 0; ok && i < f->n; i++) {
        const wf_zip_record *r = &f->zip.records[i];
        ok = read_name(&f->items[i], r, message) &&
             read_array(&f->items[i], (const char *)bytes + r->at, (size_t)r->size, message);
    }
    return ok;
}
