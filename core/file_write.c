/* core/file_write.c - safetensors files, written atomically.
 *
 * The bytes are a function of the arguments alone: tensors by size of element (largest first, so
 * that all are aligned), then by name; metadata by key. The reader is asked to accept the header
 * before anything is written. A file appears under its name whole and on the disk, or not at all:
 * temporary name in the same folder, fsync, rename, fsync of the folder. A killed process may leave
 * "name.tmp-PID-N" behind, never a damaged "name"; the next save of "name" removes it. */
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

#include "file_format.h"
#include "op.h"

/* What is to be written: the caller's entries and metadata, copied and sorted; the header. */
struct content {
    wf_entry *entries;
    wf_meta *meta;
    int n, n_meta;
    char *header; /* its length, itself, and spaces */
    size_t header_size;
    uint64_t data_size;
};

/* ---- the header -------------------------------------------------------------------------- */

static int by_alignment(const void *a, const void *b) {
    const wf_entry *x = a, *y = b;
    const char *p = x->dtype, *q = y->dtype;
    int difference = wf_file_dtype(&q) - wf_file_dtype(&p);
    return difference ? difference : strcmp(x->name, y->name);
}

static void print_string(FILE *f, const char *s) {
    putc('"', f);
    for (; *s; s++)
        if (*s == '\n') fputs("\\n", f); /* a vocabulary has many */
        else if ((unsigned char)*s < 0x20) fprintf(f, "\\u%04x", (unsigned)*s);
        else fprintf(f, *s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
    putc('"', f);
}

static void print_pair(FILE *f, const char *key, const char *value) {
    print_string(f, key);
    putc(':', f);
    print_string(f, value);
}

static void print_entry(FILE *f, const wf_entry *e, uint64_t offset) {
    putc(',', f);
    print_string(f, e->name);
    fputs(":{", f);
    print_pair(f, "dtype", e->dtype);
    fputs(",\"shape\":[", f);
    for (int i = 0; i < e->ndim; i++) fprintf(f, "%s%lld", i ? "," : "", (long long)e->shape[i]);
    fprintf(f, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)offset,
            (unsigned long long)offset + e->bytes);
}

static void print_header(FILE *f, struct content *c) {
    char checksum[17];
    wf_file_checksum(c->entries, c->n, sizeof *c->entries, c->meta, c->n_meta, checksum);
    fprintf(f, "%8s{\"" WF_FILE_METADATA "\":{", ""); /* room for the length */
    print_pair(f, WF_FILE_CHECKSUM, checksum);
    for (int i = 0; i < c->n_meta; i++) {
        if (strcmp(c->meta[i].key, WF_FILE_CHECKSUM) == 0) continue;
        putc(',', f);
        print_pair(f, c->meta[i].key, c->meta[i].value);
    }
    putc('}', f);
    for (int i = 0; i < c->n; c->data_size += c->entries[i++].bytes)
        print_entry(f, &c->entries[i], c->data_size);
    putc('}', f);
}

/* Padded so that the data begin on a cache line. */
static bool make_header(struct content *c, char *message) {
    FILE *f = open_memstream(&c->header, &c->header_size);
    if (!f) return wf_file_fail(message, "out of memory");
    print_header(f, c);
    bool ok = fflush(f) == 0 && fprintf(f, "%*s", (int)(-c->header_size % 64), "") >= 0;
    ok = fclose(f) == 0 && ok;
    uint64_t size = c->header_size - 8;
    char *copy = ok ? malloc((size_t)size) : NULL; /* which the reader decodes in place */
    if (!copy) return wf_file_fail(message, "out of memory");
    memcpy(c->header, &size, 8);
    memcpy(copy, c->header + 8, (size_t)size);
    ok = size <= WF_FILE_MAX_HEADER || wf_file_fail(message, "the header is too large");
    ok = ok && wf_file_check_header(copy, (size_t)size, (int64_t)c->data_size, message);
    free(copy);
    return ok;
}

/* ---- the disk ---------------------------------------------------------------------------- */

static bool write_all(int fd, const void *data, size_t n, char *message) {
    for (const char *at = data; n > 0;) {
        ssize_t written = write(fd, at, n);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return wf_file_fail_errno(message, "cannot be written");
        at += written, n -= (size_t)written;
    }
    return true;
}

static bool flush(int fd) {
    while (fsync(fd) != 0)
        if (errno != EINTR) return false; /* and no second try: the kernel may have let go of it */
    return true;
}

