/* tests/core/file/test_torch_file.c - files of torch.save: read without Python, refused with the
 * name of what is not allowed, and damaged.
 *
 * The files of tests/data/torch_* are PyTorch's (record_torch_files.py); hostile ones are rows of
 * torch_cases.h, in both containers, and archives made here. */
#define _XOPEN_SOURCE 700
#include "core/file_internal.h"
#include "tests/suites.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <sys/resource.h>

#include "core/base/random.h"
#include "core/file.h"
#include "tests/support/commands.h"
#include "torch_cases.h"

TESTS(torch_file)

/* ---- bytes ------------------------------------------------------------------------------- */

typedef struct bytes {
    unsigned char *data;
    size_t size;
} bytes;

static void add(bytes *b, const void *data, size_t n) {
    b->data = realloc(b->data, b->size + n + 1);
    ck_assert_ptr_nonnull(b->data);
    if (n) memcpy(b->data + b->size, data, n);
    b->size += n;
}

static void add_number(bytes *b, uint64_t number, int n) {
    for (; n > 0; n--, number >>= 8) add(b, &(unsigned char){ (unsigned char)number }, 1);
}

static bytes read_recorded(const char *name) {
    char relative[64], path[512];
    snprintf(relative, sizeof relative, "tests/data/torch_%s", name);
    FILE *file = fopen(source_path(relative, path, sizeof path), "rb");
    ck_assert_msg(file != NULL, "%s", path);
    bytes b = { malloc(1 << 16), 0 };
    b.size = fread(b.data, 1, 1 << 16, file);
    fclose(file);
    return b;
}

static wf_file *parse(bytes b) {
    /* A block of exactly this size: the address sanitizer reports a read behind it. */
    void *exact = malloc(b.size ? b.size : 1);
    memcpy(exact, b.data, b.size);
    wf_file *f = wf_file_parse(exact, b.size);
    free(exact);
    return f;
}

static void must_say(bytes b, const char *says) {
    wf_file *f = parse(b);
    ck_assert_msg(!wf_file_ok(f), "accepted: %s", says);
    assert_contains(wf_file_error(f), says);
    ck_assert_int_eq(wf_file_count(f), 0);
    wf_file_free(f);
}

/* ---- what PyTorch wrote ------------------------------------------------------------------ */

static void assert_same_entry(const wf_entry *a, const wf_entry *b) {
    ck_assert_msg(a && b, "an entry is missing");
    ck_assert_str_eq(a->dtype, b->dtype);
    ck_assert_int_eq(a->ndim, b->ndim);
    ck_assert_msg(!memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape), "%s", a->name);
    ck_assert_uint_eq(a->bytes, b->bytes);
    ck_assert_msg(!memcmp(a->data, b->data, a->bytes), "%s", a->name);
}

static const char *const containers[] = { "types.bin", "types_old.bin" };

TEST_ROWS(every_type_is_read, 2) {
    bytes b = read_recorded(containers[_i]), same = read_recorded("types.safetensors");
    wf_file *f = parse(b), *expected = parse(same);
    ck_assert_msg(wf_file_ok(f), "%s", wf_file_error(f));
    ck_assert_int_eq(wf_file_count(f), wf_file_count(expected));
    ck_assert_int_eq(wf_file_meta_count(f), 0);
    ck_assert_int_eq(wf_file_checked(f), _i == 0); /* the older container has no checksum */
    for (int i = 0; i < wf_file_count(f); i++) {
        const wf_entry *e = wf_file_at(f, i);
        ck_assert_ptr_eq(wf_file_find(f, e->name), e);
        assert_same_entry(e, wf_file_find(expected, e->name));
        if (i) ck_assert((const char *)e->data >= (const char *)wf_file_at(f, i - 1)->data);
    }
    const wf_entry *table = wf_file_find(f, "table");
    ck_assert_ptr_eq(wf_file_find(f, "tied")->data, table->data);
    ck_assert_ptr_eq(wf_file_find(f, "rows")->data, (const float *)table->data + 10);
    wf_file_free(f), wf_file_free(expected);
    free(b.data), free(same.data);
}

static const char *const empties[] = { "empty.bin", "empty_old.bin" };

