/* core/file_read.c - safetensors files, read strictly.
 *
 * What a file declares is believed only after it was compared with the bytes that are there: first the
 * header's length, then every shape, then the layout of the data (sorted, no hole, no overlap, up to the
 * last byte), and only then is memory for the data allocated. read() and not mmap, so that a file
 * cut short by someone else is an error and not a signal. Where the reference implementation is more
 * lenient (names that occur twice) this reader is not; white space around the JSON is accepted. */
#include "file_format.h"
#include "json.h"
#include "op.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct tensor {
    wf_entry entry;
    int64_t begin; /* in the data */
};

struct wf_file {
    char error[WF_MESSAGE];
    char *header; /* decoded in place: names, keys and values point into it */
    void *data;
    int count, capacity, meta_count, meta_capacity;
    struct tensor *tensors;  /* in the order of the data */
    struct tensor **by_name; /* sorted */
    wf_meta *meta;           /* sorted by key */
    bool has_meta, checked;
};

static const wf_file no_memory = { .error = "out of memory" };

/* Where the bytes come from: a file descriptor, or memory if fd is -1. */
struct source {
    const char *name;
    int fd;
    const unsigned char *bytes;
    int64_t left;
};

static bool out_of_memory(wf_file *f, int64_t bytes) {
    return wf_file_fail(f->error, "out of memory (%lld bytes)", (long long)bytes);
}

/* Exactly n bytes, which the caller has compared with what is left. */
static bool take(wf_file *f, struct source *s, void *to, int64_t n) {
    char *at = to, reason[64];
    s->left -= n;
    if (s->fd < 0) {
        if (n > 0) memcpy(to, s->bytes, (size_t)n);
        s->bytes += n;
        return true;
    }
    while (n > 0) {
        ssize_t got = read(s->fd, at, (size_t)n);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return wf_file_fail(f->error, "cannot be read: %s", wf_file_reason(reason));
        if (got == 0) return wf_file_fail(f->error, "became shorter while it was read");
        at += got, n -= got;
    }
    return true;
}

/* Room for one more element; the arrays grow with what was parsed, never by what was declared. */
static bool grow(wf_file *f, void **array, int count, int *capacity, size_t size) {
    if (count < *capacity) return true;
    int64_t wanted = *capacity ? 2 * (int64_t)*capacity : 16;
    void *larger = (uint64_t)wanted <= SIZE_MAX / size ? realloc(*array, (size_t)wanted * size) : NULL;
    if (!larger) return out_of_memory(f, wanted * (int64_t)size);
    *array = larger, *capacity = (int)wanted; /* a header of 100 MB has fewer than 2^25 elements */
    return true;
}

/* ---- the header ------------------------------------------------------------------------------- */

static bool read_pair(wf_file *f, struct wf_json *j) {
    char *key, *value;
    void *meta = f->meta;
    if (!wf_json_string(j, &key) || !wf_json_expect(j, ':') || !wf_json_string(j, &value)) return false;
    if (!grow(f, &meta, f->meta_count, &f->meta_capacity, sizeof *f->meta)) return false;
    f->meta = meta;
    f->meta[f->meta_count++] = (wf_meta){ key, value };
    return true;
}

static bool read_metadata(wf_file *f, struct wf_json *j) {
    if (f->has_meta) return wf_file_fail(f->error, WF_FILE_METADATA " occurs twice");
    f->has_meta = true;
    if (!wf_json_expect(j, '{')) return false;
    if (wf_json_accept(j, '}')) return true;
    do
        if (!read_pair(f, j)) return false;
    while (wf_json_accept(j, ','));
    return wf_json_expect(j, '}');
}

static bool read_shape(wf_file *f, struct wf_json *j, wf_entry *e) {
    if (!wf_json_expect(j, '[')) return false;
    if (wf_json_accept(j, ']')) return true;
    do {
        if (e->ndim == WF_MAX_DIMS)
            return wf_file_fail(f->error, "tensor '%.80s': more than %d axes", e->name, WF_MAX_DIMS);
        if (!wf_json_size(j, &e->shape[e->ndim++])) return false;
    } while (wf_json_accept(j, ','));
    return wf_json_expect(j, ']');
}

