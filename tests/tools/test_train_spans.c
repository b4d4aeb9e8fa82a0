/* tests/tools/test_train_spans.c - train --task spans: the choice of spans that are removed, a
 * model that learns to write them, resumed trainings with the same bits, folders of T5,
 * refusals. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suites.h"
#include "tests/support/commands.h"
#include "tools/sources/dataset.h"

TESTS(train_spans)

/* Writes a text with runs of sixty equal words, and a vocabulary with ten sentinel tokens. */
static void make_text(void) {
    enter_folder();
    ok("awk 'BEGIN { split(\"one two three four five six seven eight nine ten\", w); for (i = 0; "
       "i < 120; i++) { for (j = 0; j < 60; j++) printf \"%s \", w[(i * 7) % 10 + 1]; print \"\" } "
       "}' > text; s='<pad>,</s>,<unk>'; for i in 0 1 2 3 4 5 6 7 8 9; do s=\"$s,<extra_id_$i>\"; "
       "done; tokenize --learn unigram --vocab-size 46 --special \"$s\" -i text -o words");
}

SETUP(make_text, leave_folder)

/* ---- what is taken out ----------------------------------------------------------------------- */

enum { WINDOW = 60, ROWS = 8, TAKEN = 9, SPANS = 3 };

/* Opens the dataset at m. It may not be moved afterwards, because its windows point into it. */
static void open_spans(dataset *m, uint64_t seed) {
    char message[256] = "";
    const source_options o = { .running = { .text = "text",
                                            .eval_bytes = 4000,
                                            .json = "words",
                                            .window = WINDOW,
                                            .rows = ROWS,
                                            .seed = seed },
                               .accum = 1 };
    ck_assert_msg(dataset_open(m, &source_spans, &o, NULL, message), "%s", message);
}

/* The number of the span whose sentinel the id is; -1: it is no sentinel. */
static int span_of(const dataset *m, int32_t id) {
    for (int i = 0; i < m->n_sentinels; i++)
        if (m->sentinel[i] == id) return i;
    return -1;
}

/* Puts the spans of a target back into its source, in place of the sentinels. Returns the number of
 * ids. */
static int join(const dataset *m, const batch *b, int64_t row, int32_t *ids) {
    const int32_t *src = b->src + row * b->S, *answer = b->answer + row * (b->T - 1);
    int64_t n_src = b->src_length[row] - 1, n_answer = b->answer_length[row], at = 0;
    int n = 0, spans = 0;
    ck_assert_int_eq(src[n_src], m->ids.end);
    for (int64_t i = 0; i < n_src; i++) {
        int span = span_of(m, src[i]);
        if (span < 0) {
            ids[n++] = src[i];
            continue;
        }
        ck_assert_int_eq(span, spans++);
        ck_assert(at < n_answer && answer[at++] == src[i]);
        int before = n;
        while (at < n_answer && span_of(m, answer[at]) < 0) ids[n++] = answer[at++];
        ck_assert_int_gt(n, before);
    }
    ck_assert_int_eq(at, n_answer);
    ck_assert_int_eq(spans, SPANS);
    return n;
}

/* Source and target joined are the window of text. 15 % of its tokens are in three spans, which may
 * begin anywhere. */
TEST(spans_are_taken_out_as_by_t5) {
    dataset m;
    open_spans(&m, 3);
    ck_assert_int_eq(m.n_sentinels, 10);
    batch b = { 0 };
    int32_t ids[2 * WINDOW], window[WINDOW];
    int lengths[TAKEN + 1] = { 0 };
    double all = 0;
    for (int64_t step = 1; step <= 40; step++) {
        ck_assert(dataset_batch(&m, step, 0, &b));
        ck_assert(b.S == WINDOW - TAKEN + SPANS + 1 && b.T == TAKEN + SPANS + 1);
        int64_t k = (step - 1) % m.windows[LEARNED].batches;
        for (int64_t row = 0; row < b.B; row++) {
            ck_assert_int_eq(join(&m, &b, row, ids), WINDOW);
            ck_assert_int_eq(windows_tokens(&m.windows[LEARNED], k, row, window), WINDOW);
            ck_assert(memcmp(ids, window, sizeof window) == 0);
            ck_assert(b.tgt[row * b.T] == m.ids.start);
            ck_assert(b.labels[row * b.T + TAKEN + SPANS] == m.ids.end);
            int length = 0;
            all += SPANS;
            for (int64_t i = 1; i <= TAKEN + SPANS; i++) {
                bool ends = i == TAKEN + SPANS || span_of(&m, b.answer[row * (b.T - 1) + i]) >= 0;
                length++;
                if (!ends) continue;
                lengths[length - 1]++;
                length = 0;
            }
        }
    }
    /* there are 28 ways to divide nine tokens into three spans: in 7 of them the first has one
     * token, in 1 it has seven */
    ck_assert_int_eq(lengths[0], 0);
    ck_assert_double_eq_tol(lengths[1] / all, 7 / 28.0, 0.05);
    ck_assert_double_eq_tol(lengths[3] / all, 5 / 28.0, 0.05);
    ck_assert_double_eq_tol(lengths[7] / all, 1 / 28.0, 0.02);
    batch_free(&b);
    dataset_free(&m);
}

