/* tests/tools/test_filter.c - generate as a filter, which writes a line for each line, whatever is
 * in them; and settings of the search in a model's file.
 *
 * $BYTES is a hardly trained model of running text, which writes any bytes, also line breaks.
 * $SHORT translates word by word, and reads at most eight words. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/suites.h"
#include "tests/support/commands.h"
#include "tools/cli/options/options.h"
#include "tools/cli/so_far.h"
#include "tools/cli/terminal.h"

TESTS(filter)

#define SIZE "--d-model 16 --heads 2 --layers 1 --d-ff 32 --quiet --threads 1 "

static void train_models(void) {
    enter_models();
    ok("for i in 1 2 3 4 5 6 7 8 9; do printf 'one two\\nthree four.\\r\\n\\n\\tfive %d\\n' $i; "
       "done > "
       "book");
    ok("cat book book book book > text");
    ok("train --task lm --text text --tokenizer byte " SIZE "--max-steps 40 --lr 0.01 --max-len 32 "
       "-o bytes > /dev/null");
    ok("printf 'a\\tA\\nb\\tB\\na b\\tA B\\nb a\\tB A\\na .\\tA .\\nb .\\tB .\\n' > pairs; train "
       "--train pairs "
       "--tokenizer word --max-len 8 " SIZE
       "--max-steps 200 --lr 0.01 --warmup 10 -o short > /dev/null");
    change_meta("short", "weft.config.max_len", "8");
    static const char *const names[] = { "BYTES", "SHORT" };
    name_models(names, COUNT_OF(names));
}

/* The number of lines of a file, whatever its bytes. */
static int lines_of(const char *path) {
    run("wc -l < %s", path);
    return atoi(result.out);
}

SETUP_ONCE(train_models, forget_models)
SETUP(enter_folder, leave_folder)

/* ---- a line for a line ----------------------------------------------------------------------- */

#define DRAW "generate $BYTES --sample --max-new-tokens 24 --quiet "
#define SEEDS "for seed in 1 2 3 4 5 6 7 8; do "

TEST(line_breaks_within_outputs_are_escaped) {
    ok("printf 'one\\ntwo\\n\\nthree\\n' > in; " SEEDS DRAW "in --raw --seed $seed; done > raw");
    ck_assert_str_eq(result.err, "");
    ck_assert_int_gt(lines_of("raw"), 32); /* the model does write line breaks */
    ok(SEEDS DRAW "in --seed $seed; done > all");
    assert_contains(result.err, "line breaks within outputs were written as \\n");
    assert_contains(result.err, "--raw writes them as they are");
    ck_assert_int_eq(lines_of("all"), 32);
    ok("grep -a -c '\\\\n' all; tr -d -c '\\r' < all");
    ck_assert_int_gt(atoi(result.out), 0);
    ck_assert_ptr_null(strchr(result.out, '\r'));
    ok(SEEDS DRAW "in --seed $seed --stream; done > streamed; cmp all streamed");
}

/* In output with columns (score TAB output), a tab within the output is escaped. */
TEST(columns_hold_no_tabs) {
    ok("printf 'one\\ntwo\\n' > in; " SEEDS DRAW "in --nbest 3 --seed $seed; done > all");
    assert_contains(result.err, "line breaks or tabs within outputs");
    ck_assert_int_eq(lines_of("all"), 48);
    ok("tr -d -c '\\t' < all | wc -c; grep -a -c '\\\\t' all");
    ck_assert_int_eq(atoi(result.out), 48);
    ck_assert_int_gt(atoi(strchr(result.out, '\n') + 1), 0);
}

/* The continuation of --prompt is written unescaped, unless the output has columns. */
TEST(a_prompt_is_answered_as_it_is) {
    ok(DRAW "--prompt one --seed 3 > a; printf 'one\\n' | " DRAW "--raw --seed 3 > b; "
            "printf one > c; cat b >> c; cmp a c");
    ok(SEEDS DRAW "--prompt one --stream --seed $seed; done > all");
    ck_assert_str_eq(result.err, "");
    ck_assert_int_gt(lines_of("all"), 8);
    ok(SEEDS DRAW "--prompt one --nbest 2 --seed $seed; done > all");
    ck_assert_int_eq(lines_of("all"), 16);
}

