/* tests/tools/test_train_classify.c - train --task classify: labels and their order, lines that are
 * cut, a model that learns labels, resumed trainings with the same bits, folders of Hugging Face,
 * other heads, refusals. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suites.h"
#include "tests/support/commands.h"
#include "tools/sources/dataset.h"

TESTS(train_classify)

/* Writes lines of 3 to 8 words. One word of each line decides its label. */
static void make_lines(void) {
    enter_folder();
    ok("awk 'BEGIN { split(\"good great fine bad poor sad tree house dog\", w); split(\"positive "
       "negative neutral\", l); split(\"the a it was is very and of in\", f); for (i = 0; i < 600; "
       "i++) { k = (i * 7) % 9; s = \"\"; n = 3 + i % 6; for (j = 0; j < n; j++) s = s (j == i % n "
       "? w[k + 1] : f[(i * 5 + j * (i % 4 + 1)) % 9 + 1]) \" \"; print s \"\\t\" l[int(k / 3) + "
       "1] } }' > all; head -n 500 all > lines; tail -n 100 all > held; cut -f 1 all > text; "
       "tokenize --learn wordpiece --vocab-size 60 --min-freq 1 -i text -o words");
}

SETUP(make_lines, leave_folder)

/* ---- labels ---------------------------------------------------------------------------------- */

/* Opens the dataset at m. It may not be moved afterwards, because its readers point to it. */
static void open_lines(dataset *m, const char *train, int64_t most) {
    char message[256] = "";
    const source_options o = { .pairs = { .text_task = -1,
                                          .train = { train },
                                          .json = "words",
                                          .shared = true,
                                          .max_tokens = most,
                                          .batches = { .sentences = 8 } },
                               .accum = 1 };
    ck_assert_msg(dataset_open(m, &source_classify, &o, NULL, message), "%s", message);
}

TEST(labels_are_numbered_in_their_order) {
    dataset m;
    ok("printf 'a it\\t10\\nit\\tx\\na\\t9\\nthe\\t10\\nthe a\\tabc\\n' > few");
    open_lines(&m, "few", 16);
    ck_assert_str_eq(m.classes.text, "9\n10\nabc\nx");
    batch b = { 0 };
    ck_assert(dataset_batch(&m, 1, 0, &b));
    ck_assert(b.B == 5 && b.S == 4 && b.T == 1);
    int of[4] = { 0 };
    for (int i = 0; i < 5; i++) of[b.labels[i]]++;
    ck_assert(of[0] == 1 && of[1] == 2 && of[2] == 1 && of[3] == 1);
    for (int i = 0; i < 5; i++) ck_assert_int_eq(b.src[i * b.S], m.ids.start);
    batch_free(&b);
    dataset_free(&m);
}

/* Labels that are numbers come first, ordered by value; other labels follow, ordered by bytes.
 * Without these two groups the order would contradict itself: "9" < "10" by value, but "10" < "1a"
 * < "9" by bytes. */
TEST(numbers_come_before_other_labels) {
    static const char *const names[] = { "9", "10", "1a", "2b" };
    for (int k = 0; k < 256; k++) {
        const int way[] = { k & 3, k >> 2 & 3, k >> 4 & 3, k >> 6 & 3 };
        unsigned seen = 0;
        for (int i = 0; i < 4; i++) seen |= 1U << way[i];
        if (seen != 15) continue;
        FILE *f = fopen("way", "w");
        ck_assert_ptr_nonnull(f);
        for (int i = 0; i < 8; i++) fprintf(f, "it\t%s\n", names[way[i & 3]]);
        fclose(f);
        dataset m;
        open_lines(&m, "way", 16);
        ck_assert_str_eq(m.classes.text, "9\n10\n1a\n2b");
        dataset_free(&m);
    }
}

