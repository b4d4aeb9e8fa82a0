/* core/file/file_read.c - safetensors files, read strictly.
 *
 * Everything a file declares is checked against the bytes that are there: the header's length,
 * every shape, the layout of the data (no gap, no overlap, up to the last byte). Memory is
 * allocated for bytes that are in the file, never for sizes that it only declares. It is read with
 * read() and not mmap, so that a file that another process truncates gives an error and not a
 * signal. Stricter than the reference implementation (no name may occur twice); like it, accepts
 * white space around the JSON. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/random.h"
#include "core/op.h"
#include "file_format.h"
#include "json.h"

struct tensor {
    wf_entry entry;
    int64_t begin, end; /* in the data */
};

struct wf_file {
    char error[WF_MESSAGE];
    char *header; /* decoded in place: names, keys and values point into it */
    char *data;
    struct tensor *tensors; /* in the order of the data */
    struct tensor **named;  /* in the order of their names */
    wf_meta *meta;          /* sorted by key */
    int count, meta_count;
    bool has_meta, checked;
};

static const wf_file no_memory = { .error = "out of memory" };

/* The array with capacity for one more element. The capacity is the next power of two; a header of
 * 100 MB holds less than 2^25 elements. */
static void *grow(wf_file *f, void *array, int count, size_t size) {
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
        wf_meta *meta = grow(f, f->meta, f->meta_count, sizeof *meta);
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
    struct tensor *tensors = grow(f, f->tensors, f->count, sizeof t);
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

/* An empty tensor comes before the one that begins at the same byte. */
static int by_offset(const void *a, const void *b) {
    const struct tensor *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->end != y->end ? (x->end < y->end ? -1 : 1) : by_name(a, b);
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
    }
    return true;
}

static bool check_layout(wf_file *f, int64_t size) {
    int64_t at = 0;
    if (f->count > 0) qsort(f->tensors, (size_t)f->count, sizeof *f->tensors, by_offset);
    for (int i = 0; i < f->count; at = f->tensors[i++].end) {
        const struct tensor *t = &f->tensors[i];
        if (t->begin != at)
            return wf_file_fail(f->error, "tensor '%.80s' begins at byte %lld of the data, %s %lld",
                                t->entry.name, (long long)t->begin,
                                t->begin < at ? "inside the one that ends at" : "with a gap after",
                                (long long)at);
    }
    return at == size || wf_file_fail(f->error, "the tensors hold %lld bytes, the file has %lld",
                                      (long long)at, (long long)size);
}

/* If the key of the checksum is damaged, the file would look like one without a checksum. A header
 * that differs from the prefix in only a few bytes is therefore an error: files of other programs
 * differ in more. */
static bool check_prefix(wf_file *f, const char *header, size_t size) {
    enum { LENGTH = sizeof WF_FILE_PREFIX - 1, FEW = 4 };
    int differ = 0, first = 0;
    if (size < LENGTH) return true;
    for (int i = LENGTH; i-- > 0;)
        if (header[i] != WF_FILE_PREFIX[i]) differ++, first = i;
    return differ == 0 || differ > FEW ||
           wf_file_fail(f->error, "damaged: header byte %d: '%c' expected", first,
                        WF_FILE_PREFIX[first]);
}

static int by_name_of(const void *a, const void *b) {
    return by_name(*(struct tensor *const *)a, *(struct tensor *const *)b);
}

static bool index_names(wf_file *f) {
    f->named = malloc(((size_t)f->count + 1) * sizeof(struct tensor *));
    if (!f->named) return wf_file_fail(f->error, "out of memory");
    for (int i = 0; i < f->count; i++) f->named[i] = &f->tensors[i];
    if (f->count > 0) qsort(f->named, (size_t)f->count, sizeof *f->named, by_name_of);
    return true;
}

static bool read_header(wf_file *f, char *header, size_t size, int64_t data_size) {
    struct wf_json j;
    if (!check_prefix(f, header, size)) return false;
    if (!wf_json_begin(&j, header, size) || !read_members(f, &j))
        return *f->error ? false : wf_file_fail(f->error, "%s", j.error);
    return check_names(f) && check_layout(f, data_size);
}

bool wf_file_check_header(char *header, size_t size, int64_t data_size, char *message) {
    wf_file f = { .header = NULL };
    bool ok = read_header(&f, header, size, data_size) || wf_file_fail(message, "%s", f.error);
    free(f.tensors), free(f.meta);
    return ok;
}