TEST(a_reader_that_goes_ends_it_without_a_word) {
    ok("(yes a | head -4000 | generate $SHORT --batch-size 1; echo $? > status) 2> err | head -1; "
       "cat err status");
    ck_assert_str_eq(result.out, "A\n141\n");
    ok("(" DRAW "--prompt one --stream; yes | head -40000 | " DRAW
       "--stream; echo $? > status) 2> err | head -1 > /dev/null; cat err status");
    ck_assert_str_eq(result.out, "141\n");
    ok("(inspect --json $SHORT; echo $? > status) 2> err | true; sleep 0.1; cat err");
    ck_assert_str_eq(result.out, "");
    ok("(sleep 0.2; inspect $SHORT; echo $? > status) 2> err | true; sleep 0.4; cat err status");
    ck_assert_str_eq(result.out, "141\n");
    ok("seq 99 > words; for do in 'graph $SHORT -o -' 'graph --emit-c $SHORT -o -' 'graph --html - "
       "--length 4 $SHORT' "
       "'tokenize --learn bpe --vocab-size 257 -i words -o -'; do "
       "(sleep 0.1; eval $do; echo $? > status) 2> err | true; sleep 0.5; cat err status; done");
    ck_assert_str_eq(result.out, "141\n141\n141\n141\n");
    run("echo a | generate $SHORT --quiet > /dev/full");
    expect(1);
    assert_contains(result.err, "stdout could not be written");
}

TEST(files_need_no_names_of_options) {
    ok("printf 'a\\nb\\n' > in; generate $SHORT in --quiet");
    ck_assert_str_eq(result.out, "A\nB\n");
    ok("generate in -m $SHORT --quiet"); /* beside -m, a single word is the input file */
    ck_assert_str_eq(result.out, "A\nB\n");
    ok("generate -m $SHORT -i - -o - --quiet < in");
    ck_assert_str_eq(result.out, "A\nB\n");
    ok("generate $SHORT - --quiet < in; generate -- $SHORT in");
    ck_assert_str_eq(result.out, "A\nB\nA\nB\n");
    run("generate $SHORT in more");
    expect(2);
    assert_contains(result.err, "'more' is not an option; words with spaces need quotes, and a "
                                "file follows the name of its option: "
                                "--adapter FILE, --shortlist FILE, "
                                "--reference FILE");
    run("cp $SHORT m; generate m in -o m");
    expect(2);
    assert_contains(result.err, "m is to be read and written at once");
}

TEST(unknown_tokens_are_counted) {
    ok("printf 'a b\\nc a d .\\n' | generate $SHORT");
    assert_contains(result.err,
                    "2 of the 6 tokens of the sources are unknown to the model's vocabulary, the "
                    "first in 'c', line 2\n");
    ok("printf 'a b\\n\\n\\n  b q\\nc\\n' | generate $SHORT");
    assert_contains(result.err, "vocabulary, the first in 'q', line 4\n");
    ok("printf 'a\\001\\n' | generate $SHORT");
    assert_contains(result.err, "vocabulary, the first in line 1\n");
    ok("printf 'a b\\n' | generate $SHORT");
    ck_assert_ptr_null(strstr(result.err, "unknown"));
    ok("echo c | generate $BYTES --max-new-tokens 1");
    ck_assert_ptr_null(strstr(result.err, "unknown"));
}

/* ---- long lines ------------------------------------------------------------------------------ */

#define LONG                                                                                       \
    "printf 'a\\na b a b a b a b a b a b\\nb\\n a b a . b a b a b a b . b b b b b b b b b b\\n' "  \
    "> in; "

TEST(long_lines_are_cropped) {
    ok(LONG "printf 'a\\na b a b a b a b\\nb\\n a b a . b a b a\\n' | generate $SHORT --quiet > a; "
            "generate $SHORT in --quiet > b; cmp a b");
    assert_contains(result.err,
                    "2 of 4 lines were too long, and were cropped; the first is line 2: "
                    "the source has 12 tokens, and 8 is the most the model takes");
    ok(LONG "generate $SHORT in --quiet --batch-size 1 --json | grep -c '\"line\"'");
    ck_assert_str_eq(result.out, "4\n");
}

