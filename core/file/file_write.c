/* core/file/file_write.c - safetensors files, written atomically.
 *
 * The bytes are a function of the arguments alone: tensors are sorted by element size (largest
 * first, so that all are aligned), then by name; metadata by key. The header is checked with the
 * reader's code before anything is written. A file appears under its name complete and on the disk,
 * or not at all: it is written under a temporary name in the same folder, flushed, read back and
 * renamed, and then the folder is flushed. A process that is killed may leave "name.tmp-weft-PID-N"
 * behind, never a damaged "name"; the next save of "name" removes it, and no other file. */
#define _XOPEN_SOURCE 700 /* realpath */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/random.h"
#include "core/emit/c_text.h"
#include "core/file_internal.h"
#include "core/op.h"
#include "file_format.h"
#include "json.h"

/* The content to write: the caller's entries and metadata, copied and sorted, and the header. */
struct content {
    wf_entry *entries;
    wf_meta *meta;
    int n, n_meta;
    char *header; /* 8 bytes of length, the JSON, and spaces as padding */
    size_t header_size;
    uint64_t data_size;
    char checksum[17]; /* checksum of the values in the caller's memory */
};

/* ---- the header -------------------------------------------------------------------------- */

static int by_alignment(const void *a, const void *b) {
    const wf_entry *x = a, *y = b;
    const char *p = x->dtype, *q = y->dtype;
    int difference = wf_file_dtype(&q) - wf_file_dtype(&p);
    return difference ? difference : strcmp(x->name, y->name);
}

static void put(void *text, const char *bytes, size_t n) {
    wf_text_add(text, bytes, n);
}

static void print_string(wf_text *t, const char *s) {
    wf_json_quote(put, t, s);
}

static void print_entry(wf_text *t, const wf_entry *e, uint64_t offset) {
    char offsets[64];
    wf_text_puts(t, ",");
    print_string(t, e->name);
    wf_text_puts(t, ":{\"dtype\":");
    print_string(t, e->dtype);
    wf_text_puts(t, ",\"shape\":[");
    for (int i = 0; i < e->ndim; i++) wf_text_print(t, i ? ",%n" : "%n", e->shape[i]);
    snprintf(offsets, sizeof offsets, "%llu,%llu", (unsigned long long)offset,
             (unsigned long long)offset + e->bytes);
    wf_text_print(t, "],\"data_offsets\":[%s]}", offsets);
}

static void print_header(wf_text *t, const struct content *c) {
    uint64_t offset = 0;
    wf_text_print(t, WF_FILE_PREFIX "%s\"", c->checksum);
    for (int i = 0; i < c->n_meta; i++) {
        if (strcmp(c->meta[i].key, WF_FILE_CHECKSUM) == 0) continue;
        wf_text_puts(t, ",");
        print_string(t, c->meta[i].key);
        wf_text_puts(t, ":");
        print_string(t, c->meta[i].value);
    }
    wf_text_puts(t, "}");
    for (int i = 0; i < c->n; offset += c->entries[i++].bytes)
        print_entry(t, &c->entries[i], offset);
    wf_text_puts(t, "}");
}

static void compute_checksum(struct content *c) {
    uint64_t h = 0;
    for (int i = 0; i < c->n; i++) {
        const wf_entry *e = &c->entries[i];
        h = wf_mix64(wf_file_sum_part(wf_file_sum_entry(h, e), e->data, e->bytes));
    }
    wf_file_sum_text(h, c->meta, c->n_meta, c->checksum);
}

/* Makes the header, padded so that the data begin on a cache line. It is checked before the data
 * are read for the checksum, because an entry with a wrong size must not be read. The check decodes
 * the text in place, so it follows the copy. */
static bool make_header(struct content *c, char *message) {
    wf_text t = { 0 };
    for (int i = 0; i < c->n; i++) c->data_size += c->entries[i].bytes;
    memset(c->checksum, '0', sizeof c->checksum - 1);
    print_header(&t, c);
    c->header_size = (8 + t.length + 63) / 64 * 64;
    uint64_t size = c->header_size - 8;
    bool fits = size <= WF_FILE_MAX_HEADER;
    c->header = fits && !t.lacks ? malloc(c->header_size) : NULL;
    bool ok =
        c->header || wf_file_fail(message, fits ? "out of memory" : "the header is too large");
    if (ok) {
        memset(c->header, ' ', c->header_size);
        memcpy(c->header, &size, 8);
        memcpy(c->header + 8, t.at, t.length);
        ok = wf_file_check_header(t.at, t.length, (int64_t)c->data_size, message);
    }
    wf_text_free(&t);
    if (!ok) return false;
    compute_checksum(c);
    memcpy(c->header + 8 + sizeof WF_FILE_PREFIX - 1, c->checksum, sizeof c->checksum - 1);
    return true;
}

/* ---- the disk ---------------------------------------------------------------------------- */

static bool write_all(int fd, const void *data, size_t n, char *message) {
    for (const char *at = data; n > 0;) {
        ssize_t written = write(fd, at, n);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return wf_file_fail_errno(message, "cannot be written");
        at += written;
        n -= (size_t)written;
    }
    return true;
}