/* A tensor without elements is read even if it begins behind its storage, which PyTorch allows. */
TEST_ROWS(a_tensor_without_elements_begins_anywhere, 2) {
    bytes b = read_recorded(empties[_i]);
    wf_file *f = parse(b);
    ck_assert_msg(wf_file_ok(f), "%s", wf_file_error(f));
    ck_assert_int_eq(wf_file_count(f), 3);
    const wf_entry *a = wf_file_find(f, "a"), *c = wf_file_find(f, "c");
    ck_assert(a->ndim == 3 && a->shape[0] == 2 && a->shape[1] == 0 && a->shape[2] == 2);
    ck_assert(a->bytes == 0 && c->bytes == 0 && c->ndim == 1 && c->shape[0] == 0);
    ck_assert(((const float *)wf_file_find(f, "b")->data)[3] == 3);
    wf_file_free(f);
    free(b.data);
}

/* ---- pickles ----------------------------------------------------------------------------- */

static const float six[6] = { 1, -2, 3.5f, 0, 5, 6 };
#define BEFORE                                                                                     \
    "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."                                    \
    "\x80\x02M\xe9\x03."
#define INFO "\x80\x02}X\x0d\0\0\0little_endian\x88s."
#define KEYS "\x80\x02]" TEXT1("0") "a."

static bytes in_parts(const char *before, size_t n_before, const char *pickle, size_t size,
                      const char *keys, size_t n_keys, uint64_t count) {
    bytes b = { NULL, 0 };
    add(&b, before, n_before), add(&b, pickle, size), add(&b, keys, n_keys);
    add_number(&b, count, 8), add(&b, six, sizeof six);
    return b;
}

static bytes in_old_container(const char *pickle, size_t size) {
    return in_parts(PICKLE(BEFORE INFO), pickle, size, PICKLE(KEYS), 6);
}

static uint32_t crc(const unsigned char *data, size_t n) {
    uint32_t sum = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        sum ^= data[i];
        for (int k = 0; k < 8; k++) sum = sum >> 1 ^ (sum & 1 ? 0xEDB88320u : 0);
    }
    return ~sum;
}

/* A record of an archive, and what is wrong with it. */
typedef struct record {
    const char *name;
    const void *data;
    size_t size;
    /* header: if not 0, the directory points to the header of record `header`, counted from 1 */
    int method, flags, wrong_sum, header;
    uint64_t size64;        /* if not 0, the size that the directory gives, in 64 bits */
    const char *local_name; /* if not NULL, the name in the record's own header */
} record;

static bytes archive(const record *r, int n) {
    bytes b = { NULL, 0 }, d = { NULL, 0 };
    size_t at[8];
    for (int i = 0; i < n; i++) {
        const char *name = r[i].local_name ? r[i].local_name : r[i].name;
        at[i] = b.size;
        add_number(&b, 0x04034B50, 8), add_number(&b, 0, 18);
        add_number(&b, strlen(name), 2), add_number(&b, 0, 2);
        add(&b, name, strlen(name)), add(&b, r[i].data, r[i].size);
    }
    for (int i = 0; i < n; i++) {
        size_t wide = r[i].size64 ? 20 : 0, size = wide ? UINT32_MAX : r[i].size;
        add_number(&d, 0x02014B50, 8), add_number(&d, (uint64_t)r[i].flags, 2);
        add_number(&d, (uint64_t)r[i].method, 2), add_number(&d, 0, 4);
        add_number(&d, crc(r[i].data, r[i].size) ^ (uint32_t)r[i].wrong_sum, 4);
        add_number(&d, size, 4), add_number(&d, size, 4);
        add_number(&d, strlen(r[i].name), 2), add_number(&d, wide, 2), add_number(&d, 0, 10);
        add_number(&d, at[r[i].header ? r[i].header - 1 : i], 4);
        add(&d, r[i].name, strlen(r[i].name));
        if (wide) add_number(&d, 1, 2), add_number(&d, 16, 2);
        if (wide) add_number(&d, r[i].size64, 8), add_number(&d, r[i].size64, 8);
    }
    size_t directory = b.size;
    add(&b, d.data, d.size), add_number(&b, 0x06054B50, 8), add_number(&b, (uint64_t)n, 2);
    add_number(&b, (uint64_t)n, 2), add_number(&b, d.size, 4), add_number(&b, directory, 6);
    free(d.data);
    return b;
}

#define AS(what, bytes, n) .name = what, .data = bytes, .size = n
#define GOOD                                                                                       \
    { AS("a/data.pkl", STATE, sizeof STATE - 1) }
#define DATA AS("a/data/0", six, sizeof six)

static bytes in_archive(const char *pickle, size_t size) {
    const record records[] = { { AS("a/data.pkl", pickle, size) }, { DATA } };
    return archive(records, 2);
}

