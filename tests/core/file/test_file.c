/* tests/core/file/test_file.c - safetensors files: what is accepted, what is refused and how, and
 * what a save leaves behind.
 *
 * Malformed files are rows of file_cases.h. Other tests read back what weft saved, damage it, limit
 * the size of files, or kill a process while it saves. */
#define _XOPEN_SOURCE 700 /* mkdtemp, mkfifo */
#include "core/file_internal.h"
#include "tests/suites.h"
#include "tests/support/support.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/random.h"
#include "core/file.h"
#include "file_cases.h"

TESTS(file)

enum { MESSAGE = 256 };

/* ---- a folder for each test -------------------------------------------------------------- */

static char folder[64];

static void make_folder(void) {
    strcpy(folder, "/tmp/weft-files-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static const char *in_folder(const char *name) {
    static char path[4][512];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

/* Returns the number of files in the folder, and deletes them if `clear` is true. */
static int files_in_folder(bool clear) {
    int count = 0;
    DIR *dir = opendir(folder);
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        count++;
        if (clear) remove(in_folder(e->d_name));
    }
    closedir(dir);
    return count;
}

static void remove_folder(void) {
    files_in_folder(true);
    rmdir(folder);
}

/* ---- bytes ------------------------------------------------------------------------------- */

struct bytes {
    unsigned char *data;
    size_t size;
};

static struct bytes read_bytes(const char *path) {
    struct bytes b = { NULL, 0 };
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s is not there", path);
    fseek(file, 0, SEEK_END);
    b.size = (size_t)ftell(file);
    rewind(file);
    b.data = malloc(b.size + 1);
    ck_assert_uint_eq(fread(b.data, 1, b.size, file), b.size);
    fclose(file);
    return b;
}

static void write_bytes(const char *path, struct bytes b) {
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(b.data, 1, b.size, file), b.size);
    fclose(file);
}

/* Builds a file: its header, and `data` zero bytes after it. The length that the file declares for
 * its header is the true one plus `declared`. */
static struct bytes assemble(const char *header, size_t size, int64_t declared, size_t data) {
    struct bytes b = { calloc(1, 8 + size + data), 8 + size + data };
    uint64_t length = size + (uint64_t)declared;
    ck_assert_ptr_nonnull(b.data);
    for (int i = 0; i < 8; i++) b.data[i] = (unsigned char)(length >> 8 * i);
    memcpy(b.data + 8, header, size);
    return b;
}

/* ---- reading ----------------------------------------------------------------------------- */

SETUP(make_folder, remove_folder)

TEST_ROWS(malformed_file_is_refused, COUNT_OF(malformed)) {
    const struct malformed *row = &malformed[_i];
    struct bytes b = assemble(row->header, row->size, row->declared, row->data);
    wf_file *f = wf_file_parse(b.data, b.size);
    ck_assert_msg(!wf_file_ok(f), "row %d was accepted: %s", _i, row->header);
    assert_contains(wf_file_error(f), row->says);
    ck_assert_int_eq(wf_file_count(f), 0);
    wf_file_free(f);
    write_bytes(in_folder("m.safetensors"), b);
    f = wf_file_open(in_folder("m.safetensors"));
    assert_contains(wf_file_error(f), row->says);
    assert_contains(wf_file_error(f), "m.safetensors: ");
    wf_file_free(f);
    free(b.data);
}

TEST_ROWS(unusual_file_is_read, COUNT_OF(unusual)) {
    struct bytes b = assemble(unusual[_i].header, unusual[_i].size, 0, unusual[_i].data);
    wf_file *f = wf_file_parse(b.data, b.size);
    ck_assert_msg(wf_file_ok(f), "row %d: %s", _i, wf_file_error(f));
    ck_assert_int_eq(wf_file_count(f), unusual[_i].count);
    ck_assert(!wf_file_checked(f));
    for (int i = 0; i < wf_file_count(f); i++) {
        ck_assert_ptr_eq(wf_file_find(f, wf_file_at(f, i)->name), wf_file_at(f, i));
        ck_assert_int_eq(wf_file_place(f, wf_file_at(f, i)), i);
    }
    ck_assert_int_eq(wf_file_place(f, &(wf_entry){ .name = "w" }), -1);
    wf_file_free(f);
    free(b.data);
}

