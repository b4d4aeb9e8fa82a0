/* tools/data/text_input.c - opens text, plain or compressed by gzip, and reads texts
 * as a whole. See text_input.h. */
#include "text_input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file/lfs.h"
#include "core/op.h"
#include "tools/cli/retry.h"

static bool is_gzip(const char *first, ssize_t n) {
    return n >= 2 && memcmp(first, "\x1f\x8b", 2) == 0;
}

/* Keeps the reason of a failure. Returns -1, with errno for callers that look at nothing else. */
static WF_PRINTF(2, 3) ssize_t failed(text_input *in, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(in->failure, sizeof in->failure, format, arguments);
    va_end(arguments);
    errno = EIO;
    return -1;
}

/* ---- first bytes ----------------------------------------------------------------------------- */

/* The encoding of a text that is not UTF-8, judged by its first n bytes: a byte order mark of
 * UTF-16, or four letters of Latin script with a zero byte beside each. NULL: not known. */
static const char *other_encoding(const char *text, int n) {
    enum { LETTERS = 8 };
    bool low = n >= LETTERS, high = n >= LETTERS;
    if (n >= 2 && (memcmp(text, "\xFF\xFE", 2) == 0 || memcmp(text, "\xFE\xFF", 2) == 0))
        return "UTF-16";
    for (int i = 0; i < n && i < LETTERS; i++) {
        low = low && (text[i] != 0) == (i % 2 == 0);
        high = high && (text[i] != 0) == (i % 2 == 1);
    }
    if (low) return "UTF-16LE";
    return high ? "UTF-16BE" : NULL;
}

/* True if it begins as a file of safetensors: the length of its description, and then a brace. */
static bool is_model(const char *head, int n) {
    static const char upper[4] = { 0 };
    return n >= 9 && head[8] == '{' && memcmp(head + 4, upper, sizeof upper) == 0;
}

/* First bytes of files that a program unpacks, and how. */
static const struct packed_kind {
    int at, n;
    const char *bytes, *name, *command;
    bool archive; /* of several files */
} packed_kinds[] = { { 4, 6, "1AY&SY", "bzip2", "bunzip2 -c", false },
                     { 0, 6, "\xFD\x37zXZ", "xz", "xz -dc", false },
                     { 0, 4, "\x28\xB5\x2F\xFD", "zstd", "zstd -dc", false },
                     { 0, 4, "PK\3\4", "zip", "unzip -p", true },
                     { 0, 6, "7z\xBC\xAF\x27\x1C", "7z", "7z x -so", true },
                     { 0, 6, "Rar!\x1A\7", "rar", "unrar p -inul", true } };

static void judge_packed(text_input *in) {
    for (size_t i = 0; i < sizeof packed_kinds / sizeof *packed_kinds; i++) {
        const struct packed_kind *k = packed_kinds + i;
        if (in->n_head < k->at + k->n || memcmp(in->head + k->at, k->bytes, (size_t)k->n) != 0)
            continue;
        if (!k->archive)
            failed(in, "it is compressed by %s, and only gzip is read: %s FILE > NEW unpacks it",
                   k->name, k->command);
        else if (!in->takes_archives)
            failed(in, "it does not look like a text: it is a %s archive; %s FILE > NEW unpacks it",
                   k->name, k->command);
    }
}

/* Sets the failure of a text whose encoding no program reads, and of a file that is no text. */
static void judge_head(text_input *in) {
    const char *name = other_encoding(in->head, in->n_head);
    judge_packed(in);
    if (is_model(in->head, in->n_head))
        failed(in, "it is a model, and a text is wanted here: name a file of lines");
    if (wf_lfs_pointer(in->head, (size_t)in->n_head)) failed(in, "%s", WF_LFS_SENTENCE);
    if (name)
        failed(in, "it is %s, not UTF-8: iconv -f %s -t UTF-8 FILE > NEW converts it", name, name);
}

/* Keeps the first bytes of the text as they are read, and sets the failure if they are those of
 * another kind of file. */
