/* tests/tools/test_train_quantize.c - `train --quantize-aware`: the same file with a resume and
 * with any threads and processes; conversion of the models; refusals. The rounding is tested in
 * models/test_quantize_aware.c. */
#include <stdio.h>

#include "tests/suites.h"
#include "tests/support/commands.h"
#include "tests/support/support.h"

TESTS(train_quantize)

#define SIZE "--d-model 16 --heads 2 --layers 1 --d-ff 16 "
#define QUICK "--quiet --warmup 2 --batch-size 5 --lr-steps 60 --valid-size 0 "
#define PAIRS "--train pairs " QUICK SIZE

static void make_pairs(void) {
    char path[512];
    enter_folder();
    run("cp %s vocabulary.spm", source_path("tests/data/words_de.spm", path, sizeof path));
    expect(0);
    ok("for i in 1 2 3 4 5 6 7 8; do printf 'alle leute\ttwo words\nein hund\tone dog\n'; done > "
       "pairs; cut -f 1 pairs > lines");
}

SETUP(make_pairs, leave_folder)

static const struct {
    const char *model, *rounding;
} rows[] = {
    { PAIRS "--tokenizer word", "int8" },
    { PAIRS "--tokenizer word --arch language --form llama --kv-heads 1", "int8" },
    { "--train pairs " QUICK "--like firefox --preset tiny --tie all --spm-src vocabulary.spm",
      "marian" },
};

/* Training in one run, in two parts, or by two processes gives the same bytes, and others than
 * training without --quantize-aware. */
TEST_ROWS(a_training_is_the_same_in_parts, COUNT_OF(rows)) {
    const char *model = rows[_i].model, *rounding = rows[_i].rounding;
    run("train %s --accum 2 --threads 1 --max-steps 8 -o plain", model);
    expect(0);
    run("train %s --accum 2 --quantize-aware %s --threads 1 --max-steps 8 -o whole", model,
        rounding);
    expect(0);
    run("train %s --accum 2 --quantize-aware %s --threads 2 --max-steps 3 -o parts", model,
        rounding);
    expect(0);
    ok("train --resume --train pairs --quiet --threads 3 --max-steps 8 -o parts");
    ck_assert(same_files("whole", "parts"));
    run("train %s --accum 2 --quantize-aware %s --processes 2 --threads 1 --max-steps 8 -o ranks",
        model, rounding);
    expect(0);
    ck_assert(same_files("whole", "ranks"));
    ok("convert --weights f32 plain -o a; convert --weights f32 whole -o b");
    ck_assert(!same_files("a", "b"));
    run("inspect whole | grep -q 'quantize-aware *%s'", rounding);
    expect(0);
    ok("convert --weights int8 whole -o small; generate small lines > outputs; test -s outputs");
}

/* A model in f32 is fine-tuned with rounding, and converted to an int8 file of Marian, as Firefox
 * uses. */
TEST(a_model_is_tuned_and_goes_to_marian) {
    run("train %s --max-steps 8 -o first", rows[2].model);
    expect(0);
    ok("train --init first --train pairs " QUICK "--max-steps 5 --quantize-aware marian -o tuned");
    ok("convert --to marian --calibrate lines tuned -o tuned.bin");
    ok("convert --from marian tuned.bin --spm-src vocabulary.spm -o student");
    ok("generate --arithmetic marian student lines > outputs; test -s outputs");
}

/* An encoder that labels lines. */
TEST(an_encoder_is_rounded) {
    ok("for i in $(seq 12); do printf 'a b c\tone\nd e f\ttwo\n'; done > labelled");
    ok("cut -f 1 labelled | tokenize --learn wordpiece --vocab-size 11 -i - -o t.json");
    ok("train --task classify --train labelled --tokenizer-json t.json " QUICK SIZE
       "--quantize-aware int8 --max-steps 4 -o m && embed --format label m labelled > labels");
}

static const struct {
    const char *command, *sentence;
    int status;
} refused[] = {
    { "train --init m --train pairs --lora 2 --quantize-aware int8",
      "--quantize-aware: adapters leave the matrices as they are, which it would round: leave "
      "--lora out",
      2 },
    { "train --task copy --quantize-aware marian -o n",
      "its matrices cannot be rounded to int8: Marian has no such model", 1 },
    { "train --task copy --arch language --quantize-aware marian -o n", "Marian has no such model",
      1 },
    { "train --task copy --quantize-aware int4 -o n", "none|int8|marian", 2 },
    { "train --resume --train pairs --quantize-aware none -o m",
      "m was trained with --quantize-aware int8", 2 },
};

/* The help says that --like marian sets a default, and not --quantize-aware, which has the word
 * marian, too. */
TEST(help_names_the_option_that_sets_a_default) {
    ok("train --help | tr -s ' \\n' ' '");
    assert_contains(result.out, "post with --like marian");
    ck_assert_ptr_null(strstr(result.out, "with --quantize-aware marian"));
}

TEST_ROWS(what_cannot_be_is_refused, COUNT_OF(refused)) {
    ok("train " PAIRS "--tokenizer word --quantize-aware int8 --max-steps 1 -o m");
    run("%s", refused[_i].command);
    expect(refused[_i].status);
    assert_contains(result.err, refused[_i].sentence);
    ok("test ! -e n");
}