TEST(nesting_has_a_limit) {
    for (int depth = 127; depth <= 200000; depth = depth < 130 ? depth + 1 : depth * 10) {
        size_t size = (size_t)depth * 2 + 100;
        char *header = malloc(size);
        int n = snprintf(header, size,
                         "{\"w\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1],\"x\":");
        memset(header + n, '[', (size_t)depth), memset(header + n + depth, ']', (size_t)depth);
        memcpy(header + n + 2 * depth, "}}", 2);
        struct bytes b = assemble(header, (size_t)n + 2 * (size_t)depth + 2, 0, 1);
        wf_file *f = wf_file_parse(b.data, b.size);
        ck_assert_int_eq(wf_file_ok(f), depth <= 128);
        if (depth > 128) assert_contains(wf_file_error(f), "nested too deep");
        wf_file_free(f);
        free(b.data), free(header);
    }
}

TEST(short_files_and_strange_paths) {
    for (size_t size = 0; size < 8; size++) {
        wf_file *f = wf_file_parse("\0\0\0\0\0\0\0", size);
        assert_contains(wf_file_error(f), "too short for a safetensors file");
        wf_file_free(f);
    }
    ck_assert_int_eq(mkfifo(in_folder("fifo"), 0600), 0);
    const char *paths[] = { in_folder("none"), folder, in_folder("fifo"), "/dev/null", "", NULL };
    const char *says[] = {
        "none: cannot be opened: No such file", "it is a folder", "fifo: not a regular file",
        "/dev/null: not a regular file",        "No such file",   "NULL: cannot be opened"
    };
    for (int i = 0; i < COUNT_OF(paths); i++) {
        wf_file *f = wf_file_open(paths[i]);
        ck_assert(!wf_file_ok(f));
        assert_contains(wf_file_error(f), says[i]);
        wf_file_free(f);
    }
}

TEST(null_files_are_accepted) {
    wf_file *f = wf_file_parse(NULL, 99);
    ck_assert(!wf_file_ok(f) && !wf_file_ok(NULL) && !wf_file_checked(NULL));
    ck_assert(*wf_file_error(NULL) != 0);
    ck_assert_int_eq(wf_file_count(NULL) + wf_file_meta_count(NULL), 0);
    ck_assert_ptr_null(wf_file_at(NULL, 0));
    ck_assert_ptr_null(wf_file_at(f, 0));
    ck_assert_int_eq(wf_file_place(f, NULL), -1);
    ck_assert_ptr_null(wf_file_find(f, "w"));
    ck_assert_ptr_null(wf_file_find(NULL, "w"));
    ck_assert_ptr_null(wf_file_meta(f, "k"));
    ck_assert_ptr_null(wf_file_meta_at(f, -1).key);
    wf_file_free(f), wf_file_free(NULL);
    f = wf_file_parse("", SIZE_MAX); /* more than there can be */
    assert_contains(wf_file_error(f), "too short");
    wf_file_free(f);
    f = wf_file_parse("\x1e\0\0\0\0\0\0\0{\"__metadata__\":{\"k\":\"value\"}}", 38);
    ck_assert_msg(wf_file_ok(f), "%s", wf_file_error(f));
    ck_assert_ptr_null(wf_file_at(f, -1));
    ck_assert_ptr_null(wf_file_at(f, 0));
    ck_assert_ptr_null(wf_file_find(f, NULL));
    ck_assert_ptr_null(wf_file_meta(f, NULL));
    ck_assert_ptr_null(wf_file_meta_at(f, 1).key);
    ck_assert_str_eq(wf_file_meta_at(f, 0).value, "value");
    wf_file_free(f);
}