/* Another epoch or seed removes other spans; in held-out text always the same spans are removed. */
TEST(what_is_taken_out_follows_from_seed_and_epoch) {
    dataset m, same, other;
    batch a = { 0 }, b = { 0 };
    open_spans(&m, 3);
    open_spans(&same, 3);
    open_spans(&other, 4);
    int64_t epoch = dataset_updates(&m);
    size_t bytes = sizeof(int32_t) * ROWS * (WINDOW - TAKEN + SPANS + 1);
    ck_assert(dataset_batch(&m, epoch + 2, 0, &a) && dataset_batch(&same, epoch + 2, 0, &b));
    ck_assert(memcmp(a.src, b.src, bytes) == 0);
    ck_assert(dataset_batch(&same, 2, 0, &b) && memcmp(a.src, b.src, bytes) != 0);
    ck_assert(m.kind->fill(&m, STREAM_VALID, 0, &a) && m.kind->fill(&other, STREAM_VALID, 0, &b));
    ck_assert(memcmp(a.src, b.src, bytes) == 0);
    batch_free(&a);
    batch_free(&b);
    dataset_free(&m);
    dataset_free(&same);
    dataset_free(&other);
}

/* T5's tokenizer appends an end token to each line of a translation. Lines of running text get
 * none: the text has two tokens for each line, and an end token before and behind all. */
TEST(lines_have_no_end_of_their_own) {
    char path[512];
    run("convert --from hf %s -o t5 && for i in $(seq 40); do echo Haus dog; done > few && train "
        "--task spans --init t5 --text few --text-eval-size 0 --max-len 20 --max-steps 1 -o m",
        source_path("tests/data/hf/t5", path, sizeof path));
    expect(0);
    assert_contains(result.err, " in 1 document, 82 tokens of ");
}

/* If the tokenizer puts one token before each line and none behind it, the sources of spans begin
 * with that token, and have no end token. */
TEST(a_token_before_a_line_stays_there) {
    dataset m;
    batch b = { 0 };
    ok("sed -i "
       "'s|\\({\"Sequence\":{\"id\":\"A\",\"type_id\":0}}\\),{\"SpecialToken\":{\"id\":\"</s>\","
       "\"type_id\":0}}\\],|{\"SpecialToken\":{\"id\":\"<unk>\",\"type_id\":0}},\\1],|; "
       "s|\"special_tokens\":{|&\"<unk>\":{\"id\":\"<unk>\",\"ids\":[2],\"tokens\":[\"<unk>\"]},|' "
       "words");
    open_spans(&m, 3);
    ck_assert(dataset_batch(&m, 1, 0, &b));
    for (int64_t row = 0; row < b.B; row++) {
        ck_assert_int_eq(b.src[row * b.S], 2);
        ck_assert(b.src[row * b.S + b.S - 1] != 2 && b.src[row * b.S + b.S - 1] != m.ids.end);
    }
    batch_free(&b);
    dataset_free(&m);
}

/* ---- learned --------------------------------------------------------------------------------- */

#define SPANS_OF                                                                                   \
    "train --task spans --text text --tokenizer-json words --max-len 34 --d-model 32 --heads 2 "   \
    "--layers 1 --d-ff 64 --batch-size 16 --lr 0.003 --warmup 20 --dropout 0 --quiet "

/* The accuracy of the last validation in the log. */
static double accuracy(void) {
    ok("grep '\"valid\"' log | tail -n 1 | sed 's/.*\"accuracy\":\\([0-9.e-]*\\).*/\\1/'");
    return atof(result.out);
}

TEST(spans_are_written) {
    ok(SPANS_OF "--max-steps 350 --threads 1 -o m --log log");
    double learned = accuracy();
    ck_assert_msg(learned > 0.8, "%g", learned);
    /* exported to a folder of T5 and imported, the model keeps its accuracy */
    ok("convert --to hf m -o folder 2> said && ! grep pad_token_id said && "
       "grep -q T5ForConditionalGeneration "
       "folder/config.json && convert --from hf folder -o back && train --task spans --init back "
       "--text text --max-len 34 --max-steps 1 --lr 1e-9 --batch-size 16 --threads 1 --quiet "
       "--overwrite --log log");
    ck_assert_double_eq_tol(accuracy(), learned, 1e-6);
}

