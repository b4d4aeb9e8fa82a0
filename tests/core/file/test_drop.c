/* tests/core/file/test_drop.c - loads that free the bytes of a file as soon as they are copied: the
 * leaves get the same values as with a file that is kept, and the peak of memory is little more
 * than the file or the leaves alone take. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include "core/file_internal.h"
#include "tests/suites.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/save.h"
#include "tests/support/commands.h"
#include "tests/support/faults.h"

TESTS(drop)

enum { MESSAGE = 256, N = 1500, K = 2048, MATRICES = 3 };
static const char *const names[MATRICES] = { "a", "b", "c" };

SETUP(enter_folder, leave_folder)

/* A graph of products with MATRICES weights, each with a bias. Weight i has N + i rows, so the
 * weights differ in how full their last panel of packed rows is. */
static wf_graph *new_model(wf_layout layout, wf_dtype real) {
    wf_graph *g = new_graph(real);
    wf_tensor *x = wf_input(g, "x", real, SHAPE(2, K));
    for (int i = 0; i < MATRICES; i++) {
        char name[16];
        snprintf(name, sizeof name, "%s.bias", names[i]);
        wf_tensor *w = wf_param(g, names[i], SHAPE(N + i, K), wf_init_normal(0.1));
        wf_gemm(x, w, wf_param(g, name, SHAPE(N + i), wf_init_normal(0.1)), WF_TRANSPOSE_B);
    }
    ck_assert(wf_pack_weights(g, layout, NULL));
    return g;
}

static void save_model(wf_layout layout) {
    char message[MESSAGE] = "";
    wf_graph *g = new_model(layout, WF_F32);
    ck_assert_msg(wf_save(g, "file", NULL, NULL, 0, message), "%s", message);
    end_graph(g);
}

static wf_file *open_file(bool drops) {
    wf_file *f = wf_file_open("file");
    ck_assert_msg(wf_file_ok(f), "%s", wf_file_error(f));
    if (drops) wf_file_drop_loaded(f);
    return f;
}

static void load(wf_graph *g, const wf_file *f) {
    wf_load_report report;
    ck_assert_msg(wf_load(g, f, NULL, &report), "%s", report.message);
}

static void assert_same_leaves(const wf_graph *a, const wf_graph *b) {
    ck_assert_int_eq(wf_node_count(a), wf_node_count(b));
    for (int id = 0; id < wf_node_count(a); id++) {
        const wf_tensor *t = wf_node(a, id), *u = wf_node(b, id);
        if (t->kind != WF_PARAM) continue;
        values x = { wf_count(t), leaf_values(t) }, y = { wf_count(u), leaf_values(u) };
        ck_assert_msg(same_bits(x, y), "%s differs", t->name);
        free_values(&x, 1), free_values(&y, 1);
    }
}

static const struct {
    wf_layout stored, loaded;
    wf_dtype real;
} forms[] = {
    { WF_PANELS, WF_PANELS, WF_F32 },         { WF_PANELS, WF_ROW_MAJOR, WF_F32 },
    { WF_PANELS, WF_PANELS, WF_F64 },         { WF_PANELS, WF_PANELS_BF16, WF_F32 },
    { WF_PANELS, WF_PANELS_INT8, WF_F32 },    { WF_PANELS_INT8, WF_PANELS_INT8, WF_F32 },
    { WF_PANELS_INT8, WF_ROW_MAJOR, WF_F32 },
};

TEST_ROWS(the_leaves_are_the_same, COUNT_OF(forms)) {
    save_model(forms[_i].stored);
    wf_graph *a = new_model(forms[_i].loaded, forms[_i].real);
    wf_graph *b = new_model(forms[_i].loaded, forms[_i].real);
    wf_file *kept = open_file(false), *dropped = open_file(true);
    load(a, kept), load(b, dropped);
    assert_same_leaves(a, b);
    for (int i = 0; i < wf_file_count(kept); i++) {
        ck_assert_ptr_nonnull(wf_file_at(kept, i)->data);
        const wf_entry *e = wf_file_at(dropped, i);
        ck_assert_int_eq(e->data == NULL, !wf_file_is_scale(dropped, e));
    }
    wf_load_report report;
    ck_assert(!wf_load(b, dropped, NULL, &report));
    assert_contains(report.message, "its data are not there, or not any more");
    assert_same_leaves(a, b);
    wf_file_free(kept), wf_file_free(dropped);
    end_graph(a), end_graph(b);
}

