/* tests/tools/test_train_mask.c - train --task mask: the choice of masked tokens, an encoder that
 * learns to predict them, resumed trainings with the same bits, folders of Hugging Face,
 * refusals. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suites.h"
#include "tests/support/commands.h"
#include "tools/sources/dataset.h"

TESTS(train_mask)

/* Writes a text in which each word is repeated sixty times, so that a masked word can be predicted
 * from its neighbours. */
static void make_text(void) {
    enter_folder();
    ok("awk 'BEGIN { split(\"one two three four five six seven eight nine ten\", w); for (i = 0; "
       "i < 120; i++) { for (j = 0; j < 60; j++) printf \"%s \", w[(i * 7) % 10 + 1]; print \"\" } "
       "}' > text && tokenize --learn wordpiece --vocab-size 58 --min-freq 1 -i text -o words");
}

SETUP(make_text, leave_folder)

/* ---- what is hidden -------------------------------------------------------------------------- */

enum { WINDOW = 62, ROWS = 8, LENGTH = WINDOW + 2 };

/* Opens the dataset at m. It may not be moved afterwards, because its windows point into it. */
static void open_masked(dataset *m, uint64_t seed) {
    char message[256] = "";
    const source_options o = { .running = { .text = "text",
                                            .eval_bytes = 4000,
                                            .json = "words",
                                            .window = WINDOW,
                                            .rows = ROWS,
                                            .seed = seed },
                               .accum = 1 };
    ck_assert_msg(dataset_open(m, &source_mask, &o, NULL, message), "%s", message);
}

typedef struct counts {
    int tokens, chosen, masked, same, other;
} counts;

static void count_row(const dataset *m, const batch *b, int64_t row, counts *c) {
    const int32_t *ids = b->src + row * b->S, *labels = b->labels + row * b->S;
    int64_t n = b->src_length[row];
    ck_assert_int_eq(ids[0], m->ids.start);
    ck_assert_int_eq(ids[n - 1], m->ids.end);
    int before = c->chosen;
    for (int64_t i = 0; i < b->S; i++) {
        if (i >= n) ck_assert_int_eq(ids[i], m->ids.pad);
        c->tokens += i > 0 && i < n - 1;
        if (labels[i] < 0) continue;
        ck_assert(i > 0 && i < n - 1);
        c->chosen++;
        c->masked += ids[i] == m->mask;
        c->same += ids[i] == labels[i];
        c->other += ids[i] != m->mask && ids[i] != labels[i];
    }
    ck_assert_int_gt(c->chosen, before);
}

/* 15 % of the tokens are chosen. Of these 80 % become the mask, 10 % stay, and 10 % become one of
 * 58 random tokens, which may be the same one. */
TEST(tokens_are_hidden_as_by_bert) {
    dataset m;
    open_masked(&m, 3);
    batch b = { 0 };
    counts c = { 0 };
    for (int64_t step = 1; step <= 60; step++) {
        ck_assert(dataset_batch(&m, step, 0, &b));
        ck_assert(b.S == LENGTH && b.T == LENGTH && b.B == ROWS);
        for (int64_t row = 0; row < b.B; row++) count_row(&m, &b, row, &c);
    }
    ck_assert_int_eq(c.tokens, 60 * ROWS * WINDOW);
    ck_assert_double_eq_tol((double)c.chosen / c.tokens, 0.15, 0.01);
    ck_assert_double_eq_tol((double)c.masked / c.chosen, 0.8, 0.03);
    ck_assert_double_eq_tol((double)c.same / c.chosen, 0.1, 0.02);
    ck_assert_double_eq_tol((double)c.other / c.chosen, 0.1, 0.02);
    batch_free(&b);
    dataset_free(&m);
}

/* Another epoch or seed masks other tokens; in held-out text always the same tokens are masked. */
TEST(what_is_hidden_follows_from_seed_and_epoch) {
    dataset m, same, other;
    batch a = { 0 }, b = { 0 };
    open_masked(&m, 3);
    open_masked(&same, 3);
    open_masked(&other, 4);
    int64_t epoch = dataset_updates(&m);
    size_t bytes = sizeof(int32_t) * ROWS * LENGTH;
    ck_assert(dataset_batch(&m, epoch + 2, 0, &a) && dataset_batch(&same, epoch + 2, 0, &b));
    ck_assert(memcmp(a.src, b.src, bytes) == 0 && memcmp(a.labels, b.labels, bytes) == 0);
    ck_assert(dataset_batch(&same, 2, 0, &b) && memcmp(a.labels, b.labels, bytes) != 0);
    ck_assert(m.kind->fill(&m, STREAM_VALID, 0, &a) && m.kind->fill(&other, STREAM_VALID, 0, &b));
    ck_assert(memcmp(a.src, b.src, bytes) == 0 && memcmp(a.labels, b.labels, bytes) == 0);
    batch_free(&a);
    batch_free(&b);
    dataset_free(&m);
    dataset_free(&same);
    dataset_free(&other);
}

