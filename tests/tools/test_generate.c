/* tests/tools/test_generate.c - the program generate and its output for lines of input.
 *
 * Three models are trained once, in a moment, and named in the environment: $WORDS has learned a
 * few pairs by heart, so that its output is known; $LETTERS and $IDS are hardly trained, so that
 * their outputs are of all kinds. */
#include <stdio.h>

#include "generate_refusals.inc"
#include "models/text.h"
#include "models/transformer.h"
#include "tests/suites.h"
#include "tests/support/commands.h"

TESTS(generate)

#define SIZE "--d-model 16 --heads 2 --layers 1 --d-ff 32 --quiet --threads 1 "

static void train_models(void) {
    enter_models();
    ok("printf 'ein haus\\ta house\\nein hund\\ta dog\\nzwei hunde\\ttwo dogs\\n"
       "das haus ist klein\\tthe house is small\\n' > pairs");
    ok("train --train pairs --tokenizer word " SIZE
       "--max-steps 150 --lr 0.01 --warmup 10 -o words > /dev/null");
    ok("train --task date " SIZE "--max-steps 20 --valid-size 10 -o letters > /dev/null");
    ok("train --task copy " SIZE "--max-steps 20 --valid-size 10 -o ids > /dev/null");
    static const char *const names[] = { "WORDS", "LETTERS", "IDS" };
    name_models(names, COUNT_OF(names));
}

/* The number behind the first `"key":` in `text`. */
static double json_value(const char *text, const char *key) {
    char quoted[40];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *at = strstr(text, quoted);
    ck_assert_msg(at, "there is no %s in %s", quoted, text);
    return atof(at + strlen(quoted));
}

static double json_sum(const char *text, const char *key, int *n) {
    char quoted[40];
    snprintf(quoted, sizeof quoted, "\"%s\":[", key);
    char *at = strstr(text, quoted);
    ck_assert_msg(at, "there is no %s in %s", quoted, text);
    at += strlen(quoted) - 1;
    double sum = 0;
    for (*n = 0; *at != ']'; ++*n) sum += strtod(at + 1, &at);
    return sum;
}

static int lines_of(const char *text) {
    int n = 0;
    for (; *text; text++) n += *text == '\n';
    return n;
}

/* ---- text and ids ---------------------------------------------------------------------------- */

SETUP_ONCE(train_models, forget_models)
SETUP(enter_folder, leave_folder)

TEST(text_comes_back_as_text) {
    ok("printf 'ein haus\\n\\n  zwei   hunde\\r\\n \\ndas haus ist klein' | "
       "generate --model $WORDS --quiet");
    ck_assert_str_eq(result.out, "a house\n\ntwo dogs\n\nthe house is small\n");
    ck_assert_str_eq(result.err, "");
    ok("printf '\\357\\273\\277ein hund\\n' | generate --model $WORDS"); /* a mark, and no word */
    ck_assert_str_eq(result.out, "a dog\n");
}

TEST(unknown_words_are_words_too) {
    ok("printf 'ein wal\\nq\\342\\230\\203\\n' | generate --model $WORDS");
    ck_assert_int_eq(lines_of(result.out), 2);
    ok("printf '\\342\\230\\203 1999' | generate --model $LETTERS");
    ck_assert_int_eq(lines_of(result.out), 1);
}

TEST(ids_come_back_as_ids) {
    ok("printf '1 2 3\\n\\n4 5 6 7\\n' | generate --model $IDS --json");
    assert_contains(result.out, "{\"event\":\"output\",\"line\":1,\"source\":\"1 2 3\"");
    assert_contains(result.out, "{\"event\":\"output\",\"line\":2,\"source\":\"\",\"outputs\":[]}");
    const char *text = strstr(result.out, "\"text\":\""), *ids = strstr(result.out, "\"tokens\":[");
    ck_assert(text && ids);
    text += 8, ids += 10;
    for (; *text != '"'; text++, ids++) ck_assert(*ids == *text || (*ids == ',' && *text == ' '));
    ck_assert_int_eq(*ids, ']');
}

