/* tests/tools/test_train_lm.c - train --task lm, on running text: it learns, resumed trainings have
 * the same bits, and generate continues prompts. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/suites.h"
#include "tests/support/commands.h"

TESTS(train_lm)

#define SIZE "--d-model 16 --heads 2 --layers 1 --d-ff 24 --max-len 16 --threads 1 --warmup 2 "
#define LM "train --task lm --text text --tokenizer byte --quiet --max-tokens 64 " SIZE

static void make_text(void) {
    enter_folder();
    ok("for i in 1 2 3 4 5 6 7 8 9; do printf 'one two three four\\n  five six seven\\n@@@\\n'; "
       "done > text; printf 'one two\\n  five six\\n' > more; : > nothing");
}

SETUP(make_text, leave_folder)

/* The rules of an artificial language are learned, to less than 0.5 bits per byte of the text. */
TEST_ROWS(text_is_learned_byte_by_byte, 4) {
    static const char *const tokens[] = { "byte", "text-char", "byte-bpe --vocab-size 270",
                                          "byte --form llama --kv-heads 1" };
    run("train --text text --tokenizer %s --document-marker @@@ --text-eval text --d-model 32 "
        "--heads 2 --layers 1 --d-ff 64 --max-len 48 --max-tokens 384 --threads 1 --max-steps 400 "
        "--warmup 10 --lr 0.01 --dropout 0 -o m",
        tokens[_i]);
    expect(0);
    assert_contains(result.err, "in 9 documents");
    double bits = -1;
    ck_assert_int_eq(sscanf(result.out, "%lf bits per byte", &bits), 1);
    ck_assert(bits > 0 && bits < 0.5);
    ok("generate --model m --prompt 'one two' --quiet");
    ck_assert_msg(strcmp(result.out, "one two three four\n  five six seven\n\n") == 0, "'%s'",
                  result.out);
    ok("generate --model m --prompt 'one two' --max-new-tokens 3 --quiet | head -c 8");
    ck_assert_str_eq(result.out, "one two ");
    ok("printf 'one two\\t three four\\none two\\tseven seven\\n' | generate --model m --score "
       "--quiet | sort -g | tail -1");
    double likely = atof(result.out);
    ck_assert(likely < 0 && likely > -40);
}

/* Prompts have the same continuations in one batch or alone, written at the end or as they are
 * made. */
TEST(prompts_of_all_lengths_in_one_batch) {
    ok(LM "--max-steps 40 -o m 2> /dev/null");
    ok("printf 'o\\none two\\n\\nfive six se\\nt\\n' > prompts");
    static const char *const ways[] = { "", "--sample --seed 5", "--sample --top-k 4 --top-p 0.8",
                                        "--beam 3 --nbest 2" };
    for (int i = 0; i < 4; i++) {
        run("generate --model m --quiet --max-new-tokens 6 %s < prompts > all", ways[i]);
        expect(0);
        run("generate --model m --quiet --max-new-tokens 6 %s --batch-size 1 --threads 2 < prompts "
            "> alone",
            ways[i]);
        expect(0);
        ck_assert(same_files("all", "alone"));
        if (i == 3) continue;
        run("generate --model m --quiet --max-new-tokens 6 %s --stream < prompts > alone", ways[i]);
        expect(0);
        ck_assert(same_files("all", "alone"));
    }
    ok("generate --model m --quiet --prompt 'two th' --stream | tee a");
    ck_assert_msg(strncmp(result.out, "two th", 6) == 0, "'%s'", result.out);
    ok("generate --model m --quiet --prompt 'two th' > b");
    ck_assert(same_files("a", "b"));
}

/* A text of one line is trained on as a whole, with a message that nothing is held out. */
TEST(a_text_of_one_line_is_learned_whole) {
    ok("printf '%0400d' 7 > line");
    run("train --text line --tokenizer byte --quiet --max-tokens 64 " SIZE "--max-steps 1");
    expect(0);
    assert_contains(result.err, "nothing is held out: a text is parted between lines");
}

/* Zero bytes in the output are written, and do not end it. */
TEST(zeros_are_written_too) {
    ok("for i in 1 2 3 4 5 6 7 8 9; do printf 'ab\\0ab\\0ab\\0ab\\0'; done > zeros");
    ok("train --text zeros --tokenizer byte --quiet --max-tokens 64 " SIZE
       "--text-eval-size 0 --lr 0.02 --max-steps 200 -o m");
    static const char *const ways[] = { "", "--stream" };
    for (int i = 0; i < 2; i++) {
        run("generate --model m --prompt ab --max-new-tokens 4 %s --quiet | tr '\\0' '-'", ways[i]);
        ck_assert_str_eq(result.out, "ab-ab-\n");
    }
    ok("generate --model m --prompt ab --max-new-tokens 4 --json --quiet");
    assert_contains(result.out, "\"text\":\"\\u0000ab\\u0000\"");
}

/* A training in parts, which end within an epoch and have other numbers of threads, gives the file
 * of one training. In the last row it is validated in between. */
