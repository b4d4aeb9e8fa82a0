/* core/file/file_read.c - safetensors files, read strictly.
 *
 * Everything a file declares is checked against the bytes that are there: the header's length,
 * every shape, the layout of the data (no gap, no overlap, up to the last byte). Memory is
 * allocated for bytes that are in the file, never for sizes that it only declares. The reader is
 * stricter than the reference implementation: no name may occur twice. Like it, the reader accepts
 * white space around the JSON. */
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"
#include "core/graph_internal.h"
#include "core/op.h"
#include "core/op_internal.h"
#include "json.h"
#include "reader.h"

/* ---- the header -------------------------------------------------------------------------- */

static bool read_metadata(wf_file *f, struct wf_json *j) {
    if (f->has_meta) return wf_file_fail(f->error, WF_FILE_METADATA " occurs twice");
    f->has_meta = true;
    char *key, *value;
    for (bool first = true; wf_json_key(j, &first, &key);) {
        wf_meta *meta = wf_file_grow(f, f->meta, f->meta_count, sizeof *meta);
        if (!meta) return false;
        f->meta = meta;
        if (!wf_json_string(j, &value)) return false;
        meta[f->meta_count++] = (wf_meta){ key, value };
    }
    return !*j->error;
}

static bool read_shape(wf_file *f, struct wf_json *j, wf_entry *e) {
    for (bool first = true; wf_json_item(j, &first);) {
        if (e->ndim == WF_MAX_DIMS)
            return wf_file_fail(f->error, "tensor '%.80s': more than %d axes", e->name, e->ndim);
        if (!wf_json_size(j, &e->shape[e->ndim++])) return false;
    }
    return !*j->error;
}

static bool read_offsets(struct wf_json *j, struct tensor *t) {
    return wf_json_expect(j, '[') && wf_json_size(j, &t->begin) && wf_json_expect(j, ',') &&
           wf_json_size(j, &t->end) && wf_json_expect(j, ']');
}

static bool check_tensor(wf_file *f, struct tensor *t) {
    wf_entry *e = &t->entry;
    char shape[192];
    int64_t bits = wf_file_dtype(&e->dtype), size = t->end - t->begin;
    if (bits == 0)
        return wf_file_fail(f->error, "tensor '%.80s': unknown dtype '%.40s'", e->name, e->dtype);
    wf_shape_text(NULL, e->ndim, e->shape, shape, sizeof shape);
    for (int i = 0; i < e->ndim; i++)
        if (!wf_mul_size(bits, e->shape[i], &bits))
            return wf_file_fail(f->error, "tensor '%.60s': shape %.120s is too large", e->name,
                                shape);
    if (bits % 8 != 0)
        return wf_file_fail(f->error,
                            "tensor '%.60s': shape %.80s of %s, %lld bits: not whole bytes",
                            e->name, shape, e->dtype, (long long)bits);
    if (size < 0)
        return wf_file_fail(f->error, "tensor '%.80s': data_offsets [%lld,%lld] run backwards",
                            e->name, (long long)t->begin, (long long)t->end);
    if (size != bits / 8)
        return wf_file_fail(f->error,
                            "tensor '%.60s': %lld bytes for shape %.80s of %s, %lld expected",
                            e->name, (long long)size, shape, e->dtype, (long long)bits / 8);
    e->bytes = (size_t)size;
    return true;
}

static bool read_tensor(wf_file *f, struct wf_json *j, const char *name) {
    static const char *const fields[] = { "dtype", "shape", "data_offsets" };
    struct tensor t = { .entry.name = name };
    bool seen[3] = { false };
    char *key, *dtype = NULL;
    for (bool first = true; wf_json_key(j, &first, &key);) {
        int field = 0;
        while (field < 3 && strcmp(key, fields[field]) != 0) field++;
        if (field < 3 && seen[field])
            return wf_file_fail(f->error, "tensor '%.80s': %s occurs twice", name, key);
        if (field < 3) seen[field] = true;
        if (!(field == 0   ? wf_json_string(j, &dtype)
              : field == 1 ? read_shape(f, j, &t.entry)
              : field == 2 ? read_offsets(j, &t)
                           : wf_json_skip(j)))
            return false;
    }
    if (*j->error) return false;
    for (int i = 0; i < 3; i++)
        if (!seen[i]) return wf_file_fail(f->error, "tensor '%.80s': no %s", name, fields[i]);
    t.entry.dtype = dtype;
    struct tensor *tensors = wf_file_grow(f, f->tensors, f->count, sizeof t);
    if (tensors) f->tensors = tensors;
    if (!tensors || !check_tensor(f, &t)) return false;
    tensors[f->count++] = t;
    return true;
}

static bool read_members(wf_file *f, struct wf_json *j) {
    char *name;
    for (bool first = true; wf_json_key(j, &first, &name);) {
        bool meta = strcmp(name, WF_FILE_METADATA) == 0;
        if (meta ? !read_metadata(f, j) : !read_tensor(f, j, name)) return false;
    }
    return !*j->error && wf_json_finish(j);
}

/* Advice for a file whose end is missing. */
#define CUT_OFF ": it is cut off; copy or download it again"