/* The graph has a parameter that the file lacks: nothing is loaded, and no bytes are freed. */
TEST(a_refused_load_gives_nothing_back) {
    save_model(WF_PANELS);
    wf_graph *g = new_model(WF_PANELS, WF_F32);
    wf_param(g, "more", SHAPE(3), wf_init_zeros());
    wf_file *kept = open_file(false), *f = open_file(true);
    wf_load_report report;
    ck_assert(!wf_load(g, f, NULL, &report));
    for (int i = 0; i < wf_file_count(f); i++)
        ck_assert_mem_eq(wf_file_at(f, i)->data, wf_file_at(kept, i)->data,
                         wf_file_at(f, i)->bytes);
    wf_file_free(kept), wf_file_free(f);
    end_graph(g);
}

/* A load that fails at any of its allocations frees no bytes of the file. */
TEST(a_load_without_memory_gives_nothing_back) {
    save_model(WF_PANELS);
    bool ok = false;
    for (long at = 1; !ok; at++) {
        wf_graph *g = new_model(WF_PANELS, WF_F32);
        wf_file *f = open_file(true);
        const wf_entry *entries[MATRICES];
        wf_tensor *leaves[MATRICES];
        char message[MESSAGE] = "";
        long left;
        for (int i = 0; i < MATRICES; i++)
            entries[i] = wf_file_find(f, names[i]), leaves[i] = wf_find(g, names[i]);
        faults_begin(at, true);
        ok = wf_file_load_from(f, entries, NULL, leaves, MATRICES, message);
        faults_end(&left);
        if (!ok) ck_assert_str_eq(message, "out of memory");
        for (int i = 0; i < MATRICES; i++) ck_assert_int_eq(entries[i]->data == NULL, ok);
        wf_file_free(f), end_graph(g);
        ck_assert_int_lt(at, 100);
    }
}

/* Entries that point to the caller's memory are left as they are, even in a list with entries of
 * the file; an entry of the file may be loaded into two leaves. */
TEST(only_the_files_own_bytes_are_given_back) {
    save_model(WF_PANELS);
    wf_graph *g = new_graph(WF_F32);
    wf_file *f = open_file(true), *kept = open_file(false);
    const wf_entry *a = wf_file_find(f, "a"), *b = wf_file_find(f, "b");
    float *mine = malloc(b->bytes);
    memcpy(mine, b->data, b->bytes);
    const wf_entry own = { "own", "F32", 2, { N + 1, K }, mine, b->bytes };
    const wf_entry *entries[] = { a, &own, a };
    wf_tensor *leaves[] = { wf_param(g, "x", SHAPE(N, K), wf_init_zeros()),
                            wf_param(g, "y", SHAPE(N + 1, K), wf_init_zeros()),
                            wf_param(g, "z", SHAPE(N, K), wf_init_zeros()) };
    char message[MESSAGE] = "";
    ck_assert_msg(wf_file_load_from(f, entries, NULL, leaves, 3, message), "%s", message);
    ck_assert(a->data == NULL && b->data != NULL);
    ck_assert_mem_eq(mine, b->data, b->bytes);
    float *got = malloc(a->bytes);
    for (int i = 0; i < 3; i += 2) {
        ck_assert(wf_read(leaves[i], got, a->bytes));
        ck_assert_mem_eq(got, wf_file_find(kept, "a")->data, a->bytes);
    }
    free(got), free(mine), wf_file_free(f), wf_file_free(kept);
    end_graph(g);
}

