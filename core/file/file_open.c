/* core/file/file_open.c - opens files of tensors, recognises their format by the first bytes, and
 * answers questions about them.
 *
 * A file is read with pread and not mmap, so that a file that another process truncates gives an
 * error and not a signal. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "lfs.h"
#include "reader.h"

static const wf_file no_memory = { .error = "out of memory" };

/* ---- for the readers --------------------------------------------------------------------- */

void *wf_file_grow(wf_file *f, void *array, int count, size_t size) {
    if (count & (count - 1)) return array;
    void *larger = realloc(array, (count ? 2 * (size_t)count : 1) * size);
    if (!larger) wf_file_fail(f->error, "out of memory");
    return larger;
}

bool wf_source_read(wf_file *f, struct source *s, void *block, size_t n) {
    char *to = block;
    if (s->memory && n > 0) {
        memcpy(to, s->memory + s->at, n);
        s->at += (int64_t)n;
        n = 0;
    }
    while (n > 0) {
        ssize_t got = pread(s->fd, to, n, (off_t)s->at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return wf_file_fail_errno(f->error, "cannot be read");
        if (got == 0) return wf_file_fail(f->error, "became shorter while it was read");
        to += got;
        s->at += got;
        n -= (size_t)got;
    }
    return true;
}

bool wf_file_allocate(wf_file *f, char **block, uint64_t size) {
    if (size <= PTRDIFF_MAX - 64) *block = wf_memory_raw((size_t)size);
    return *block || wf_file_fail(f->error, "out of memory (%llu bytes)", (unsigned long long)size);
}

/* ---- the file ---------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b) {
    return strcmp((*(struct tensor *const *)a)->entry.name,
                  (*(struct tensor *const *)b)->entry.name);
}

static bool index_names(wf_file *f) {
    f->named = malloc(((size_t)f->count + 1) * sizeof(struct tensor *));
    if (!f->named) return wf_file_fail(f->error, "out of memory");
    for (int i = 0; i < f->count; i++) f->named[i] = &f->tensors[i];
    if (f->count > 0) qsort(f->named, (size_t)f->count, sizeof *f->named, by_name);
    return true;
}

static bool refuse_pointer(wf_file *f, struct source *s) {
    char first[sizeof WF_LFS_START];
    size_t n = s->size < (int64_t)sizeof first ? (size_t)s->size : sizeof first;
    if (!wf_source_read(f, s, first, n)) return false;
    s->at = 0;
    return !wf_lfs_pointer(first, n) || wf_file_fail(f->error, WF_LFS_SENTENCE);
}

/* Finds out if the file is a container of torch.save, and which; 0: it is none. */
static bool find_container(wf_file *f, struct source *s, int *container) {
    unsigned char first[WF_TORCH_KNOWN_BY] = { 0 };
    size_t n = s->size < (int64_t)sizeof first ? (size_t)s->size : sizeof first;
    if (!wf_source_read(f, s, first, n)) return false;
    *container = wf_torch_container(first, s->size);
    s->at = 0;
    return true;
}

/* keep: store the data. Otherwise the file must be safetensors, and is only checked. */
static bool read_all(wf_file *f, struct source *s, bool keep) {
    int container = 0;
    return wf_file_order(f->error) && refuse_pointer(f, s) &&
           (!keep || find_container(f, s, &container)) &&
           (container ? wf_file_read_torch(f, s, container)
                      : wf_file_read_safetensors(f, s, keep)) &&
           index_names(f);
}

static bool read_open(wf_file *f, int fd, bool keep) {
    struct stat status = { 0 };
    if (fstat(fd, &status) != 0) return wf_file_fail_errno(f->error, "its status cannot be read");
    if (!S_ISREG(status.st_mode)) return wf_file_fail(f->error, "not a regular file");
    return read_all(f, &(struct source){ .fd = fd, .size = status.st_size }, keep);
}

static bool open_and_read(wf_file *f, const char *path) {
    /* Opening a pipe must not block. */
    int fd = wf_file_descriptor(AT_FDCWD, path, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0) return wf_file_fail_errno(f->error, "cannot be opened");
    bool ok = read_open(f, fd, true);
    close(fd);
    return ok;
}

static void release(wf_file *f) {
    for (int i = 0; i < f->n_parts; i++) wf_file_free(f->parts[i]);
    free(f->header), free(f->data), free(f->tensors), free(f->named), free(f->meta), free(f->parts);
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

/* ---- several files ----------------------------------------------------------------------- */

static bool count_parts(wf_file *f, int64_t *count) {
    *count = 0;
    for (int i = 0; i < f->n_parts; i++) {
        if (!wf_file_ok(f->parts[i]))
            return wf_file_fail(f->error, "%s", wf_file_error(f->parts[i]));
        *count += f->parts[i]->count;
    }
    return *count < INT32_MAX || wf_file_fail(f->error, "too many tensors");
}

static bool join_parts(wf_file *f) {
    int64_t count;
    if (!count_parts(f, &count)) return false;
    f->tensors = malloc(((size_t)count + 1) * sizeof *f->tensors);
    if (!f->tensors) return wf_file_fail(f->error, "out of memory");
    f->checked = f->n_parts > 0;
    for (int i = 0; i < f->n_parts; i++) {
        const wf_file *part = f->parts[i];
        for (int k = 0; k < part->count; k++) f->tensors[f->count++] = part->tensors[k];
        f->checked = f->checked && part->checked;
    }
    /* in the order of the data, whichever file they come from */
    for (int i = 0; i < f->count; i++)
        f->tensors[i].begin = (int64_t)(uintptr_t)f->tensors[i].entry.data;
    if (!wf_file_check_names(f)) return false;
    wf_file_sort(f);
    return index_names(f);
}

/* ---- public ------------------------------------------------------------------------------ */

wf_file *wf_file_join(wf_file *const *files, int n) {
    wf_file *f = calloc(1, sizeof *f);
    wf_file **parts = n > 0 && files ? calloc((size_t)n, sizeof(wf_file *)) : NULL;
    bool ok = f && (parts || n <= 0);
    for (int i = 0; files && i < n; i++) {
        if (ok) parts[f->n_parts++] = files[i];
        if (!ok) wf_file_free(files[i]);
    }
    if (!f) {
        free(parts);
        return (wf_file *)&no_memory;
    }
    f->parts = parts;
    if (!ok) return wf_file_fail(f->error, "out of memory"), f;
    join_parts(f);
    return f;
}

wf_file *wf_file_open(const char *path) {
    wf_file *f = calloc(1, sizeof *f);
    return f ? finish(f, open_and_read(f, path ? path : ""), path ? path : "NULL")
             : (wf_file *)&no_memory;
}

wf_file *wf_file_parse(const void *bytes, size_t size) {
    wf_file *f = calloc(1, sizeof *f);
    if (!f) return (wf_file *)&no_memory;
    if (!bytes || size > PTRDIFF_MAX) {
        bytes = "";
        size = 0;
    }
    struct source s = { .memory = bytes, .size = (int64_t)size };
    return finish(f, read_all(f, &s, true), "memory");
}

void wf_file_free(wf_file *f) {
    if (!f || f == &no_memory) return;
    release(f), free(f);
}

void wf_file_drop_loaded(wf_file *f) {
    if (f && f != &no_memory) f->drops = true;
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

int wf_file_place(const wf_file *f, const wf_entry *e) {
    uintptr_t first = f ? (uintptr_t)f->tensors : 0, at = (uintptr_t)e;
    size_t n = (size_t)wf_file_count(f);
    bool own = e && n && at >= first && at < first + n * sizeof *f->tensors;
    return own ? (int)((at - first) / sizeof *f->tensors) : -1;
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

/* A name in two parts, which are not copied into one. */
typedef struct joined_name {
    const char *first, *rest;
    size_t length; /* of the first part */
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
