/* tools/cli/append.c - files to which records are appended. See append.h. */
#include "append.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include "retry.h"

int append_open(const char *path, bool keep) {
    int file, whence = keep ? O_RDWR | O_APPEND : O_WRONLY | O_TRUNC;
    RETRY(file, open(path, O_CREAT | O_CLOEXEC | whence, 0666));
    return file;
}

bool append_record(int file, const void *bytes, size_t n) {
    off_t before = lseek(file, 0, SEEK_END);
    for (size_t done = 0; done < n;) {
        ssize_t written;
        RETRY(written, write(file, (const char *)bytes + done, n - done));
        if (written < 0) {
            int reason = errno;
            if (done > 0 && before >= 0) (void)!ftruncate(file, before);
            errno = reason;
            return false;
        }
        done += (size_t)written;
    }
    return true;
}