/* A label whose lines are all held out is a class, too. */
TEST(labels_of_held_out_lines_are_known) {
    ok("awk 'BEGIN { for (i = 0; i < 400; i++) print \"it \" i \"\\t\" i }' > rare; train --task "
       "classify "
       "--train rare --tokenizer-json words --d-model 8 --heads 2 --layers 1 --max-steps 1 -o m > "
       "said 2>&1; cat said");
    assert_contains(result.out, "labels   400");
    assert_contains(result.out, "On 4 lines it has never seen");
}

TEST(long_lines_are_cut) {
    dataset m;
    open_lines(&m, "lines", 5);
    ck_assert_int_eq(m.train.pairs, 500);
    ck_assert_int_eq(m.train.longest[0], 5);
    ck_assert(m.cut > 300 && m.cut < 500);
    dataset_free(&m);
}

/* ---- learned --------------------------------------------------------------------------------- */

#define CLASSIFY                                                                                   \
    "train --task classify --train lines --valid held --tokenizer-json words --max-len 16 "        \
    "--d-model 16 --heads 2 --layers 1 --d-ff 32 --batch-size 32 --max-tokens 0 --lr 0.003 "       \
    "--warmup 20 --dropout 0 --quiet "

static int right(void) {
    int found = 0, all = 0;
    ck_assert_int_eq(sscanf(result.out, "right labels: %d/%d", &found, &all), 2);
    ck_assert_int_eq(all, 100);
    return found;
}

TEST(labels_are_found) {
    ok(CLASSIFY "--max-steps 200 --threads 1 -o m");
    ck_assert_int_ge(right(), 95);
    /* embed prints them */
    ok("cut -f 1 held | embed m --quiet > found; cut -f 1 found > labels; cut -f 2 held | paste "
       "labels - | awk '$1 == $2' | wc -l");
    ck_assert_int_ge(atoi(result.out), 95);
    ok("cut -f 2 found | awk '$1 <= 1 / 3 || $1 > 1' | wc -l");
    ck_assert_int_eq(atoi(result.out), 0);
    /* with --format f32 embed writes vectors, the same in any batch */
    ok("embed m text --format f32 --quiet > vectors && embed m text --format f32 --batch-size 1 "
       "--quiet | cmp - vectors && wc -c < vectors");
    ck_assert_int_eq(atoi(result.out), 600 * 16 * 4);
    /* the folder of BertForSequenceClassification there and back */
    ok("convert --to hf m -o folder && grep -q BertForSequenceClassification folder/config.json && "
       "grep -q '\"1\": \"neutral\"' folder/config.json && convert --from hf folder -o back && cut "
       "-f 1 held | embed back --quiet | cmp - found");
    /* and it goes on */
    ok("train --task classify --train lines --valid held --init back --max-steps 1 --lr 1e-9 "
       "--quiet -o on");
    ck_assert_int_ge(right(), 95);
}

/* Losses and speeds are of lines: in the log, for TensorBoard, in the picture of losses. */
TEST(units_are_lines) {
    ok(CLASSIFY
       "--max-steps 4 --valid-every 2 --log-every 1 --log log --tensorboard runs --curve curve.svg "
       "-o m > out && grep -c '\"lines_per_second\":' log; cat log runs/* | grep -ac "
       "tokens_per_second; grep -ao train/lines_per_second runs/* | wc -l; grep -o 'loss per "
       "[a-z]*' curve.svg");
    ck_assert_str_eq(result.out, "4\n0\n4\nloss per line\n");
    ok(CLASSIFY "--dry-run --json | grep -c '\"lines_per_second\":'");
}

/* The probabilities of a line do not depend on the batch or the threads. */
TEST(a_line_has_one_probability) {
    ok(CLASSIFY "--max-steps 20 --threads 1 -o m && embed m text --quiet > a && embed m text "
                "--batch-size 1 --quiet | cmp - a && embed m text --batch-size 500 --threads 2 "
                "--quiet --format label | cmp - a");
}

