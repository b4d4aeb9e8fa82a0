/* tests/tools/test_defaults.c - default settings that depend on the data: their formulas, and the
 * settings of a training; and the validation pairs that are held out if none are given. */
#include <math.h>
#include <stdio.h>

#include "tests/suites.h"
#include "tests/support/commands.h"
#include "tests/support/support.h"
#include "tools/train/settings/defaults.h"

TESTS(defaults)

/* A dry run measures a step, so the models are small unless their size is tested. */
#define SMALL "--d-model 8 --heads 2 --layers 1 --d-ff 8 "
#define TINY SMALL "--threads 1 --quiet "

/* ---- the rules ------------------------------------------------------------------------------- */

/* Asserts that a setting a, and its value b for one percent more data, differ by at most 2 %. */
static void assert_near(double a, double b, const char *name, double size) {
    ck_assert_msg(fabs(a - b) <= 0.02 * a, "%s: %g, then %g, at %g", name, a, b, size);
}

TEST(pairs_have_smooth_rules) {
    for (double n = 100; n < 1e7; n *= 1.01) {
        pair_defaults a = defaults_for_pairs(n), b = defaults_for_pairs(1.01 * n);
        assert_near(a.batch, b.batch, "batch", n);
        assert_near(a.epochs, b.epochs, "epochs", n);
        ck_assert(fabs(a.dropout - b.dropout) <= 0.01);
        ck_assert(b.batch >= a.batch && b.dropout <= a.dropout);
        /* more data give fewer epochs, except between these sizes, where the defaults change from
         * those for captions of 29 tokens to those for words of 8 */
        ck_assert(b.epochs <= a.epochs || (n > 28000 && n < 120000));
        ck_assert(a.batch >= 1 && a.epochs >= 1 && a.dropout >= 0 && a.dropout < 0.5);
        /* the number of updates hardly falls with more data */
        ck_assert_msg(1.01 * n * b.epochs / b.batch >= 0.97 * n * a.epochs / a.batch, "%g", n);
    }
    ck_assert(defaults_for_pairs(1).epochs == defaults_for_pairs(100).epochs);
    ck_assert(defaults_for_pairs(1e12).epochs == defaults_for_pairs(1e7).epochs);
}

TEST(text_has_smooth_rules) {
    for (double n = 1000; n < 1e9; n *= 1.01) {
        text_defaults a = defaults_for_text(n), b = defaults_for_text(1.01 * n);
        assert_near(a.ids, b.ids, "ids", n);
        assert_near(a.windows, b.windows, "windows", n);
        assert_near(a.epochs, b.epochs, "epochs", n);
        ck_assert(fabs(a.dropout - b.dropout) <= 0.01);
        ck_assert(b.ids >= a.ids && b.windows >= a.windows && b.epochs <= a.epochs);
        ck_assert(b.dropout <= a.dropout && a.epochs >= 1);
        double ids = (double)defaults_ids(n), more = (double)defaults_ids(1.01 * n);
        ck_assert(more >= ids && more <= 1.02 * ids + 1 && ids >= 300 && ids <= 8000);
    }
}

TEST(warmup_does_not_jump) {
    for (int64_t steps = 10; steps < 20000; steps++) {
        for (int is_long = 0; is_long < 2; is_long++) {
            int64_t a = defaults_warmup(800, steps, is_long);
            int64_t b = defaults_warmup(800, steps + 1, is_long);
            ck_assert(a <= b && b <= a + 1 && 10 * a <= (is_long ? 3 : 1) * steps && a <= 800);
        }
    }
    for (double width = 2; width < 4096; width++) {
        double a = defaults_rate(3e-3, width), b = defaults_rate(3e-3, width + 1);
        ck_assert(b <= a && a <= 3e-3 && b >= 0.98 * a);
    }
    for (double tokens = 2; tokens < 600; tokens += 0.5) {
        int64_t n = defaults_batch_tokens(100, tokens);
        ck_assert(n >= 256 && n <= 4096 && n <= defaults_batch_tokens(100, tokens + 0.5));
    }
}