TEST(long_lines_are_split) {
    ok(LONG "generate $SHORT in --quiet --long-lines split > all; sed -n 2p all");
    assert_contains(result.err,
                    "2 of 4 lines were too long, and were split into parts; the first is "
                    "line 2");
    ok("printf 'a b a b a b a b\\na b a b\\n' | generate $SHORT --quiet | tr '\\n' ' ' | sed 's/ "
       "$//' > "
       "a; sed -n 2p all | tr -d '\\n' > b; cmp a b");
    ok("printf 'a b a .\\nb a b a b a b .\\nb b b b b b b b\\nb b\\n' | generate $SHORT --quiet | "
       "tr '\\n' "
       "' ' | sed 's/ $//' > a; sed -n 4p all | tr -d '\\n' > b; cmp a b");
    ok("generate $SHORT in --quiet --long-lines split --batch-size 1 > b; cmp all b");
    ok("generate $SHORT in --quiet --long-lines split --stream --threads 2 > b; wc -l < b");
    ck_assert_int_eq(atoi(result.out), 4);
    ok("generate $SHORT in --quiet --long-lines split --json | grep -o "
       "'\"line\":[0-9]*,\"part\":[0-9]*' | "
       "tr '\\n' ' '");
    ck_assert_str_eq(result.out,
                     "\"line\":2,\"part\":1 \"line\":2,\"part\":2 \"line\":4,\"part\":1 "
                     "\"line\":4,\"part\":2 \"line\":4,\"part\":3 \"line\":4,\"part\":4 ");
    /* parts are compared as one */
    ok("generate $SHORT in --quiet --long-lines split --reference all");
    assert_contains(result.err, "exact match 4/4");
}

/* A long line without spaces is split between characters, which are one id each. */
TEST(what_has_no_space_is_split_between_characters) {
    ok("printf 'ab\\tAB\\nba\\tBA\\n\\303\\244\\tA\\n' > pairs; train --train pairs --tokenizer "
       "char " SIZE "--max-steps 5 -o m > /dev/null");
    change_meta("m", "weft.config.max_len", "8");
    ok("printf 'ab\\303\\244ab\\303\\244ab\\303\\244ab\\303\\244ab\\303\\244ab\\303\\244ab\\n' | "
       "generate m --long-lines split --quiet --json | grep -o '\"source\":\"[^\"]*\"'");
    ck_assert_str_eq(result.out, "\"source\":\"ab\303\244ab\303\244ab\"\n"
                                 "\"source\":\"\303\244ab\303\244ab\303\244a\"\n"
                                 "\"source\":\"b\303\244ab\"\n");
}

TEST(long_lines_are_skipped) {
    ok(LONG "generate $SHORT in --quiet --long-lines skip");
    ck_assert_str_eq(result.out, "A\n\nB\n\n");
    assert_contains(result.err,
                    "2 of 4 lines were too long, and were skipped; the first is line 2");
    ok("generate $SHORT in --quiet --long-lines skip --json | grep -c '\"skipped\":true'");
    ck_assert_str_eq(result.out, "2\n");
}

TEST(a_long_line_ends_the_run_if_asked) {
    run(LONG "generate $SHORT in --quiet --long-lines stop");
    expect(1);
    ck_assert_str_eq(result.out, "A\n");
    assert_contains(result.err,
                    "in, line 2: the source has 12 tokens, and 8 is the most the model");
}

TEST(long_pairs_are_scored_as_far_as_they_go) {
    ok("printf 'a\\tA\\na a a a a a a a a a\\tA A A A A A A A A A\\na b\\tA B\\n' > in; "
       "printf 'a\\tA\\na a a a a a a a\\tA A A A A A A\\na b\\tA B\\n' > short; "
       "generate $SHORT in --score --quiet --long-lines crop > a; generate $SHORT short --score "
       "--quiet > b; cmp a b");
    assert_contains(result.err,
                    "1 of 3 lines were too long, and were cropped; the first is line 2");
    /* A cropped pair has another score than the whole line. It is written only with
     * --long-lines crop. */
    ok("generate $SHORT in --score --quiet --long-lines skip > a; generate $SHORT in --score "
       "--quiet > b; cmp a b && grep -c '^$' b");
    ck_assert_str_eq(result.out, "1\n");
    ok("generate $SHORT in --score --quiet --json --long-lines skip | grep -c skipped");
    ck_assert_str_eq(result.out, "1\n");
    run("generate $SHORT in --score --quiet --long-lines stop");
    expect(1);
}

/* The end of a long prompt is continued. At most half of the positions are kept free for the
 * output. */
