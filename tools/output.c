/* tools/output.c - files to be written, looked at before the work begins. See output.h. */
#include "output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Make a file beside `path` and remove it again: the only question that permissions, full disks and
 * read-only mounts answer truthfully. */
static bool can_create_beside(const char *path) {
    size_t n = strlen(path);
    char *probe = malloc(n + sizeof ".XXXXXX");
    if (!probe) return false;
    memcpy(probe, path, n);
    memcpy(probe + n, ".XXXXXX", sizeof ".XXXXXX");
    int file = mkstemp(probe);
    int reason = errno;
    if (file >= 0) close(file), unlink(probe);
    free(probe);
    errno = reason;
    return file >= 0;
}

bool output_writable(const char *path, char *message) {
    struct stat s;
    const char *reason = NULL;
    if (stat(path, &s) == 0) {
        if (S_ISDIR(s.st_mode))
            reason = "it is a folder";
        else if (!S_ISREG(s.st_mode))
            reason = "it is not an ordinary file";
        else if (access(path, W_OK) != 0)
            reason = strerror(errno);
    }
    if (!reason && !can_create_beside(path)) reason = strerror(errno);
    if (reason) snprintf(message, 256, "%.150s can't be written: %s", path, reason);
    return !reason;
}

bool same_file(const char *a, const char *b) {
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}