TEST_ROWS(what_no_state_dict_needs_is_refused_by_name, COUNT_OF(refused_pickles)) {
    const struct refused_pickle *row = &refused_pickles[_i];
    bytes b = in_old_container(row->pickle, row->size);
    must_say(b, row->says);
    free(b.data);
    b = in_archive(row->pickle, row->size);
    must_say(b, row->says);
    free(b.data);
}

/* A valid state_dict, written by hand, and an empty one are read from both containers. */
TEST_ROWS(a_state_dict_by_hand_is_read, 2) {
    bytes b = _i ? in_archive(PICKLE(STATE)) : in_old_container(PICKLE(STATE));
    wf_file *f = parse(b);
    ck_assert_msg(wf_file_ok(f), "%s", wf_file_error(f));
    assert_same_entry(wf_file_find(f, "w"), &(wf_entry){ "w", "F32", 2, { 2, 3 }, six, 24 });
    wf_file_free(f), free(b.data);
    b = _i ? in_archive(PICKLE(PROTOCOL "}."))
           : in_parts(PICKLE(BEFORE INFO PROTOCOL "}."), PICKLE("\x80\2]."), NULL, 0, 0);
    if (!_i) b.size -= 8 + sizeof six;
    f = parse(b);
    ck_assert_msg(wf_file_ok(f) && wf_file_count(f) == 0, "%s", wf_file_error(f));
    wf_file_free(f), free(b.data);
}

/* ---- the containers ---------------------------------------------------------------------- */

static const struct {
    record records[3];
    int n;
    const char *says;
} archives[] = {
    { { GOOD, { DATA, .wrong_sum = 1 } }, 2, "damaged: the CRC-32 of 'a/data/0'" },
    { { { AS("a/data.pkl", STATE, sizeof STATE - 1), .wrong_sum = 1 }, { DATA } }, 2, "CRC-32" },
    { { GOOD, { DATA }, { AS("a/version", "3\n", 2), .wrong_sum = 9 } },
      3,
      "CRC-32 of 'a/version'" },
    { { GOOD, { DATA, .method = 8 } }, 2, "'a/data/0' is compressed or encrypted" },
    { { GOOD, { DATA, .flags = 1 } }, 2, "'a/data/0' is compressed or encrypted" },
    /* a size that is not that of the data (GHSA-63cw-57p8-fm3p) */
    { { GOOD, { DATA, .size64 = 23 } }, 2, "storage '0': 23 bytes in the archive, 24 declared" },
    { { GOOD, { DATA, .size64 = (uint64_t)1 << 40 } }, 2, "'a/data/0' is not between" },
    { { GOOD, { DATA, .size64 = UINT64_MAX } }, 2, "'a/data/0' is too large" },
    { { GOOD, { AS("a/data/0", six, 20) } },
      2,
      "storage '0': 20 bytes in the archive, 24 declared" },
    { { GOOD, { AS("a/data/0", STATE, 25) } },
      2,
      "storage '0': 25 bytes in the archive, 24 declared" },
    { { GOOD }, 1, "storage '0' is not in the archive" },
    { { GOOD, { AS("b/data/0", six, 24) } }, 2, "storage '0' is not in the archive" },
    { { GOOD, { DATA }, { DATA } }, 3, "'a/data/0' is in the archive twice" },
    { { GOOD, { DATA }, { AS("a/data/1", six, 24), .header = 2 } }, 3, "has another name" },
    { { GOOD, { DATA }, { DATA, .header = 2 } }, 3, "'a/data/0' is not between its neighbours" },
    { { GOOD, { DATA, .local_name = "a/data/1" } },
      2,
      "the header of 'a/data/0' has another name" },
    { { GOOD, { DATA, .header = 1 } }, 2, "damaged: the header of 'a/data/0'" },
    { { GOOD, { DATA }, { AS("b/data.pkl", STATE, sizeof STATE - 1) } }, 3, "two pickles" },
    { { { AS("data.pkl", STATE, sizeof STATE - 1) } }, 1, "without NAME/data.pkl" },
    { { { AS("a/model.json", "{}", 2) } }, 1, "without NAME/data.pkl" },
    { { GOOD, { DATA }, { AS("a/byteorder", "big", 3) } }, 3, "not little-endian" },
    { { GOOD, { DATA }, { AS("a/byteorder", "little-endian", 13) } }, 3, "not little-endian" },
    { { { AS("a/data.pkl", STATE "}", sizeof STATE) }, { DATA } }, 2, "goes on behind its pickle" },
    { { { AS("a/data.pkl", PROTOCOL "}(", 4) }, { DATA } }, 2, "it ends early" },
};

TEST_ROWS(a_wrong_archive_is_refused, COUNT_OF(archives)) {
    bytes b = archive(archives[_i].records, archives[_i].n);
    must_say(b, archives[_i].says);
    free(b.data);
}

