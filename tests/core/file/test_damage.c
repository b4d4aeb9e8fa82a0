/* tests/core/file/test_damage.c - a damaged file that weft wrote: whichever byte is changed, to
 * whichever value, opening the file fails or reads the same contents as before. A file of another
 * kind is recognised by its first bytes, however long it is.
 *
 * Malformed files by hand, truncations and random damage: test_file.c. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include "core/file_internal.h"
#include "tests/suites.h"
#include "tests/support/support.h"

#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "core/base/random.h"
#include "core/file.h"

TESTS(damage)

/* ---- a file ------------------------------------------------------------------------------ */

static char path[] = "/tmp/weft-damage-XXXXXX";
static unsigned char *bytes; /* of the file */
static size_t size;          /* bytes of the file */
static size_t header;        /* bytes of its length field and its header together */
static wf_file *whole;

static const float six[6] = { 1, -2, 3.5f, 0, INFINITY, 6 };

/* Writes a small file, with or without metadata. */
static void write_small(bool metadata) {
    const wf_entry entries[] = {
        { "w", "F32", 2, { 2, 3 }, six, 24 },
        { "v", "F64", 1, { 1 }, six, 8 },
        { "empty", "F64", 2, { 3, 0 }, NULL, 0 },
        { "mask", "BOOL", 1, { 3 }, "\1\0\1", 3 },
    };
    const wf_meta meta[] = { { "format", "pt" },
                             { "weft.kind", "model" },
                             { "words", "a \"quoted\\\" \n\x01 \xc3\xa4" } };
    char message[256] = "";
    ck_assert_msg(wf_file_save(path, entries, 4, meta, metadata ? 3 : 0, message), "%s", message);
}

static void read_file(void) {
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    bytes = malloc(1 << 16);
    size = fread(bytes, 1, 1 << 16, file);
    fclose(file);
    header = 8 + (bytes[0] | (size_t)bytes[1] << 8);
    whole = wf_file_parse(bytes, size);
    ck_assert_msg(wf_file_checked(whole), "%s", wf_file_error(whole));
}

static void open_file(void) {
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

static void close_file(void) {
    wf_file_free(whole);
    free(bytes);
    unlink(path);
    strcpy(path + strlen(path) - 6, "XXXXXX");
}

static bool same_entries(const wf_file *a, const wf_file *b) {
    if (wf_file_count(a) != wf_file_count(b)) return false;
    for (int i = 0; i < wf_file_count(a); i++) {
        const wf_entry *x = wf_file_at(a, i), *y = wf_file_at(b, i);
        if (strcmp(x->name, y->name) || strcmp(x->dtype, y->dtype) || x->ndim != y->ndim ||
            x->bytes != y->bytes || memcmp(x->shape, y->shape, sizeof x->shape) ||
            memcmp(x->data, y->data, x->bytes))
            return false;
    }
    return true;
}

static bool same_meta(const wf_file *a, const wf_file *b) {
    if (wf_file_meta_count(a) != wf_file_meta_count(b)) return false;
    for (int i = 0; i < wf_file_meta_count(a); i++) {
        wf_meta x = wf_file_meta_at(a, i), y = wf_file_meta_at(b, i);
        if (strcmp(x.key, y.key) || strcmp(x.value, y.value)) return false;
    }
    return true;
}

/* Parses the changed bytes. Returns true if that is an error, or gives the contents of before. */
static bool harmless(void) {
    wf_file *f = wf_file_parse(bytes, size);
    bool ok = !wf_file_ok(f) || (same_entries(f, whole) && same_meta(f, whole));
    wf_file_free(f);
    return ok;
}

/* ---- changes ----------------------------------------------------------------------------- */

SETUP(open_file, close_file)

TEST_ROWS(every_changed_byte_is_an_error_or_nothing, 2) {
    write_small(_i), read_file();
    for (size_t at = 0; at < size; at++) {
        unsigned char was = bytes[at];
        for (int value = 0; value < 256; value++) {
            bytes[at] = (unsigned char)value;
            ck_assert_msg(harmless(), "byte %zu, %d instead of %d", at, value, was);
        }
        bytes[at] = was;
    }
}

/* Changes two neighbouring bytes: each pair of the first 64, where the checksum's key is, to all
 * pairs of characters that mean something in JSON; each later pair to 200 random ones. */
TEST_ROWS(changed_neighbours_in_the_header_are_an_error_or_nothing, 2) {
    static const char syntax[] = "\"\\{}[]:, \t\n\r/bfnrtu0189aefwx.-+\x7f\x80\xff";
    enum { SYNTAX = sizeof syntax, BEGINNING = 64, DRAWS = 200 };
    write_small(_i), read_file();
    for (size_t at = 0; at + 1 < header; at++) {
        unsigned char was[2] = { bytes[at], bytes[at + 1] };
        int tries = at < BEGINNING ? SYNTAX * SYNTAX : DRAWS;
        for (int k = 0; k < tries; k++) {
            uint32_t drawn = wf_philox4x32(3, at, (uint64_t)k).v[0];
            bytes[at] = (unsigned char)(at < BEGINNING ? syntax[k / SYNTAX] : (int)(drawn & 255));
            bytes[at + 1] =
                (unsigned char)(at < BEGINNING ? syntax[k % SYNTAX] : (int)(drawn >> 8 & 255));
            ck_assert_msg(harmless(), "bytes %zu and %zu, %d and %d instead of %d and %d", at,
                          at + 1, bytes[at], bytes[at + 1], was[0], was[1]);
        }
        bytes[at] = was[0], bytes[at + 1] = was[1];
    }
}

/* A bug of the past: "w\ft.checksum" (a form feed in place of "ef") is another key. */
TEST(an_escape_in_the_key_of_the_checksum_is_seen) {
    write_small(true), read_file();
    unsigned char *key = (unsigned char *)strstr((char *)bytes + 8, "weft.checksum");
    ck_assert_ptr_nonnull(key);
    key[1] = '\\'; /* and nothing checks the data */
    bytes[size - 1] ^= 1;
    wf_file *f = wf_file_parse(bytes, size);
    ck_assert(!wf_file_ok(f));
    assert_contains(wf_file_error(f), "damaged: header byte 19: 'e' expected");
    wf_file_free(f);
}

/* ---- length ------------------------------------------------------------------------------ */

/* A file of 3 GB without a valid header is refused without reading the rest. */
TEST(a_long_file_is_judged_by_its_first_bytes) {
    static const char *const starts[] = { "\0\0\0\0\0\0\0\0", "# ELFELF", "\x01\0\0\0\0\0\0\0[" };
    static const char *const says[] = { "'{' expected", "not safetensors", "'{' expected" };
    int fd = open(path, O_WRONLY);
    ck_assert_int_eq(ftruncate(fd, (off_t)3 << 30), 0);
    for (int i = 0; i < COUNT_OF(starts); i++) {
        ck_assert_int_eq(pwrite(fd, starts[i], 9, 0), 9);
        clock_t began = clock();
        wf_file *f = wf_file_open(path);
        double seconds = (double)(clock() - began) / CLOCKS_PER_SEC;
        assert_contains(wf_file_error(f), says[i]);
        ck_assert_msg(seconds < 0.25, "%.2f s of processor time", seconds);
        wf_file_free(f);
    }
    close(fd);
}