TEST(files_in_and_out) {
    ok("printf 'ein haus\\nein hund\\n' > in; : > none");
    ok("generate --model $WORDS -i in -o out && cat out");
    ck_assert_str_eq(result.out, "a house\na dog\n");
    ok("generate --model $WORDS -i none -o out && cat out");
    ck_assert_str_eq(result.out, "");
}

TEST(figures_of_speed_unless_quiet) {
    ok("printf 'ein haus\\n\\nein hund\\n' | generate --model $WORDS");
    int sentences, tokens;
    ck_assert_msg(sscanf(result.err, "%d sentences, %d tokens in", &sentences, &tokens) == 2, "%s",
                  result.err);
    ck_assert_int_eq(sentences, 2);
    ck_assert_int_eq(tokens, 6); /* the end is one */
    assert_contains(result.err, "sentences/s");
}

TEST(warns_outside_the_trained_lengths) {
    ok("printf '1 2 3\\n1 2\\n\\n1 2 3 4 5 6 7 8 9 10 11 12 13\\n' | generate --model $IDS");
    assert_contains(result.err, "2 of 4 lines have another number of tokens than the 3..12");
    ok("echo ein hund | generate --model $WORDS --quiet"); /* no trained lengths are known */
    ck_assert_str_eq(result.err, "");
}

/* ---- the batch and the threads --------------------------------------------------------------- */

static const char *const uses[] = {
    "--model $LETTERS",
    "--model $LETTERS --beam 1",
    "--model $LETTERS --nbest 3 --length-penalty-type avg",
    "--model $LETTERS --json --beam 6 --nbest 2 --min-len 2",
    "--model $LETTERS --sample --nbest 2 --top-k 7 --seed 3",
    "--model $LETTERS --sample --temperature 2 --top-p 0.8 --json --reference in",
    "--model $LETTERS --attention a.json",
    "--model $LETTERS --score --json",
};

TEST_ROWS(batches_and_threads_change_nothing, COUNT_OF(uses)) {
    static const int sizes[] = { 7, 32, 1 };
    bool score = strstr(uses[_i], "--score");
    ok("for i in $(seq 40); do "
       "seq -s ' ' 1000 | cut -c 1-$((i * 17 % 41 + 1)) | sed 's/^1$//'; done > in");
    if (score) ok("grep -v '^$' in > some; tac some | paste some - > in");
    run("generate %s --threads 1 < in > whole; cat a.json >> whole", uses[_i]);
    ok("[ -s whole ]");
    for (int i = 0; i < 6; i++) {
        run("generate %s --batch-size %d --threads %d < in > part && cat a.json >> part", uses[_i],
            sizes[i / 2], i % 2 + 1);
        ck_assert_msg(same_files("whole", "part"), "%s, --batch-size %d --threads %d", uses[_i],
                      sizes[i / 2], i % 2 + 1);
    }
}

TEST(many_windows_keep_their_order) {
    ok("for i in $(seq 90); do echo ein hund; echo; echo das haus ist klein; echo zwei hunde; done "
       "> in");
    ok("for i in $(seq 90); do echo a dog; echo; echo the house is small; echo two dogs; done > "
       "expected");
    ok("generate --model $WORDS --batch-size 2 --beam 1 < in > out"); /* windows of 128 lines */
    ck_assert(same_files("out", "expected"));
}

TEST_ROWS(a_pipe_is_answered_before_it_ends, 2) {
    run("mkfifo in; generate --model $WORDS -i in %s > out & exec 3> in; echo ein haus >&3\n"
        "for i in $(seq 1000); do [ -s out ] && break; sleep 0.01; done; first=$(cat out)\n"
        "echo ein hund >&3; exec 3>&-; wait; echo \"$first\"; cat out",
        _i ? "--batch-size 1" : "");
    expect(0);
    ck_assert_str_eq(result.out, "a house\na house\na dog\n");
}

/* ---- search ---------------------------------------------------------------------------------- */

TEST(nbest_has_as_many_lines_for_each) {
    double before = 0, score;
    char text[200];
    ok("printf '3 May 1999\\n\\n4 May\\n' | generate --model $LETTERS --nbest 3");
    ck_assert_int_eq(lines_of(result.out), 9);
    char *line = result.out;
    for (int i = 0; i < 9; i++, line = strchr(line, '\n') + 1) {
        if (i / 3 == 1) {
            ck_assert_int_eq(*line, '\n');
            continue;
        }
        ck_assert_msg(sscanf(line, "%lf\t%199[^\n]", &score, text) >= 1, "%s", line);
        ck_assert(score < 0 && (i % 3 == 0 || score <= before));
        before = score;
    }
    ok("echo ein hund | generate --model $WORDS --nbest 1");
    assert_contains(result.out, "\ta dog\n");
}

