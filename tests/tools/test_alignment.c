/* tests/tools/test_alignment.c - word alignments: the words of tokens, the output of generate
 * --alignment, and training with train --alignments.
 *
 * The models translate each word of an artificial language, in the opposite order. $GUIDED was
 * trained with the right alignments, $LED with alignments that link all words to the first word of
 * a line, and $FREE without any. */
#include <stdio.h>

#include "models/text_formats.h"
#include "tests/suites.h"
#include "tests/support/commands.h"
#include "tools/alignment/line_words.h"
#include "tools/alignment/links.h"

TESTS(alignment)

#define SIZE "--d-model 32 --heads 2 --layers 1 --d-ff 64 --quiet "
#define LEARN                                                                                      \
    "train --train pairs --tokenizer word --valid-size 0 --dropout 0 --label-smoothing 0 " SIZE    \
    "--threads 1 --max-steps 500 --lr 0.005 --warmup 20 "

/* Lines of 2 to 6 words, their translations in the opposite order, and their alignments. */
static void make_pairs(void) {
    ok("awk 'BEGIN { srand(7); for (i = 0; i < 600; i++) { n = 2 + int(5 * rand()); s = t = a = "
       "\"\";"
       "  for (k = 0; k < n; k++) { w = int(12 * rand()); s = s (k ? \" \" : \"\") \"a\" w;"
       "    t = \"b\" w (k ? \" \" : \"\") t; a = a (k ? \" \" : \"\") k \"-\" (n - 1 - k) }"
       "  print s \"\\t\" t > \"pairs\"; print a > \"links\" } }'");
}

static void train_models(void) {
    static const char *const names[] = { "GUIDED", "LED", "FREE" };
    enter_models();
    make_pairs();
    ok(LEARN "--alignments links --alignment-weight 1 -o guided > /dev/null");
    ok("sed 's/[0-9]*-/0-/g' links > first");
    ok(LEARN "--alignments first --alignment-weight 1 -o led > /dev/null");
    ok(LEARN "-o free > /dev/null");
    name_models(names, COUNT_OF(names));
    setenv("DATA", models_folder, 1);
}

/* ---- words of tokens ------------------------------------------------------------------------- */

static const char *const samples[] = {
    "ein haus ist alt", "  ein\t haus  ", "a", "", " ", "zwei kleine alte hunde sehen ein haus ."
};

typedef struct line_list {
    int at;
} line_list;

static int next_line(void *from, const char **line, size_t *bytes) {
    line_list *l = from;
    if (l->at == 3 * COUNT_OF(samples)) return 0;
    *line = samples[l->at++ % COUNT_OF(samples)];
    *bytes = strlen(*line);
    return 1;
}

static int64_t encode(void *user, const char *line, size_t bytes, int32_t *ids, int64_t capacity,
                      char *message) {
    return wf_tokenizer_encode(user, line, bytes, ids, capacity, message);
}

/* Finds word w of a line, counted from 0. Returns its length; 0: the line has fewer words. */
static size_t word_of(const char *line, int64_t w, const char **word) {
    for (const char *at = line;; w--) {
        at += strspn(at, " \t");
        size_t n = strcspn(at, " \t");
        *word = at;
        if (w == 0 || n == 0) return n;
        at += n;
    }
}

/* Asserts that the tokens of each word decode to its text, and other tokens only to spaces. */
static void assert_words(const wf_tokenizer *t, const char *line, const int32_t *ids, int64_t n,
                         const int32_t *word, int64_t words) {
    char text[256];
    const char *own;
    for (int64_t w = 0; w <= words; w++) {
        int32_t part[64];
        int64_t k = 0;
        for (int64_t i = 0; i < n; i++)
            if (word[i] == (w == words ? NO_WORD : (int32_t)w)) part[k++] = ids[i];
        ck_assert_int_ge(wf_tokenizer_decode(t, part, k, text, sizeof text), 0);
        size_t blank = strspn(text, " \t"), bytes = word_of(line, w, &own);
        ck_assert_msg(bytes == strcspn(text + blank, " \t") &&
                          memcmp(own, text + blank, bytes) == 0,
                      "word %d of '%s' is '%s'", (int)w, line, text);
    }
}