static bool flush(int fd) {
    /* fsync is tried again after EINTR only: after other errors the kernel may have dropped the
     * data */
    while (fsync(fd) != 0)
        if (errno != EINTR) return false;
    return true;
}

static bool write_content(int fd, const struct content *c, char *message) {
    /* Reserving the space shows a full disk before the first byte is written. Not every file system
     * supports it. */
    errno = posix_fallocate(fd, 0, (off_t)(c->header_size + c->data_size));
    if (errno == ENOSPC || errno == EFBIG || errno == EDQUOT)
        return wf_file_fail_errno(message, "cannot be written");
    if (!write_all(fd, c->header, c->header_size, message)) return false;
    for (int i = 0; i < c->n; i++)
        if (!write_all(fd, c->entries[i].data, c->entries[i].bytes, message)) return false;
    return flush(fd) || wf_file_fail_errno(message, "cannot be flushed to the disk");
}

static void name_temporary(char name[256], const char *base, long pid, int i) {
    snprintf(name, 256, "%.200s.tmp-weft-%ld-%d", base, pid, i);
}

/* The id of the process that made this file, if its name is that of a temporary file for `base`;
 * else 0. */
static long owner_of(const char *name, const char *base) {
    size_t n = strnlen(base, 200);
    char same[256];
    long pid = 0;
    int i = 0;
    if (strncmp(name, base, n) || sscanf(name + n, ".tmp-weft-%ld-%d", &pid, &i) != 2) return 0;
    name_temporary(same, base, pid, i);
    return i >= 0 && strcmp(name, same) == 0 ? pid : 0;
}

/* Create and lock a new file in the folder, under a name that no other thread, process or dead
 * process uses. Returns its descriptor, or -1 with message. */
static int create(int folder, const char *base, mode_t mode, char temporary[256], char *message) {
    int fd = -1;
    for (int i = 0; i < 10000; i++) {
        name_temporary(temporary, base, (long)getpid(), i);
        fd = wf_file_descriptor(folder, temporary, O_RDWR | O_CREAT | O_EXCL, mode);
        if (fd >= 0 || errno != EEXIST) break;
    }
    if (fd < 0) return wf_file_fail_errno(message, "cannot be created"), -1;
    (void)!lockf(fd, F_TLOCK, 0); /* on a file system without locks, the process id must suffice */
    return fd;
}

/* Remove the temporary files of killed processes. A writer locks its temporary file, because the
 * process id in its name is not enough: a process that is unknown here may live in another
 * container. */
static void remove_left(int folder, const char *base) {
    int copy = wf_file_descriptor(folder, ".", O_RDONLY | O_DIRECTORY, 0);
    DIR *names = copy >= 0 ? fdopendir(copy) : NULL;
    for (struct dirent *e; names && (e = readdir(names)) != NULL;) {
        long pid = owner_of(e->d_name, base);
        if (pid <= 0 || kill((pid_t)pid, 0) == 0 || errno != ESRCH) continue;
        int fd = wf_file_descriptor(folder, e->d_name, O_RDWR | O_NOFOLLOW | O_NONBLOCK, 0);
        if (fd < 0) continue;
        if (lockf(fd, F_TEST, 0) == 0) unlinkat(folder, e->d_name, 0);
        close(fd);
    }
    if (names)
        closedir(names);
    else if (copy >= 0)
        close(copy);
}

/* True if there is no file of this name (*mode is then -1), or it is a regular file (*mode gets its
 * permissions). Others are not replaced: false, with message. */