TEST(fewer_outputs_than_asked_for_are_filled_up) {
    ok("echo ein hund | generate --model $WORDS --beam 30 --nbest 30 --max-len-a 0 --max-len-b 1");
    ck_assert_int_eq(lines_of(result.out), 30);
    ck_assert_int_eq(result.out[strlen(result.out) - 2], '\n');
}

/* score = total / length penalty, by the formulas in the help */
TEST_ROWS(scores_are_totals_and_penalties, 6) {
    static const struct {
        const char *options;
        double alpha;
        char type;
    } penalties[] = {
        { "", 0.6, 'g' },
        { "--length-penalty 1.5", 1.5, 'g' },
        { "--length-penalty-type avg", 1, 'a' },
        { "--length-penalty-type avg --length-penalty 0.5", 0.5, 'a' },
        { "--length-penalty-type none", 0, 'n' },
        { "--beam 1 --length-penalty 2", 2, 'g' },
    };
    int n;
    run("echo 3 May 1999 | generate --model $LETTERS --json %s", penalties[_i].options);
    expect(0);
    double total = json_value(result.out, "total"), score = json_value(result.out, "score");
    ck_assert_double_eq_tol(json_sum(result.out, "log_probs", &n), total, 1e-6);
    double base = penalties[_i].type == 'g' ? (5.0 + n) / 6 : n;
    ck_assert_double_eq_tol(score * pow(base, penalties[_i].alpha), total, 1e-6);
    ck_assert(total < 0);
}

TEST(lengths_keep_their_limits) {
    int n;
    ok("echo ein hund | generate --model $WORDS --beam 1 --max-len-a 0 --max-len-b 1 --json");
    json_sum(result.out, "log_probs", &n);
    ck_assert_int_eq(n, 2);
    assert_contains(result.out, "\"cut\":true");
    assert_contains(result.err, "1 of 1 outputs were cut before an end token");
    ok("echo ein hund | generate --model $WORDS --max-len-a 2 --max-len-b 3 --min-len 7 --json");
    json_sum(result.out, "log_probs", &n);
    ck_assert_int_eq(n, 8);
}

TEST(text_is_searched_and_ids_are_not) {
    ok("echo 3 May 1999 > in; generate --model $LETTERS < in > a; "
       "generate --model $LETTERS --beam 4 --length-penalty-type gnmt --length-penalty 0.6 "
       "--max-len-b 50 < in > b; cmp a b");
    ok("echo 3 4 5 > in; generate --model $IDS < in > a; "
       "generate --model $IDS --beam 1 --max-len-b 10 < in > b; cmp a b");
}

/* A search that goes on after the first outputs that end finds better ones: the last of four has a
 * higher score. */
TEST(searches_go_on_while_a_better_output_is_open) {
    ok("echo zwei hunde > in; generate --model $WORDS -i in --nbest 4 -o a && "
       "generate --model $WORDS -i in --nbest 4 --stop present -o b && cmp a b && "
       "generate --model $WORDS -i in --nbest 4 --stop full -o c");
    double last = atof(run("tail -n 1 a")->out), earlier = atof(run("tail -n 1 c")->out);
    ck_assert_msg(last > earlier, "%g and %g", last, earlier);
}