static wf_tokenizer *made(wf_token_kind kind) {
    char message[256] = "";
    wf_tokenizer_options o = wf_tokenizer_defaults(kind);
    o.vocab_size = kind == WF_BYTE_LEVEL ? 300 : 60;
    wf_tokenizer *t = wf_tokenizer_learn(&o, next_line, &(line_list){ 0 }, message);
    ck_assert_msg(t, "%s", message);
    return t;
}

static const wf_token_kind kinds[] = { WF_WORDS, WF_CHARACTERS, WF_BPE, WF_BYTE_LEVEL };

TEST_ROWS(tokens_have_the_words_of_their_line, COUNT_OF(kinds)) {
    wf_tokenizer *t = made(kinds[_i]);
    const text_encoder e = { encode, t, wf_tokenizer_size(t), 0 };
    char message[256] = "";
    for (int i = 0; i < COUNT_OF(samples); i++) {
        int32_t ids[64], word[64], again[64];
        int64_t n = wf_tokenizer_encode(t, samples[i], strlen(samples[i]), ids, 64, message);
        int64_t words = words_of_line(&e, samples[i], strlen(samples[i]), n, word, message);
        ck_assert_msg(words == count_words(samples[i], strlen(samples[i])), "%s", message);
        assert_words(t, samples[i], ids, n, word, words);
        ck_assert_int_eq(words_of_output(t, ids, n, again), words);
        assert_words(t, samples[i], ids, n, again, words);
        /* at most 3 ids: the line is cropped to two and the end token; its words still count */
        if (n < 4) continue;
        ck_assert_int_eq(words_of_line(&e, samples[i], strlen(samples[i]), 3, again, message),
                         words);
        for (int k = 0; k < 2; k++) ck_assert_int_eq(again[k], word[k]);
    }
    wf_tokenizer_free(t);
}

TEST(numbers_are_words) {
    int32_t word[3];
    ck_assert_int_eq(words_of_output(NULL, (int32_t[]){ 7, 70, 7 }, 3, word), 3);
    for (int i = 0; i < 3; i++) ck_assert_int_eq(word[i], i);
}

/* ---- lines of links -------------------------------------------------------------------------- */

TEST(links_are_read_or_refused) {
    static const struct {
        const char *line;
        int links; /* -1: refused */
        const char *says;
    } rows[] = {
        { "", 0, "" },
        { " \t", 0, "" },
        { "0-0", 1, "" },
        { " 0-3  4-0 ", 2, "" },
        { "0-0 0-0", 2, "" },
        { "5-0", -1, "5-0: the source has 5 words, which count from 0" },
        { "0-0 1-4", -1, "1-4: the target has 4 words" },
        { "9999999-0", -1, "the source has 5 words" },
        { "99999999-0", -1, "'99999999-0' does not begin with a link such as 0-1" },
        { "0-0 1", -1, "'1' does not begin with a link" },
        { "0-", -1, "does not begin" },
        { "-0", -1, "does not begin" },
        { "0-0-0", -1, "does not begin" },
        { "0--1", -1, "does not begin" },
        { "0-0,1-1", -1, "does not begin" },
        { "0:0", -1, "does not begin" },
        { "\x1B[2J", -1, "'?[2J' does not begin" },
    };
    pair_links l = { 0 };
    for (int i = 0; i < COUNT_OF(rows); i++) {
        char message[256] = "";
        bool read =
            links_read(&l, rows[i].line, strlen(rows[i].line), (int64_t[]){ 5, 4 }, message);
        ck_assert_msg(read ? l.n == rows[i].links : rows[i].links < 0, "row %d: %s", i, message);
        ck_assert_msg(strstr(message, rows[i].says), "row %d says: %s", i, message);
    }
    links_free(&l);
}

/* ---- what generate writes -------------------------------------------------------------------- */

SETUP_ONCE(train_models, forget_models)
SETUP(enter_folder, leave_folder)