/* The README's translator: 29,000 captions of 27.9 tokens, or of 29.2 with one vocabulary. Its
 * measured results belong to these defaults, which must stay. */
TEST(the_recipe_of_the_readme_stays) {
    pair_defaults d = defaults_for_pairs(29000);
    ck_assert_int_eq(defaults_batch_tokens(d.batch, 27.91), 4096);
    ck_assert_int_eq(defaults_batch_tokens(d.batch, 29.15), 4096);
    ck_assert_int_eq(llround(d.epochs), 26);
    ck_assert_double_eq(d.dropout, 0.2);
}

/* The defaults for words and their sounds, 118,698 pairs of 14.83 tokens, were measured, too. */
TEST(the_recipe_of_letters_to_sounds_stays) {
    pair_defaults d = defaults_for_pairs(118698);
    ck_assert_int_eq(defaults_batch_tokens(d.batch, 14.83), 2180);
    ck_assert_int_eq(llround(d.epochs), 30);
    ck_assert_int_eq(llround(100 * d.dropout), 5);
}

/* ---- by the lines ---------------------------------------------------------------------------- */

/* Shell commands that write lines, and the tokenizers and positions that a training on them chooses
 * by default. */
static const struct {
    const char *lines, *tokenizer, *targets, *positions;
} kinds[] = {
    { "seq 1000 1999 | awk '{ print \"w\" $1 \"\\tW ER \" $1 % 7 \" D\" }'", "char", "word",
      "sinusoidal-rotary" },
    { "seq 100 999 | awk '{ print $1 \"+\" $1 \"\\t\" 2 * $1 }'", "char", "same",
      "sinusoidal-rotary" },
    { "seq 400 | awk '{ print \"das ist ein satz, der mehr als ein wort hat: \" $1 \"\\tthis is a "
      "sentence that has more than a word: \" $1 }'",
      "bpe", "same", "sinusoidal" },
    { "seq 600 | awk '{ print $1 % 7, $1 % 5, 3, 1 \"\\t\" $1 % 5, $1 % 7, 1, 3 }'", "word", "same",
      "sinusoidal" },
};

SETUP(enter_folder, leave_folder)

static void assert_setting(const char *name, const char *value) {
    char text[100];
    snprintf(text, sizeof text, "\"%s\":\"%s\"", name, value);
    assert_contains(result.out, text);
}

TEST_ROWS(lines_say_what_a_token_is, COUNT_OF(kinds)) {
    run("%s > pairs", kinds[_i].lines);
    expect(0);
    ok("train --train pairs " SMALL "--dry-run --json");
    assert_setting("tokenizer", kinds[_i].tokenizer);
    assert_setting("tokenizer-tgt", kinds[_i].targets);
    assert_setting("positions", kinds[_i].positions);
    assert_contains(result.err, "chosen   by the size of the data: tokenizer ");
    ok("train --train pairs " SMALL "--tokenizer char --epochs 3 --max-tokens 512 --dropout 0.05 "
       "--lr 0.001 --positions learned --dry-run --json");
    assert_setting("tokenizer", "char"), assert_setting("tokenizer-tgt", "same");
    assert_setting("max-tokens", "512"), assert_setting("dropout", "0.05");
    assert_setting("lr", "0.001"), assert_setting("positions", "learned");
    ck_assert_ptr_null(strstr(result.err, "chosen "));
    for (int shared = 0; shared < 2; shared++) {
        run("train --train pairs " SMALL "%s --dry-run --json",
            shared ? "--share-vocab" : "--tie all");
        expect(0);
        assert_setting("tokenizer-tgt", "same");
        assert_contains(result.err, "for both sides");
    }
}

/* If sources are characters, rotary positions are added by default. They are not added if heads
 * have an odd width, with --like, whose classes in transformers have other positions, or in a
 * decoder-only model. */