/* A control character in a name from a file must not reach the terminal, so messages show "?" for
 * it. */
TEST(messages_hold_no_control_characters) {
    struct bytes b = assemble(PART("{\"\\u001b[2Jw\":" T("F33", "[1]", "[0,4]") "}"), 0, 4);
    wf_file *f = wf_file_parse(b.data, b.size);
    assert_contains(wf_file_error(f), "'?[2Jw'");
    wf_file_free(f);
    free(b.data);
}

/* ---- round trips ------------------------------------------------------------------------- */

static const float six[6] = { 1, -2, 3.5f, 0, INFINITY, 6 };
static const int64_t two[2] = { -1, INT64_MAX };

/* Saves a small file with tensors of several types, and returns its bytes. */
static struct bytes save_small(const char *path) {
    const wf_entry entries[] = {
        { "w", "F32", 2, { 2, 3 }, six, 24 },
        { "ids", "I64", 1, { 2 }, two, 16 },
        { "empty", "F64", 2, { 3, 0 }, NULL, 0 },
        { "mask", "BOOL", 1, { 3 }, "\1\0\1", 3 },
    };
    const wf_meta meta[] = { { "weft.kind", "test" },
                             { "words", "a \"quoted\\\" \n\x01 \xc3\xa4" } };
    char message[MESSAGE] = "";
    ck_assert_msg(wf_file_save(path, entries, 4, meta, 2, message), "%s", message);
    return read_bytes(path);
}

static size_t header_size(struct bytes b) {
    return b.data[0] | (size_t)b.data[1] << 8;
}

TEST(what_was_saved_is_read) {
    struct bytes b = save_small(in_folder("a.safetensors"));
    wf_file *f = wf_file_open(in_folder("a.safetensors"));
    ck_assert_msg(wf_file_ok(f), "%s", wf_file_error(f));
    ck_assert(wf_file_checked(f));
    ck_assert_uint_eq((8 + header_size(b)) % 64, 0);
    static const char *const order[] = { "empty", "ids", "w",
                                         "mask" }; /* 8-byte types first, by name */
    ck_assert_int_eq(wf_file_count(f), 4);
    for (int i = 0; i < 4; i++) ck_assert_str_eq(wf_file_at(f, i)->name, order[i]);
    const wf_entry *w = wf_file_find(f, "w");
    ck_assert(w->ndim == 2 && w->shape[0] == 2 && w->shape[1] == 3 && w->bytes == 24);
    ck_assert_mem_eq(w->data, six, 24);
    ck_assert_uint_eq((uintptr_t)w->data % 8, 0);
    ck_assert_mem_eq(wf_file_find(f, "ids")->data, two, 16);
    ck_assert_uint_eq(wf_file_find(f, "empty")->bytes, 0);
    ck_assert_ptr_null(wf_file_find(f, "v"));
    ck_assert_int_eq(wf_file_meta_count(f), 3);
    ck_assert_str_eq(wf_file_meta(f, "words"), "a \"quoted\\\" \n\x01 \xc3\xa4");
    ck_assert_str_eq(wf_file_meta_at(f, 2).key, "words");
    ck_assert_ptr_null(wf_file_meta(f, "absent"));
    ck_assert_int_eq(files_in_folder(false), 1);
    wf_file_free(f);
    free(b.data);
}