/* ---- leaves of several entries --------------------------------------------------------------- */

/* Three parts of `rows` rows each become one leaf: the parts begin at a panel's first row (64), or
 * not (50). `stored` is their layout in the file, `loaded` that of the leaf. */
static const struct {
    int64_t rows;
    wf_layout stored, loaded;
} parts[] = {
    { 64, WF_ROW_MAJOR, WF_ROW_MAJOR },     { 50, WF_ROW_MAJOR, WF_ROW_MAJOR },
    { 64, WF_ROW_MAJOR, WF_PANELS },        { 50, WF_ROW_MAJOR, WF_PANELS },
    { 64, WF_ROW_MAJOR, WF_PANELS_INT8 },   { 50, WF_ROW_MAJOR, WF_PANELS_INT8 },
    { 64, WF_PANELS_INT8, WF_PANELS_INT8 }, { 50, WF_PANELS_INT8, WF_PANELS_INT8 },
    { 64, WF_PANELS_INT8, WF_ROW_MAJOR },   { 50, WF_PANELS_INT8, WF_ROW_MAJOR },
};

static wf_graph *with_matrix(int64_t rows, wf_layout layout, int n) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(2, 96));
    for (int i = 0; i < n; i++)
        wf_gemm(x, wf_param(g, names[i], SHAPE(rows, 96), wf_init_normal(0.1)), NULL,
                WF_TRANSPOSE_B);
    ck_assert(wf_pack_weights(g, layout, NULL));
    return g;
}

/* The result must be as if the parts were read into separate leaves and then joined. */
TEST_ROWS(a_leaf_is_loaded_from_parts, COUNT_OF(parts)) {
    char message[MESSAGE] = "";
    int64_t rows = parts[_i].rows, size = rows * 96;
    wf_graph *three = with_matrix(rows, parts[_i].stored, 3);
    ck_assert(wf_save(three, "file", NULL, NULL, 0, NULL));
    wf_graph *whole = with_matrix(3 * rows, parts[_i].loaded, 1);
    wf_graph *want = with_matrix(3 * rows, parts[_i].loaded, 1);
    float *rows_of_all = malloc(3 * (size_t)size * 4);
    wf_file *f = open_file(true);
    const wf_entry *entries[3], *scales[3];
    wf_tensor *leaf = wf_find(whole, "a"), *leaves[] = { leaf, leaf, leaf };
    for (int i = 0; i < 3; i++) {
        entries[i] = wf_file_find(f, names[i]), scales[i] = wf_file_scale_of(f, entries[i]);
        ck_assert(wf_read(wf_find(three, names[i]), rows_of_all + i * size, (size_t)size * 4));
    }
    ck_assert(wf_write(wf_find(want, "a"), rows_of_all, wf_bytes(leaf)));
    ck_assert_msg(wf_file_load_from(f, entries, scales, leaves, 3, message), "%s", message);
    assert_same_leaves(whole, want);
    free(rows_of_all), wf_file_free(f);
    end_graph(three), end_graph(whole), end_graph(want);
}

TEST(parts_that_are_no_leaf_are_refused) {
    char message[MESSAGE] = "";
    wf_graph *g = with_matrix(9, WF_ROW_MAJOR, 1);
    wf_tensor *leaf = wf_find(g, "a"), *leaves[] = { leaf, leaf, leaf };
    float some[3 * 96] = { 0 };
    wf_entry a = { "a", "F32", 2, { 3, 96 }, some, sizeof some }, b = a, c = a;
    const wf_entry *entries[] = { &a, &b, &c };
    ck_assert_msg(wf_file_load_leaves(entries, leaves, 3, message), "%s", message);
    ck_assert(!wf_file_load_leaves(entries, leaves, 2, message)); /* 9 rows are no halves */
    assert_contains(message, "is [3,96] in the file");
    b.shape[0] = 2, b.bytes = 2 * 96 * 4, b.name = "b";
    ck_assert(!wf_file_load_leaves(entries, leaves, 3, message));
    assert_contains(message, "'b' is [2,96] in the file, not [3,96] as in the model");
    b = a, b.dtype = "BF16", b.bytes /= 2;
    ck_assert(!wf_file_load_leaves(entries, leaves, 3, message));
    assert_contains(message, "is of another type than 'a'");
    entries[1] = NULL;
    ck_assert(!wf_file_load_leaves(entries, leaves, 3, message));
    end_graph(g);
}