/* Files of torch before 0.1.10 are tar archives, whose pickles torch.load ran unchecked
 * (CVE-2025-32434). */
TEST(a_tar_archive_is_refused) {
    static const char start[512] = "sys_info";
    must_say((bytes){ (unsigned char *)(uintptr_t)start, sizeof start }, "not safetensors");
}

TEST(wide_sizes_are_read) {
    const record records[] = { GOOD, { DATA, .size64 = sizeof six } };
    bytes b = archive(records, 2);
    wf_file *f = parse(b);
    ck_assert_msg(wf_file_checked(f) && wf_file_count(f) == 1, "%s", wf_file_error(f));
    wf_file_free(f), free(b.data);
}

TEST(an_archive_with_a_byte_order_is_read) {
    const record records[] = { GOOD, { DATA }, { AS("a/byteorder", "little", 6) } };
    bytes b = archive(records, 3);
    wf_file *f = parse(b);
    ck_assert_msg(wf_file_checked(f) && wf_file_count(f) == 1, "%s", wf_file_error(f));
    wf_file_free(f), free(b.data);
}

static const struct {
    const char *before;
    size_t n_before;
    const char *keys;
    size_t n_keys;
    uint64_t count;
    int more; /* bytes at the end */
    const char *says;
} parts[] = {
    { PICKLE(BEFORE INFO), PICKLE(KEYS), 7, 0, "storage '0': 7 elements in the file, 6 declared" },
    { PICKLE(BEFORE INFO), PICKLE(KEYS), UINT64_MAX, 0, "storage '0': 18446744073709551615" },
    { PICKLE(BEFORE INFO), PICKLE(KEYS), 6, 1, "1 bytes behind the last storage" },
    { PICKLE(BEFORE INFO), PICKLE(KEYS), 6, -1, "storage '0': 24 bytes, but only 23 left" },
    { PICKLE(BEFORE INFO), PICKLE(KEYS), 6, -25, "cut off before storage '0'" },
    { PICKLE(BEFORE INFO), PICKLE("\x80\2]."), 6, 0, "1 of 1 storages are not in the file" },
    { PICKLE(BEFORE INFO), PICKLE("\x80\2](" TEXT1("0") TEXT1("0") "e."), 6, 0, "there twice" },
    { PICKLE(BEFORE INFO), PICKLE("\x80\2]" TEXT1("1") "a."), 6, 0, "storage '1' is of no tensor" },
    { PICKLE(BEFORE INFO), PICKLE("\x80\2]Na."), 6, 0, "storage '' is of no tensor" },
    { PICKLE(BEFORE INFO), PICKLE("\x80\2}."), 6, 0, "no list of its storages' keys" },
    { PICKLE(BEFORE "\x80\2}X\x0d\0\0\0little_endian\x89s."), PICKLE(KEYS), 6, 0, "little-endian" },
    { PICKLE(BEFORE "\x80\2}."), PICKLE(KEYS), 6, 0, "little-endian" },
    { PICKLE(BEFORE "\x80\2]."), PICKLE(KEYS), 6, 0, "little-endian" },
};

TEST_ROWS(a_wrong_old_container_is_refused, COUNT_OF(parts)) {
    bytes b = in_parts(parts[_i].before, parts[_i].n_before, PICKLE(STATE), parts[_i].keys,
                       parts[_i].n_keys, parts[_i].count);
    if (parts[_i].more > 0) add(&b, six, (size_t)parts[_i].more);
    if (parts[_i].more < 0) b.size -= (size_t)-parts[_i].more;
    must_say(b, parts[_i].says);
    free(b.data);
}

/* ---- damage ------------------------------------------------------------------------------ */

static bool same_entries(const wf_file *a, const wf_file *b) {
    if (wf_file_count(a) != wf_file_count(b)) return false;
    for (int i = 0; i < wf_file_count(a); i++) {
        const wf_entry *x = wf_file_at(a, i), *y = wf_file_find(b, x->name);
        if (!y || strcmp(x->dtype, y->dtype) || x->bytes != y->bytes || x->ndim != y->ndim ||
            memcmp(x->shape, y->shape, sizeof x->shape) || memcmp(x->data, y->data, x->bytes))
            return false;
    }
    return true;
}

static void assert_sentence(const wf_file *f) {
    const char *says = wf_file_error(f);
    ck_assert_uint_gt(strlen(says), strlen("memory: "));
    for (; *says; says++) ck_assert((unsigned char)*says >= 0x20 && *says != 0x7F);
}