/* The file's settings override the defaults, and options override both. */
TEST(a_models_file_says_how_it_is_searched) {
    static const char *const said[][2] = {
        { "generate.beam", "2" },       { "generate.length-penalty-type", "avg" },
        { "generate.stop", "present" }, { "generate.length-penalty", "0.7" },
        { "generate.max-len-a", "0" },  { "generate.max-len-b", "6" },
        { "generate.banned", "0 2" },   { "generate.at-limit", "free-end" },
    };
    ok("cp $LETTERS m.safetensors; echo 3 May 1999 > in");
    ok("generate --model m.safetensors --json -i in --beam 2 --length-penalty-type avg "
       "--length-penalty 0.7 --stop present --max-len-a 0 --max-len-b 6 --at-limit free-end -o a");
    for (int i = 0; i < COUNT_OF(said); i++) change_meta("m.safetensors", said[i][0], said[i][1]);
    ok("generate --model m.safetensors --json -i in -o b; cmp a b");
    ok("generate --model m.safetensors --json -i in --beam 3 --max-len-b 7 -o a; "
       "generate --model $LETTERS --json -i in --beam 3 --length-penalty-type avg --stop present "
       "--length-penalty 0.7 --max-len-a 0 --max-len-b 7 --at-limit free-end -o b; cmp a b");
    ok("cp $LETTERS n.safetensors");
    change_meta("n.safetensors", "generate.beam", "3"); /* and all else is as ever */
    ok("generate --model n.safetensors --json -i in -o a; "
       "generate --model $LETTERS --json --beam 3 -i in -o b; cmp a b");
    change_meta("m.safetensors", "generate.forced", "9 8");
    ok("generate --model m.safetensors -i in -o a; generate --model m.safetensors --beam 1 "
       "--stream -i in > b; test -s a; test -s b");
    /* Forced tokens that are text, and not special tokens, are written, as by transformers. */
    ok("generate --model m.safetensors --json --beam 1 -i in | "
       "sed 's/.*\"text\":\"\\(..\\).*\"tokens\":\\[\"\\(.\\)\",\"\\(.\\)\".*/"
       "[\\1] = [\\2\\3]/' | sed 's/^\\(.*\\) = \\1$/same/'");
    ck_assert_str_eq(result.out, "same\n");
    ok("generate --model m.safetensors --beam 1 -i in -o a; cmp a b");
    ok("generate --model m.safetensors --json --beam 1 -i in");
    int n;
    json_sum(result.out, "log_probs", &n);
    assert_contains(result.out, "\"log_probs\":[0,0,");
    change_meta("m.safetensors", "generate.at-limit", "end");
    ok("generate --model m.safetensors --json --beam 1 -i in");
    double total = json_value(result.out, "total");
    ok("generate --model m.safetensors --beam 1 -i in -o a; paste in a > pairs; "
       "generate --model m.safetensors --score -i pairs");
    ck_assert_double_eq_tol(atof(result.out), total, 1e-4);
    change_meta("m.safetensors", "generate.forced", "9 x");
    run("generate --model m.safetensors -i in");
    expect(1);
    assert_contains(result.err, "'generate.forced' is '9 x'");
}

TEST(json_escapes_what_it_must) {
    ok("printf 'ein \"haus\"\\\\ & <\\303\\244>\\t!\\n' | generate --model $WORDS --json");
    assert_contains(result.out, "\"source\":\"ein \\\"haus\\\"\\\\ & <\303\244>\\u0009!\"");
    ok("echo ein hund | generate --model $WORDS --json");
    assert_contains(result.out, "\"outputs\":[{\"text\":\"a dog\",\"tokens\":[\"a\",\"dog\"],"
                                "\"log_probs\":[");
}

/* ---- drawing --------------------------------------------------------------------------------- */

TEST(draws_follow_from_the_seed) {
    ok("for i in 1 2 3 4; do echo 3 May 1999; done > in");
    ok("generate --model $LETTERS --sample -i in -o a");
    ok("generate --model $LETTERS --sample --seed 1 -i in -o b");
    ok("generate --model $LETTERS --sample --seed 2 -i in -o c");
    ck_assert(same_files("a", "b") && !same_files("a", "c"));
    ok("sort -u a | wc -l"); /* a line's number counts too */
    ck_assert_int_gt(atoi(result.out), 1);
    ok("generate --model $LETTERS --sample --top-k 1 -i in -o a");
    ok("generate --model $LETTERS --beam 1 -i in -o b");
    ck_assert(same_files("a", "b"));
    ok("generate --model $LETTERS --sample --temperature 0.001 -i in -o a");
    ok("generate --model $LETTERS --sample --top-p 0.001 -i in -o c");
    ck_assert(same_files("a", "b") && same_files("c", "b"));
}

/* ---- scoring --------------------------------------------------------------------------------- */