/* ---- several files --------------------------------------------------------------------------- */

static wf_file *file_of(const char *name, float first) {
    const float data[2] = { first, first + 1 };
    const wf_entry e = { name, "F32", 1, { 2 }, data, sizeof data };
    ck_assert(wf_file_save("part", &e, 1, NULL, 0, NULL));
    return wf_file_open("part");
}

TEST(several_files_are_read_as_one) {
    wf_graph *g = new_graph(WF_F32);
    wf_param(g, "y", SHAPE(2), wf_init_zeros()), wf_param(g, "x", SHAPE(2), wf_init_zeros());
    wf_file *f = wf_file_join((wf_file *[]){ file_of("x", 1), file_of("y", 3) }, 2);
    ck_assert(wf_file_ok(f) && wf_file_checked(f) && wf_file_count(f) == 2);
    ck_assert_int_eq(wf_file_meta_count(f), 0);
    for (int i = 0; i < 2; i++) {
        ck_assert_ptr_eq(wf_file_find(f, wf_file_at(f, i)->name), wf_file_at(f, i));
        ck_assert_int_eq(wf_file_place(f, wf_file_at(f, i)), i);
    }
    wf_file_drop_loaded(f);
    load(g, f);
    double *x = leaf_values(wf_find(g, "x")), *y = leaf_values(wf_find(g, "y"));
    ck_assert(x[0] == 1 && x[1] == 2 && y[0] == 3 && y[1] == 4);
    ck_assert(!wf_file_at(f, 0)->data && !wf_file_at(f, 1)->data);
    free(x), free(y), wf_file_free(f);
    end_graph(g);
}

TEST(files_that_are_not_one_are_refused) {
    wf_file *f = wf_file_join((wf_file *[]){ file_of("x", 1), file_of("x", 3) }, 2);
    ck_assert(!wf_file_ok(f));
    assert_contains(wf_file_error(f), "tensor 'x' occurs twice");
    wf_file_free(f);
    f = wf_file_join((wf_file *[]){ file_of("x", 1), wf_file_open("nothing"), NULL }, 3);
    assert_contains(wf_file_error(f), "nothing: cannot be opened");
    wf_file_free(f);
    f = wf_file_join((wf_file *[]){ NULL }, 1);
    assert_contains(wf_file_error(f), "no file");
    wf_file_free(f);
    f = wf_file_join(NULL, 0);
    ck_assert(wf_file_ok(f) && !wf_file_checked(f) && !wf_file_count(f));
    wf_file_free(f);
}

/* ---- tensors that share a storage ------------------------------------------------------------ */

#define TEXT "X\1\0\0\0"
#define REBUILD "ctorch._utils\n_rebuild_tensor_v2\n(h\0"
#define HOOKS                                                                                      \
    "\x89"                                                                                         \
    "ccollections\nOrderedDict\n)RtR"
enum { ROWS = 4096, WIDTH = 1024 }; /* 16 MB */

/* Writes a file of torch.save: "t" is a table, "u" the same tensor, "v" the first half of its rows;
 * all three share one storage. */
