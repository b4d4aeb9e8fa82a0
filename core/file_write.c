/* core/file_write.c - safetensors files, written atomically.
 *
 * The bytes are a function of the arguments alone: tensors by alignment (largest first), then by name,
 * metadata by key. A file appears under its name when it is whole and on the disk, or not at all: temporary
 * name in the same folder, fsync, rename, fsync of the folder. A killed process can leave a file
 * "name.tmp-PID-N" behind, never a damaged "name". */
#define _XOPEN_SOURCE 700 /* realpath */
#include "file_format.h"
#include "json.h"
#include "op.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- a growing text --------------------------------------------------------------------------- */

struct text {
    char *data;
    size_t size, capacity;
    bool failed;
};

static void put(struct text *t, const char *s, size_t n) {
    if (t->failed || n > PTRDIFF_MAX - t->size) {
        t->failed = true;
        return;
    }
    if (t->size + n > t->capacity) {
        size_t capacity = 2 * (t->size + n) + 4096;
        char *data = realloc(t->data, capacity);
        if (!data) {
            t->failed = true;
            return;
        }
        t->data = data, t->capacity = capacity;
    }
    memcpy(t->data + t->size, s, n);
    t->size += n;
}

static void put_text(struct text *t, const char *s) { put(t, s, strlen(s)); }

static void put_string(struct text *t, const char *s) {
    put(t, "\"", 1);
    for (; *s; s++) {
        char escape[8];
        if (*s == '"' || *s == '\\') put(t, (char[]){ '\\', *s }, 2);
        else if (*s == '\n') put(t, "\\n", 2); /* a vocabulary has many */
        else if ((unsigned char)*s >= 0x20) put(t, s, 1);
        else put(t, escape, (size_t)snprintf(escape, sizeof escape, "\\u%04x", (unsigned)*s));
    }
    put(t, "\"", 1);
}

static void put_size(struct text *t, int64_t n) {
    char digits[24];
    put(t, digits, (size_t)snprintf(digits, sizeof digits, "%lld", (long long)n));
}

/* ---- the header ------------------------------------------------------------------------------- */

static void put_entry(struct text *t, const wf_entry *e, int64_t *offset) {
    put_string(t, e->name);
    put_text(t, ":{\"dtype\":");
    put_string(t, e->dtype);
    put_text(t, ",\"shape\":[");
    for (int i = 0; i < e->ndim; i++) {
        if (i > 0) put_text(t, ",");
        put_size(t, e->shape[i]);
    }
    put_text(t, "],\"data_offsets\":[");
    put_size(t, *offset);
    put_text(t, ",");
    put_size(t, *offset += (int64_t)e->bytes);
    put_text(t, "]}");
}

static void put_meta(struct text *t, const wf_meta *meta, int n, const char *checksum) {
    put_text(t, "{\"" WF_FILE_METADATA "\":{\"" WF_FILE_CHECKSUM "\":");
    put_string(t, checksum);
    for (int i = 0; i < n; i++) {
        if (strcmp(meta[i].key, WF_FILE_CHECKSUM) == 0) continue;
        put_text(t, ",");
        put_string(t, meta[i].key);
        put_text(t, ":");
        put_string(t, meta[i].value);
    }
    put_text(t, "}");
}

/* The length and the header, padded with spaces so that the data begin on a cache line. */
static void put_header(struct text *t, const wf_entry *entries, int n, const wf_meta *meta, int n_meta) {
    char checksum[17];
    uint64_t h = 0;
    int64_t offset = 0;
    for (int i = 0; i < n; i++) h = wf_file_hash_entry(h, &entries[i]);
    for (int i = 0; i < n_meta; i++) h = wf_file_hash_meta(h, meta[i]);
    wf_file_hash_text(h, checksum);
    put(t, "01234567", 8); /* room for the length */
    put_meta(t, meta, n_meta, checksum);
    for (int i = 0; i < n; i++) put_text(t, ","), put_entry(t, &entries[i], &offset);
    put_text(t, "}");
    while (t->size % 64 != 0 && !t->failed) put_text(t, " ");
    if (t->failed) return;
    for (int i = 0; i < 8; i++) t->data[i] = (char)((uint64_t)(t->size - 8) >> 8 * i);
}

/* ---- what may be written ---------------------------------------------------------------------- */

static bool utf8(const char *s) { return s && wf_utf8_prefix(s, strlen(s)) == strlen(s); }