TEST_ROWS(parts_of_a_training_are_the_whole, 4) {
    static const char *const settings[] = { "", "--form llama --kv-heads 1 --ema 0.5",
                                            "--accum 2 --ema 0.5 --dropout 0.1",
                                            "--text-eval more --valid-every 3" };
    static const char *const again[] = { "", "", "", "--text-eval more --valid-every 3" };
    run(LM "%s --max-steps 14 --lr-steps 20 -o whole", settings[_i]);
    expect(0);
    run(LM "%s --max-steps 5 --lr-steps 20 -o parts", settings[_i]);
    expect(0);
    for (int i = 0; i < 2; i++) {
        run("train --resume -o parts --text text --quiet --threads %d --max-steps %d %s", 2 - i,
            i ? 14 : 9, again[_i]);
        expect(0);
    }
    ck_assert(same_files("whole", "parts"));
    run("train --resume -o parts --text more --quiet --max-steps 16 %s", again[_i]);
    expect(1);
    ck_assert(strstr(result.err, "another text than this") ||
              strstr(result.err, "the text has only"));
}

/* A text from a pipe, which can be read only once, is read completely. */
TEST(a_pipe_is_a_text) {
    ok(LM "--max-steps 3 -o a");
    ok("cat text | train --task lm --text /dev/stdin --tokenizer byte --quiet --max-tokens 64 " SIZE
       "--max-steps 3 -o b");
    ck_assert(same_files("a", "b"));
}

static const struct refusal {
    const char *command;
    int status;
    const char *says;
} refusals[] = {
    { "train --task lm", 2, "say which text: --text FILE" },
    { "train --task lm --train text", 2,
      "--train has pairs, and this task learns from running text: --text text\n" },
    { "train --task lm --train-src text", 2, "learns from running text: --text text\n" },
    { "train --task text --text text", 2,
      "or --train-src and --train-tgt; --text is for --task lm, mask and spans" },
    { "train --task lm --text none", 1, "none can't be read: No such file" },
    { "train --task lm --text text --text-eval none --tokenizer byte", 1, "none can't be read" },
    { "train --text text --train text", 2, "--text would have no effect: it is for --task lm" },
    { "train --task lm --text text --train text", 2, "running text is in --text" },
    { "train --task copy --text text", 2, "--text would have no effect" },
    { "train --task copy --document-marker x", 2, "--document-marker would have no effect" },
    { "train --text text --tokenizer bpe", 2,
      "--tokenizer bpe loses line breaks: byte, text-char" },
    { "train --text text --arch transformer", 2, "reads a source, and running text has none" },
    { "train --text text --tokenizer byte --vocab-size 300", 2, "every byte has an id" },
    { "train --text text --vocab-size 200", 1, "bytes need 260 ids: raise --vocab-size" },
    { "train --text text --max-tokens 100", 2, "--max-tokens 100 is less than a window" },
    { "train --text more", 1, "give more text, or a --max-len below 21" },
    { "train --text text --text-eval more --text-eval-size 9", 2,
      "--text-eval-size would have no" },
    { "train --text text --text-eval nothing --tokenizer byte --max-len 16", 1,
      "nothing has no text to validate with" },
    { "train --text text --text-eval-size 0 --valid-every 9", 2, "holds nothing out" },
    { "train --task copy --form llama", 2, "--form would have no effect: this architecture" },
    { "train --task copy --kv-heads 2", 2, "--kv-heads would have no effect" },
    { "train --text text --tokenizer byte --max-len 16 --heads 4 --kv-heads 3", 2,
      "4 heads can't share 3 heads of keys" },
    { "train --text text --tokenizer byte --max-len 16 --form llama --d-model 12 --heads 4", 2,
      "heads of an even width, not 3" },
    { "train --task copy --positions rotary --d-model 12 --heads 4", 2,
      "heads of an even width, not 3" },
    { "train --text text --tie inputs", 2,
      "--tie would have no effect: a language model has one embedding: --tie none or decoder" },
    { "train --task copy --arch language --tie inputs", 2, "--tie would have no effect" },
    { "train --text text --share-vocab", 2, "--share-vocab would have no effect" },
    { "generate --model none --prompt a --input text", 2, "--input would have no effect" },
    { "generate --model none --stream --json", 2, "--stream would have no effect" },
    { "generate --model none --stream --nbest 2", 2, "--nbest would have no effect" },
    { "generate --model none --max-new-tokens 3 --max-len-b 3", 2, "--max-len-b would have no" },
    { "generate --model none --score --prompt a", 2, "--prompt would have no effect" },
};

TEST_ROWS(mistakes_are_refused, COUNT_OF(refusals)) {
    run("%s", refusals[_i].command);
    expect(refusals[_i].status);
    assert_contains(result.err, refusals[_i].says);
}

/* Options that belong to the task's default optimizer, AdamW, are accepted. */
TEST(the_options_of_default_choices_are_taken) {
    ok(LM "--weight-decay 0.3 --max-steps 1");
    run(LM "--optimizer adam --weight-decay 0.3 --max-steps 1");
    expect(2);
    assert_contains(result.err, "--weight-decay would have no effect: only adamw and lion");
}

TEST(prompts_that_cannot_be_are_refused) {
    ok(LM "--max-steps 1 -o m");
    run("generate --model m --long-lines stop --prompt 'one two three four five'");
    expect(1);
    assert_contains(result.err, "--prompt: the source has 23 tokens, and 15 is the most");
    run("generate --model m --stream --beam 2 --prompt a");
    expect(2);
    assert_contains(result.err, "--stream writes tokens that can't change any more");
}