/* ---- the header as a whole --------------------------------------------------------------- */

static bool check_layout(wf_file *f, int64_t size) {
    int64_t at = 0;
    wf_file_sort(f);
    for (int i = 0; i < f->count; at = f->tensors[i++].end) {
        const struct tensor *t = &f->tensors[i];
        if (t->begin != at)
            return wf_file_fail(f->error, "tensor '%.80s' begins at byte %lld of the data, %s %lld",
                                t->entry.name, (long long)t->begin,
                                t->begin < at ? "inside the one that ends at" : "with a gap after",
                                (long long)at);
    }
    return at == size || wf_file_fail(f->error, "the tensors hold %lld bytes, the file has %lld%s",
                                      (long long)at, (long long)size, at > size ? CUT_OFF : "");
}

/* If the key of the checksum is damaged, the file would look like one without a checksum. A header
 * that differs from the prefix in only a few bytes is therefore an error: files of other programs
 * differ in more. */
static bool check_prefix(wf_file *f, const char *header, size_t size) {
    enum { LENGTH = sizeof WF_FILE_PREFIX - 1, FEW = 4 };
    int differ = 0, first = 0;
    if (size < LENGTH) return true;
    for (int i = LENGTH; i-- > 0;)
        if (header[i] != WF_FILE_PREFIX[i]) {
            differ++;
            first = i;
        }
    return differ == 0 || differ > FEW ||
           wf_file_fail(f->error, "damaged: header byte %d: '%c' expected", first,
                        WF_FILE_PREFIX[first]);
}

static bool read_header(wf_file *f, char *header, size_t size, int64_t data_size) {
    struct wf_json j;
    if (!check_prefix(f, header, size)) return false;
    if (!wf_json_begin(&j, header, size) || !read_members(f, &j))
        return *f->error ? false : wf_file_fail(f->error, "%s", j.error);
    return wf_file_check_names(f) && check_layout(f, data_size);
}

bool wf_file_check_header(char *header, size_t size, int64_t data_size, char *message) {
    wf_file f = { .header = NULL };
    bool ok = read_header(&f, header, size, data_size) || wf_file_fail(message, "%s", f.error);
    free(f.tensors), free(f.meta);
    return ok;
}

/* ---- the file ---------------------------------------------------------------------------- */

/* Reads the length of the header, the first 8 bytes, and checks it before the header is read or
 * memory is allocated for it. */
static bool read_length(wf_file *f, struct source *s, uint64_t *size) {
    uint64_t left = (uint64_t)s->size - 8;
    if (s->size < 8)
        return wf_file_fail(f->error, "%lld bytes: too short for a safetensors file%s",
                            (long long)s->size, CUT_OFF);
    if (!wf_source_read(f, s, size, 8)) return false;
    if (*size > WF_FILE_MAX_HEADER)
        return wf_file_fail(f->error,
                            "not safetensors, but perhaps text: a header has at most %d bytes",
                            WF_FILE_MAX_HEADER);
    return *size <= left ||
           wf_file_fail(f->error, "header of %llu bytes, but only %llu left in the file%s",
                        (unsigned long long)*size, (unsigned long long)left, CUT_OFF);
}

static bool load_header(wf_file *f, struct source *s) {
    uint64_t size;
    return read_length(f, s, &size) && wf_file_allocate(f, &f->header, size) &&
           wf_source_read(f, s, f->header, (size_t)size) &&
           read_header(f, f->header, (size_t)size, s->size - s->at);
}

static bool check_sum(wf_file *f, uint64_t h) {
    char sum[17];
    const char *stored = wf_file_meta(f, WF_FILE_CHECKSUM);
    f->checked = stored != NULL;
    wf_file_sum_text(h, f->meta, f->meta_count, sum);
    return !stored || strcmp(stored, sum) == 0 ||
           wf_file_fail(f->error, "damaged: checksum %s, %.40s expected", sum, stored);
}

/* Read the data part by part: into one block if keep is set, else all parts into the same buffer,
 * only to check them. */
static bool read_data(wf_file *f, struct source *s, bool keep) {
    uint64_t h = 0, size = (uint64_t)(s->size - s->at);
    const bool sums = wf_file_meta(f, WF_FILE_CHECKSUM);
    if (!wf_file_allocate(f, &f->data, keep || size < WF_FILE_PART ? size : WF_FILE_PART))
        return false;
    for (int i = 0; i < f->count; i++, h = wf_mix64(h)) {
        wf_entry *e = &f->tensors[i].entry;
        char *to = keep ? f->data + f->tensors[i].begin : f->data;
        e->data = to;
        h = wf_file_sum_entry(h, e);
        for (size_t left = e->bytes, n; left > 0; left -= n, to += keep ? n : 0) {
            n = left < WF_FILE_PART ? left : WF_FILE_PART;
            if (!wf_source_read(f, s, to, n)) return false;
            if (sums) h = wf_file_sum_part(h, to, n);
        }
    }
    return check_sum(f, h);
}

bool wf_file_read_safetensors(wf_file *f, struct source *s, bool keep) {
    return load_header(f, s) && read_data(f, s, keep);
}