static int by_alignment(const void *a, const void *b) {
    const wf_entry *x = a, *y = b;
    const char *p = x->dtype, *q = y->dtype;
    int difference = wf_file_dtype(&q) - wf_file_dtype(&p);
    return difference ? difference : strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const wf_entry *)a)->name, ((const wf_entry *)b)->name);
}

static int by_key(const void *a, const void *b) {
    return strcmp(((const wf_meta *)a)->key, ((const wf_meta *)b)->key);
}

static bool check_entry(const wf_entry *e, char *message) {
    size_t bytes;
    if (!utf8(e->name)) return wf_file_fail(message, "tensor '%.80s': the name is not UTF-8", e->name ? e->name : "");
    if (strcmp(e->name, WF_FILE_METADATA) == 0)
        return wf_file_fail(message, "a tensor cannot have the name " WF_FILE_METADATA);
    if (!wf_file_size(e, &bytes, message)) return false;
    if (e->bytes == bytes && (bytes == 0 || e->data)) return true;
    return wf_file_fail(message, "tensor '%.80s': %zu bytes given, %zu expected", e->name, e->data ? e->bytes : 0,
                        bytes);
}

/* Check and sort the caller's entries and metadata, as copies. */
static bool arrange(wf_entry *entries, int n, wf_meta *meta, int n_meta, char *message) {
    for (int i = 0; i < n; i++)
        if (!check_entry(&entries[i], message)) return false;
    for (int i = 0; i < n_meta; i++)
        if (!utf8(meta[i].key) || !utf8(meta[i].value))
            return wf_file_fail(message, "metadata '%.80s' is not UTF-8", meta[i].key ? meta[i].key : "");
    qsort(entries, (size_t)n, sizeof *entries, by_name);
    qsort(meta, (size_t)n_meta, sizeof *meta, by_key);
    for (int i = 1; i < n; i++)
        if (by_name(&entries[i - 1], &entries[i]) == 0)
            return wf_file_fail(message, "two tensors have the name '%.80s'", entries[i].name);
    for (int i = 1; i < n_meta; i++)
        if (by_key(&meta[i - 1], &meta[i]) == 0)
            return wf_file_fail(message, "metadata key '%.80s' is given twice", meta[i].key);
    qsort(entries, (size_t)n, sizeof *entries, by_alignment);
    return true;
}

/* ---- the disk --------------------------------------------------------------------------------- */

/* A file on its way: created under a temporary name in its folder, which stays open. */
struct target {
    int folder, file;
    const char *base; /* the name in the folder */
    char temporary[256];
    mode_t mode;
};

static bool disk_failed(char *message, const char *what) {
    char reason[64];
    return wf_file_fail(message, "%s: %s", what, wf_file_reason(reason));
}

static bool open_folder(struct target *t, char *path, char *message) {
    char *slash = strrchr(path, '/');
    t->base = slash ? slash + 1 : path;
    if (slash) *slash = 0; /* "/name" is in "/" */
    const char *folder = !slash ? "." : slash == path ? "/" : path;
    t->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return t->folder >= 0 || disk_failed(message, "the folder cannot be opened");
}

