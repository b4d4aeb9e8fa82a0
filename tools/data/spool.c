/* tools/data/spool.c - a file that is read several times. See spool.h. */
#include "spool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/op.h"
#include "tools/cli/retry.h"

enum { IN_MEMORY = 64 << 20 };

bool spool_open(spool *s, const char *path) {
    *s = (spool){ 0 };
    if (!text_input_open(&s->in, path)) return false;
    store_new(&s->kept, IN_MEMORY);
    if (fstat(s->in.file, &s->first) == 0) {
        s->keeps = s->in.packed || !S_ISREG(s->first.st_mode);
        return true;
    }
    int reason = errno;
    spool_close(s);
    errno = reason;
    return false;
}

void spool_close(spool *s) {
    if (s->in.file < 0) return;
    text_input_close(&s->in);
    store_free(&s->kept);
}

const char *spool_failure(const spool *s) {
    return *s->failure ? s->failure : text_input_failure(&s->in);
}

static bool same_time(struct timespec a, struct timespec b) {
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool unchanged(spool *s) {
    struct stat now;
    if (fstat(s->in.file, &now) == 0 && now.st_size == s->first.st_size &&
        same_time(now.st_mtim, s->first.st_mtim))
        return true;
    snprintf(s->failure, sizeof s->failure, "it has changed while it was read");
    errno = EIO;
    return false;
}

static ssize_t read_first(spool *s, char *bytes, size_t n) {
    ssize_t got = text_input_read(&s->in, bytes, n);
    bool ok = got <= 0 || store_append(&s->kept, bytes, (size_t)got, s->failure);
    if (got == 0) ok = s->complete = store_seal(&s->kept, s->failure);
    return ok ? got : (errno = EIO, -1);
}

static ssize_t read_again(const spool *s, size_t at, char *bytes, size_t n) {
    size_t left = at < s->kept.size ? s->kept.size - at : 0;
    if (left < n) n = left;
    if (n > 0) memcpy(bytes, s->kept.data + at, n);
    return (ssize_t)n;
}

ssize_t spool_read(spool *s, size_t at, char *bytes, size_t n) {
    if (s->complete) return read_again(s, at, bytes, n);
    if (s->keeps || *s->in.failure) return read_first(s, bytes, n);
    ssize_t got;
    RETRY(got, pread(s->in.file, bytes, n, (off_t)at));
    return got >= 0 && !unchanged(s) ? -1 : got;
}

/* ---- a whole file ---------------------------------------------------------------------------- */

enum { MOST_BYTES = 1 << 28 };

static char *fail_to_read(const char *path, const char *why, char *message) {
    return snprintf(message, WF_MESSAGE, "%.72s can't be read: %.160s", path, why), NULL;
}

char *spool_whole(const char *path, size_t *size, char *message) {
    spool s;
    size_t room = 1 << 16;
    ssize_t got = 0;
    char *bytes = NULL, *more;
    if (!spool_open(&s, path)) return fail_to_read(path, strerror(errno), message);
    for (*size = 0; (more = realloc(bytes, room)) != NULL; *size += (size_t)got) {
        bytes = more;
        got = spool_read(&s, *size, bytes + *size, room - *size);
        if (got <= 0) break;
        if (*size + (size_t)got == room && (room *= 2) > MOST_BYTES) break;
    }
    const char *why = NULL;
    if (!more)
        why = "out of memory";
    else if (got < 0)
        why = spool_failure(&s);
    else if (room > MOST_BYTES)
        why = "it is too large";
    if (why) {
        fail_to_read(path, why, message);
        free(bytes);
    }
    spool_close(&s);
    return why ? NULL : bytes;
}