static bool read_offsets(struct wf_json *j, int64_t *begin, int64_t *end) {
    return wf_json_expect(j, '[') && wf_json_size(j, begin) && wf_json_expect(j, ',') && wf_json_size(j, end) &&
           wf_json_expect(j, ']');
}

static bool check_tensor(wf_file *f, struct tensor *t, int64_t end) {
    char shape[192];
    wf_entry *e = &t->entry;
    if (!wf_file_size(e, &e->bytes, f->error)) return false;
    wf_file_dtype(&e->dtype); /* from now on the static name */
    if (end < t->begin)
        return wf_file_fail(f->error, "tensor '%.80s': data_offsets [%lld,%lld] end before they begin", e->name,
                            (long long)t->begin, (long long)end);
    if ((uint64_t)(end - t->begin) != e->bytes)
        return wf_file_fail(f->error, "tensor '%.60s': %lld bytes for shape %.90s of %s, %zu expected", e->name,
                            (long long)(end - t->begin), wf_file_shape_text(e->ndim, e->shape, shape), e->dtype,
                            e->bytes);
    return true;
}

static bool read_tensor(wf_file *f, struct wf_json *j, const char *name) {
    static const char *const fields[] = { "dtype", "shape", "data_offsets" };
    struct tensor t = { .entry.name = name };
    int64_t end = 0;
    bool seen[4] = { false };
    if (!wf_json_expect(j, '{')) return false;
    do {
        char *key, *dtype;
        int field = 0;
        if (!wf_json_string(j, &key) || !wf_json_expect(j, ':')) return false;
        while (field < 3 && strcmp(key, fields[field]) != 0) field++;
        if (field < 3 && seen[field])
            return wf_file_fail(f->error, "tensor '%.80s': %s occurs twice", name, fields[field]);
        seen[field] = true;
        bool ok = field == 0   ? wf_json_string(j, &dtype)
                  : field == 1 ? read_shape(f, j, &t.entry)
                  : field == 2 ? read_offsets(j, &t.begin, &end)
                               : wf_json_skip(j);
        if (!ok) return false;
        if (field == 0) t.entry.dtype = dtype;
    } while (wf_json_accept(j, ','));
    if (!wf_json_expect(j, '}')) return false;
    for (int i = 0; i < 3; i++)
        if (!seen[i]) return wf_file_fail(f->error, "tensor '%.80s': no %s", name, fields[i]);
    void *tensors = f->tensors;
    if (!check_tensor(f, &t, end) || !grow(f, &tensors, f->count, &f->capacity, sizeof t)) return false;
    f->tensors = tensors;
    f->tensors[f->count++] = t;
    return true;
}

static bool read_members(wf_file *f, struct wf_json *j) {
    if (!wf_json_expect(j, '{')) return false;
    if (wf_json_accept(j, '}')) return true;
    do {
        char *name;
        if (!wf_json_string(j, &name) || !wf_json_expect(j, ':')) return false;
        bool meta = strcmp(name, WF_FILE_METADATA) == 0;
        if (meta ? !read_metadata(f, j) : !read_tensor(f, j, name)) return false;
    } while (wf_json_accept(j, ','));
    return wf_json_expect(j, '}');
}

static bool parse_header(wf_file *f, size_t size) {
    struct wf_json j;
    f->header[size] = 0;
    if (wf_json_begin(&j, f->header, size) && read_members(f, &j) && wf_json_finish(&j)) return true;
    return *f->error ? false : wf_file_fail(f->error, "%s", j.error);
}

/* ---- what the header says as a whole --------------------------------------------------------------- */

static int by_offset(const void *a, const void *b) { /* empty tensors before the one they share a place with */
    const struct tensor *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->entry.bytes != y->entry.bytes) return x->entry.bytes < y->entry.bytes ? -1 : 1;
    return strcmp(x->entry.name, y->entry.name);
}

static int by_name(const void *a, const void *b) {
    return strcmp((*(struct tensor *const *)a)->entry.name, (*(struct tensor *const *)b)->entry.name);
}

static int by_key(const void *a, const void *b) {
    return strcmp(((const wf_meta *)a)->key, ((const wf_meta *)b)->key);
}