/* Only a regular file is replaced: never a folder, a device or a pipe. */
static bool check_target(struct target *t, char *message) {
    struct stat status;
    t->mode = 0666;
    if (*t->base == 0) return wf_file_fail(message, "is a folder, not a file");
    if (fstatat(t->folder, t->base, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT || disk_failed(message, "cannot be looked at");
    if (!S_ISREG(status.st_mode))
        return wf_file_fail(message, "is not a regular file (%s): not replaced",
                            S_ISDIR(status.st_mode)   ? "a folder"
                            : S_ISCHR(status.st_mode) ? "a device"
                                                      : "a link, pipe or device");
    t->mode = status.st_mode & 0777;
    return true;
}

static bool create_temporary(struct target *t, char *message) {
    for (int i = 0; i < 10000; i++) { /* other threads, and what killed processes left, are in the way */
        snprintf(t->temporary, sizeof t->temporary, "%.200s.tmp-%ld-%d", t->base, (long)getpid(), i);
        t->file = openat(t->folder, t->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, t->mode);
        if (t->file >= 0 || errno != EEXIST) break;
    }
    return t->file >= 0 || disk_failed(message, "cannot be created");
}

/* A full disk is better noticed before the first byte; a file system that cannot tell will when writing. */
static bool reserve(int file, int64_t size, char *message) {
    int error = posix_fallocate(file, 0, (off_t)size);
    if (error != ENOSPC && error != EFBIG && error != EDQUOT) return true;
    errno = error;
    return disk_failed(message, "no room on the disk");
}

static bool write_all(int file, const void *data, size_t n, char *message) {
    for (const char *at = data; n > 0;) {
        ssize_t written = write(file, at, n);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return disk_failed(message, "cannot be written");
        at += written, n -= (size_t)written;
    }
    return true;
}

static bool flush(int fd) {
    while (fsync(fd) != 0)
        if (errno != EINTR) return false; /* never a second try: the pages may be gone */
    return true;
}

static bool fill(struct target *t, const struct text *header, const wf_entry *entries, int n, char *message) {
    int64_t size = (int64_t)header->size;
    for (int i = 0; i < n; i++) size += (int64_t)entries[i].bytes; /* they are all in memory: no overflow */
    bool ok = reserve(t->file, size, message) && write_all(t->file, header->data, header->size, message);
    for (int i = 0; ok && i < n; i++) ok = write_all(t->file, entries[i].data, entries[i].bytes, message);
    if (ok && !flush(t->file)) ok = disk_failed(message, "cannot be flushed");
    int closed = close(t->file);
    return ok && (closed == 0 || errno == EINTR || disk_failed(message, "cannot be closed"));
}

/* From here on the new file is there whatever happens; but it may not outlast a power cut. */
static bool flush_folder(const struct target *t, char *message) {
    return flush(t->folder) || errno == EINVAL || disk_failed(message, "written, but its folder cannot be flushed");
}

static bool replace(struct target *t, const struct text *header, const wf_entry *entries, int n, char *message) {
    if (!check_target(t, message) || !create_temporary(t, message)) return false;
    bool ok = fill(t, header, entries, n, message);
    if (ok && renameat(t->folder, t->temporary, t->folder, t->base) == 0) return flush_folder(t, message);
    if (ok) disk_failed(message, "cannot be renamed");
    unlinkat(t->folder, t->temporary, 0);
    return false;
}

static bool write_file(const char *path, const struct text *header, const wf_entry *entries, int n,
                       char *message) {
    struct target t = { .folder = -1 };
    char *real = realpath(path, NULL); /* through links, to the file that is meant */
    if (!real) real = strdup(path);
    if (!real) return wf_file_fail(message, "out of memory");
    bool ok = open_folder(&t, real, message) && replace(&t, header, entries, n, message);
    if (t.folder >= 0) close(t.folder);
    free(real);
    return ok;
}

/* ---- public ----------------------------------------------------------------------------------- */

static void *copy_array(const void *array, int n, size_t size) {
    void *copy = calloc((size_t)n + 1, size);
    if (copy && n > 0) memcpy(copy, array, (size_t)n * size);
    return copy;
}

static bool save(const char *path, wf_entry *entries, int n, wf_meta *meta, int n_meta, char *message) {
    struct text header = { 0 };
    if (!entries || !meta) return wf_file_fail(message, "out of memory");
    if (!arrange(entries, n, meta, n_meta, message)) return false;
    put_header(&header, entries, n, meta, n_meta);
    bool ok = !header.failed || wf_file_fail(message, "out of memory");
    if (ok && header.size - 8 > WF_FILE_MAX_HEADER)
        ok = wf_file_fail(message, "header of %zu bytes, at most %d allowed", header.size - 8, WF_FILE_MAX_HEADER);
    ok = ok && write_file(path, &header, entries, n, message);
    free(header.data);
    return ok;
}

bool wf_file_save(const char *path, const wf_entry *entries, int n, const wf_meta *meta, int n_meta,
                  char *message) {
    char reason[WF_MESSAGE] = "";
    if (!path || n < 0 || n_meta < 0 || (n > 0 && !entries) || (n_meta > 0 && !meta))
        return wf_file_fail(message, "wf_file_save: no path, or no entries");
    wf_entry *sorted = copy_array(entries, n, sizeof *entries);
    wf_meta *sorted_meta = copy_array(meta, n_meta, sizeof *meta);
    bool ok = save(path, sorted, n, sorted_meta, n_meta, reason);
    free(sorted), free(sorted_meta);
    return ok || wf_file_fail(message, "%.100s: %s", path, reason);
}