static void write_shared(void) {
    static const char pickles[] =
        "\x80\2\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\2M\xe9\3."
        "\x80\2}X\x0d\0\0\0little_endian\x88s.\x80\2}(" TEXT "t"
        "ctorch._utils\n_rebuild_tensor_v2\n("
        "(X\7\0\0\0storagectorch\nFloatStorage\n" TEXT "0" TEXT "cJ\0\0\x40\0tQq\0"
        "K\0M\0\x10M\0\4\x86M\0\4K\1\x86" HOOKS "q\1" TEXT "u"
        "h\1" TEXT "v" REBUILD "K\0M\0\x08M\0\4\x86M\0\4K\1\x86" HOOKS "u.\x80\2]" TEXT "0a.";
    FILE *file = fopen("file", "wb");
    ck_assert_ptr_nonnull(file);
    fwrite(pickles, 1, sizeof pickles - 1, file);
    fwrite(&(uint64_t){ ROWS * WIDTH }, 8, 1, file);
    for (int i = 0; i < ROWS * WIDTH; i++) fwrite(&(float){ (float)(i % 65521) }, 4, 1, file);
    fclose(file);
}

TEST_ROWS(what_shares_a_storage_is_loaded_whole, 2) {
    write_shared();
    wf_graph *g = new_graph(WF_F32);
    wf_file *f = open_file(true);
    ck_assert_ptr_eq(wf_file_find(f, "t")->data, wf_file_find(f, "u")->data);
    const wf_entry *entries[] = { wf_file_find(f, "v"), wf_file_find(f, "t"),
                                  wf_file_find(f, "u") };
    wf_tensor *leaves[] = { wf_param(g, "v", SHAPE(ROWS / 2, WIDTH), wf_init_zeros()),
                            wf_param(g, "t", SHAPE(ROWS, WIDTH), wf_init_zeros()),
                            wf_param(g, "u", SHAPE(ROWS, WIDTH), wf_init_zeros()) };
    int n = _i ? 3 : 1; /* load all three, or only "v", which shares its bytes with the others */
    char message[MESSAGE] = "";
    ck_assert_msg(wf_file_load_from(f, entries, NULL, leaves, n, message), "%s", message);
    float *got = malloc(ROWS * WIDTH * 4);
    for (int k = 0; k < n; k++) {
        ck_assert(wf_read(leaves[k], got, wf_bytes(leaves[k])));
        for (int64_t i = 0; i < wf_count(leaves[k]); i++) ck_assert(got[i] == (float)(i % 65521));
    }
    for (int k = 0; k < 3; k++) ck_assert_ptr_null(entries[k]->data);
    if (!_i) ck_assert(!wf_file_load_from(f, entries + 1, NULL, leaves + 1, 1, message));
    free(got), wf_file_free(f);
    end_graph(g);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static long peak(void) { /* bytes */
    struct rusage use;
    ck_assert_int_eq(getrusage(RUSAGE_SELF, &use), 0);
    return use.ru_maxrss * 1024;
}

/* Runs work in a child process, so that its memory does not raise the peak of this process. */
static void in_child(void (*work)(void)) {
    int status;
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (!child) work(), _exit(0);
    ck_assert(waitpid(child, &status, 0) == child && status == 0);
}

static wf_graph *large_model(void) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(2, 1024));
    for (int i = 0; i < 64; i++) { /* of 1 MB each: less than a huge page */
        char name[16];
        snprintf(name, sizeof name, "w%d", i);
        wf_gemm(x, wf_param(g, name, SHAPE(256, 1024), wf_init_normal(1)), NULL, WF_TRANSPOSE_B);
    }
    ck_assert(wf_pack_weights(g, WF_PANELS, NULL));
    return g;
}

static void save_large(void) {
    char message[MESSAGE] = "";
    wf_graph *g = large_model();
    ck_assert_msg(wf_save(g, "file", NULL, NULL, 0, message), "%s", message);
    wf_graph_free(g);
}

TEST(file_and_leaves_take_little_more_than_one_of_them) {
    in_child(save_large);
    const long size = 64L << 20, before = peak();
    wf_graph *g = large_model();
    wf_file *f = open_file(true);
    load(g, f);
    wf_file_free(f);
    if (!SANITIZED)
        ck_assert_msg(peak() - before <= size + size * 15 / 100, "%ld MB", (peak() - before) >> 20);
    end_graph(g);
}
