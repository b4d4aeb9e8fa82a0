/* core/file_read.c - safetensors files, read strictly.
 *
 * What a file declares is believed only after it was compared with the bytes that are there: the
 * header's length, every shape, the layout of the data (no hole, no overlap, up to the last byte).
 * Memory is taken for what is in the file, never for what it declares. read() and not mmap, so that
 * a file cut short by someone else is an error and not a signal. Stricter than the reference
 * implementation (no name may occur twice); like it, white space around the JSON is accepted. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file_format.h"
#include "json.h"
#include "op.h"

struct tensor {
    wf_entry entry;
    int64_t begin, end; /* in the data */
};

struct wf_file {
    char error[WF_MESSAGE];
    char *bytes; /* the file; names, keys and values point into its header, decoded in place */
    struct tensor *tensors; /* in the order of the data */
    wf_meta *meta;          /* sorted by key */
    int count, meta_count;
    bool has_meta, checked;
};

static const wf_file no_memory = { .error = "out of memory" };

/* The array with room for one more. Its room is the next power of two: it grows with what was
 * parsed, and a header of 100 MB cannot hold more than 2^25 elements. */
static void *with_room(wf_file *f, void *array, int count, size_t size) {
    if (count & (count - 1)) return array;
    void *larger = realloc(array, (count ? 2 * (size_t)count : 1) * size);
    if (!larger) wf_file_fail(f->error, "out of memory");
    return larger;
}

/* ---- the header -------------------------------------------------------------------------- */

static bool read_metadata(wf_file *f, struct wf_json *j) {
    if (f->has_meta) return wf_file_fail(f->error, WF_FILE_METADATA " occurs twice");
    f->has_meta = true;
    char *key, *value;
    for (bool first = true; wf_json_key(j, &first, &key);) {
        wf_meta *meta = with_room(f, f->meta, f->meta_count, sizeof *meta);
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
        return wf_file_fail(f->error, "tensor '%.60s': shape %.80s of %s, %lld bits: a part byte",
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
    struct tensor *tensors = with_room(f, f->tensors, f->count, sizeof t);
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

/* ---- the header as a whole --------------------------------------------------------------- */

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct tensor *)a)->entry.name, ((const struct tensor *)b)->entry.name);
}

/* Empty tensors come before the one they share a place with. */
static int by_place(const void *a, const void *b) {
    const struct tensor *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->end != y->end ? (x->end < y->end ? -1 : 1) : by_name(a, b);
}

/* One character away from the checksum's key: without this, a file damaged there would count as one
 * that has no checksum, and be the only flipped bit to pass. */
static bool damaged_key(const char *key) {
    int differ = strlen(key) == strlen(WF_FILE_CHECKSUM) ? 0 : 2;
    for (int i = 0; differ < 2 && key[i]; i++) differ += key[i] != WF_FILE_CHECKSUM[i];
    return differ == 1;
}

static bool check_names(wf_file *f) {
    if (f->count > 0) qsort(f->tensors, (size_t)f->count, sizeof *f->tensors, by_name);
    for (int i = 1; i < f->count; i++)
        if (by_name(&f->tensors[i - 1], &f->tensors[i]) == 0)
            return wf_file_fail(f->error, "tensor '%.80s' occurs twice", f->tensors[i].entry.name);
    if (f->meta_count > 0) qsort(f->meta, (size_t)f->meta_count, sizeof *f->meta, wf_file_by_key);
    for (int i = 0; i < f->meta_count; i++) {
        const char *key = f->meta[i].key;
        if (i > 0 && wf_file_by_key(&f->meta[i - 1], &f->meta[i]) == 0)
            return wf_file_fail(f->error, "metadata key '%.80s' occurs twice", key);
        if (damaged_key(key))
            return wf_file_fail(f->error, "damaged: metadata key '%s' instead of '%s'", key,
                                WF_FILE_CHECKSUM);
    }
    return true;
}

static bool check_layout(wf_file *f, int64_t size) {
    int64_t at = 0;
    if (f->count > 0) qsort(f->tensors, (size_t)f->count, sizeof *f->tensors, by_place);
    for (int i = 0; i < f->count; at = f->tensors[i++].end) {
        const struct tensor *t = &f->tensors[i];
        if (t->begin != at)
            return wf_file_fail(f->error, "tensor '%.80s' begins at byte %lld of the data, %s %lld",
                                t->entry.name, (long long)t->begin,
                                t->begin < at ? "inside the one that ends at" : "with a hole after",
                                (long long)at);
    }
    return at == size || wf_file_fail(f->error, "the tensors hold %lld bytes, the file has %lld",
                                      (long long)at, (long long)size);
}

static bool read_header(wf_file *f, char *header, size_t size, int64_t data_size) {
    struct wf_json j;
    if (!wf_json_begin(&j, header, size) || !read_members(f, &j))
        return *f->error ? false : wf_file_fail(f->error, "%s", j.error);
    return check_names(f) && check_layout(f, data_size);
}

bool wf_file_check_header(char *header, size_t size, int64_t data_size, char *message) {
    wf_file f = { .bytes = NULL };
    bool ok = read_header(&f, header, size, data_size) || wf_file_fail(message, "%s", f.error);
    free(f.tensors), free(f.meta);
    return ok;
}

/* ---- the file ---------------------------------------------------------------------------- */