TEST(links_stand_beside_outputs) {
    ok("echo a1 a2 a3 | generate $GUIDED --alignment hard --quiet");
    ck_assert_str_eq(result.out, "b3 b2 b1 ||| 0-2 1-1 2-0\n");
    ok("printf 'a1 a2 a3\\n\\na5  a4 a1\\n' | generate $GUIDED --alignment hard --quiet");
    ck_assert_str_eq(result.out, "b3 b2 b1 ||| 0-2 1-1 2-0\n |||\nb1 b4 b5 ||| 0-2 1-1 2-0\n");
    ok("echo a1 a2 a3 | generate $GUIDED --alignment 0.5 --quiet --nbest 2 --beam 2 | head -1");
    assert_contains(result.out, "\tb3 b2 b1 ||| 0-2 1-1 2-0\n");
    ok("echo a1 a2 a3 | generate $GUIDED --alignment hard --json --quiet");
    assert_contains(result.out, "\"cut\":false,\"alignment\":[[0,2],[1,1],[2,0]]}");
    ok("echo a1 a2 a3 | generate $GUIDED --alignment 0 --quiet");
    assert_contains(result.out, "||| 0-0 0-1 0-2 1-0 1-1 1-2 2-0 2-1 2-2\n");
    ok("echo a1 a2 a3 | generate $GUIDED --alignment 1 --quiet");
    ck_assert_str_eq(result.out, "b3 b2 b1 |||\n");
}

/* --alignment soft writes a row of weights for each output word: one weight for each source word,
 * and none for the end token of the source. */
TEST(weights_are_shares) {
    double w[9];
    ok("echo a1 a2 a3 | generate $GUIDED --alignment soft --quiet");
    ck_assert_int_eq(sscanf(result.out, "b3 b2 b1 ||| %lf,%lf,%lf %lf,%lf,%lf %lf,%lf,%lf\n", w,
                            w + 1, w + 2, w + 3, w + 4, w + 5, w + 6, w + 7, w + 8),
                     9);
    for (int t = 0; t < 3; t++) {
        double sum = w[3 * t] + w[3 * t + 1] + w[3 * t + 2];
        ck_assert(sum > 0.5 && sum <= 1.00001);
        for (int s = 0; s < 3; s++) ck_assert((w[3 * t + s] > 0.5) == (s == 2 - t));
    }
    ok("echo a1 a2 a3 | generate $GUIDED --alignment soft --quiet --json");
    assert_contains(result.out, "\"alignment\":[[");
}

/* With --score, given targets are aligned. Neither batch nor threads change the alignment. */
TEST(given_targets_are_aligned) {
    ok("printf 'a1 a2 a3\\tb3 b2 b1\\na4  a5\\tb5 b4\\n' | "
       "generate $GUIDED --score --alignment hard --quiet | cut -d '|' -f 4");
    ck_assert_str_eq(result.out, " 0-2 1-1 2-0\n 0-1 1-0\n");
    ok("head -40 $DATA/pairs > some; generate $GUIDED -i some --score --alignment soft --quiet "
       "--batch-size 1 --threads 1 > one; generate $GUIDED -i some --score --alignment soft "
       "--quiet "
       "--batch-size 7 --threads 2 > two; cmp one two");
    ok("printf 'a1 a2\\tb2 b1\\n' | generate $GUIDED --score --alignment hard --json --quiet");
    assert_contains(result.out, "\"alignment\":[[0,1],[1,0]]}");
}

/* Models of token ids are aligned by id. A model without a head for alignment uses the mean of all
 * heads of the last layer. */
TEST(any_translator_aligns) {
    ok("train --task copy " SIZE "--max-steps 20 --valid-size 10 -o ids > /dev/null");
    ok("echo 4 5 6 | generate ids --alignment hard --quiet");
    assert_contains(result.out, " ||| ");
    ok("echo a1 a2 a3 | generate $FREE --alignment hard --quiet");
    assert_contains(result.out, " ||| ");
    ok("train --task date " SIZE "--max-steps 20 --valid-size 10 -o letters > /dev/null");
    ok("echo 3 May 1999 | generate letters --alignment soft --quiet");
    assert_contains(result.out, " ||| ");
}

/* ---- what train learns ----------------------------------------------------------------------- */

/* The share of a file's links (pairs of a source word and a target word) that the model's alignment
 * has, too. */