static void see_text(text_input *in, const char *bytes, ssize_t n) {
    if (in->n_head == TEXT_HEAD) return;
    for (ssize_t i = 0; i < n && in->n_head < TEXT_HEAD; i++) in->head[in->n_head++] = bytes[i];
    judge_head(in);
}

/* ---- bytes as they stand --------------------------------------------------------------------- */

/* Looks at the first bytes. Those of a pipe cannot be read twice, so they are stored in `first`. */
static bool look(text_input *in) {
    while (in->n_first < 2) {
        ssize_t got;
        RETRY(got, read(in->file, in->first + in->n_first, (size_t)(2 - in->n_first)));
        if (got < 0) return false;
        if (got == 0) break;
        in->n_first += (int)got;
        if (in->first[0] != '\x1f') break;
    }
    in->packed = is_gzip(in->first, in->n_first);
    in->looked = true;
    return true;
}

static ssize_t read_raw(text_input *in, char *bytes, size_t n) {
    size_t waiting = (size_t)in->n_first;
    ssize_t got;
    if (!waiting) {
        RETRY(got, read(in->file, bytes, n));
        return got;
    }
    if (n > waiting) n = waiting;
    memcpy(bytes, in->first, n);
    memmove(in->first, in->first + n, waiting - n);
    in->n_first -= (int)n;
    return (ssize_t)n;
}

/* ---- gzip ------------------------------------------------------------------------------------ */

#ifdef HAVE_ZLIB
#include <zlib.h>

enum { GZIP_FORMAT = 16, MOST = 1 << 30 };

typedef struct unpacker {
    z_stream z;
    bool inside;  /* inside a gzip member, of which a file may have several */
    bool pending; /* data that were read may still give more output */
    char raw[1 << 16];
} unpacker;

static bool unpacker_new(text_input *in) {
    if (in->unpacker) return true;
    unpacker *u = calloc(1, sizeof *u);
    if (u && inflateInit2(&u->z, GZIP_FORMAT + MAX_WBITS) == Z_OK) {
        in->unpacker = u;
        return true;
    }
    free(u);
    failed(in, "out of memory");
    return false;
}

static void unpacker_free(unpacker *u) {
    if (u) inflateEnd(&u->z);
    free(u);
}

static bool unpacker_ready(const unpacker *u) {
    return u && (u->pending || u->z.avail_in);
}

/* Reads more compressed bytes. 1: there are some; 0: the file ends at the end of a gzip member; -1:
 * it fails. */
static int refill(text_input *in) {
    unpacker *u = in->unpacker;
    ssize_t got = read_raw(in, u->raw, sizeof u->raw);
    if (got < 0) return -1;
    if (got == 0 && u->inside)
        return (int)failed(in, "it is a gzip file that ends too early: a part is missing");
    u->z.next_in = (Bytef *)u->raw;
    u->z.avail_in = (uInt)got;
    return got > 0;
}

static bool inflate_some(text_input *in) {
    unpacker *u = in->unpacker;
    u->inside = true;
    int code = inflate(&u->z, Z_NO_FLUSH);
    u->pending = code == Z_OK && u->z.avail_out == 0;
    if (code == Z_OK || code == Z_BUF_ERROR) return true;
    u->inside = false;
    if (code == Z_STREAM_END) return inflateReset(&u->z) == Z_OK;
    if (code == Z_MEM_ERROR)
        failed(in, "out of memory");
    else
        failed(in, "it is a damaged gzip file: %.40s",
               u->z.msg ? u->z.msg : "a dictionary is missing");
    return false;
}

static ssize_t unpack(text_input *in, char *bytes, size_t n) {
    if (!unpacker_new(in)) return -1;
    unpacker *u = in->unpacker;
    uInt room = n < MOST ? (uInt)n : MOST;
    u->z.next_out = (Bytef *)bytes;
    u->z.avail_out = room;
    while (u->z.avail_out == room && room) {
        int more = u->pending || u->z.avail_in ? 1 : refill(in);
        if (more < 1) return more;
        if (!inflate_some(in)) return -1;
    }
    return (ssize_t)(room - u->z.avail_out);
}
#else
static void unpacker_free(struct unpacker *u) {
    (void)u;
}

