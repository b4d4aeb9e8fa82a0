/* tests/tools/test_dataset.c - datasets: held-out pairs, freed memory, and messages when an
 * allocation fails. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include "tests/models/text_files.h"
#include "tests/suites.h"
#include "tests/support/faults.h"
#include "tools/sources/dataset.h"

#include <fcntl.h>

TESTS(dataset)

#define WORDS "ein haus\ta house\nzwei hunde\ttwo dogs\nein hund\ta dog\n"

/* Options that train on the pairs of the first file, and validate with those of the second. */
static dataset_options of_files(void) {
    return (dataset_options){ .text_task = -1,
                              .train = { path[0] },
                              .valid = { path[1] },
                              .tokens = { wf_tokenizer_defaults(WF_WORDS),
                                          wf_tokenizer_defaults(WF_WORDS) },
                              .max_tokens = 4,
                              .batches = { .sentences = 2 } };
}

static bool open_dataset(dataset *m, const dataset_options *o, char *why) {
    return dataset_open(m, &source_pairs, &(source_options){ .pairs = *o, .accum = 2 }, NULL, why);
}

static void make_files(void) {
    make_folder();
    write_file(0, TEXT(WORDS));
    write_file(1, TEXT("ein haus\ta house\nso viel mehr als vier\tfar too long\nein\ta\n"));
}

/* Held-out pairs keep the text of their lines. From a file, all pairs are held out that are not too
 * long; from a task, as many as were asked for. */
TEST(held_pairs_keep_their_lines) {
    dataset m;
    make_files();
    dataset_options o = of_files();
    ck_assert_msg(open_dataset(&m, &o, message), "%s", message);
    ck_assert(m.train.pairs == 3 && dataset_updates(&m) == 1 && dataset_parts(&m, 1) == 2);
    ck_assert(m.valid.corpus.pairs == 2 && m.valid.corpus.too_long == 1 && !m.test.corpus.pairs);
    ck_assert_str_eq(m.valid.source[0], "ein haus");
    ck_assert_str_eq(m.valid.reference[1], "a");
    dataset_free(&m);
    o.text_task = 0, o.valid_size = 3, o.max_tokens = 20;
    ck_assert_msg(open_dataset(&m, &o, message), "%s", message);
    ck_assert(m.valid.n == 3 && m.test.n == 3 && strcmp(m.valid.source[0], m.test.source[0]) != 0);
    dataset_free(&m);
    remove_folder();
}

/* The updates of an epoch have all its batches. The last update may have fewer than the others. */
TEST(updates_cover_an_epoch) {
    make_files();
    dataset_options o = of_files();
    o.batches.sentences = 1;
    for (int64_t accum = 1; accum < 6; accum++) {
        dataset m;
        batch b = { 0 };
        int64_t parts = 0;
        const source_options all = { .pairs = o, .accum = accum };
        ck_assert_msg(dataset_open(&m, &source_pairs, &all, NULL, message), "%s", message);
        ck_assert_int_eq(dataset_updates(&m), (3 + accum - 1) / accum);
        for (int64_t step = 1; step <= dataset_updates(&m); step++) {
            int64_t n = dataset_parts(&m, step);
            ck_assert(n == accum || (parts + n == 3 && n > 0));
            for (int64_t part = 0; part < n; part++) ck_assert(dataset_batch(&m, step, part, &b));
            parts += n;
        }
        ck_assert_int_eq(parts, 3);
        batch_free(&b), dataset_free(&m);
    }
    remove_folder();
}

/* dataset_free does not close a file that was never opened. Descriptor 0, which its fields would
 * name, belongs to others. */
TEST(nothing_held_back_closes_nothing) {
    dataset m;
    make_files();
    ck_assert(dup2(STDERR_FILENO, STDIN_FILENO) == STDIN_FILENO);
    dataset_options o = of_files();
    o.valid[0] = NULL;
    ck_assert_msg(open_dataset(&m, &o, message), "%s", message);
    dataset_free(&m);
    ck_assert_int_ge(fcntl(STDIN_FILENO, F_GETFD), 0);
    o.train[0] = "/nowhere";
    ck_assert(!open_dataset(&m, &o, message));
    ck_assert_str_eq(message, "/nowhere can't be read: No such file or directory");
    dataset_free(&m);
    ck_assert_int_ge(fcntl(STDIN_FILENO, F_GETFD), 0);
    remove_folder();
}