/* A training that is stopped and resumed, or made by several threads or processes, has the same
 * bits. */
TEST(parts_are_the_whole) {
    ok(SPANS_OF "--lr-schedule constant --accum 2 --max-steps 10 --threads 1 -o whole && " SPANS_OF
                "--lr-schedule constant --accum 2 --max-steps 6 --threads 2 -o part && train "
                "--resume -o part --text text --max-steps 10 --threads 1 --quiet && cmp whole part "
                "&& " SPANS_OF "--lr-schedule constant --accum 2 --max-steps 10 --processes 2 "
                "--threads 1 -o two && cmp whole two");
}

/* A source that is cropped keeps the end token that a tokenizer.json puts behind every line: it is
 * the same as a source that has just the longest length. */
TEST(a_cropped_source_keeps_its_end) {
    ok("for i in 1 2 3 4 5; do printf 'one two\\tfour\\nthree\\tone\\n'; done > pairs; train "
       "--train "
       "pairs --tokenizer-json words --d-model 16 --heads 2 --layers 1 --d-ff 16 --batch-size 4 "
       "--max-steps 3 --valid-size 0 --max-len 20 --quiet --threads 1 -o m");
    ok("yes one two three | head -40 | tr '\\n' ' ' > long; cut -d' ' -f 1-63 long > short; test "
       "$(tokenize --tokenizer words --counts -i short) = 64");
    ok("generate m --long-lines crop --json --max-new-tokens 3 long 2> said | sed 's/.*outputs//' "
       "> "
       "long.json; generate m --json --max-new-tokens 3 short 2> /dev/null | sed 's/.*outputs//' > "
       "short.json; test -s long.json; grep '122 tokens, and 64 is the most' said");
    ck_assert(same_files("long.json", "short.json"));
}

/* ---- refused --------------------------------------------------------------------------------- */

static const struct {
    const char *command;
    int status;
    const char *says;
} refused[] = {
    { "train --task spans", 2, "say which text: --text FILE" },
    { "train --task spans --text text", 2, "say which one, --tokenizer-json FILE" },
    { "train --task spans --text text", 2,
      "\"tokenize --learn unigram --special '<pad>,</s>,<unk>,<extra_id_0>,...' --vocab-size" },
    { "train --task spans --text text --tokenizer byte", 2,
      "--tokenizer byte has no tokens for spans: --tokenizer-json FILE names one that has. "
      "\"tokenize --learn unigram --special '<pad>" },
    { SPANS_OF "--arch language", 2, "the task trains a model of T5's form" },
    { SPANS_OF "--report page.html", 2, "spans are no outputs to show" },
    { SPANS_OF "--end-token '</s>'", 2, "it is for --task lm" },
    { "tokenize --learn unigram --vocab-size 26 --special '<pad>,</s>,<unk>' -i text -o t; train "
      "--task spans --text text --tokenizer-json t",
      1, "the vocabulary has no token <extra_id_0>, which stands for a span" },
    { "tokenize --learn unigram --vocab-size 34 --special '<unk>,<extra_id_0>' -i text -o t; train "
      "--task spans --text text --tokenizer-json t",
      1, "t: it has no token <pad> or no </s>" },
    { "train --task lm --text text --tokenizer-json words --end-token '</s>' --d-model 8 --heads 2 "
      "--layers 1 --max-steps 1 --quiet -o n > /dev/null; train --task spans --init n --text text",
      1, "n is a decoder-only model: spans need an encoder and a decoder" },
    { "sed -i 's|\\({\"SpecialToken\":{\"id\":\"</s>\",\"type_id\":0}}\\)\\],|\\1,\\1,\\1],|' "
      "words; "
      "train --task spans --text text --tokenizer-json words --max-steps 1",
      1, "the tokenizer puts 3 tokens around a line, more than two" },
    { "train --task spans --text text --tokenizer-json words --max-len 3", 2,
      "--max-len 3: it is at least 4: two tokens stand around a window, and a span needs two "
      "inside it" },
    { "tokenize --learn wordpiece --vocab-size 58 --min-freq 1 -i text -o t; train --task mask "
      "--text text --tokenizer-json t --d-model 8 --heads 2 --layers 1 --max-steps 1 --quiet -o n "
      "> /dev/null; train --task spans --init n --text text",
      1, "n is an encoder: spans need an encoder and a decoder" },
};

TEST_ROWS(what_is_wrong_is_said, COUNT_OF(refused)) {
    run("%s", refused[_i].command);
    expect(refused[_i].status);
    assert_contains(result.err, refused[_i].says);
}
