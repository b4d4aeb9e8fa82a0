/* tests/tools/test_train_json.c - translators and encoders that are trained from pairs with a
 * tokenizer.json of `tokenize --learn`: one vocabulary for both sides, uses of the trained models,
 * and refusals. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suites.h"
#include "tests/support/commands.h"

TESTS(train_json)

#define TINY "--d-model 16 --heads 2 --layers 1 --d-ff 16 --threads 1 --quiet --warmup 2 "
#define PAIRS "train --train-src src --train-tgt tgt " TINY

/* Writes sources and targets of 1 to 5 words, and learns three kinds of tokenizers from them. */
static void make_pairs(void) {
    enter_folder();
    ok("awk 'BEGIN { split(\"haus hund katze baum\", s); split(\"house dog cat tree\", t); for (i "
       "= 0; i < 40; i++) { a = b = \"\"; for (k = 0; k <= i % 5; k++) { w = 1 + (i * 3 + k * k) "
       "% 4; a = a (k ? \" \" : \"\") s[w]; b = b (k ? \" \" : \"\") t[w] } print a > \"src\"; "
       "print b > \"tgt\" } }'; paste src tgt > pairs; cat src tgt > both");
    ok("tokenize --learn bpe --vocab-size 270 -i both -o bpe; tokenize --learn unigram "
       "--vocab-size 30 -i both -o unigram; tokenize --learn wordpiece --vocab-size 40 -i both -o "
       "wordpiece");
}

SETUP(make_pairs, leave_folder)

/* With every kind of tokenizer, both sides share the vocabulary of the tokenizer.json, with its ids
 * and special tokens. */
static const struct kind {
    const char *name, *special; /* ids of padding, unknown, start, end */
    const char *padding;
} kinds[] = { { "bpe", "0,-1,0,0", "<|endoftext|>" },
              { "unigram", "1,3,0,2", "<pad>" },
              { "wordpiece", "0,1,2,3", "[PAD]" } };

TEST_ROWS(a_translator_reads_and_writes_by_it, COUNT_OF(kinds)) {
    const char *name = kinds[_i].name;
    run(PAIRS "--tokenizer-json %s --epochs 2 -o m", name);
    expect(0);
    ok("grep -ao '\"tokenizer.special\":\"[^\"]*\"' m | head -n 1");
    assert_contains(result.out, kinds[_i].special);
    ok("head -n 3 src | generate -m m --max-len-b 9 --quiet | wc -l");
    ck_assert_str_eq(result.out, "3\n");
    /* special tokens never get into an output */
    ok("generate -m m --max-len-b 9 --quiet < src | grep -c '<s>\\|</s>\\|SEP\\|endoftext' || test "
       "$? = 1");
    ok("train --train-src src --train-tgt tgt --resume -o m --epochs 3 --quiet && train "
       "--init m --train pairs --max-steps 2 --quiet -o tuned");
}

/* A byte-level vocabulary has one special token, which begins and ends outputs. The training is
 * long enough that all outputs end. */
TEST(its_outputs_end) {
    ok("train --train-src src --train-tgt tgt --tokenizer-json bpe --d-model 32 --heads 2 --layers "
       "1 --d-ff 64 --threads 1 --quiet --warmup 10 --lr 0.005 --dropout 0 --label-smoothing 0 "
       "--batch-size 10 --max-steps 200 --valid-size 0 -o m && generate -m m < src > out");
    ck_assert_ptr_null(strstr(result.err, "were cut"));
    ok("paste out tgt | awk -F '\\t' '$1 == $2' | wc -l");
    ck_assert_int_ge(atoi(result.out), 20);
}

/* The emitted program encodes and decodes text as `generate` does. */
TEST(a_translator_becomes_c) {
    ok(PAIRS "--tokenizer-json bpe --epochs 2 -o m && graph m --emit-c -o m.c && "
             "${CC:-cc} -std=c11 -DMODEL_MAIN m.c -o program -lm && ./program < src > a && "
             "generate -m m --quiet < src > b && cmp a b");
}

TEST(a_language_model_of_pairs_takes_it) {
    ok(PAIRS "--arch language --tokenizer-json bpe --epochs 1 -o m && head -n 3 src | generate -m "
             "m --max-len-b 9 --quiet | wc -l");
    ck_assert_str_eq(result.out, "3\n");
}