TEST(what_is_generated_scores_the_same) {
    int n;
    ok("echo das haus ist klein | generate --model $WORDS --json");
    double total = json_value(result.out, "total");
    ok("printf 'das haus ist klein\\tthe house is small\\nein hund\\t\\n' | "
       "generate --model $WORDS --score --json");
    ck_assert_double_eq_tol(json_value(result.out, "total"), total, 1e-5);
    ck_assert_double_eq_tol(json_sum(result.out, "log_probs", &n), total, 1e-5);
    ck_assert_int_eq(n, 5);
    assert_contains(result.out, "\"tokens\":[\"the\",\"house\",\"is\",\"small\"]}");
    assert_contains(result.out, "{\"event\":\"score\",\"line\":2,");
    assert_contains(result.out, "\"tokens\":[]}");
    ok("printf 'das haus ist klein\\tthe house is small\\n' | generate --model $WORDS --score");
    ck_assert_double_eq_tol(atof(result.out), total, 1e-5);
}

TEST(pairs_in_the_place_of_references_are_told) {
    ok("printf 'a\\tb\\nc\\td\\n' > r; printf 'a\\nc\\n' | generate --model $WORDS --reference r");
    assert_contains(result.err, "r has a TAB in every line, as files of pairs have");
    assert_contains(result.err, "cut -f 2 writes the targets alone");
}

TEST(pairs_in_the_place_of_sources_are_told) {
    ok("printf 'das haus\ta house\nein hund\n' | generate --model $WORDS");
    assert_contains(result.err, "behind it: 1; cut -f 1 writes the sources of pairs alone");
    ok("echo ein hund | generate --model $WORDS");
    ck_assert_ptr_null(strstr(result.err, "TAB"));
}

/* ---- references ------------------------------------------------------------------------------ */

TEST(references_are_compared_with) {
    ok("printf 'ein haus\\n\\nein hund\\ndas haus ist klein\\n' > in");
    ok("printf '\\357\\273\\277a house\\n\\na cat\\r\\nthe house is small' > ref");
    ok("generate --model $WORDS -i in --reference ref --quiet");
    ck_assert_str_eq(result.out, "a house\n\na dog\nthe house is small\n");
    assert_contains(result.err, "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:weft-");
    assert_contains(result.err, "BLEU|nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|version:weft-");
    assert_contains(result.err,
                    " = 91.47 87.5/80.0/100.0/100.0 "); /* precisions 7/8, 4/5, 2/2, 1/1 */
    assert_contains(result.err,
                    "chrF2|nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:weft-");
    /* wrong are 3 of 30 characters, and 1 of 8 words */
    assert_contains(result.err, "CER 0.1000, WER 0.1250, exact match 3/4");
    ok("echo 1 2 3 > in; generate --model $IDS < in > ref; "
       "generate --model $IDS --reference ref --quiet < in");
    assert_contains(result.err, "CER 0.0000, WER 0.0000, exact match 1/1");
}

TEST(comparison_as_json_is_the_last_object) {
    ok("printf 'a house\\na dog\\n' > ref");
    ok("printf 'ein haus\\nein hund\\n' | generate --model $WORDS --reference ref --json --quiet");
    ck_assert_str_eq(result.err, "");
    ck_assert_int_eq(lines_of(result.out), 3);
    const char *last = strstr(result.out, "{\"event\":\"metrics\",\"lines\":2,\"exact\":2,");
    ck_assert_msg(last, "%s", result.out);
    assert_contains(last, "\"bleu_13a_signature\":\"BLEU|nrefs:1|case:mixed|eff:no|tok:13a|");
    assert_contains(last, "\"chrf\":100,\"chrf_signature\":\"chrF2|");
    assert_contains(last, "\"cer\":0,\"wer\":0}");
}