TEST(every_type_and_odd_shapes_come_back) {
    static const struct {
        const char *name;
        int bits;
    } types[] = {
        { "BOOL", 8 }, { "F4", 4 },      { "F6_E2M3", 6 },     { "F6_E3M2", 6 },     { "U8", 8 },
        { "I8", 8 },   { "F8_E5M2", 8 }, { "F8_E4M3", 8 },     { "F8_E8M0", 8 },     { "I16", 16 },
        { "U16", 16 }, { "F16", 16 },    { "F8_E4M3FNUZ", 8 }, { "F8_E5M2FNUZ", 8 }, { "BF16", 16 },
        { "I32", 32 }, { "U32", 32 },    { "F32", 32 },        { "C64", 64 },        { "F64", 64 },
        { "I64", 64 }, { "U64", 64 },
    };
    static const wf_entry shapes[] = {
        { .ndim = 0 },
        { .ndim = 1, .shape = { 0 } },
        { .ndim = 3, .shape = { 2, 0, 5 } },
        { .ndim = 1, .shape = { 4 } },
        { .ndim = 3, .shape = { 1, 3, 4 } },
        { .ndim = 8, .shape = { 1, 2, 1, 2, 1, 1, 1, 3 } },
    };
    unsigned char data[128];
    for (int i = 0; i < 128; i++) data[i] = (unsigned char)(i * 37 + 1);
    wf_entry entries[COUNT_OF(types) * COUNT_OF(shapes)];
    char names[COUNT_OF(entries)][32], message[MESSAGE] = "";
    int n = 0;
    for (int i = 0; i < COUNT_OF(entries); i++) {
        wf_entry e = shapes[i % COUNT_OF(shapes)];
        int bits = types[i / COUNT_OF(shapes)].bits;
        for (int k = 0; k < e.ndim; k++) bits *= (int)e.shape[k];
        if (bits % 8 != 0) continue;
        e.dtype = types[i / COUNT_OF(shapes)].name, e.data = data, e.bytes = (size_t)bits / 8,
        e.name = names[n];
        snprintf(names[n], sizeof names[n], "%s.%d", e.dtype, i);
        entries[n++] = e;
    }
    ck_assert_int_eq(n, 22 * 6 - 3);
    ck_assert_msg(wf_file_save(in_folder("t"), entries, n, NULL, 0, message), "%s", message);
    wf_file *f = wf_file_open(in_folder("t"));
    ck_assert_msg(wf_file_ok(f), "%s", wf_file_error(f));
    ck_assert_int_eq(wf_file_count(f), n);
    for (int i = 0; i < n; i++) {
        const wf_entry *e = &entries[i], *r = wf_file_find(f, e->name);
        ck_assert_msg(r && strcmp(r->dtype, e->dtype) == 0 && r->ndim == e->ndim &&
                          r->bytes == e->bytes,
                      "%s", e->name);
        ck_assert_msg(memcmp(r->shape, e->shape, sizeof e->shape) == 0, "%s", e->name);
        ck_assert_msg(memcmp(r->data, e->data, e->bytes) == 0, "%s", e->name);
    }
    wf_file_free(f);
}

TEST(bytes_depend_on_the_arguments_alone) {
    wf_entry a = { "a", "F32", 1, { 6 }, six, 24 }, b = { "b", "F32", 0, { 0 }, six, 4 },
             c = { "c", "U8", 1, { 1 }, "x", 1 };
    wf_meta k = { "k", "1" }, l = { "l", "2" }, old = { "weft.checksum", "of another file" };
    struct bytes first = { NULL, 0 };
    for (int i = 0; i < 3; i++) {
        wf_entry entries[3][3] = { { a, b, c }, { c, b, a }, { b, a, c } };
        wf_meta meta[3][3] = { { k, l, old }, { l, k, old }, { old, l, k } };
        char message[MESSAGE];
        ck_assert(wf_file_save(in_folder(i ? "x" : "y"), entries[i], 3, meta[i], i == 1 ? 2 : 3,
                               message));
        struct bytes now = read_bytes(in_folder(i ? "x" : "y"));
        if (i == 0) first = now;
        ck_assert_uint_eq(now.size, first.size);
        ck_assert_mem_eq(now.data, first.data, first.size);
        if (i > 0) free(now.data);
        char *made = wf_file_bytes(entries[i], 3, meta[i], i == 1 ? 2 : 3, &now.size, message);
        ck_assert(made && now.size == first.size);
        ck_assert_mem_eq(made, first.data, first.size);
        free(made);
    }
    free(first.data);
}