/* A training that is stopped and resumed, or made by several threads or processes, has the same
 * bits. */
TEST(parts_are_the_whole) {
    ok(CLASSIFY "--lr-schedule constant --accum 2 --max-steps 12 --threads 1 -o whole && " CLASSIFY
                "--lr-schedule constant --accum 2 --max-steps 7 --threads 2 -o part && train "
                "--resume -o part --train lines --valid held --max-steps 12 --threads 1 --quiet && "
                "cmp whole part && " CLASSIFY "--lr-schedule constant --accum 2 --max-steps 12 "
                "--processes 2 --threads 1 -o two && cmp whole two");
}

/* A file of lines and a file of labels train the same model as one file with TABs. */
TEST(two_files_are_one) {
    ok("cut -f 1 lines > a; cut -f 2 lines > b; " CLASSIFY "--max-steps 3 --threads 1 -o one && "
       "train --task classify --train-src a --train-tgt b --valid held --tokenizer-json words "
       "--max-len 16 --d-model 16 --heads 2 --layers 1 --d-ff 32 --batch-size 32 --max-tokens 0 "
       "--lr 0.003 --warmup 20 --dropout 0 --max-steps 3 --threads 1 -o two > said 2>&1 && cmp one "
       "two "
       "&& "
       "cat said");
    assert_contains(result.out, " lines, ");
    assert_contains(result.out, "labels   3");
    ck_assert_ptr_null(strstr(result.out, "both sides"));
    ck_assert_ptr_null(strstr(result.out, " pairs, "));
}

/* --init replaces the head of a model by that of the new task. */
TEST(other_heads_are_learned) {
    ok("train --task mask --text text --tokenizer-json words --max-len 16 --d-model 16 --heads 2 "
       "--layers 1 --d-ff 32 --max-steps 30 --batch-size 8 --warmup 5 --quiet -o masked");
    ok("train --task classify --train lines --valid held --init masked --max-steps 150 --lr 0.003 "
       "--warmup 10 --quiet -o m");
    ck_assert_int_ge(right(), 90);
    ok("train --task pairs --train lines --valid-size 0 --init m --max-steps 2 --quiet -o pairs && "
       "inspect pairs");
    ck_assert(!strstr(result.out, "classif"));
    ok("train --task classify --train lines --valid held --init m --lora 2 --max-steps 3 --quiet "
       "-o adapter");
}

/* ---- refused --------------------------------------------------------------------------------- */