TEST_ROWS(reference_of_other_length_is_refused, 6) {
    static const struct {
        const char *command, *counts;
        int answers; /* written before it was known */
    } rows[] = {
        { "generate --model $WORDS -i three --reference two", "three has 3 lines and two has 2",
          0 },
        { "generate --model $WORDS --reference two < three", "stdin has 3 lines and two has 2", 0 },
        { "generate --model $WORDS --reference two < one", "stdin has 1 lines and two has 2", 0 },
        { "cat three | generate --model $WORDS --reference two", "stdin has 3 lines and two has 2",
          2 },
        { "cat two two one | generate --model $WORDS --reference two",
          "stdin has 5 lines and two has 2", 2 },
        { "cat one | generate --model $WORDS --reference two", "stdin has 1 lines and two has 2",
          1 },
    };
    ok("printf 'ein\\nein\\nein' > three; printf 'a\\na\\n' > two; echo ein > one");
    run("%s", rows[_i].command);
    expect(1);
    assert_contains(result.err, rows[_i].counts);
    ck_assert_int_eq(lines_of(result.out), rows[_i].answers);
}

/* ---- attention ------------------------------------------------------------------------------- */

TEST(attention_as_json) {
    ok("printf '1 2 3\\n\\n4 5 6 7\\n' | generate --model $IDS --attention a.json > b; cat a.json");
    ck_assert_int_eq(lines_of(result.out), 2); /* nothing looks at an empty line */
    assert_contains(result.out, "{\"event\":\"attention\",\"source\":[1,2,3],\"target\":[0");
    assert_contains(result.out, "\"encoder_self\":[[[[");
    assert_contains(result.out, "\"cross\":[[[[");
    ok("echo ein hund | generate --model $WORDS --attention a.json > b; cat a.json");
    assert_contains(result.out, "\"source_tokens\":[\"ein\",\"hund\"]");
    assert_contains(result.out, "\"target_tokens\":[\"<s>\",\"a\",\"dog\"]");
}

TEST(attention_as_a_picture) {
    ok("printf 'ein hund\\nzwei hunde\\n' | generate --model $WORDS --attention a.svg > b; "
       "cat a.svg");
    assert_contains(result.out, ">hund</text>");
    assert_contains(result.out, ">dog</text>");
    assert_contains(result.out, ">&#60;/s&#62;</text>");
    ck_assert_msg(!strstr(result.out, "hunde"), "the second line is drawn too");
    ok("echo 3 May | generate --model $LETTERS --attention a.svg --max-len-b 0 > b; "
       "cat a.svg");
    assert_contains(result.out, ">\342\220\243</text>"); /* a space that is seen */
    ck_assert_ptr_nonnull(strstr(result.out, "</svg>"));
}

/* If all lines are empty, no picture is written, and an old one stays. */
TEST(no_line_draws_no_picture) {
    ok("echo 'digraph weft {' > a.svg; printf '\\n\\n' | generate --model $WORDS --attention a.svg "
       "--quiet; "
       "cat a.svg");
    ck_assert_str_eq(result.out, "\n\ndigraph weft {\n");
    ck_assert_str_eq(result.err, "generate: a.svg is not drawn: there is no output to draw\n");
    ok("ls | wc -l");
    ck_assert_int_eq(atoi(result.out), 1);
}

/* In a text heat map, characters of labels may take two columns or none, or may not be printable.
 * With many labels, the cells are narrow. */
TEST(labels_keep_their_columns) {
    static const char *const lines[] = { "\344\272\272", "e\314\201", "a\360\237\230\200",
                                         "zero\342\200\215width", "sixteen-letters!" };
    FILE *f = fopen("wide", "w");
    ck_assert_ptr_nonnull(f);
    for (int i = 0; i < COUNT_OF(lines); i++) fprintf(f, "%s\t%s\n", lines[i], lines[i]);
    ck_assert_int_eq(fclose(f), 0);
    ok("train --train wide --tokenizer word " SIZE "--max-steps 1 --warmup 1 -o m > out");
    ok("cut -f 1 wide | tr '\\n' ' ' | generate --model m --attention - --quiet --max-len-b 0");
    assert_contains(result.err, "\n            z x \n            e t \n"); /* the cut ones */
    assert_contains(result.err, "\n        e a t t \n      \344\272\272\314\201  "
                                "\360\237\230\200h \342\200\246 \n");
    ok("for i in 1 2 3 4 5 6 7 8; do cut -f 1 wide; done | tr '\\n' ' ' | "
       "generate --model m --attention - --quiet --max-len-b 0");
    assert_contains(result.err, "\n       eatt eatt eatt eatt eatt eatt eatt eatt\n");
    assert_contains(result.err, "\n      \357\277\275\314\201 \357\277\275h\342\200\246");
}

