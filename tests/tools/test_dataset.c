/* tests/tools/test_dataset.c - where batches come from: what is held back, what is freed, and that
 * it is said when there is no memory. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include "tests/models/text_files.h"
#include "tests/suites.h"
#include "tests/support/faults.h"
#include "tools/train/dataset.h"

#include <fcntl.h>

TESTS(dataset)

#define WORDS "ein haus\ta house\nzwei hunde\ttwo dogs\nein hund\ta dog\n"

/* Of the first file, with the second held back. */
static dataset_options of_files(void) {
    return (dataset_options){ .text_task = -1,
                              .train = { path[0] },
                              .valid = { path[1] },
                              .tokens = { wf_tokenizer_defaults(WF_WORDS),
                                          wf_tokenizer_defaults(WF_WORDS) },
                              .max_tokens = 4,
                              .batches = { .sentences = 2, .accum = 2 } };
}

static void make_files(void) {
    make_folder();
    write_file(0, TEXT(WORDS));
    write_file(1, TEXT("ein haus\ta house\nso viel mehr als vier\tfar too long\nein\ta\n"));
}

/* The pairs that are not too long, and their lines; of a task, as many as were asked for. */
TEST(held_pairs_keep_their_lines) {
    dataset m;
    make_files();
    dataset_options o = of_files();
    ck_assert_msg(dataset_text(&m, &o, NULL, message), "%s", message);
    ck_assert(m.train.pairs == 3 && dataset_updates(&m) == 1 && dataset_parts(&m, 1) == 2);
    ck_assert(m.valid.corpus.pairs == 2 && m.valid.corpus.too_long == 1 && !m.test.corpus.pairs);
    ck_assert_str_eq(m.valid.source[0], "ein haus");
    ck_assert_str_eq(m.valid.reference[1], "a");
    dataset_free(&m);
    o.text_task = 0, o.valid_size = 3, o.max_tokens = 20;
    ck_assert_msg(dataset_text(&m, &o, NULL, message), "%s", message);
    ck_assert(m.valid.n == 3 && m.test.n == 3 && strcmp(m.valid.source[0], m.test.source[0]) != 0);
    dataset_free(&m);
    remove_folder();
}

/* What was never opened is not closed: descriptor 0 is somebody else's. */
TEST(nothing_held_back_closes_nothing) {
    dataset m;
    make_files();
    ck_assert(dup2(STDERR_FILENO, STDIN_FILENO) == STDIN_FILENO);
    dataset_options o = of_files();
    o.valid[0] = NULL;
    ck_assert_msg(dataset_text(&m, &o, NULL, message), "%s", message);
    dataset_free(&m);
    ck_assert_int_ge(fcntl(STDIN_FILENO, F_GETFD), 0);
    o.train[0] = "/nowhere";
    ck_assert(!dataset_text(&m, &o, NULL, message));
    ck_assert_str_eq(message, "/nowhere can't be read: No such file or directory");
    dataset_free(&m);
    ck_assert_int_ge(fcntl(STDIN_FILENO, F_GETFD), 0);
    remove_folder();
}

/* What there is of it is freed. */
TEST_ROWS(every_failure_is_survived, 2) {
    make_files();
    dataset_options o = of_files();
    for (long at = 1;; at++) {
        dataset m;
        long left;
        message[0] = '\0';
        faults_begin(at, _i);
        bool ok = dataset_text(&m, &o, NULL, message);
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

/* With a first look at the pairs, some of which are held back. */
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
        bool ok = dataset_text(&m, &o, NULL, message);
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