static bool check_layout(wf_file *f, int64_t size) {
    int64_t at = 0;
    if (f->count > 0) qsort(f->tensors, (size_t)f->count, sizeof *f->tensors, by_offset);
    for (int i = 0; i < f->count; i++) {
        const struct tensor *t = &f->tensors[i];
        if (t->begin != at)
            return wf_file_fail(f->error, "tensor '%.80s' begins at byte %lld of the data, %s %lld", t->entry.name,
                                (long long)t->begin,
                                t->begin < at ? "inside the one that ends at" : "with a hole after byte",
                                (long long)at);
        at += (int64_t)t->entry.bytes; /* no overflow: begin + bytes is the end that was read */
    }
    if (at == size) return true;
    return wf_file_fail(f->error, "the tensors hold %lld bytes, the file has %lld", (long long)at, (long long)size);
}

static bool check_names(wf_file *f) {
    size_t n = (size_t)f->count;
    f->by_name = malloc((n + 1) * sizeof *f->by_name);
    if (!f->by_name) return out_of_memory(f, (int64_t)((n + 1) * sizeof *f->by_name));
    for (size_t i = 0; i < n; i++) f->by_name[i] = &f->tensors[i];
    qsort(f->by_name, n, sizeof *f->by_name, by_name);
    for (size_t i = 1; i < n; i++)
        if (by_name(&f->by_name[i - 1], &f->by_name[i]) == 0)
            return wf_file_fail(f->error, "tensor '%.80s' occurs twice", f->by_name[i]->entry.name);
    if (f->meta_count > 0) qsort(f->meta, (size_t)f->meta_count, sizeof *f->meta, by_key);
    for (int i = 1; i < f->meta_count; i++)
        if (by_key(&f->meta[i - 1], &f->meta[i]) == 0)
            return wf_file_fail(f->error, "metadata key '%.80s' occurs twice", f->meta[i].key);
    return true;
}

/* ---- the data --------------------------------------------------------------------------------- */

/* One character away from the checksum's key: then no checksum would be looked for, and a flipped bit there
 * would be the only one to pass. */
static bool damaged_key(const char *key) {
    int differ = 0;
    if (strlen(key) != strlen(WF_FILE_CHECKSUM)) return false;
    for (int i = 0; key[i]; i++) differ += key[i] != WF_FILE_CHECKSUM[i];
    return differ == 1;
}

static bool check_sum(wf_file *f) {
    char computed[17];
    uint64_t h = 0;
    for (int i = 0; i < f->count; i++) h = wf_file_hash_entry(h, &f->tensors[i].entry);
    for (int i = 0; i < f->meta_count; i++) {
        h = wf_file_hash_meta(h, f->meta[i]);
        if (damaged_key(f->meta[i].key))
            return wf_file_fail(f->error, "damaged: metadata key '%s' instead of " WF_FILE_CHECKSUM, f->meta[i].key);
    }
    wf_file_hash_text(h, computed);
    const char *stored = wf_file_meta(f, WF_FILE_CHECKSUM);
    f->checked = stored != NULL;
    if (!stored || strcmp(stored, computed) == 0) return true;
    return wf_file_fail(f->error, "damaged: checksum %s, %.40s expected", computed, stored);
}

static bool read_header(wf_file *f, struct source *s) {
    unsigned char bytes[8];
    uint64_t size = 0;
    if (s->left < 8) return wf_file_fail(f->error, "%lld bytes, too short for a safetensors file", (long long)s->left);
    if (!take(f, s, bytes, 8)) return false;
    for (int i = 8; i-- > 0;) size = size << 8 | bytes[i];
    if (size > WF_FILE_MAX_HEADER)
        return wf_file_fail(f->error, "header of %llu bytes, at most %d allowed: not a safetensors file?",
                            (unsigned long long)size, WF_FILE_MAX_HEADER);
    if (size > (uint64_t)s->left)
        return wf_file_fail(f->error, "header of %llu bytes, but only %lld left in the file", (unsigned long long)size,
                            (long long)s->left);
    f->header = malloc((size_t)size + 1);
    if (!f->header) return out_of_memory(f, (int64_t)size);
    return take(f, s, f->header, (int64_t)size) && parse_header(f, (size_t)size);
}