static double agreement(const char *model, const char *links) {
    run("generate %s -i $DATA/pairs --score --alignment hard --quiet | sed 's/.*||| *//' > found; "
        "paste -d '|' found $DATA/%s | awk -F '|' '{ split($1, f, \" \"); delete in_f; "
        "for (i in f) in_f[f[i]] = 1; n = split($2, g, \" \"); all += n; "
        "for (i = 1; i <= n; i++) hit += g[i] in in_f } END { print hit / all }'",
        model, links);
    expect(0);
    return atof(result.out);
}

/* Asserts that a model's file names the head for alignment n times. */
static void assert_heads(const char *model, int n) {
    run("inspect --json %s | tr -d '\n' | grep -o 'generate.alignment-head' | wc -l", model);
    expect(0);
    ck_assert_int_eq(atoi(result.out), n);
}

/* $LED has learned alignments that no translator would learn by itself. */
TEST(a_model_learns_given_alignments) {
    double guided = agreement("$GUIDED", "links"), unguided = agreement("$FREE", "links");
    ck_assert_msg(guided > 0.95, "%g of the links are found", guided);
    ck_assert_msg(guided > unguided + 0.05, "%g with, %g without", guided, unguided);
    double led = agreement("$LED", "first"), free = agreement("$FREE", "first");
    ck_assert_msg(led > 0.99 && free < 0.5, "%g with, %g without", led, free);
    ok("echo a1 a2 a3 | generate $LED --alignment hard --quiet");
    assert_contains(result.out, " ||| 0-0 0-1 0-2\n");
    assert_heads("$GUIDED", 1);
    assert_heads("$FREE", 0);
}

#define FEW "train --train $DATA/pairs --tokenizer bpe --valid-size 30 " SIZE
#define GUIDED_FEW FEW "--alignments $DATA/links --accum 3 --batch-size 8 "

/* Numbers of threads and processes and a resume change no byte of the trained file. */
TEST(guided_training_is_the_same_on_any_machine) {
    ok(GUIDED_FEW "--max-steps 12 --lr-steps 12 -o a > /dev/null");
    ok(GUIDED_FEW "--max-steps 12 --lr-steps 12 --threads 2 -o b > /dev/null");
    ck_assert(same_files("a", "b"));
    ok(GUIDED_FEW "--max-steps 12 --lr-steps 12 --processes 2 -o c > /dev/null");
    ck_assert(same_files("a", "c"));
    ok(GUIDED_FEW "--max-steps 5 --lr-steps 12 -o d > /dev/null");
    ok("train --train $DATA/pairs --alignments $DATA/links --resume --max-steps 12 --quiet "
       "-o d > /dev/null");
    ck_assert(same_files("a", "d"));
}

TEST(the_loss_of_alignments_is_told) {
    ok(GUIDED_FEW "--max-steps 4 --log-every 1 --json | grep '\"event\":\"step\"' | head -1");
    assert_contains(result.out, "\"alignment_loss\":");
    ok(FEW "--max-steps 4 --log-every 1 --json | grep '\"event\":\"step\"' | head -1");
    ck_assert_ptr_null(strstr(result.out, "alignment_loss"));
}

/* A guided model that is fine-tuned without alignments keeps its head for alignment in the file. */
TEST(the_head_is_kept) {
    ok("train --init $GUIDED --train $DATA/pairs --max-steps 2 --quiet -o more > /dev/null");
    assert_heads("more", 1);
    ok("train --init $GUIDED --train $DATA/pairs --alignments $DATA/links --max-steps 2 --quiet "
       "-o again > /dev/null");
    assert_heads("again", 1);
}

/* ---- refusals -------------------------------------------------------------------------------- */

#define PAIRS "printf 'a b\\tx y z\\nc\\tu\\n' > p; "
#define SMALL "train --train p --tokenizer word " SIZE "--max-steps 1 "