TEST_ROWS(every_truncation_is_an_error, 2) {
    bytes b = read_recorded(containers[_i]);
    for (size_t n = 0; n < b.size; n++) {
        wf_file *f = parse((bytes){ b.data, n });
        ck_assert_msg(!wf_file_ok(f), "%zu bytes are accepted", n);
        assert_sentence(f);
        wf_file_free(f);
    }
    free(b.data);
}

/* In a ZIP archive every change of a tensor is noticed, because of its checksums; the older
 * container has none. */
TEST_ROWS(every_flipped_bit_is_an_error_or_harmless, 2) {
    bytes b = read_recorded(containers[_i]);
    wf_file *whole = parse(b);
    for (size_t bit = 0; bit < 8 * b.size; bit++) {
        b.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
        wf_file *f = parse(b);
        if (!wf_file_ok(f))
            assert_sentence(f);
        else
            ck_assert_msg(_i || same_entries(f, whole), "bit %zu is not seen", bit);
        wf_file_free(f);
        b.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    wf_file_free(whole), free(b.data);
}

static const char *const models[] = { "f32.bin",     "f32_old.bin", "f16.bin",
                                      "f16_old.bin", "bf16.bin",    "f64.bin" };

TEST_ROWS(ten_thousand_flips_of_a_model_are_survived, COUNT_OF(models)) {
    bytes b = read_recorded(models[_i]);
    for (uint64_t k = 0; k < 10000; k++) {
        size_t bit = wf_philox4x32(7, (uint64_t)_i, k).v[0] % (8 * b.size);
        b.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
        wf_file *f = parse(b);
        if (!wf_file_ok(f)) assert_sentence(f);
        wf_file_free(f);
        b.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    free(b.data);
}

/* ---- memory ------------------------------------------------------------------------------ */

static const struct {
    const char *name, *once, *again;
    size_t n_once, n_again;
} greedy[] = {
    { "tuples", "\x80\2", "(tq\0", 2, 4 },
    { "marks", "\x80\2", "(", 2, 1 },
    { "dicts", "\x80\2", "}q\0", 2, 3 },
    { "items", "\x80\2}", "NNs", 3, 3 },
    { "appended", "\x80\2]", "Na", 3, 2 },
    { "nested", "\x80\2", "]", 2, 1 },
    { "kept", "\x80\2)", "\x85", 3, 1 },
    { "memo", "\x80\2}", "r\0\0\x0f\0", 3, 5 },
    { "strings", "\x80\2]X\0\0\0\0q\0", "h\0a", 10, 3 },
    { "many lists", "\x80\2]", "(]]]]]]]]]]]]]]e", 3, 16 },
    { "many items", "\x80\2]", "(NNNNNNNNNNNNNNe", 3, 16 },
    { "items and tuples", "\x80\2]",
      "(N\x85\x85NNN\x85\x85NNNN\x85\x85"
      "e",
      3, 17 },
};

/* Reading a pickle of n bytes takes less than 24 n bytes of memory. */
TEST_ROWS(a_hostile_pickle_takes_little_memory, COUNT_OF(greedy)) {
    enum { SIZE = 1 << 20 };
    struct rusage before, after;
    bytes b = { NULL, 0 }, pickle = { malloc(SIZE + 16), 0 };
    memcpy(pickle.data, greedy[_i].once, greedy[_i].n_once), pickle.size = greedy[_i].n_once;
    for (; pickle.size < SIZE; pickle.size += greedy[_i].n_again)
        memcpy(pickle.data + pickle.size, greedy[_i].again, greedy[_i].n_again);
    b = in_archive((const char *)pickle.data, pickle.size);
    getrusage(RUSAGE_SELF, &before);
    wf_file *f = wf_file_parse(b.data, b.size);
    getrusage(RUSAGE_SELF, &after);
    ck_assert_msg(!wf_file_ok(f), "%s", greedy[_i].name);
    assert_sentence(f);
    long grown = after.ru_maxrss - before.ru_maxrss; /* kB */
    if (!SANITIZED) ck_assert_msg(grown < 24 * (SIZE >> 10), "%s: %ld kB", greedy[_i].name, grown);
    wf_file_free(f), free(b.data), free(pickle.data);
}

TEST(a_pickle_that_is_too_long_is_not_read) {
    size_t size = ((size_t)1 << 25) + 1;
    char *zeros = calloc(size, 1);
    bytes b = in_archive(zeros, size);
    must_say(b, "'a/data.pkl' has 33554433 bytes, at most 33554432 allowed");
    free(b.data), free(zeros);
}