TEST(many_tensors_are_found) {
    enum { N = 3000 };
    static char names[N][16];
    static int32_t numbers[N];
    wf_entry *entries = calloc(N, sizeof *entries);
    char message[MESSAGE] = "";
    for (int i = 0; i < N; i++) {
        snprintf(names[i], sizeof names[i], "t%d", i * 7919 % N);
        numbers[i] = i;
        entries[i] = (wf_entry){ names[i], "I32", 0, { 0 }, &numbers[i], 4 };
    }
    ck_assert_msg(wf_file_save(in_folder("many"), entries, N, NULL, 0, message), "%s", message);
    wf_file *f = wf_file_open(in_folder("many"));
    ck_assert_int_eq(wf_file_count(f), N);
    for (int i = 0; i < N; i++) ck_assert_mem_eq(wf_file_find(f, names[i])->data, &numbers[i], 4);
    wf_file_free(f);
    free(entries);
}

/* ---- damage ------------------------------------------------------------------------------ */

TEST(every_truncation_is_an_error) {
    struct bytes b = save_small(in_folder("a"));
    for (size_t size = 0; size <= b.size + 1; size++) {
        /* A block of its own, so that the address sanitizer reports a read more than one byte
         * behind the data. */
        unsigned char *copy = calloc(1, size + 1);
        memcpy(copy, b.data, size < b.size ? size : b.size);
        wf_file *f = wf_file_parse(copy, size);
        ck_assert_msg(wf_file_ok(f) == (size == b.size), "%zu of %zu bytes", size, b.size);
        wf_file_free(f);
        free(copy);
    }
    free(b.data);
}

static bool same_files(const wf_file *a, const wf_file *b) {
    if (wf_file_count(a) != wf_file_count(b) || wf_file_meta_count(a) != wf_file_meta_count(b))
        return false;
    for (int i = 0; i < wf_file_count(a); i++) {
        const wf_entry *x = wf_file_at(a, i), *y = wf_file_at(b, i);
        if (strcmp(x->name, y->name) != 0 || strcmp(x->dtype, y->dtype) != 0 || x->ndim != y->ndim)
            return false;
        if (memcmp(x->shape, y->shape, sizeof x->shape) != 0 ||
            memcmp(x->data, y->data, x->bytes) != 0)
            return false;
    }
    for (int i = 0; i < wf_file_meta_count(a); i++) {
        wf_meta x = wf_file_meta_at(a, i), y = wf_file_meta_at(b, i);
        if (strcmp(x.key, y.key) != 0 || strcmp(x.value, y.value) != 0) return false;
    }
    return true;
}