/* Encoders are trained on pairs with every kind of tokenizer, and exported with the padding token
 * that the tokenizer.json has. */
TEST_ROWS(an_encoder_of_pairs_takes_it, COUNT_OF(kinds)) {
    const char *name = kinds[_i].name;
    run(PAIRS "--task pairs --tokenizer-json %s --epochs 2 -o m && convert --to hf m -o folder && "
              "cmp %s folder/tokenizer.json && convert --from hf folder -o back && embed m src > a "
              "&& embed back src > b && cmp a b && grep '\"pad_token\"' folder/*_config.json",
        name, name);
    expect(0);
    assert_contains(result.out, kinds[_i].padding);
    ok("train --task pairs --train-src src --train-tgt tgt --resume -o m --epochs 3 --quiet && "
       "train --init m --task pairs --train pairs --max-steps 2 --quiet -o tuned");
}

/* train --task pairs accepts a vocabulary without any token that could end an output. */
TEST(an_encoder_needs_no_end) {
    ok("tokenize --learn bpe --vocab-size 270 --special '<e>,<p>' -i both -o own");
    ok(PAIRS "--task pairs --tokenizer-json own --epochs 1 -o m && embed m src > out");
}

/* Outputs of a --like t5 start with the padding token, and its exported folder has the
 * tokenizer.json. */
TEST(a_t5_takes_it_into_its_folder) {
    ok(PAIRS "--like t5 --tokenizer-json unigram --epochs 4 -o m && convert --to hf m -o folder && "
             "cmp unigram folder/tokenizer.json && convert --from hf folder -o back");
    ok("for m in m back; do generate -m $m --score --quiet < pairs > $m.scores; done; cmp m.scores "
       "back.scores && wc -l < m.scores");
    ck_assert_str_eq(result.out, "40\n");
}

/* If the vocabulary has no known end token, train refuses to train a translator unless --end-token
 * names one. */
TEST(an_option_names_the_end) {
    ok("tokenize --learn bpe --vocab-size 270 --special '<e>,<p>' -i both -o own");
    run(PAIRS "--tokenizer-json own --epochs 1 -o m");
    expect(1);
    assert_contains(result.err, "name one by --end-token, or learn one by tokenize --learn");
    ok(PAIRS "--tokenizer-json own --end-token '<e>' --epochs 1 -o m");
    run(PAIRS "--tokenizer-json own --end-token '<x>' --epochs 1 -o n");
    expect(1);
    assert_contains(result.err, "own: it has no token '<x>'");
}

static const struct {
    const char *command;
    int status;
    const char *says;
} refused[] = {
    { PAIRS "--like t5 --tokenizer-json bpe", 1,
      "bpe: it has no token <pad> or no </s>: tokenize --learn unigram has both" },
    { PAIRS "--tokenizer-json bpe --tokenizer-tgt char", 2,
      "--tokenizer-tgt would have no effect: one tokenizer.json cuts both sides" },
    { PAIRS "--like t5 --tokenizer-json unigram --end-token '<pad>'", 2,
      "--end-token would have no effect: T5 ends outputs with </s>" },
    { PAIRS "--task pairs --tokenizer-json bpe --end-token '<|endoftext|>'", 2,
      "--end-token would have no effect: it is for --task lm and text" },
    { PAIRS "--tokenizer-json bpe --vocab-size 300", 2, "--vocab-size would have no effect" },
    { PAIRS "--tokenizer-json bpe --like bart", 2, "--tokenizer byte-level" },
    { "train --task date --tokenizer-json bpe", 2,
      "--tokenizer-json would have no effect: it is for text from files" },
    { PAIRS "--tokenizer-json bpe --epochs 1 -o m && convert --to hf m -o folder", 1,
      "train it with --like t5 and a tokenizer of tokenize --learn unigram" },
    { PAIRS "--like t5 --tokenizer json", 2, "\"tokenize --learn unigram --vocab-size 8000" },
};

TEST_ROWS(what_is_wrong_is_said, COUNT_OF(refused)) {
    run("%s", refused[_i].command);
    expect(refused[_i].status);
    assert_contains(result.err, refused[_i].says);
}
