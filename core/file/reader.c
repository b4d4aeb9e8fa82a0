/* core/file/reader.c - an open file: its bytes, and its tensors and metadata by name. It has
 * functions for the readers of all formats (reader.h), and public ones (file.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "core/file_internal.h"
#include "reader.h"

/* ---- bytes ----------------------------------------------------------------------------------- */

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

/* ---- names ----------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct tensor *)a)->entry.name, ((const struct tensor *)b)->entry.name);
}

/* Sort by offset. At the same offset, empty tensors come before the one that has bytes. */
static int by_offset(const void *a, const void *b) {
    const struct tensor *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->end != y->end ? (x->end < y->end ? -1 : 1) : by_name(a, b);
}

bool wf_file_check_names(wf_file *f) {
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

void wf_file_sort(wf_file *f) {
    if (f->count > 0) qsort(f->tensors, (size_t)f->count, sizeof *f->tensors, by_offset);
}

static int by_named(const void *a, const void *b) {
    return strcmp((*(struct tensor *const *)a)->entry.name,
                  (*(struct tensor *const *)b)->entry.name);
}

bool wf_file_index(wf_file *f) {
    f->named = malloc(((size_t)f->count + 1) * sizeof(struct tensor *));
    if (!f->named) return wf_file_fail(f->error, "out of memory");
    for (int i = 0; i < f->count; i++) f->named[i] = &f->tensors[i];
    if (f->count > 0) qsort(f->named, (size_t)f->count, sizeof *f->named, by_named);
    return true;
}

/* ---- questions (file.h) ---------------------------------------------------------------------- */

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

/* A name in two parts, so that the joined name needs no memory. */
typedef struct joined_name {
    const char *first, *rest;
    size_t length; /* length of the first part */
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

const wf_entry *wf_file_find(const wf_file *f, const char *name) {
    return name ? find_joined(f, name, strlen(name), "") : NULL;
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
