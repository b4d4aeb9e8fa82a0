/* core/file/file_open.c - opens files of tensors, and recognises their format by the first bytes.
 *
 * A file is read with pread and not mmap, so that a file that another process truncates gives an
 * error and not a signal. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file_internal.h"
#include "lfs.h"
#include "reader.h"

static const wf_file no_memory = { .error = "out of memory" };

/* ---- the file ---------------------------------------------------------------------------- */

static bool refuse_pointer(wf_file *f, struct source *s) {
    char first[sizeof WF_LFS_START];
    size_t n = s->size < (int64_t)sizeof first ? (size_t)s->size : sizeof first;
    if (!wf_source_read(f, s, first, n)) return false;
    s->at = 0;
    return !wf_lfs_pointer(first, n) || wf_file_fail(f->error, WF_LFS_SENTENCE);
}

/* Find which container of torch.save the file has; *container is 0 if it has neither. */
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
           wf_file_index(f);
}

static bool read_open(wf_file *f, int fd, bool keep) {
    struct stat status = { 0 };
    if (fstat(fd, &status) != 0) return wf_file_fail_errno(f->error, "its status cannot be read");
    if (S_ISDIR(status.st_mode)) return wf_file_fail(f->error, "it is a folder");
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
    /* sort by the addresses of the data, which lie in the blocks of several files */
    for (int i = 0; i < f->count; i++)
        f->tensors[i].begin = (int64_t)(uintptr_t)f->tensors[i].entry.data;
    if (!wf_file_check_names(f)) return false;
    wf_file_sort(f);
    return wf_file_index(f);
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