/* The alignment of a batch is 1 where a target token is linked to a source token, and else 0. */
TEST(links_are_cells_of_a_batch) {
    dataset m;
    batch b = { 0 };
    make_files();
    write_file(2, TEXT("0-0 1-1\n\n1-0 0-1\n"));
    dataset_options o = of_files();
    o.alignments = path[2];
    o.batches.sentences = 3;
    ck_assert_msg(open_dataset(&m, &o, message), "%s", message);
    ck_assert(m.kind->fill(&m, STREAM_TRAIN, 0, &b) && b.aligned);
    ck_assert(b.B == 3 && b.S == 2 && b.T == 3);
    for (int64_t i = 0; i < b.B; i++) {
        const int32_t *at = b.alignment + i * b.T * b.S;
        int64_t line = corpus_at(&m.train, batches_pair(&m.order, 0, i))->line;
        for (int t = 0; t < 3; t++)
            for (int s = 0; s < 2; s++) {
                bool linked = t < 2 && ((line == 1 && s == t) || (line == 3 && s != t));
                ck_assert_int_eq(at[t * b.S + s], linked);
            }
    }
    batch_free(&b);
    dataset_free(&m);
    remove_folder();
}

/* After a failed allocation all memory is freed. The last two rows have alignments. */
TEST_ROWS(every_failure_is_survived, 4) {
    make_files();
    dataset_options o = of_files();
    write_file(2, TEXT("0-0 1-1\n\n1-0 0-1\n"));
    if (_i > 1) o.alignments = path[2];
    for (long at = 1;; at++) {
        dataset m;
        long left;
        message[0] = '\0';
        faults_begin(at, _i % 2);
        bool ok = open_dataset(&m, &o, message);
        dataset_free(&m);
        long asked = faults_end(&left);
        ck_assert_msg(left == 0, "request %ld: %ld blocks leak", at, left);
        ck_assert_msg(ok == (asked < at) && ok == !*message, "request %ld of %ld: %s", at, asked,
                      message);
        if (ok) break;
        tally_note(TALLY_FAULTS, 0);
    }
    remove_folder();
}

/* After a failed allocation all memory is freed, also when pairs are surveyed for the default
 * settings and some of them are held out. */
TEST_ROWS(every_failure_of_a_look_is_survived, 2) {
    static char text[4000];
    size_t n = 0;
    make_folder();
    for (int i = 0; i < 250; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "s%d\tt%d\n", i, i % 7);
    write_file(0, text, n);
    dataset_options o = of_files();
    o.valid[0] = NULL, o.held = 9, o.batches.sentences = 64;
    for (long at = 1;; at++) {
        dataset m;
        long left;
        message[0] = '\0';
        faults_begin(at, _i);
        bool ok = open_dataset(&m, &o, message);
        int64_t held = ok ? m.valid.n : 2, learned = ok ? m.train.pairs : 248;
        dataset_free(&m);
        long asked = faults_end(&left);
        ck_assert_msg(left == 0, "request %ld: %ld blocks leak", at, left);
        ck_assert(held == 2 && learned == 248);
        ck_assert_msg(ok == (asked < at) && ok == !*message, "request %ld of %ld: %s", at, asked,
                      message);
        if (ok) break;
        tally_note(TALLY_FAULTS, 0);
    }
    remove_folder();
}

/* Each word of --task belongs to a kind of data (source_kind). Words and kinds have the same
 * order. */
TEST(every_word_has_a_row) {
    const source_kind *last = NULL;
    int words = 1, rows = 0;
    for (const char *c = LEARN_WORDS; *c; c++) words += *c == '|';
    for (int i = 0; i < words; i++) {
        const source_kind *kind = source_of_word(i);
        ck_assert_ptr_nonnull(kind);
        rows += kind != last;
        last = kind;
    }
    ck_assert_int_ge(rows, 3);
    ck_assert(!source_of_word(words) && !source_of_word(-1));
    ck_assert(source_of_word(0) == &source_made && source_of_word(5) == &source_pairs);
}

/* Tasks with generated sequences: as many as asked for are held out and never trained on. Training
 * sequences are generated without end, so there are no epochs. */
TEST(made_sequences_come_in_batches) {
    dataset m;
    batch b = { 0 };
    const char *text[2];
    int64_t B, S, T;
    source_options o = { .numbers = { TASK_SORT, 3, 12, 7 }, .rows = 4, .held = 120, .accum = 1 };
    ck_assert(dataset_open(&m, &source_made, &o, NULL, message));
    ck_assert(dataset_updates(&m) == 0 && dataset_parts(&m, 9) == 1 && dataset_holds(&m));
    ck_assert(dataset_batch(&m, 9, 0, &b) && b.B == 4 && b.S <= 12 && b.T == b.S + 1);
    ck_assert_int_eq(m.kind->batches(&m, STREAM_TEST), 3);
    ck_assert(m.kind->fill(&m, STREAM_VALID, 2, &b) && b.B == 20);
    ck_assert_int_eq(m.kind->sequence(&m, STREAM_VALID, 2, 19, text), 119);
    ck_assert(m.kind->largest(&m, STREAM_VALID, 2, &B, &S, &T) && B == 50 && S == 12 && T == 13);
    batch_free(&b), dataset_free(&m);
}
