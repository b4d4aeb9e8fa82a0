/* tests/ops/write_operands.c - the operands of the table's small rows in one safetensors file, for
 * record_ops.py. */
#include <stdio.h>

#include "op_cases.h"
#include "tests/suites.h"

enum { MOST = 8192, NAME = 96 };

typedef struct book {
    wf_entry entry[MOST];
    int n;
} book;

/* Adds a leaf's values. Real numbers are stored as F32, which holds them exactly. */
static void add_leaf(book *b, const char *row, const char *part, int i, const wf_tensor *leaf) {
    char *name = malloc(NAME), *data = malloc(wf_bytes(leaf) + 1);
    if (!name || !data || b->n == MOST || !wf_read(leaf, data, wf_bytes(leaf))) exit(1);
    snprintf(name, NAME, i < 0 ? "%s/%s" : "%s/%s%d", row, part, i);
    wf_entry *e = &b->entry[b->n++];
    *e = (wf_entry){ .name = name,
                     .dtype = leaf->dtype == WF_I32 ? "I32" : "F32",
                     .ndim = leaf->ndim,
                     .data = data,
                     .bytes = wf_bytes(leaf) };
    memcpy(e->shape, leaf->shape, sizeof e->shape);
}

static void add_row(book *b, const op_case *row) {
    fixture f;
    fixture_open(&f, row, WF_F32, PLAIN);
    for (int i = 0; i < f.n; i++) {
        add_leaf(b, row->name, "x", i, f.leaf[i]);
        if (f.leaf[i]->kind == WF_PARAM) add_leaf(b, row->name, "d", i, f.leaf[i]);
    }
    if (fixture_differentiate(&f)) add_leaf(b, row->name, "w", -1, f.weight);
    fixture_close(&f);
}

static const char *target;

TESTS(operands)

/* This is a test of Check, because the fixtures make assertions; it writes the file. */
TEST(writing) {
    static book b;
    char message[WF_MESSAGE] = "";
    for (int i = 0; i < op_case_count; i++)
        if (is_small(&op_cases[i])) add_row(&b, &op_cases[i]);
    ck_assert_msg(wf_file_save(target, b.entry, b.n, NULL, 0, message), "%s", message);
    for (int i = 0; i < b.n; i++) free((void *)b.entry[i].name), free((void *)b.entry[i].data);
}

int write_operands(const char *path) {
    target = path;
    SRunner *runner = srunner_create(operands_suite());
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed;
}