TEST(every_flipped_bit_is_an_error) {
    struct bytes b = save_small(in_folder("a"));
    for (size_t bit = 0; bit < 8 * b.size; bit++) {
        b.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
        wf_file *f = wf_file_parse(b.data, b.size);
        ck_assert_msg(!wf_file_ok(f), "bit %zu of byte %zu", bit % 8, bit / 8);
        wf_file_free(f);
        b.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    free(b.data);
}

/* A damaged file may be read or refused. It may not crash or leak, nor pass the checksum with other
 * contents. */
TEST(random_damage_does_no_harm) {
    struct bytes b = save_small(in_folder("a"));
    unsigned char *copy = malloc(2 * b.size);
    wf_file *whole = wf_file_parse(b.data, b.size);
    static const char tokens[] = "{}[]\",:\\0123456789abcdefu-+.eEntf \x80\xc3\xff";
    for (uint64_t i = 0; i < 20000; i++) {
        size_t size = b.size;
        memcpy(copy, b.data, size);
        for (uint64_t k = 0, edits = 1 + wf_philox4x32(1, i, 99).v[0] % 4; k < edits; k++) {
            wf_philox r = wf_philox4x32(1, i, k);
            size_t at = r.v[0] % size, length = r.v[1] % 16;
            if (r.v[2] % 4 == 0 && at + length < size) {
                size -= length;
                memmove(copy + at, copy + at + length, size - at);
            } else if (r.v[2] % 4 == 1)
                copy[at] = (unsigned char)r.v[3];
            else
                copy[at] = (unsigned char)tokens[r.v[3] % (sizeof tokens - 1)];
        }
        if (i % 2) memcpy(copy, &(uint64_t){ header_size(b) - (b.size - size) }, 8);
        wf_file *f = wf_file_parse(copy, size);
        ck_assert(!wf_file_checked(f) || !wf_file_ok(f) || same_files(f, whole));
        wf_file_free(f);
    }
    wf_file_free(whole);
    free(copy), free(b.data);
}

/* ---- what is not written ----------------------------------------------------------------- */

TEST(bad_entries_are_refused) {
    static const struct {
        int n;
        wf_entry e[2];
        int n_meta;
        wf_meta meta[2];
        const char *says;
    } rows[] = {
        { 1,
          { { "__metadata__", "F32", 0, { 0 }, six, 4 } },
          0,
          { { 0 } },
          "__metadata__ occurs twice" },
        { 1, { { NULL, "F32", 0, { 0 }, six, 4 } }, 0, { { 0 } }, "no name, dtype or data" },
        { 1, { { "w\xff", "F32", 0, { 0 }, six, 4 } }, 0, { { 0 } }, "not UTF-8" },
        { 1,
          { { "w", NULL, 0, { 0 }, six, 4 } },
          0,
          { { 0 } },
          "tensor 'w': no name, dtype or data" },
        { 1,
          { { "w", "F31", 0, { 0 }, six, 4 } },
          0,
          { { 0 } },
          "tensor 'w': unknown dtype 'F31'" },
        { 1, { { "w", "F32", 9, { 1 }, six, 4 } }, 0, { { 0 } }, "9 axes" },
        { 1, { { "w", "F32", -1, { 1 }, six, 4 } }, 0, { { 0 } }, "-1 axes" },
        { 1, { { "w", "F32", 1, { -1 }, six, 4 } }, 0, { { 0 } }, "an integer, not negative" },
        { 1, { { "w", "F32", 1, { INT64_MAX }, six, 4 } }, 0, { { 0 } }, "too large" },
        { 1, { { "w", "F4", 1, { 3 }, six, 2 } }, 0, { { 0 } }, "not whole bytes" },
        { 1,
          { { "w", "F32", 1, { 2 }, six, 4 } },
          0,
          { { 0 } },
          "4 bytes for shape [2] of F32, 8 expected" },
        { 1, { { "w", "F32", 1, { 2 }, NULL, 8 } }, 0, { { 0 } }, "no name, dtype or data" },
        { 2,
          { { "w", "F32", 0, { 0 }, six, 4 }, { "w", "F64", 1, { 1 }, six, 8 } },
          0,
          { { 0 } },
          "tensor 'w' occurs twice" },
        { 0, { { 0 } }, 1, { { NULL, "v" } }, "metadata 0 is NULL" },
        { 0, { { 0 } }, 1, { { "k", NULL } }, "metadata 0 is NULL" },
        { 0, { { 0 } }, 1, { { "k", "\xc3" } }, "not UTF-8" },
        { 0, { { 0 } }, 2, { { "k", "1" }, { "k", "2" } }, "metadata key 'k' occurs twice" },
    };
    for (int i = 0; i < COUNT_OF(rows); i++) {
        char message[MESSAGE] = "";
        ck_assert(!wf_file_save(in_folder("no"), rows[i].e, rows[i].n, rows[i].meta, rows[i].n_meta,
                                message));
        assert_contains(message, rows[i].says);
        ck_assert(!wf_file_save(in_folder("no"), rows[i].e, rows[i].n, rows[i].meta, rows[i].n_meta,
                                NULL));
        ck_assert_int_eq(files_in_folder(false), 0);
    }
    char message[MESSAGE] = "";
    ck_assert(!wf_file_save(NULL, NULL, 0, NULL, 0, message) && *message);
    const struct {
        const wf_entry *e;
        int n;
        const wf_meta *meta;
        int n_meta;
    } lists[] = { { NULL, 1, NULL, 0 },
                  { rows[1].e, -1, NULL, 0 },
                  { NULL, 0, rows[0].meta, -1 },
                  { NULL, 0, NULL, 1 } };
    for (int i = 0; i < COUNT_OF(lists); i++) {
        ck_assert(!wf_file_save(in_folder("no"), lists[i].e, lists[i].n, lists[i].meta,
                                lists[i].n_meta, message));
        assert_contains(message, "no entries");
    }
}

/* Metadata of 100 MB, such as a huge vocabulary, would make a header larger than readers accept. */
TEST(what_could_not_be_read_is_not_written) {
    enum { MUCH = 100000000 };
    char message[MESSAGE] = "", *much = malloc(MUCH + 1);
    ck_assert_ptr_nonnull(much);
    memset(much, 'x', MUCH), much[MUCH] = '\0';
    ck_assert(!wf_file_save(in_folder("no"), NULL, 0, &(wf_meta){ "words", much }, 1, message));
    assert_contains(message, "no: the header is too large");
    ck_assert_int_eq(files_in_folder(false), 0);
    free(much);
}

static bool save_number(const char *path, float value, int n, char *message) {
    static _Thread_local float all[1 << 16];
    for (int i = 0; i < n; i++) all[i] = value;
    return wf_file_save(path, &(wf_entry){ "w", "F32", 1, { n }, all, (size_t)n * 4 }, 1, NULL, 0,
                        message);
}

/* Returns the first element, which all others equal; NaN if the file is not whole. */
static float saved_number(const char *path) {
    wf_file *f = wf_file_open(path);
    const wf_entry *w = wf_file_find(f, "w");
    float value = NAN;
    if (w && wf_file_checked(f)) memcpy(&value, w->data, sizeof value);
    wf_file_free(f);
    return value;
}

TEST(impossible_targets_are_refused) {
    char message[MESSAGE];
    ck_assert_int_eq(mkdir(in_folder("sub"), 0700), 0);
    ck_assert_int_eq(mkfifo(in_folder("fifo"), 0600), 0);
    ck_assert_int_eq(symlink("/dev/full", in_folder("link")), 0);
    ck_assert_int_eq(symlink("nowhere", in_folder("broken")), 0);
    const char *paths[] = { in_folder("sub"), in_folder("none/w"),    "/dev/full",
                            "/proc/w",        in_folder("sub/../w/"), "" };
    const char *says[] = { "sub: is a folder, not a regular file: not replaced",
                           "none/w: the folder cannot be opened: No such file",
                           "/dev/full: is a device, a pipe or a broken link, not a regular file",
                           "/proc/w: cannot be created",
                           "the folder cannot be opened: No such file",
                           "is a folder, not a file" };
    for (int i = 0; i < COUNT_OF(paths); i++) {
        if (i < 2) paths[i] = in_folder(i ? "none/w" : "sub");
        ck_assert(!save_number(paths[i], 1, 2, message));
        assert_contains(message, says[i]);
    }
    ck_assert(!save_number(in_folder("fifo"), 1, 2, message));
    assert_contains(message, "not replaced");
    ck_assert(!save_number(in_folder("link"), 1, 2, message));
    assert_contains(message, "not replaced");
    ck_assert(!save_number(in_folder("broken"), 1, 2, message));
    assert_contains(message, "not replaced");
    ck_assert_int_eq(files_in_folder(false), 4);
    rmdir(in_folder("sub"));
}

TEST(links_long_names_and_modes_are_kept) {
    char message[MESSAGE], name[256];
    struct stat status;
    ck_assert(save_number(in_folder("real"), 1, 2, message));
    ck_assert_int_eq(chmod(in_folder("real"), 0640), 0);
    ck_assert_int_eq(symlink("real", in_folder("link")), 0);
    ck_assert(save_number(in_folder("link"), 2, 2, message));
    ck_assert_int_eq(lstat(in_folder("link"), &status), 0);
    ck_assert(S_ISLNK(status.st_mode));
    ck_assert_int_eq(lstat(in_folder("real"), &status), 0);
    ck_assert_int_eq(status.st_mode & 0777, 0640);
    ck_assert_float_eq(saved_number(in_folder("real")), 2);
    memset(name, 'n', 255), name[255] = 0;
    ck_assert_msg(save_number(in_folder(name), 3, 2, message), "%s", message);
    ck_assert_float_eq(saved_number(in_folder(name)), 3);
    ck_assert_int_eq(chdir(folder), 0);
    ck_assert_msg(save_number("here", 4, 2, message), "%s", message);
    ck_assert_float_eq(saved_number(in_folder("here")), 4);
    ck_assert_int_eq(files_in_folder(false), 4);
}

static void limit_files(rlim_t bytes) {
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){ bytes, RLIM_INFINITY });
}

