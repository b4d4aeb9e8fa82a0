/* tools/cli/output.c - writes output files. See output.h. */
#define _GNU_SOURCE /* O_TMPFILE */
#include "output.h"
#include "core/file_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "retry.h"
#include "tools/cli/options/options.h"

#include "core/file.h"
#include "tools/cli/refused.h"

/* ---- names ----------------------------------------------------------------------------------- */

void output_folder(const char *path, char folder[PATH_SIZE]) {
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    memcpy(folder, slash ? path : ".", slash ? n : 1);
    folder[slash ? n : 1] = '\0';
    if (slash == path) strcpy(folder, "/");
}

/* Follows one symbolic link. Its target is relative to the link's folder. */
static bool follow(char path[PATH_SIZE]) {
    char link[PATH_SIZE];
    ssize_t n = readlink(path, link, sizeof link);
    if (n < 0) return false;
    char *slash = strrchr(path, '/');
    size_t before = *link == '/' || !slash ? 0 : (size_t)(slash - path) + 1;
    if (before + (size_t)n >= PATH_SIZE) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(path + before, link, (size_t)n);
    path[before + (size_t)n] = '\0';
    return true;
}

bool output_target(const char *path, char target[PATH_SIZE]) {
    enum { MOST_LINKS = 40 };
    struct stat s;
    if (strlen(path) >= PATH_SIZE) {
        errno = ENAMETOOLONG;
        return false;
    }
    strcpy(target, path);
    for (int i = 0; i < MOST_LINKS; i++) {
        if (lstat(target, &s) != 0) return errno == ENOENT;
        if (!S_ISLNK(s.st_mode)) return true;
        if (!follow(target)) return false;
    }
    errno = ELOOP;
    return false;
}

bool write_whole(int file, const void *bytes, size_t n) {
    ssize_t written = 1;
    for (size_t done = 0; written > 0 && done < n; done += (size_t)written)
        RETRY(written, write(file, (const char *)bytes + done, n - done));
    if (written == 0) errno = ENOSPC;
    return written > 0;
}

/* ---- before the work begins ------------------------------------------------------------------ */

/* Creates a file without a name, so that none is left behind. If the system has no such files,
 * creates one and removes it. */