TEST(a_long_prompt_keeps_its_end) {
    ok("p=$(seq -s ' ' 100); printf '%s\\n' \"$p\" > in; generate $BYTES in --quiet > a; printf "
       "'%s\\n' "
       "\"$p\" | tail -c 17 > tail; generate $BYTES tail --quiet > b; cmp a b; cat b");
    ck_assert_int_gt((int)strlen(result.out), 2);
    ok("generate $BYTES in --quiet --max-new-tokens 4 > a; tail -c 28 in > tail; "
       "generate $BYTES tail --quiet --max-new-tokens 4 > b; cmp a b");
    run("generate $BYTES --prompt \"$(seq -s ' ' 100)\" --long-lines stop");
    expect(1);
    assert_contains(result.err, "--prompt: the source has ");
    ok("generate $BYTES --prompt \"$(seq -s ' ' 100)\"");
    assert_contains(result.err, "1 of 1 lines were too long, and were cropped");
}

/* ---- progress -------------------------------------------------------------------------------- */

static const struct amount {
    int64_t done, total;
    double seconds;
    const char *text;
} amounts[] = {
    { 1200, 40000, 14.1, "1,200 of 40,000 lines, 85 lines/s, about 8 min left" },
    { 1200, -1, 14.1, "1,200 lines, 85 lines/s" },
    { 3, 10, 30, "3 of 10 lines, 0.1 lines/s, about 70 s left" },
    { 1, 1000, 60, "1 of 1,000 lines, 0.0 lines/s, about 16.6 h left" },
    { 0, 10, 3, "0 lines, 0.0 lines/s" },
    { 12, 10, 3, "12 lines, 4.0 lines/s" },
};

TEST_ROWS(a_sentence_says_how_far_it_is, COUNT_OF(amounts)) {
    char text[SO_FAR_TEXT];
    const struct amount *a = &amounts[_i];
    ck_assert_str_eq(so_far_text(a->done, a->total, a->seconds, text), a->text);
}