static bool write_content(int fd, const struct content *c, char *message) {
    /* A full disk is better known before the first byte. Not every file system can tell. */
    errno = posix_fallocate(fd, 0, (off_t)(c->header_size + c->data_size));
    if (errno == ENOSPC || errno == EFBIG || errno == EDQUOT)
        return wf_file_fail_errno(message, "cannot be written");
    if (!write_all(fd, c->header, c->header_size, message)) return false;
    for (int i = 0; i < c->n; i++)
        if (!write_all(fd, c->entries[i].data, c->entries[i].bytes, message)) return false;
    return flush(fd) || wf_file_fail_errno(message, "cannot be flushed to the disk");
}

/* A new file in the folder, under a name that no other thread, process or dead process has. */
static int create(int folder, const char *base, mode_t mode, char temporary[256], char *message) {
    int fd = -1;
    for (int i = 0; i < 10000; i++) {
        snprintf(temporary, 256, "%.200s.tmp-%ld-%d", base, (long)getpid(), i);
        fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd >= 0 || errno != EEXIST) break;
    }
    if (fd < 0) return wf_file_fail_errno(message, "cannot be created"), -1;
    (void)!lockf(fd, F_TLOCK, 0); /* where there are no locks, the number must do */
    return fd;
}

/* What killed processes left behind. A writer holds a lock on its temporary file: its number says
 * nothing to a process of another container. */
static void remove_left(int folder, const char *base) {
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *names = copy >= 0 ? fdopendir(copy) : NULL;
    size_t n = strnlen(base, 200);
    for (struct dirent *e; names && (e = readdir(names)) != NULL;) {
        long pid;
        if (strncmp(e->d_name, base, n) || sscanf(e->d_name + n, ".tmp-%ld-", &pid) != 1) continue;
        if (pid <= 0 || kill((pid_t)pid, 0) == 0 || errno != ESRCH) continue;
        int fd = openat(folder, e->d_name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0) continue;
        if (lockf(fd, F_TEST, 0) == 0) unlinkat(folder, e->d_name, 0);
        close(fd);
    }
    if (names)
        closedir(names);
    else if (copy >= 0)
        close(copy);
}

/* Only a regular file is replaced, and by one with the same permissions. */
static bool check_old(int folder, const char *base, mode_t *mode, char *message) {
    struct stat old;
    *mode = 0666;
    if (*base == 0) return wf_file_fail(message, "is a folder, not a file");
    if (fstatat(folder, base, &old, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT || wf_file_fail_errno(message, "cannot be looked at");
    *mode = old.st_mode & 0777;
    return S_ISREG(old.st_mode) ||
           wf_file_fail(message, "is %s, not a regular file: not replaced",
                        S_ISDIR(old.st_mode) ? "a folder" : "a device, a pipe or a broken link");
}

static bool replace(int folder, const char *base, const struct content *c, char *message) {
    char temporary[256];
    mode_t mode;
    if (!check_old(folder, base, &mode, message)) return false;
    int fd = create(folder, base, mode, temporary, message);
    if (fd < 0) return false;
    remove_left(folder, base);
    bool ok = write_content(fd, c, message);
    if (close(fd) != 0 && errno != EINTR && ok)
        ok = wf_file_fail_errno(message, "cannot be closed");
    if (ok && renameat(folder, temporary, folder, base) != 0)
        ok = wf_file_fail_errno(message, "cannot be renamed");
    if (!ok) unlinkat(folder, temporary, 0);
    /* From here on the new file is there; whether it outlasts a power cut, its folder knows. */
    return ok && (flush(folder) || errno == EINVAL ||
                  wf_file_fail_errno(message, "written, but its folder cannot be flushed"));
}

static bool write_file(const char *path, const struct content *c, char *message) {
    char *real = realpath(path, NULL); /* through links, to the file that is meant */
    if (!real) real = strdup(path);
    if (!real) return wf_file_fail(message, "out of memory");
    char *slash = strrchr(real, '/'), *base = slash ? slash + 1 : real;
    if (slash) *slash = 0;
    int folder = open(!slash ? "." : *real ? real : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
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

/* What the C types allow and the reader could not even be asked about. */
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

bool wf_file_save(const char *path, const wf_entry *entries, int n, const wf_meta *meta, int n_meta,
                  char *message) {
    char reason[WF_MESSAGE] = "";
    struct content c = { .n = n, .n_meta = n_meta };
    if (!path) return wf_file_fail(message, "wf_file_save: no path");
    bool ok = check_arguments(entries, n, meta, n_meta, reason);
    if (ok && !copy_and_sort(&c, entries, meta)) ok = wf_file_fail(reason, "out of memory");
    ok = ok && make_header(&c, reason) && write_file(path, &c, reason);
    free(c.entries), free(c.meta), free(c.header);
    return ok || wf_file_fail(message, "%.100s: %s", path, reason);
}