static bool read_data(wf_file *f, struct source *s) {
    int64_t size = s->left;
    if (size <= PTRDIFF_MAX - 64) f->data = aligned_alloc(64, (size_t)size / 64 * 64 + 64);
    if (!f->data) return out_of_memory(f, size);
    for (int i = 0; i < f->count; i++) f->tensors[i].entry.data = (char *)f->data + f->tensors[i].begin;
    return take(f, s, f->data, size);
}

static bool read_file(wf_file *f, struct source *s) {
    return read_header(f, s) && check_layout(f, s->left) && check_names(f) && read_data(f, s) && check_sum(f);
}

/* ---- public ----------------------------------------------------------------------------------- */

static void forget(wf_file *f) { /* everything but the message */
    free(f->header), free(f->data), free(f->tensors), free(f->by_name), free(f->meta);
    f->header = NULL, f->data = NULL, f->tensors = NULL, f->by_name = NULL, f->meta = NULL;
    f->count = f->meta_count = 0;
}

static wf_file *failed(wf_file *f, const char *name) {
    char reason[WF_MESSAGE];
    memcpy(reason, f->error, sizeof reason);
    forget(f);
    wf_file_fail(f->error, "%.100s: %s", name, reason);
    return f;
}

wf_file *wf_file_parse(const void *bytes, size_t size) {
    struct source s = { .fd = -1, .bytes = bytes, .left = bytes ? (int64_t)size : 0 };
    wf_file *f = calloc(1, sizeof *f);
    if (!f) return (wf_file *)&no_memory;
    return read_file(f, &s) ? f : failed(f, "memory");
}

wf_file *wf_file_open(const char *path) {
    struct stat status;
    char reason[64];
    wf_file *f = calloc(1, sizeof *f);
    if (!f) return (wf_file *)&no_memory;
    if (!path) return wf_file_fail(f->error, "no path"), failed(f, "wf_file_open");
    struct source s = { .fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) }; /* a FIFO must not block */
    bool ok = s.fd >= 0 && fstat(s.fd, &status) == 0;
    if (!ok) wf_file_fail(f->error, "cannot be opened: %s", wf_file_reason(reason));
    else if (!S_ISREG(status.st_mode)) ok = wf_file_fail(f->error, "not a regular file");
    else s.left = status.st_size, ok = read_file(f, &s);
    if (s.fd >= 0) close(s.fd);
    return ok ? f : failed(f, path);
}

void wf_file_free(wf_file *f) {
    if (!f || f == &no_memory) return;
    forget(f);
    free(f);
}

bool wf_file_ok(const wf_file *f) { return f && !*f->error; }
const char *wf_file_error(const wf_file *f) { return f ? f->error : "no file"; }
bool wf_file_checked(const wf_file *f) { return f && f->checked; }
int wf_file_count(const wf_file *f) { return f ? f->count : 0; }
int wf_file_meta_count(const wf_file *f) { return f ? f->meta_count : 0; }

const wf_entry *wf_file_at(const wf_file *f, int i) {
    return f && i >= 0 && i < f->count ? &f->tensors[i].entry : NULL;
}

wf_meta wf_file_meta_at(const wf_file *f, int i) {
    return f && i >= 0 && i < f->meta_count ? f->meta[i] : (wf_meta){ NULL, NULL };
}

const wf_entry *wf_file_find(const wf_file *f, const char *name) {
    struct tensor wanted = { .entry.name = name }, *key = &wanted, **found;
    if (!f || !name || f->count == 0) return NULL;
    found = bsearch(&key, f->by_name, (size_t)f->count, sizeof *f->by_name, by_name);
    return found ? &(*found)->entry : NULL;
}

const char *wf_file_meta(const wf_file *f, const char *key) {
    wf_meta wanted = { key, NULL }, *found;
    if (!f || !key || f->meta_count == 0) return NULL;
    found = bsearch(&wanted, f->meta, (size_t)f->meta_count, sizeof *f->meta, by_key);
    return found ? found->value : NULL;
}