TEST(positions_fit_the_model) {
    run("%s > pairs", kinds[0].lines);
    ok("train --train pairs --d-model 12 --heads 4 --layers 1 --d-ff 8 --positions sinusoidal "
       "--dry-run --json");
    ok("train --train pairs --d-model 12 --heads 4 --layers 1 --d-ff 8 --dry-run --json");
    assert_setting("positions", "sinusoidal");
    ck_assert_ptr_null(strstr(result.err, "rotary"));
    ok("train --train pairs --like bart --dry-run --json");
    assert_setting("positions", "learned");
    ok("train --train pairs --arch language --dry-run --json");
    assert_setting("positions", "sinusoidal");
}

/* For words and their sounds, train chooses a kind of tokens for each side by itself, and stores
 * both in the file. */
TEST(each_side_has_its_tokens) {
    run("%s > pairs", kinds[0].lines);
    run("train --train pairs " TINY "--lr-steps 6 --max-steps 6 -o whole");
    expect(0);
    run("train --train pairs " TINY "--lr-steps 6 --max-steps 3 -o parts");
    expect(0);
    ok("train --resume --train pairs -o parts --quiet --threads 2");
    ck_assert(same_files("whole", "parts"));
    ok("inspect parts | grep -q 'tokenizer.kind *char' && inspect parts | grep 'tokenizer.kind "
       "*word'");
    ok("echo w100 | generate --model parts --quiet --max-len-b 4 > out && ! grep -q w out");
}

/* ---- pairs that are held back ---------------------------------------------------------------- */

static void make_many(void) {
    ok("seq 1000 | awk '{ print \"s\" $1 * 7919 % 1000 \"\\tt\" $1 * 7919 % 1000 }' > pairs");
}

/* One percent of the pairs is held out for validation, independent of their order, and a resume
 * holds out the same ones. */
TEST(some_pairs_are_held_back) {
    make_many();
    ok("train --train pairs --d-model 8 --heads 2 --layers 1 --d-ff 8 --threads 1 --lr-steps 6 "
       "--max-steps 6 --valid-every 3 -o whole");
    assert_contains(result.err, "training 990 pairs");
    assert_contains(result.err, "held out 10 pairs");
    ok("ls whole.best");
    run("train --train pairs " TINY "--max-steps 3 --lr-steps 6 --valid-every 3 -o parts");
    expect(0);
    ok("train --resume --train pairs -o parts --threads 1 --valid-every 3 --quiet");
    ck_assert(same_files("whole", "parts") && same_files("whole.best", "parts.best"));
    run("train --resume --train pairs -o parts --max-steps 9 --valid-size 3");
    expect(2);
    assert_contains(result.err, "was trained with --valid-size 1000, not 3");
    /* validating with other pairs, or with none, does not make held-out pairs training data */
    ok("head -5 pairs > other; train --resume --train pairs --valid other -o parts --max-steps 8 "
       "--quiet");
    ok("train --resume --train pairs -o whole --valid-size 0 --max-steps 7 --quiet");
    ok("sort pairs > sorted; train --train sorted " SMALL
       "--dry-run 2>&1 | grep -q 'held out 10 pairs'");
    ok("train --train pairs " SMALL "--valid-size 4 --dry-run 2>&1 | grep -q 'held out 4 pairs'");
    ok("train --train pairs " SMALL
       "--valid-size 0 --dry-run 2>&1 | grep -q 'training 1,000 pairs'");
}

/* Pairs with equal sources are all held out or all trained on. If all sources are equal, or if
 * there are fewer than 100 pairs, none is held out. */
TEST(few_or_equal_pairs_are_all_learned) {
    ok("yes 'a b\tb a' | head -n 900 > pairs; train --train pairs " SMALL "--dry-run");
    assert_contains(result.err, "training 900 pairs");
    assert_contains(result.err, "held out nothing: --valid FILE gives pairs to validate with; "
                                "without them no best weights are kept\n");
    ok("seq 99 | sed 's/.*/&\t&/' > pairs; train --train pairs " SMALL "--dry-run");
    assert_contains(result.err, "training 99 pairs");
}