static const struct {
    const char *command;
    int status;
    const char *says;
} refusals[] = {
    { PAIRS "printf '0-0\\n' > l; " SMALL "--alignments l", 1,
      "p has 2 lines and l has 1: a line is needed for each pair" },
    { PAIRS "printf '\\n\\n0-0\\n\\n' > l; " SMALL "--alignments l", 1,
      "p has 2 lines and l has 4: a line is needed for each pair" },
    { PAIRS ": > l; " SMALL "--alignments l", 1, "p has 2 lines and l has 0" },
    { PAIRS "printf '0-0 2-0\\n0-0\\n' > l; " SMALL "--alignments l", 1,
      "l, line 1: 2-0: the source has 2 words, which count from 0" },
    { PAIRS "printf '0-0\\n0-1\\n' > l; " SMALL "--alignments l", 1,
      "l, line 2: 0-1: the target has 1 words" },
    { PAIRS "printf '0-0\\n0 0\\n' > l; " SMALL "--alignments l", 1,
      "l, line 2: '0 0' does not begin with a link such as 0-1" },
    { PAIRS SMALL "--alignments none", 1, "none can't be read: No such file" },
    { PAIRS SMALL "--alignment-weight 1", 2, "--alignment-weight would have no effect" },
    { PAIRS "printf '0-0\\n0-0\\n' > l; " SMALL "--alignments l --arch language", 2,
      "--alignments would have no effect: a language model has no cross-attention" },
    { "train --task date --alignments l", 2, "--alignments would have no effect" },
    { "train --task copy --alignments l", 2, "--alignments would have no effect" },
    { "generate --model none --alignment", 2, "--alignment" },
    { "generate --model none --alignment firm", 2,
      "--alignment: 'firm' is neither hard, nor soft, nor a threshold of 0 to 1" },
    { "generate --model none --alignment 1.5", 2, "nor a threshold of 0 to 1" },
    { "generate --model none --alignment hard --long-lines split", 2, "--long-lines split joins" },
    { PAIRS SMALL "--arch language -o m; generate m --alignment hard", 1,
      "m has no cross-attention, by which --alignment links" },
    { "generate $GUIDED --shortlist none", 1, "none can't be read: No such file" },
    { "echo none > l; generate $GUIDED --shortlist l", 1,
      "l: it does not begin as a binary shortlist" },
    { "generate $GUIDED --score --shortlist l", 2, "--shortlist would have no effect" },
    { "generate $GUIDED --suppress-tokens x", 2, "--suppress-tokens: 'x' is not a list" },
};

TEST_ROWS(refused, COUNT_OF(refusals)) {
    run("%s", refusals[_i].command);
    ck_assert_msg(strstr(result.err, refusals[_i].says), "%s\nsays: %s", refusals[_i].command,
                  result.err);
    expect(refusals[_i].status);
}

TEST(another_head_is_refused) {
    ok("cp $GUIDED m");
    static const char *const heads[] = { "2", "-1", "x", "", "0x0" };
    for (int i = 0; i < COUNT_OF(heads); i++) {
        change_meta("m", "generate.alignment-head", heads[i]);
        run("echo a1 | generate m --alignment hard");
        expect(1);
        assert_contains(result.err, "not one of its 2 heads");
    }
    change_meta("m", "generate.alignment-head", "1");
    ok("echo a1 a2 | generate m --alignment hard");
}

/* Alignments are a part of the training data: a resume needs the same file, and a training with
 * them cannot be emitted as C. */
TEST(a_resume_needs_the_same_alignments) {
    ok(GUIDED_FEW "--max-steps 2 --lr-steps 9 -o m > /dev/null");
    run("train --train $DATA/pairs --resume --max-steps 4 --quiet -o m");
    expect(2);
    assert_contains(result.err, "m was trained with --alignments: name that file again");
    run("train --train $DATA/pairs --alignments $DATA/first --resume --max-steps 4 --quiet -o m");
    expect(1);
    assert_contains(result.err, "was trained on other pairs than these");
    run("graph --emit-c m --train --batch-size 2 -o m.c");
    expect(1);
    assert_contains(result.err, "its training learns alignments, which has no form in C yet");
    ok(FEW "--max-steps 2 --lr-steps 9 -o free > /dev/null");
    run("train --train $DATA/pairs --alignments $DATA/links --resume --max-steps 4 -o free");
    expect(2);
    assert_contains(result.err, "free was trained without --alignments: leave it out");
}