TEST(attention_on_the_terminal) {
    ok("printf 'ein hund\\n\\nzwei hunde\\n' | generate --model $WORDS --attention - --quiet");
    ck_assert_str_eq(result.out, "a dog\n\ntwo dogs\n");
    assert_contains(result.err, "line 1\ncross-attention of decoder layer 1 of 1");
    assert_contains(result.err, "line 3\n");
    ck_assert(!strstr(result.err, "line 2\n"));
    /* labels stand on their columns */
    assert_contains(result.err, "\n       h \n     e u \n     i n \n     n d \n   a ");
    assert_contains(result.err, "\n dog ");
    assert_contains(result.err, "\n</s> ");
}

/* An input without lines gives no output but a message, because it may be a mistake. */
TEST(an_empty_input_is_said) {
    ok(": > none; generate $WORDS none");
    ck_assert_str_eq(result.out, "");
    assert_contains(result.err,
                    "generate: none has no line: nothing was read, and nothing is written\n");
    ok("generate $WORDS < /dev/null");
    assert_contains(result.err, "generate: stdin has no line: nothing was read");
    ok("generate --quiet $WORDS < /dev/null");
    ck_assert_str_eq(result.err, "");
    ok("generate $WORDS --prompt 'ein hund'");
    ck_assert_ptr_null(strstr(result.err, "has no line"));
}

/* ---- refusals -------------------------------------------------------------------------------- */

TEST_ROWS(refusal_says_what_to_do, COUNT_OF(refusals)) {
    const struct refusal *r = &refusals[_i];
    run("%s", r->command);
    ck_assert_msg(result.status == r->status, "%s: exit code %d, not %d:\n%s", r->command,
                  result.status, r->status, result.err);
    assert_contains(result.err, r->says);
    int lines = r->status == 2 ? 2 : 1; /* 2: the message, and where to read about options */
    ck_assert_msg(lines_of(result.err) == lines, "more than a sentence: %s", result.err);
    ck_assert_str_eq(result.out, "");
}

/* A bad line ends the program with a message. Only the line before it is answered. */
TEST_ROWS(bad_line_is_named, COUNT_OF(bad_lines)) {
    const struct bad_line *b = &bad_lines[_i];
    run("{ printf '%s\\n'; printf \"%s\\n\"; printf '%s\\n'; } | generate %s", b->before, b->line,
        b->before, b->options);
    expect(1);
    assert_contains(result.err, b->says);
    ck_assert_int_eq(lines_of(result.out), 1);
    if (_i > 0) return;
    run("echo x > in; generate --model $IDS -i in");
    expect(1);
    assert_contains(result.err, "generate: in, line 1: 'x' is not a token id\n");
}

/* ---- a vocabulary that does not fit ---------------------------------------------------------- */

static int one_line(void *from, const char **line, size_t *bytes) {
    bool *read = from;
    if (*read) return 0;
    *read = true;
    *line = "so many words", *bytes = strlen(*line);
    return 1;
}

TEST(vocabulary_of_another_size_is_refused) {
    bool read = false;
    char message[256];
    wf_meta meta[WF_TOKENIZER_META];
    wf_tokenizer_options o = wf_tokenizer_defaults(WF_WORDS);
    wf_tokenizer *t = wf_tokenizer_learn(&o, one_line, &read, message);
    wf_transformer_config c = wf_transformer_defaults();
    c.d_model = 8, c.num_heads = 1, c.dim_feedforward = 8, c.max_len = 8;
    c.encoder_layers = c.decoder_layers = 1;
    c.src_vocab = 7, c.tgt_vocab = 9;
    wf_model *m = wf_transformer_new(&c, NULL, WF_F32, 1, message);
    ck_assert(t && m);
    int n = 0;
    ck_assert(wf_tokenizer_to_meta(t, "tokenizer", meta, &n, message));
    ck_assert(wf_model_save(m, "model", NULL, meta, n, message));
    run("echo so | generate --model model");
    expect(1);
    assert_contains(result.err, "model: the target vocabulary has 7 entries and the model 9");
    wf_model_free(m);
    wf_tokenizer_free(t);
}