static bool check_sum(wf_file *f) {
    char sum[17];
    const char *stored = wf_file_meta(f, WF_FILE_CHECKSUM);
    f->checked = stored != NULL;
    if (!stored) return true;
    wf_file_checksum(f->count ? &f->tensors->entry : NULL, f->count, sizeof *f->tensors, f->meta,
                     f->meta_count, sum);
    return strcmp(stored, sum) == 0 ||
           wf_file_fail(f->error, "damaged: checksum %s, %.40s expected", sum, stored);
}

static bool parse(wf_file *f, size_t file_size) {
    uint64_t size = 0, left = file_size - 8;
    if (file_size < 8)
        return wf_file_fail(f->error, "%zu bytes: too short for a safetensors file", file_size);
    memcpy(&size, f->bytes, 8);
    if (size > WF_FILE_MAX_HEADER)
        return wf_file_fail(f->error, "header of %llu bytes, at most %d allowed: not safetensors?",
                            (unsigned long long)size, WF_FILE_MAX_HEADER);
    if (size > left)
        return wf_file_fail(f->error, "header of %llu bytes, but only %llu left in the file",
                            (unsigned long long)size, (unsigned long long)left);
    char *data = f->bytes + 8 + size;
    if (!read_header(f, f->bytes + 8, (size_t)size, (int64_t)(left - size))) return false;
    for (int i = 0; i < f->count; i++) f->tensors[i].entry.data = data + f->tensors[i].begin;
    return check_sum(f);
}

/* 64-byte alignment: files by weft begin their data at a multiple of it. */
static bool allocate(wf_file *f, int64_t size) {
    if (size <= PTRDIFF_MAX - 64) f->bytes = aligned_alloc(64, (size_t)size / 64 * 64 + 64);
    return f->bytes || wf_file_fail(f->error, "out of memory (%lld bytes)", (long long)size);
}

static bool read_all(wf_file *f, int fd, int64_t size) {
    if (!allocate(f, size)) return false;
    for (int64_t at = 0; at < size;) {
        ssize_t got = read(fd, f->bytes + at, (size_t)(size - at));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return wf_file_fail_errno(f->error, "cannot be read");
        if (got == 0) return wf_file_fail(f->error, "became shorter while it was read");
        at += got;
    }
    return parse(f, (size_t)size);
}

static bool open_and_read(wf_file *f, const char *path) {
    struct stat status = { 0 };
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not block */
    if (fd < 0) return wf_file_fail_errno(f->error, "cannot be opened");
    bool ok = fstat(fd, &status) == 0 || wf_file_fail_errno(f->error, "cannot be looked at");
    if (ok && !S_ISREG(status.st_mode)) ok = wf_file_fail(f->error, "not a regular file");
    ok = ok && read_all(f, fd, status.st_size);
    close(fd);
    return ok;
}

static wf_file *finish(wf_file *f, bool ok, const char *name) {
    char reason[WF_MESSAGE];
    memcpy(reason, f->error, sizeof reason);
    if (!ok) wf_file_fail(f->error, "%.100s: %s", name, reason);
    return f;
}

/* ---- public ------------------------------------------------------------------------------ */

wf_file *wf_file_open(const char *path) {
    wf_file *f = calloc(1, sizeof *f);
    return f ? finish(f, open_and_read(f, path ? path : ""), path ? path : "NULL")
             : (wf_file *)&no_memory;
}

wf_file *wf_file_parse(const void *bytes, size_t size) {
    wf_file *f = calloc(1, sizeof *f);
    if (!f) return (wf_file *)&no_memory;
    if (!bytes || size > PTRDIFF_MAX) size = 0;
    bool ok = allocate(f, (int64_t)size);
    if (ok && size > 0) memcpy(f->bytes, bytes, size);
    return finish(f, ok && parse(f, size), "memory");
}

void wf_file_free(wf_file *f) {
    if (!f || f == &no_memory) return;
    free(f->bytes), free(f->tensors), free(f->meta), free(f);
}

bool wf_file_ok(const wf_file *f) { return f && !*f->error; }
const char *wf_file_error(const wf_file *f) { return f ? f->error : "no file"; }
bool wf_file_checked(const wf_file *f) { return wf_file_ok(f) && f->checked; }
int wf_file_count(const wf_file *f) { return wf_file_ok(f) ? f->count : 0; }
int wf_file_meta_count(const wf_file *f) { return wf_file_ok(f) ? f->meta_count : 0; }

const wf_entry *wf_file_at(const wf_file *f, int i) {
    return i >= 0 && i < wf_file_count(f) ? &f->tensors[i].entry : NULL;
}

wf_meta wf_file_meta_at(const wf_file *f, int i) {
    return i >= 0 && i < wf_file_meta_count(f) ? f->meta[i] : (wf_meta){ NULL, NULL };
}

const wf_entry *wf_file_find(const wf_file *f, const char *name) {
    for (int i = 0; name && i < wf_file_count(f); i++)
        if (strcmp(f->tensors[i].entry.name, name) == 0) return &f->tensors[i].entry;
    return NULL;
}

const char *wf_file_meta(const wf_file *f, const char *key) {
    for (int i = 0; key && i < wf_file_meta_count(f); i++)
        if (strcmp(f->meta[i].key, key) == 0) return f->meta[i].value;
    return NULL;
}
