/* tests/fuzz/fuzz_file.c - puts bytes into a file, for targets that read a path; see fuzz.h. */
#define _GNU_SOURCE /* memfd_create */
#include "fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

int fuzz_file(const void *data, size_t size, char *path) {
    int file = memfd_create("fuzz", MFD_CLOEXEC);
    fuzz_must(file >= 0 && write(file, data, size) == (ssize_t)size);
    snprintf(path, 32, "/proc/self/fd/%d", file);
    return file;
}

void fuzz_unfile(int file) {
    close(file);
}

const char *fuzz_path(void) {
    static char path[256];
    static pid_t of; /* a child writes to another */
    const char *folder = getenv("TMPDIR");
    if (!folder) folder = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";
    if (of != getpid())
        snprintf(path, sizeof path, "%.200s/weft-fuzz-%ld", folder, (long)(of = getpid()));
    return path;
}