static const struct {
    const char *command;
    int status;
    const char *says;
} refused[] = {
    { "train --task classify", 2, "say which text: --train FILE.tsv" },
    { "train --task classify --train lines", 2, "say which one, --tokenizer-json FILE" },
    { "train --task classify --train lines --tokenizer word", 2,
      "--tokenizer word puts no token before a line: --tokenizer-json FILE names one that does, or "
      "--init MODEL a model. \"tokenize --learn wordpiece" },
    { CLASSIFY "--positions learned", 2, "the task trains an encoder, which has one form" },
    { CLASSIFY "--report page.html", 2, "an encoder has no outputs to show" },
    { CLASSIFY "--share-vocab", 2, "an encoder has one vocabulary" },
    { CLASSIFY "--end-token '[SEP]'", 2, "it is for --task lm" },
    { "tokenize --learn bpe --vocab-size 260 -i text -o t; train --task classify --train lines "
      "--tokenizer-json t",
      1, "t: it does not put one token before a line and one after it" },
    { "printf 'a\\tx\\nit\\tx\\n' > p; train --task classify --train p --tokenizer-json words", 1,
      "all lines of p have the label 'x': there must be at least two" },
    { "awk 'BEGIN { for (i = 0; i < 4097; i++) print \"a\\t\" i }' > p; train --task classify "
      "--train p --tokenizer-json words --valid-size 0",
      1, "p has more than 4096 labels: the second column is the label" },
    { "printf 'a\\tx\\nit\\ty\\n' > p; train --task classify --train p --valid held "
      "--tokenizer-json words",
      1, "held: line 1: the target: 'neutral' is none of the model's 2 labels" },
    { "printf 'a\\tb\\tx\\n' > p; train --task classify --train p --tokenizer-json words", 1,
      "line 1 of p has more than two columns" },
    { CLASSIFY "--max-steps 1 -o m > /dev/null; printf 'a\\tx\\nit\\ty\\n' > p; train --task "
               "classify --init m --train p",
      1, "p: line 1: the target: 'x' is none of the model's 3 labels" },
    { CLASSIFY "--max-steps 1 -o m > /dev/null; train --task mask --init m --text text", 1,
      "m has no head that predicts masked tokens" },
    { "(cat held; printf 'it\\t%0256d\\n' 0) > p; train --task classify --train p --tokenizer-json "
      "words",
      1, "p: line 101: its label has more than 255 bytes, or a TAB or a carriage return inside" },
    { "echo it > a; printf 'x\\ty\\n' > b; train --task classify --train-src a --train-tgt b "
      "--tokenizer-json words",
      1, "b: line 1: its label has more than 255 bytes, or a TAB" },
    { "train --task pairs --train lines --tokenizer word --max-steps 1 --d-model 8 --heads 2 "
      "--layers 1 --quiet -o n > /dev/null; train --task classify --init n --lora 1 --train lines",
      1, "n has no labels: its adapters are for a model that has them" },
    { "train --task pairs --train lines --tokenizer word --max-steps 1 --d-model 8 --heads 2 "
      "--layers 1 --quiet -o n > /dev/null; embed n text --format label",
      1, "n has no labels: --format text, npy and f32 are of vectors" },
};

TEST_ROWS(what_is_wrong_is_said, COUNT_OF(refused)) {
    run("%s", refused[_i].command);
    expect(refused[_i].status);
    assert_contains(result.err, refused[_i].says);
}

/* Labels that do not fit the classes of a file. The file is refused with a message. */
static const struct {
    const char *labels, *says;
} untrue[] = {
    { "negative\nneutral", "it names 2 labels, but has 3 classes" },
    { "a\nb\nc\nd", "it names 4 labels, but has 3 classes" },
    { "a\n\nc", "its label 2 has not 1 to 255 bytes of one line, without TABs" },
    { "a\nb\nc\td", "its label 3 has not 1 to 255 bytes" },
};

TEST_ROWS(labels_are_as_many_as_classes, COUNT_OF(untrue)) {
    ok(CLASSIFY "--max-steps 1 -o m");
    change_meta("m", "classify.labels", untrue[_i].labels);
    run("embed m text");
    expect(1);
    assert_contains(result.err, untrue[_i].says);
    run("train --task classify --init m --train lines");
    expect(1);
    assert_contains(result.err, untrue[_i].says);
    run("convert --to hf m -o folder");
    expect(1);
    assert_contains(result.err, untrue[_i].says);
}

/* A label of the greatest length is exported and imported unchanged. */
TEST(long_labels_are_whole) {
    ok("(cat lines; printf 'it\\t%0255d\\n' 0) > p; train --task classify --train p --valid held "
       "--tokenizer-json words --d-model 8 --heads 2 --layers 1 --max-steps 1 --quiet -o m > said "
       "&& convert --to hf m -o folder > said && convert --from hf folder -o back > said && for f "
       "in m back; do grep -a -o '\"classify.labels\":\"[^\"]*\"' $f; done");
    const char *of_back = strchr(result.out, '\n') + 1;
    ck_assert_int_eq(strcspn(result.out, "\n"),
                     255 + strlen("\"classify.labels\":\"\\nnegative\\nneutral\\npositive\""));
    ck_assert(strncmp(result.out, of_back, strlen(of_back)) == 0);
}