static int make_probe(const char *folder) {
    char path[PATH_SIZE + 24];
#ifdef O_TMPFILE
    int nameless;
    RETRY(nameless, open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
    if (nameless >= 0 ||
        (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL && errno != ENOENT))
        return nameless;
#endif
    snprintf(path, sizeof path, "%s/weft-probe-XXXXXX", folder);
    int file;
    RETRY(file, mkstemp(path));
    if (file < 0 || unlink(path) == 0 || unlink(path) == 0) return file;
    int reason = errno;
    close(file);
    errno = reason;
    return -1;
}

/* True if a file can be created beside `path` and written. Trying it is the only reliable check of
 * permissions, full disks, limits and read-only mounts. */
static bool can_create_beside(const char *path) {
    static const char page[4096];
    char folder[PATH_SIZE];
    output_folder(path, folder);
    int file = make_probe(folder);
    if (file < 0) return false;
    bool written = write_whole(file, page, sizeof page);
    int reason = errno;
    close(file);
    errno = reason;
    return written;
}

/* True if the file belongs to another user and is in a folder such as /tmp, whose sticky bit lets
 * only owners replace their files. */
static bool is_anothers(const char *path, const struct stat *file) {
    char folder[PATH_SIZE];
    struct stat s;
    output_folder(path, folder);
    return stat(folder, &s) == 0 && s.st_mode & S_ISVTX && geteuid() != 0 &&
           geteuid() != s.st_uid && geteuid() != file->st_uid;
}

/* The reason why an existing file cannot be written; NULL: it can. */
static const char *objection(const char *target, const struct stat *s, bool in_place) {
    struct stat seen;
    if (S_ISDIR(s->st_mode)) return "it is a folder";
    if (!S_ISREG(s->st_mode)) return "it is not an ordinary file";
    if (lstat(target, &seen) != 0 || seen.st_ino != s->st_ino || seen.st_dev != s->st_dev)
        return "it has no name any more";
    if (access(target, W_OK) != 0) return strerror(errno);
    return !in_place && is_anothers(target, s) ? strerror(EPERM) : NULL;
}

bool output_writable(const char *path, bool in_place, char *message) {
    char target[PATH_SIZE];
    struct stat s;
    const char *reason = NULL;
    if (is_dash(path)) return true;
    bool named = *path && output_target(path, target), there = named && stat(path, &s) == 0;
    if (!*path)
        reason = "the name is empty";
    else if (!named)
        reason = strerror(errno);
    else if (there)
        reason = objection(target, &s, in_place);
    if (!reason && !(there && in_place) && !can_create_beside(target)) reason = strerror(errno);
    if (!reason) return true;
    char folder[PATH_SIZE] = "";
    if (named) output_folder(target, folder);
    if (named && stat(folder, &s) != 0 && errno == ENOENT)
        return refused(message,
                       "%.80s can't be written: there is no folder %.80s (mkdir -p makes it)", path,
                       folder);
    if (named && strcmp(path, target) != 0)
        return refused(message, "%.80s, which leads to %.80s, can't be written: %s", path, target,
                       reason);
    return refused(message, "%.150s can't be written: %s", path, reason);
}

/* ---- folders --------------------------------------------------------------------------------- */

/* Shortens the path to its folder. False: there is none. */
static bool go_up(char path[PATH_SIZE]) {
    char above[PATH_SIZE];
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') path[--n] = '\0';
    output_folder(path, above);
    bool up = strcmp(above, path) != 0;
    strcpy(path, above);
    return up;
}

bool output_folder_writable(const char *folder, char *message) {
    char path[PATH_SIZE];
    struct stat s;
    const char *reason = NULL;
    if (!*folder)
        reason = "the name is empty";
    else if (strlen(folder) + 2 >= PATH_SIZE)
        reason = strerror(ENAMETOOLONG);
    else
        strcpy(path, folder);
    while (!reason && stat(path, &s) != 0)
        if (errno != ENOENT || !go_up(path))
            reason =
                errno == ENOTDIR ? "a part of its path is a file, not a folder" : strerror(errno);
    if (!reason && !S_ISDIR(s.st_mode)) reason = "it is not a folder";
    if (!reason) {
        strcat(path, "/");
        if (!can_create_beside(path)) reason = strerror(errno);
    }
    return !reason || refused(message, "%.150s can't be written into: %s", folder, reason);
}

bool output_make_folder(const char *folder, char *message) {
    char path[PATH_SIZE];
    struct stat s;
    bool ok = strlen(folder) < PATH_SIZE;
    errno = ok ? 0 : ENAMETOOLONG;
    if (ok) strcpy(path, folder);
    for (char *at = path; ok && *at;) {
        at += strspn(at, "/");
        at += strcspn(at, "/");
        char end = *at;
        *at = '\0';
        ok = stat(path, &s) == 0 || mkdir(path, 0777) == 0 || errno == EEXIST;
        *at = end;
    }
    return ok || refused(message, "%.150s could not be made: %s", folder, strerror(errno));
}

/* ---- writing a file as a whole or not at all ------------------------------------------------- */

enum { MOST_OPEN = 5 };

/* Temporary files that are being written, which must be removed if the program ends early. */
static struct {
    char target[PATH_SIZE], temporary[PATH_SIZE];
    volatile sig_atomic_t there;
} opened[MOST_OPEN];

/* the process that removes the temporary files; its forked children remove none */
static pid_t owner;

void output_discard_all(void) {
    if (getpid() != owner) return;
    for (int i = 0; i < MOST_OPEN; i++)
        if (opened[i].there) unlink(opened[i].temporary);
}

static void on_signal(int number) {
    output_discard_all();
    signal(number, SIG_DFL);
    raise(number);
}

/* Arranges that unfinished files are removed at exit, and at signals whose action is still the
 * default. */
static bool discard_at_the_end(void) {
    static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
    static bool done;
    struct sigaction old, action = { .sa_handler = on_signal };
    for (int i = 0; i < MOST_OPEN && owner != getpid(); i++) opened[i].there = 0;
    owner = getpid();
    if (done) return true;
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < 3; i++)
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            sigaction(numbers[i], &action, NULL);
    return done = atexit(output_discard_all) == 0;
}