/* ---- the file ---------------------------------------------------------------------------- */

/* Where the bytes of a file are, and how many have been read. */
struct source {
    const char *memory; /* NULL: in fd */
    int fd;
    int64_t size, at;
};

static bool read_bytes(wf_file *f, struct source *s, char *to, size_t n) {
    if (s->memory && n > 0) memcpy(to, s->memory + s->at, n), s->at += (int64_t)n, n = 0;
    while (n > 0) {
        ssize_t got = pread(s->fd, to, n, (off_t)s->at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return wf_file_fail_errno(f->error, "cannot be read");
        if (got == 0) return wf_file_fail(f->error, "became shorter while it was read");
        to += got, s->at += got, n -= (size_t)got;
    }
    return true;
}

/* 64-byte aligned: kernels are faster on aligned data. */
static bool allocate(wf_file *f, char **block, uint64_t size) {
    if (size <= PTRDIFF_MAX - 64) *block = aligned_alloc(64, (size_t)size / 64 * 64 + 64);
    return *block || wf_file_fail(f->error, "out of memory (%llu bytes)", (unsigned long long)size);
}

/* The first 8 bytes are checked before anything else is read or allocated. */
static bool read_length(wf_file *f, struct source *s, uint64_t *size) {
    uint64_t left = (uint64_t)s->size - 8;
    if (s->size < 8)
        return wf_file_fail(f->error, "%lld bytes: too short for a safetensors file",
                            (long long)s->size);
    if (!read_bytes(f, s, (char *)size, 8)) return false;
    if (*size > WF_FILE_MAX_HEADER)
        return wf_file_fail(f->error, "header of %llu bytes, at most %d allowed: not safetensors?",
                            (unsigned long long)*size, WF_FILE_MAX_HEADER);
    return *size <= left ||
           wf_file_fail(f->error, "header of %llu bytes, but only %llu left in the file",
                        (unsigned long long)*size, (unsigned long long)left);
}

static bool load_header(wf_file *f, struct source *s) {
    uint64_t size;
    return read_length(f, s, &size) && allocate(f, &f->header, size) &&
           read_bytes(f, s, f->header, (size_t)size) &&
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

/* Read the data part by part. keep: into one block; else only to check it, each part over the one
 * before. */
static bool read_data(wf_file *f, struct source *s, bool keep) {
    enum { PART = 1 << 20 };
    uint64_t h = 0, size = (uint64_t)(s->size - s->at);
    if (!allocate(f, &f->data, keep || size < PART ? size : PART)) return false;
    for (int i = 0; i < f->count; i++, h = wf_mix64(h)) {
        wf_entry *e = &f->tensors[i].entry;
        char *to = keep ? f->data + f->tensors[i].begin : f->data;
        e->data = to;
        h = wf_file_sum_entry(h, e);
        for (size_t left = e->bytes, n; left > 0; left -= n, to += keep ? n : 0) {
            n = left < PART ? left : PART;
            if (!read_bytes(f, s, to, n)) return false;
            h = wf_file_sum_part(h, to, n);
        }
    }
    return check_sum(f, h);
}

static bool read_all(wf_file *f, struct source *s, bool keep) {
    return wf_file_order(f->error) && load_header(f, s) && index_names(f) && read_data(f, s, keep);
}

static bool read_open(wf_file *f, int fd, bool keep) {
    struct stat status = { 0 };
    if (fstat(fd, &status) != 0) return wf_file_fail_errno(f->error, "its status cannot be read");
    if (!S_ISREG(status.st_mode)) return wf_file_fail(f->error, "not a regular file");
    return read_all(f, &(struct source){ .fd = fd, .size = status.st_size }, keep);
}

static bool open_and_read(wf_file *f, const char *path) {
    /* A pipe must not block. */
    int fd = wf_file_descriptor(AT_FDCWD, path, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0) return wf_file_fail_errno(f->error, "cannot be opened");
    bool ok = read_open(f, fd, true);
    close(fd);
    return ok;
}

static void release(wf_file *f) {
    free(f->header), free(f->data), free(f->tensors), free(f->named), free(f->meta);
}

bool wf_file_check_written(int fd, const char checksum[17], char *message) {
    wf_file f = { .header = NULL };
    bool ok = read_open(&f, fd, false);
    const char *stored = ok ? wf_file_meta(&f, WF_FILE_CHECKSUM) : NULL;
    if (ok && (!stored || strcmp(stored, checksum) != 0))
        ok = wf_file_fail(f.error, "its checksum is not that of the values in memory");
    if (!ok) wf_file_fail(message, "read back, the file is not as written: %s", f.error);
    release(&f);
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
    if (!bytes || size > PTRDIFF_MAX) bytes = "", size = 0;
    struct source s = { .memory = bytes, .size = (int64_t)size };
    return finish(f, read_all(f, &s, true), "memory");
}

void wf_file_free(wf_file *f) {
    if (!f || f == &no_memory) return;
    release(f), free(f);
}

bool wf_file_ok(const wf_file *f) {
    return f && !*f->error;
}
const char *wf_file_error(const wf_file *f) {
    return f ? f->error : "no file";
}
bool wf_file_checked(const wf_file *f) {
    return wf_file_ok(f) && f->checked;
}
int wf_file_count(const wf_file *f) {
    return wf_file_ok(f) ? f->count : 0;
}
int wf_file_meta_count(const wf_file *f) {
    return wf_file_ok(f) ? f->meta_count : 0;
}

const wf_entry *wf_file_at(const wf_file *f, int i) {
    return i >= 0 && i < wf_file_count(f) ? &f->tensors[i].entry : NULL;
}

wf_meta wf_file_meta_at(const wf_file *f, int i) {
    return i >= 0 && i < wf_file_meta_count(f) ? f->meta[i] : (wf_meta){ NULL, NULL };
}

static int name_order(const void *name, const void *tensor) {
    return strcmp(name, (*(struct tensor *const *)tensor)->entry.name);
}

const wf_entry *wf_file_find(const wf_file *f, const char *name) {
    int n = name ? wf_file_count(f) : 0;
    struct tensor **found =
        n ? bsearch(name, f->named, (size_t)n, sizeof *found, name_order) : NULL;
    return found ? &(*found)->entry : NULL;
}

/* A name of two parts, for which no memory is needed. */
typedef struct joined_name {
    const char *first, *rest;
    size_t length; /* of the first */
} joined_name;

static int joined_order(const void *key, const void *tensor) {
    const joined_name *name = key;
    const char *other = (*(struct tensor *const *)tensor)->entry.name;
    int order = strncmp(name->first, other, name->length);
    return order ? order : strcmp(name->rest, other + name->length);
}

static const wf_entry *find_joined(const wf_file *f, const char *first, size_t n,
                                   const char *rest) {
    const joined_name name = { first, rest, n };
    int count = wf_file_count(f);
    struct tensor **found =
        count ? bsearch(&name, f->named, (size_t)count, sizeof *found, joined_order) : NULL;
    return found ? &(*found)->entry : NULL;
}

static bool scales(const wf_entry *e, const wf_entry *matrix) {
    return strcmp(matrix->dtype, "I8") == 0 && matrix->ndim == 2 && strcmp(e->dtype, "F32") == 0 &&
           e->ndim == 1 && e->shape[0] == matrix->shape[0];
}

const wf_entry *wf_file_scale_of(const wf_file *f, const wf_entry *e) {
    if (!e || !e->name || !e->dtype) return NULL;
    const wf_entry *found = find_joined(f, e->name, strlen(e->name), WF_FILE_SCALE);
    return found && scales(found, e) ? found : NULL;
}

bool wf_file_is_scale(const wf_file *f, const wf_entry *e) {
    const size_t tail = sizeof WF_FILE_SCALE - 1, n = e && e->name ? strlen(e->name) : 0;
    if (n <= tail || strcmp(e->name + n - tail, WF_FILE_SCALE) != 0) return false;
    const wf_entry *matrix = find_joined(f, e->name, n - tail, "");
    return matrix && e->dtype && scales(e, matrix);
}

const char *wf_file_meta(const wf_file *f, const char *key) {
    int n = key ? wf_file_meta_count(f) : 0;
    const wf_meta *found =
        n ? bsearch(&(wf_meta){ key, NULL }, f->meta, (size_t)n, sizeof *found, wf_file_by_key)
          : NULL;
    return found ? found->value : NULL;
}