TEST(full_disk_leaves_the_old_file) {
    char message[MESSAGE];
    enum { N = 1000 };
    const char *path = in_folder("w");
    ck_assert(save_number(path, 1, N, message));
    signal(SIGXFSZ, SIG_IGN);
    for (rlim_t limit = 0; limit < 4 * N; limit += 37) {
        limit_files(limit);
        bool ok = save_number(path, 2, N, message);
        limit_files(RLIM_INFINITY); /* Check writes a file too */
        ck_assert(!ok);
        assert_contains(message, "/w: ");
        assert_contains(message, "File too large");
        ck_assert_float_eq(saved_number(path), 1);
        ck_assert_int_eq(files_in_folder(false), 1);
    }
    ck_assert(save_number(path, 2, N, message));
    ck_assert_float_eq(saved_number(path), 2);
}

static void save_for_ever(const char *path, int n) {
    char message[MESSAGE];
    for (float v = 2; save_number(path, v, n, message); v++) continue;
    _exit(1);
}

/* Wherever the child is killed, the file is an old one or a new one. */
TEST(killed_while_saving_leaves_a_whole_file) {
    char message[MESSAGE], path[512];
    enum { N = 1 << 14, KILLS = 100 };
    int status, in_the_middle = 0;
    strcpy(path, in_folder("w"));
    for (uint64_t i = 0; i < KILLS; i++) {
        ck_assert_msg(save_number(path, 1, N, message), "%s", message);
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) save_for_ever(path, N);
        nanosleep(&(struct timespec){ .tv_nsec = wf_philox4x32(2, i, 0).v[0] % 8000000 }, NULL);
        kill(child, SIGKILL);
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert(WIFSIGNALED(status));
        ck_assert_msg(saved_number(path) >= 1, "after kill %d", (int)i);
        in_the_middle += files_in_folder(true) - 1;
    }
    ck_assert_int_gt(in_the_middle, 0);
}

static void *save_often(void *number) {
    char message[MESSAGE], path[512];
    snprintf(path, sizeof path, "%s/w", folder);
    for (int i = 0; i < 20; i++)
        if (!save_number(path, 7, 1, message) || !(saved_number(path) == 7)) return number;
    return NULL;
}

TEST(threads_may_save_to_one_path) {
    pthread_t threads[4];
    void *failed = NULL;
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, save_often, folder);
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        if (result) failed = result;
    }
    ck_assert_ptr_null(failed);
    ck_assert_int_eq(files_in_folder(false), 1);
}