static bool check_old(int folder, const char *base, int *mode, char *message) {
    struct stat old;
    *mode = -1;
    if (*base == 0) return wf_file_fail(message, "is a folder, not a file");
    if (fstatat(folder, base, &old, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT || wf_file_fail_errno(message, "its status cannot be read");
    *mode = old.st_mode & 0777;
    return S_ISREG(old.st_mode) ||
           wf_file_fail(message, "is %s, not a regular file: not replaced",
                        S_ISDIR(old.st_mode) ? "a folder" : "a device, a pipe or a broken link");
}

/* A file that replaces an old one gets its exact permissions, whatever the umask is. */
static bool keep_mode(int fd, int mode, char *message) {
    struct stat now;
    if (mode < 0 || (fstat(fd, &now) == 0 && (int)(now.st_mode & 0777) == mode)) return true;
    return fchmod(fd, (mode_t)mode) == 0 ||
           wf_file_fail_errno(message, "the permissions of the old file cannot be kept");
}

static bool replace(int folder, const char *base, const struct content *c, char *message) {
    char temporary[256];
    int mode;
    if (!check_old(folder, base, &mode, message)) return false;
    int fd = create(folder, base, mode < 0 ? 0666 : (mode_t)mode, temporary, message);
    if (fd < 0) return false;
    remove_left(folder, base);
    bool ok = keep_mode(fd, mode, message) && write_content(fd, c, message) &&
              wf_file_check_written(fd, c->checksum, message);
    if (close(fd) != 0 && errno != EINTR && ok)
        ok = wf_file_fail_errno(message, "cannot be closed");
    if (ok && renameat(folder, temporary, folder, base) != 0)
        ok = wf_file_fail_errno(message, "cannot be renamed");
    if (!ok) unlinkat(folder, temporary, 0);
    /* The new file is in place. To survive a power cut its folder must be flushed, too. */
    return ok && (flush(folder) || errno == EINVAL ||
                  wf_file_fail_errno(message, "written, but its folder cannot be flushed"));
}

static int open_folder(const char *path) {
    return wf_file_descriptor(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
}

static bool write_file(const char *path, const struct content *c, char *message) {
    char *real = realpath(path, NULL); /* follow symbolic links to the file itself */
    if (!real) real = strdup(path);
    if (!real) return wf_file_fail(message, "out of memory");
    char *slash = strrchr(real, '/'), *base = slash ? slash + 1 : real;
    if (slash) *slash = 0;
    int folder = open_folder(!slash ? "." : *real ? real : "/");
    bool ok = folder >= 0 ? replace(folder, base, c, message)
                          : wf_file_fail_errno(message, "the folder cannot be opened");
    if (folder >= 0) close(folder);
    free(real);
    return ok;
}

/* ---- public ------------------------------------------------------------------------------ */

static bool copy_and_sort(struct content *c, const wf_entry *entries, const wf_meta *meta) {
    c->entries = calloc((size_t)c->n + 1, sizeof *entries);
    c->meta = calloc((size_t)c->n_meta + 1, sizeof *meta);
    if (!c->entries || !c->meta) return false;
    if (c->n > 0) memcpy(c->entries, entries, (size_t)c->n * sizeof *entries);
    if (c->n_meta > 0) memcpy(c->meta, meta, (size_t)c->n_meta * sizeof *meta);
    qsort(c->entries, (size_t)c->n, sizeof *entries, by_alignment);
    qsort(c->meta, (size_t)c->n_meta, sizeof *meta, wf_file_by_key);
    return true;
}

/* Reject arguments that C allows but that no header can express. */
static bool check_arguments(const wf_entry *e, int n, const wf_meta *meta, int n_meta,
                            char *message) {
    if (n < 0 || n_meta < 0 || (n > 0 && !e) || (n_meta > 0 && !meta))
        return wf_file_fail(message, "no entries");
    for (int i = 0; i < n; i++)
        if (!e[i].name || !e[i].dtype || (e[i].bytes > 0 && !e[i].data) || e[i].ndim < 0 ||
            e[i].ndim > WF_MAX_DIMS)
            return wf_file_fail(message, "tensor '%.80s': no name, dtype or data, or %d axes",
                                e[i].name ? e[i].name : "", e[i].ndim);
    for (int i = 0; i < n_meta; i++)
        if (!meta[i].key || !meta[i].value) return wf_file_fail(message, "metadata %d is NULL", i);
    return true;
}

void wf_file_remove_left(const char *path) {
    if (!path) return;
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    int fd = folder ? open_folder(folder) : -1;
    if (fd >= 0) {
        remove_left(fd, slash ? slash + 1 : path);
        close(fd);
    }
    free(folder);
}

static bool make_content(struct content *c, const wf_entry *entries, const wf_meta *meta,
                         char *message) {
    if (!wf_file_order(message) || !check_arguments(entries, c->n, meta, c->n_meta, message))
        return false;
    if (!copy_and_sort(c, entries, meta)) return wf_file_fail(message, "out of memory");
    return make_header(c, message);
}

static void free_content(struct content *c) {
    free(c->entries);
    free(c->meta);
    free(c->header);
}

bool wf_file_save(const char *path, const wf_entry *entries, int n, const wf_meta *meta, int n_meta,
                  char *message) {
    char reason[WF_MESSAGE] = "";
    struct content c = { .n = n, .n_meta = n_meta };
    if (!path) return wf_file_fail(message, "wf_file_save: no path");
    bool ok = make_content(&c, entries, meta, reason) && write_file(path, &c, reason);
    free_content(&c);
    return ok || wf_file_fail(message, "%.100s: %s", path, reason);
}

char *wf_file_bytes(const wf_entry *entries, int n, const wf_meta *meta, int n_meta, size_t *size,
                    char *message) {
    char reason[WF_MESSAGE] = "", *bytes = NULL;
    struct content c = { .n = n, .n_meta = n_meta };
    bool ok = size || wf_file_fail(reason, "there is no place for the number of bytes");
    ok = ok && make_content(&c, entries, meta, reason);
    if (ok && c.data_size <= SIZE_MAX - c.header_size)
        bytes = malloc(c.header_size + (size_t)c.data_size);
    if (ok && !bytes) wf_file_fail(reason, "out of memory");
    if (bytes) {
        memcpy(bytes, c.header, c.header_size);
        *size = c.header_size;
        for (int i = 0; i < c.n; *size += c.entries[i++].bytes)
            if (c.entries[i].bytes) memcpy(bytes + *size, c.entries[i].data, c.entries[i].bytes);
    } else {
        wf_file_fail(message, "%s", reason);
    }
    free_content(&c);
    return bytes;
}