/* A message first removes the progress bar from its line. */
TEST(a_message_removes_the_bar) {
    const program p = { .name = "p" };
    int before = dup(STDERR_FILENO), file = open("bar", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(file, STDERR_FILENO);
    bar_draw("half");
    warn(&p, "one");
    warn(&p, "two");
    fflush(stderr);
    dup2(before, STDERR_FILENO);
    close(file), close(before);
    ok("cat bar");
    ck_assert_str_eq(result.out, "\r\033[Khalf\r\033[Kp: one\np: two\n");
}

/* On a terminal, a progress line appears after some seconds of work, and is removed in the end.
 * Waiting for input is not work. Passes without the program `script`, which makes a terminal. */
TEST(a_long_run_shows_how_far_it_is) {
    if (run("command -v script")->status) return;
    /* The lines are long, so that the pipe holds only few of them when the input ends: 0.2 s after
     * the progress line is seen, or after a minute. */
    ok("line=$(printf 'a b a b a b a%300s' ''); printf '(yes \"%s\" & i=0; while ! grep -q lines/s "
       "seen && [ $i -lt 300 ]; do sleep 0.2; i=$((i + 1)); done; kill $!) | generate %s "
       "--batch-size 1 --beam 40 --threads 1 -o out\\n' \"$line\" $SHORT > slow; printf '(echo a; "
       "sleep 3.2; echo b; echo a) | generate %s --batch-size 1 -o out\\n' $SHORT > fast; > seen");
    ok("TERM=xterm script -qfec 'sh slow' seen < /dev/null");
    assert_contains(result.out, " lines, ");
    assert_contains(result.out, " lines/s\r\033[K");
    ok("TERM=xterm script -qec 'sh fast' /dev/null < /dev/null");
    ck_assert_ptr_null(strstr(result.out, "lines/s"));
    ok("sed -i 's/-o out/-o out --quiet/; s/-lt 300/-lt 20/' slow; > seen; TERM=xterm script -qec "
       "'sh slow' /dev/null < /dev/null");
    ck_assert_str_eq(result.out, "");
}

static const struct refusal {
    const char *command, *says;
} refusals[] = {
    { "generate $SHORT --long-lines fold", "'fold' is not one of crop|split|skip|stop" },
    { "generate $SHORT --score --long-lines split", "--score judges one" },
    { "generate $SHORT --nbest 2 --long-lines split", "of --nbest there are several to join" },
    { "generate $BYTES --long-lines split", "crop keeps the end" },
    { "generate $SHORT --json --raw",
      "--raw would have no effect: --json writes all text as it is" },
    { "generate $SHORT --score --raw", "--raw would have no effect" },
    { "generate $SHORT --top-k 3", "--top-k would have no effect: only --sample draws" },
    { "generate $SHORT --length-decay-start 3", "--length-decay-start would have no effect" },
    { "generate $SHORT --begin-suppress-tokens 3,x",
      "'3,x' is not a list of at most 64 token ids" },
    { "generate $SHORT --min-new-tokens 3", "--min-len" },
    { "generate $SHORT --repetition-penalty 0", "outside the range 0.001..1000" },
};

TEST_ROWS(refusal_says_what_to_do, COUNT_OF(refusals)) {
    run("echo a | %s", refusals[_i].command);
    expect(2);
    assert_contains(result.err, refusals[_i].says);
}

/* ---- what the model's file says -------------------------------------------------------------- */

/* A setting in the model's file has the effect of the option of generate. */
static const struct rule {
    const char *key, *value, *options;
} rules[] = {
    { "generate.no-repeat-ngram", "2", "--no-repeat-ngram-size 2" },
    { "generate.repetition-penalty", "3", "--repetition-penalty 3" },
    { "generate.begin-banned", "14 36 105 114", "--begin-suppress-tokens 14,36,105,114" },
    { "generate.decay", "5", "--length-decay 5" },
    { "generate.min-len", "4", "--min-len 4" },
};

TEST_ROWS(rules_come_from_the_file_or_are_asked_for, COUNT_OF(rules)) {
    ok("printf 'one\\nthree f\\n\\nour.\\n' > in; cp $BYTES m; cp $SHORT n");
    change_meta("m", rules[_i].key, rules[_i].value);
    bool ends = _i == 4; /* this one needs outputs that end */
    const char *with =
        ends ? "generate n --json" : "generate m in --max-new-tokens 12 --beam 4 --json";
    const char *plain =
        ends ? "generate $SHORT --json" : "generate $BYTES in --max-new-tokens 12 --beam 4 --json";
    if (ends) change_meta("n", rules[_i].key, rules[_i].value);
    run("%s > a < in; %s > plain < in; %s %s > b < in; cmp a b && ! cmp -s a plain", with, plain,
        plain, rules[_i].options);
    expect(0);
}

TEST(a_file_may_ask_for_draws) {
    ok("cp $SHORT m; printf 'a b\\nb a\\nb\\na\\n' > in");
    change_meta("m", "generate.sample", "1");
    change_meta("m", "generate.temperature", "20");
    change_meta("m", "generate.top-k", "6");
    ok("generate m in > a; generate $SHORT in --sample --temperature 20 --top-k 6 > b; cmp a b");
    ok("generate m in --top-k 3 > a; generate $SHORT in --sample --temperature 20 --top-k 3 > b; "
       "cmp a b");
    ok("generate m in --beam 4 > a; generate $SHORT in --beam 4 > b; cmp a b");
    ok("printf 'a\\tA\\n' | generate m --score");
}

TEST(what_is_not_done_is_told) {
    ok("cp $SHORT m");
    change_meta("m", "generate.not-done", "num_beam_groups=2; penalty_alpha=0.6");
    ok("echo a | generate m --quiet");
    ck_assert_str_eq(result.out, "A\n");
    assert_contains(result.err,
                    "settings that are not done here: num_beam_groups=2; penalty_alpha=0.6");
}

/* ---- labels ---------------------------------------------------------------------------------- */

TEST(blanks_are_seen_in_labels) {
    ok("printf 'a b\\n' > in; generate $BYTES in --max-new-tokens 8 --attention a.json > b; cat "
       "a.json");
    assert_contains(result.out, "\"source_tokens\":[\"a\",\"\342\220\243\",\"b\"]");
    ck_assert_ptr_null(strstr(result.out, "\304\240"));
    ok("generate $BYTES in --max-new-tokens 8 --attention a.svg > b; cat a.svg");
    assert_contains(result.out, "\342\220\243");
    ck_assert_ptr_null(strstr(result.out, "\304\240"));
    ok("for seed in 1 2 3 4 5 6 7 8; do " DRAW "in --seed $seed --attention - > b; done");
    assert_contains(result.err, "\342\206\265");
    ck_assert_ptr_null(strstr(result.err, "\304\212"));
}