static bool unpacker_ready(const struct unpacker *u) {
    (void)u;
    return false;
}

static ssize_t unpack(text_input *in, char *bytes, size_t n) {
    (void)bytes;
    (void)n;
    return failed(in,
                  "it is a gzip file, and this build has no zlib: unpack it, or install zlib1g-dev "
                  "(zlib-devel) and run meson setup --reconfigure build && ninja -C build");
}
#endif

/* ---- either ---------------------------------------------------------------------------------- */

/* The first bytes of an ordinary file are read here, to recognise gzip, UTF-16 and models. */
static bool open_input(text_input *in, const char *path, bool takes_archives) {
    struct stat s;
    *in = (text_input){ .file = STDIN_FILENO, .takes_archives = takes_archives };
    if (path && strcmp(path, "-") != 0) RETRY(in->file, open(path, O_RDONLY | O_CLOEXEC));
    if (in->file < 0) return false;
    if (fstat(in->file, &s) != 0 || !S_ISREG(s.st_mode)) return true;
    char first[TEXT_HEAD];
    off_t at = lseek(in->file, 0, SEEK_CUR);
    ssize_t got = 0, more = 1;
    while (more > 0 && got < TEXT_HEAD) {
        RETRY(more, pread(in->file, first + got, (size_t)(TEXT_HEAD - got), at + got));
        if (more > 0) got += more;
    }
    in->packed = is_gzip(first, got);
    in->looked = true;
    if (!in->packed) see_text(in, first, got);
    return true;
}

bool text_input_open(text_input *in, const char *path) {
    return open_input(in, path, false);
}

void text_input_close(text_input *in) {
    if (in->file > STDIN_FILENO) close(in->file);
    unpacker_free(in->unpacker);
    *in = (text_input){ .file = -1 };
}

ssize_t text_input_read(text_input *in, char *bytes, size_t n) {
    if (!in->looked && !look(in)) return -1;
    ssize_t got = -1;
    if (!*in->failure) got = in->packed ? unpack(in, bytes, n) : read_raw(in, bytes, n);
    if (got > 0) see_text(in, bytes, got);
    if (!*in->failure) return got;
    errno = EIO;
    return -1;
}

const char *text_input_failure(const text_input *in) {
    return *in->failure ? in->failure : strerror(errno);
}

const char *text_input_remedy(const text_input *in, const char *message) {
    bool zero = strstr(message, "zero byte") != NULL, other = strstr(message, "not UTF-8") != NULL;
    if (zero || (other && in && memchr(in->head, '\0', (size_t)in->n_head)))
        return "; it does not look like a text";
    return other ? "; iconv -f LATIN1 -t UTF-8 converts Latin-1" : "";
}

bool text_input_ready(const text_input *in) {
    struct pollfd p = { .fd = in->file, .events = POLLIN };
    return in->n_first > 0 || unpacker_ready(in->unpacker) || poll(&p, 1, 0) != 0;
}

/* ---- a file that is read several times ------------------------------------------------------- */

static bool open_spool(spool *s, const char *path, bool takes_archives) {
    *s = (spool){ 0 };
    if (!open_input(&s->in, path, takes_archives)) return false;
    store_new(&s->kept, 0);
    if (fstat(s->in.file, &s->first) == 0) {
        s->keeps = s->in.packed || !S_ISREG(s->first.st_mode);
        return true;
    }
    int reason = errno;
    spool_close(s);
    errno = reason;
    return false;
}

bool spool_open(spool *s, const char *path) {
    return open_spool(s, path, false);
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
    if (!open_spool(&s, path, true)) return fail_to_read(path, strerror(errno), message);
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