/* ---- learned --------------------------------------------------------------------------------- */

#define MASK                                                                                       \
    "train --task mask --text text --tokenizer-json words --max-len 32 --d-model 32 --heads 2 "    \
    "--layers 2 --d-ff 64 --batch-size 16 --lr 0.003 --warmup 50 --dropout 0 --quiet "

TEST(hidden_words_are_found) {
    ok(MASK "--max-steps 200 --threads 1 -o m");
    int found = 0, all = 0;
    ck_assert_int_eq(sscanf(result.out, "hidden tokens found: %d/%d", &found, &all), 2);
    ck_assert_msg(5 * found > 4 * all, "%s", result.out);
    /* exported to a folder of BertForMaskedLM and imported, the model gives the same vectors */
    ok("cut -d ' ' -f 1-9 text > few; convert --to hf m -o folder && grep -q BertForMaskedLM "
       "folder/config.json && convert --from hf folder -o back && embed m few --format f32 -o a "
       "--quiet && embed back few --format f32 -o b --quiet && cmp a b");
    ok("train --task mask --init back --text text --max-steps 1 --threads 1 --quiet --lr 1e-6");
    int again = 0;
    ck_assert_int_eq(sscanf(result.out, "hidden tokens found: %d/%d", &again, &all), 2);
    ck_assert_int_eq(again, found);
}

/* A training that is stopped and resumed, or made by several threads or processes, has the same
 * bits. */
TEST(parts_are_the_whole) {
    ok(MASK "--lr-schedule constant --accum 2 --max-steps 12 --threads 1 -o whole && " MASK
            "--lr-schedule constant --accum 2 --max-steps 7 --threads 2 -o part && train --resume "
            "-o part --text text --max-steps 12 --threads 1 --quiet && cmp whole part && " MASK
            "--lr-schedule constant --accum 2 --max-steps 12 --processes 2 --threads 1 -o two && "
            "cmp whole two");
}

/* ---- refused --------------------------------------------------------------------------------- */

static const struct {
    const char *command;
    int status;
    const char *says;
} refused[] = {
    { "train --task mask", 2, "say which text: --text FILE" },
    { "train --task mask --text text", 2, "say which one, --tokenizer-json FILE" },
    { "train --task mask --text text", 2,
      "\"tokenize --learn wordpiece --vocab-size 8000 -i TEXT -o FILE\" makes one" },
    { "train --task mask --text text --tokenizer byte", 2,
      "--tokenizer byte has no mask: --tokenizer-json FILE names one that has. \"tokenize --learn "
      "wordpiece --vocab-size 8000 -i TEXT -o FILE\" makes one" },
    { MASK "--end-token '[SEP]'", 2, "it is for --task lm" },
    { MASK "--positions learned", 2, "the task trains an encoder, which has one form" },
    { MASK "--report page.html", 2, "an encoder has no outputs to show" },
    { "train --task mask --text text --tokenizer-json words --max-len 2", 2,
      "--max-len 2: it is at least 3: two tokens stand around a window" },
    { MASK "--max-tokens 30", 2, "--max-tokens 30 is less than a window of --max-len 32" },
    { "tokenize --learn bpe --vocab-size 260 -i text -o t; train --task mask --text text "
      "--tokenizer-json t",
      1, "t: it has no token [MASK] or <mask>" },
    { "tokenize --learn bpe --vocab-size 260 --special '<mask>' -i text -o t; train --task mask "
      "--text text --tokenizer-json t",
      1, "t: it does not put one token before a line and one after it" },
    { "train --task mask --text text --tokenizer-json none", 1, "none can't be read" },
    { "printf 'a b\\tc d\\ne f\\tg\\n' > p; train --task pairs --train p --tokenizer word "
      "--max-steps "
      "1 --d-model 8 --heads 2 --layers 1 --valid-size 0 --quiet -o n > /dev/null; train --task "
      "mask "
      "--init n --text text",
      1, "n has no head that predicts masked tokens" },
};

TEST_ROWS(what_is_wrong_is_said, COUNT_OF(refused)) {
    run("%s", refused[_i].command);
    expect(refused[_i].status);
    assert_contains(result.err, refused[_i].says);
}
