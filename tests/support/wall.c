/* tests/support/wall.c - see wall.h. */
#include "wall.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

enum { MOST_PIECES = 4096, MOST_BYTES = 1 << 18 };

/* A hash of each piece that the work has reported. */
typedef struct story {
    int n;
    uint64_t piece[MOST_PIECES];
} story;

static story said, wanted;

void wall_say(const void *bytes, size_t n) {
    uint64_t hash = 0xcbf29ce484222325u ^ n;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
    must(said.n < MOST_PIECES, "too much is said");
    said.piece[said.n++] = hash;
}

int wall_mark(void) {
    return said.n;
}

void wall_take_back(int mark) {
    if (mark < said.n) said.n = mark;
}

bool wall_say_leaf(const wf_tensor *leaf) {
    static char copy[MOST_BYTES];
    must(wf_bytes(leaf) <= sizeof copy, "'%s' is too large to be said", leaf->name);
    if (!wf_read(leaf, copy, wf_bytes(leaf))) return false;
    wall_say(copy, wf_bytes(leaf));
    return true;
}

void wall_say_file(const char *path) {
    static char bytes[MOST_BYTES];
    int fd = open(path, O_RDONLY);
    ssize_t n = fd >= 0 ? read(fd, bytes, sizeof bytes) : -1;
    must(n >= 0 && n < MOST_BYTES, "%s cannot be said", path);
    close(fd);
    wall_say(bytes, (size_t)n);
}

static void assert_same_story(const wall_work *w, long at, bool whole) {
    ck_assert_msg(!whole || said.n == wanted.n, "%s, request %ld: true, and %d of %d pieces said",
                  w->name, at, said.n, wanted.n);
    for (int i = 0; i < said.n; i++)
        ck_assert_msg(i < wanted.n && said.piece[i] == wanted.piece[i],
                      "%s, request %ld: piece %d is another than without a failure", w->name, at,
                      i);
}

/* Runs the work once, with request `at` failing. Returns the number of its requests. */
static long run_once(const wall_work *w, long at, bool persistent, bool *ok) {
    long left;
    said.n = 0;
    faults_begin(at, persistent);
    *ok = w->run();
    long asked = faults_end(&left);
    ck_assert_msg(left == 0, "%s, request %ld: %ld blocks leak", w->name, at, left);
    return asked;
}

long wall_fail_each(const wall_work *w, bool persistent) {
    bool ok;
    run_once(w, LONG_MAX, persistent, &ok);
    ck_assert_msg(ok, "%s fails with all the memory there is", w->name);
    wanted = said;
    for (long at = 1;; at++) {
        long asked = run_once(w, at, persistent, &ok);
        assert_same_story(w, at, ok);
        if (asked < at) {
            ck_assert_msg(ok && at > 1, "%s: %ld requests", w->name, asked);
            return asked;
        }
        ck_assert_msg(!ok || w->may_do_without, "%s, request %ld: nobody noticed", w->name, at);
        tally_note(TALLY_FAULTS, 0);
    }
}