static int free_place(void) {
    for (int i = 0; i < MOST_OPEN; i++)
        if (!opened[i].there) return i;
    errno = EMFILE;
    return -1;
}

/* Creates a new file beside the target, with the permissions of the file that it replaces. */
static int create_temporary(int place) {
    const char *target = opened[place].target, *slash = strrchr(target, '/');
    int before = slash ? (int)(slash + 1 - target) : 0, file = -1;
    char name[PATH_SIZE];
    struct stat old;
    bool replaces = stat(target, &old) == 0;
    for (int i = 0; i < 1000 && (i == 0 || (file < 0 && errno == EEXIST)); i++) {
        int n = snprintf(name, sizeof name, "%.*s%.200s.tmp-weft-%ld-%d", before, target,
                         target + before, (long)getpid(), i);
        if (n >= PATH_SIZE) {
            errno = ENAMETOOLONG;
            return -1;
        }
        RETRY(file, open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    }
    strcpy(opened[place].temporary, name);
    opened[place].there = file >= 0;
    if (file >= 0) /* shows other processes that the file is still being written */
        (void)!lockf(file, F_TLOCK, 0);
    if (file >= 0) wf_file_remove_left(target);
    if (file >= 0 && replaces) (void)!fchmod(file, old.st_mode & 07777);
    return file;
}

static void discard(int place) {
    if (opened[place].there) unlink(opened[place].temporary);
    opened[place].there = 0;
}

static bool fail_with(const char *path, char *message) {
    return refused(message, "%.150s could not be written: %s", path, strerror(errno));
}

bool output_open(output *o, const char *path, char *message) {
    *o = (output){ .stream = stdout, .path = path, .place = -1 };
    if (is_dash(path)) return true;
    *o = (output){ .path = path, .place = discard_at_the_end() ? free_place() : -1 };
    if (o->place < 0 || !output_target(path, opened[o->place].target))
        return fail_with(path, message);
    int file = create_temporary(o->place);
    o->stream = file >= 0 ? fdopen(file, "w") : NULL;
    if (o->stream) return true;
    int reason = errno;
    if (file >= 0) close(file);
    discard(o->place);
    errno = reason;
    return fail_with(path, message);
}

void output_flush(const char *path) {
    char folder[PATH_SIZE], name[PATH_SIZE];
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    if (n >= PATH_SIZE) return;
    memcpy(name, path, n);
    name[n] = '\0';
    output_folder(name, folder);
    int file, flushed;
    RETRY(file, open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (file < 0) return;
    RETRY(flushed, fsync(file));
    close(file);
}

void output_discard(output *o) {
    if (o->place < 0) return;
    fclose(o->stream);
    discard(o->place);
}

/* True if all bytes of the stream are on the disk. False: see errno, which is that of a failed
 * write before. */
static bool flush_whole(FILE *stream) {
    int flushed = -1;
    if (!ferror(stream) && fflush(stream) == 0) RETRY(flushed, fsync(fileno(stream)));
    return flushed == 0;
}

static bool close_file(output *o, char *message) {
    const char *target = opened[o->place].target;
    bool whole = flush_whole(o->stream);
    int reason = errno;
    bool closed = fclose(o->stream) == 0;
    if (whole && !closed) reason = errno;
    if (whole && closed && rename(opened[o->place].temporary, target) != 0) {
        whole = false;
        reason = errno;
    }
    if (!whole || !closed) {
        discard(o->place);
        errno = reason ? reason : EIO;
        return fail_with(o->path, message);
    }
    opened[o->place].there = 0;
    output_flush(target);
    return true;
}

bool output_close(output *o, char *message) {
    if (o->place >= 0) return close_file(o, message);
    bool written = fflush(o->stream) == 0 && !ferror(o->stream);
    check_reader(o->stream);
    return written || fail_with("stdout", message);
}

bool output_write(const char *path, const void *bytes, size_t n, char *message) {
    output o;
    if (!output_open(&o, path, message)) return false;
    fwrite(bytes, 1, n, o.stream);
    return output_close(&o, message);
}

/* ---- one run at a time ----------------------------------------------------------------------- */

/* True if the name no longer leads to this file, because another process removed it or created a
 * new one. */
static bool lost_name(int file, const char *path) {
    struct stat a, b;
    if (lstat(path, &b) != 0) return errno == ENOENT;
    return fstat(file, &a) == 0 && (a.st_dev != b.st_dev || a.st_ino != b.st_ino);
}

/* Opens and locks the file `path`. Between these two steps its previous owner may remove the file,
 * so the name is checked afterwards. If it leads to another file or to none, both steps are
 * repeated. -1: see errno. */
static int lock_file(const char *path) {
    int file, locked;
    struct stat s;
    for (;;) {
        RETRY(file, open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
        if (file < 0) return -1;
        RETRY(locked, flock(file, LOCK_EX | LOCK_NB));
        /* other errors mean that this file system has no locks; then the file stays unlocked */
        bool busy = locked != 0 && errno == EWOULDBLOCK;
        bool foreign = fstat(file, &s) == 0 && s.st_size > 0;
        if (!busy && !foreign && !lost_name(file, path)) return file;
        close(file);
        if (busy || foreign) {
            errno = busy ? EWOULDBLOCK : EEXIST;
            return -1;
        }
    }
}

bool output_lock(const char *path, char *message) {
    char target[PATH_SIZE];
    int place = discard_at_the_end() ? free_place() : -1;
    if (!output_writable(path, false, message)) return false;
    if (place < 0 || !output_target(path, target) || strlen(target) + sizeof ".lock" > PATH_SIZE)
        return fail_with(path, message);
    snprintf(opened[place].temporary, sizeof opened[place].temporary, "%.*s.lock", PATH_SIZE - 6,
             target);
    opened[place].there = lock_file(opened[place].temporary) >= 0;
    if (opened[place].there) return true;
    if (errno == EWOULDBLOCK)
        return refused(message,
                       "%.150s is being written by another run: wait for its end, or name "
                       "another file",
                       path);
    if (errno == EEXIST)
        return refused(message, "%.150s.lock is in the way: it is no lock of a run", path);
    return refused(message, "%.150s.lock could not be made: %s", path, strerror(errno));
}

/* The lock ends with the process, and leaves nothing in the folder. */
bool output_lock_folder(const char *folder, char *message) {
    int file, locked;
    RETRY(file, open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (file < 0) return refused(message, "%.150s can't be opened: %s", folder, strerror(errno));
    RETRY(locked, flock(file, LOCK_EX | LOCK_NB));
    if (locked == 0 || errno != EWOULDBLOCK) return true;
    close(file);
    return refused(message, "%.150s is being written by another run: wait for its end", folder);
}

/* ---- records that are appended --------------------------------------------------------------- */

int append_open(const char *path, bool keep) {
    int file, whence = keep ? O_RDWR | O_APPEND : O_WRONLY | O_TRUNC;
    RETRY(file, open(path, O_CREAT | O_CLOEXEC | whence, 0666));
    return file;
}

bool append_record(int file, const void *bytes, size_t n) {
    off_t before = lseek(file, 0, SEEK_END);
    if (write_whole(file, bytes, n)) return true;
    int reason = errno;
    if (before >= 0 && lseek(file, 0, SEEK_CUR) > before) (void)!ftruncate(file, before);
    errno = reason;
    return false;
}