/* Steps that --max-steps leaves out do not make the warm-up longer than the training. */
TEST(warmup_follows_the_steps_that_are_made) {
    static const char *const early = "schedule the rate falls to 0 at step ";
    make_many();
    ok("train --train pairs " SMALL "--max-steps 40 --dry-run");
    assert_contains(result.err, " after 4 steps, then linear");
    assert_contains(result.err, early);
    assert_contains(result.err, ", and --max-steps 40 ends before: the warm-up is a part of these "
                                "steps, and a resume keeps it; --lr-steps 40 ends both\n");
    ok("train --train pairs " SMALL "--max-steps 40 --warmup 7 --dry-run");
    assert_contains(result.err, " after 7 steps, then linear");
    assert_contains(result.err, ", and --max-steps 40 ends before; --lr-steps 40 ends both\n");
    ok("train --train pairs " SMALL "--max-steps 40 --lr-steps 400 --dry-run");
    assert_contains(result.err, " after 40 steps, then linear");
    ck_assert_ptr_null(strstr(result.err, early));
    /* if --max-steps does not shorten the warm-up, the message does not say so */
    ok("train --train pairs " SMALL "--batch-size 1 --max-steps 9000 --dry-run");
    assert_contains(result.err, " after 800 steps, then linear");
    assert_contains(result.err, ", and --max-steps 9000 ends before; --lr-steps 9000 ends both\n");
    /* schedules without an end have a warm-up, too */
    static const char *const endless[] = { "constant", "inverse-sqrt", "noam" };
    for (int i = 0; i < COUNT_OF(endless); i++) {
        run("train --train pairs " SMALL "--max-steps 40 --lr-schedule %s --dry-run", endless[i]);
        expect(0);
        assert_contains(result.err, " after 4 steps, then ");
        ck_assert_ptr_null(strstr(result.err, early));
    }
}

/* Options of a training that --max-steps ends before its schedule; its --warmup option; and the
 * options that the message names to make both end at the same step. */
static const struct {
    const char *options, *warmup, *both;
} stops[] = {
    { "--task copy --max-steps 30", "", "--lr-steps 30 --warmup 3" },
    { "--task copy --max-steps 1", "", "--lr-steps 1 --warmup 0" },
    { "--task copy --max-steps 201", "", "--lr-steps 201" },
    { "--train pairs --max-steps 40", "", "--lr-steps 40" },
    { "--train pairs --max-steps 40", "--warmup 39", "--lr-steps 40" },
    { "--train pairs --max-steps 40", "--warmup 40", "--lr-steps 40 --warmup 4" },
    { "--train pairs --max-steps 40", "--warmup 100", "--lr-steps 40 --warmup 4" },
};

TEST_ROWS(options_that_end_both_are_taken, COUNT_OF(stops)) {
    char says[100];
    bool other = strstr(stops[_i].both, "--warmup");
    make_many();
    run("train %s %s " SMALL "--dry-run", stops[_i].options, stops[_i].warmup);
    expect(0);
    snprintf(says, sizeof says, "; %s ends both\n", stops[_i].both);
    assert_contains(result.err, says);
    run("train %s %s %s " SMALL "--dry-run", stops[_i].options, other ? "" : stops[_i].warmup,
        stops[_i].both);
    expect(0);
    ck_assert_ptr_null(strstr(result.err, "ends both"));
}

TEST(a_forgotten_validation_is_told) {
    make_many();
    ok("head -50 pairs > valid");
    run("train --train pairs --valid valid " TINY "--max-steps 3 --lr-steps 9 -o m");
    expect(0);
    ok("cp m before");
    run("train --resume --train pairs -o m --quiet");
    expect(2);
    assert_contains(result.err, "m was validated with --valid: name that file again");
    ck_assert(same_files("m", "before"));
    ok("train --resume --train pairs -o m --quiet --valid-size 0");
}
