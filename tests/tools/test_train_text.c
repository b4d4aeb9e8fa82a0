/* tests/tools/test_train_text.c - the program train on text: files, vocabularies, resuming,
 * refusals, and the files that it leaves.
 *
 * Most tests train a very small model on two dozen pairs of short sentences. walls/kills.c tests
 * that a training survives kill -9; refusals are rows of train_refusals.inc. */
#include <math.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "models/transformer.h"
#include "tests/suites.h"
#include "tests/support/commands.h"
#include "tests/support/support.h"
#include "train_refusals.inc"

TESTS(train_text)

#define SIZE "--d-model 16 --heads 2 --layers 1 --d-ff 16 "
#define TINY SIZE "--threads 1 --quiet --warmup 2 "
/* Updates have at most 5 of the 24 pairs, so that trainings can end within an epoch. */
#define WORDS "train --train pairs --tokenizer word " TINY "--batch-size 5 --lr-steps 40 "

/* ---- data ------------------------------------------------------------------------------------ */

enum { PAIRS = 24 };
static const char *const words[2][8] = {
    { "haus", "hund", "katze", "baum", "stadt", "garten", "vogel", "fluss" },
    { "house", "dog", "cat", "tree", "town", "garden", "bird", "river" },
};

/* Sentence i: 2 to 5 words; with `turned`, in the wrong order. */
static void put_sentence(FILE *f, int side, int i, bool turned) {
    int n = 2 + i % 4;
    for (int k = 0; k < n; k++) {
        int word = (i + 3 * (turned ? n - 1 - k : k) * (1 + i / 8)) % 8;
        fprintf(f, "%s%s", k ? " " : "", words[side][word]);
    }
}

/* Writes the files pairs (both sides), src and tgt (one side each), and turned: pairs with targets
 * in the wrong order, whose loss rises while the others are learned. */
static void make_files(void) {
    enter_folder();
    FILE *pairs = fopen("pairs", "w"), *turned = fopen("turned", "w");
    FILE *side[2] = { fopen("src", "w"), fopen("tgt", "w") };
    ck_assert(pairs && turned && side[0] && side[1]);
    for (int i = 0; i < PAIRS; i++)
        for (int s = 0; s < 2; s++) {
            put_sentence(side[s], s, i, false), fputc('\n', side[s]);
            put_sentence(pairs, s, i, false), fputc("\t\n"[s], pairs);
            put_sentence(turned, s, i, s == 1), fputc("\t\n"[s], turned);
        }
    ck_assert(!fclose(pairs) && !fclose(turned) && !fclose(side[0]) && !fclose(side[1]));
}

/* The value of `key` in the i-th event of this name in a log; NAN: there are fewer. */
static double logged(const char *path, const char *event, const char *key, int i) {
    char line[2048], quoted[40], name[40];
    double value = (double)NAN;
    FILE *f = fopen(path, "r");
    ck_assert_msg(f, "there is no %s", path);
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    snprintf(name, sizeof name, "\"event\":\"%s\"", event);
    while (i >= 0 && fgets(line, sizeof line, f)) {
        if (!strstr(line, name)) continue;
        const char *at = strstr(line, quoted);
        ck_assert_msg(at, "there is no %s in %s", quoted, line);
        if (i-- == 0) value = atof(at + strlen(quoted));
    }
    fclose(f);
    return value;
}

static wf_file *opened(const char *path) {
    wf_file *f = wf_file_open(path);
    ck_assert_msg(wf_file_ok(f), "%s", wf_file_error(f));
    return f;
}

static double meta_number(const char *path, const char *key) {
    wf_file *f = opened(path);
    const char *text = wf_file_meta(f, key);
    ck_assert_msg(text, "%s has no %s", path, key);
    double value = atof(text);
    wf_file_free(f);
    return value;
}

static int count_of(const char *text, const char *what) {
    int n = 0;
    while ((text = strstr(text, what)) != NULL) n++, text += strlen(what);
    return n;
}

/* ---- learning -------------------------------------------------------------------------------- */

static const struct way {
    const char *from, *tokens;
    bool shared;
} ways[] = {
    { "--train pairs", "--tokenizer word", false },
    { "--train pairs", "--tokenizer word --share-vocab", true },
    { "--train-src src --train-tgt tgt", "--tokenizer word", false },
    { "--train pairs", "--tokenizer char", false },
    { "--train-src src --train-tgt tgt", "--tokenizer char --share-vocab", true },
    { "--train pairs", "--tokenizer bpe --vocab-size 60", false },
    { "--train-src src --train-tgt tgt", "--tokenizer bpe --vocab-size 60 --share-vocab", true },
    { "--train pairs", "--arch language --tokenizer bpe --vocab-size 60", true },
};

SETUP(make_files, leave_folder)

/* The model's file, moved to another folder without the training data, translates text. */
TEST_ROWS(text_is_learned_and_the_file_says_it, COUNT_OF(ways)) {
    const struct way *w = &ways[_i];
    run("train %s %s " TINY "--epochs 4 --dropout 0 -o m.safetensors --log log --log-every 1",
        w->from, w->tokens);
    expect(0);
    ck_assert_str_eq(result.err, "");
    int last = (int)logged("log", "end", "step", 0) - 1;
    ck_assert_int_ge(last, 3);
    ck_assert(logged("log", "step", "loss", last) < logged("log", "step", "loss", 0));
    wf_file *f = opened("m.safetensors");
    static const char *const keys[] = { "tokenizer.vocabulary", "src_tokenizer.vocabulary",
                                        "tgt_tokenizer.vocabulary" };
    for (int i = 0; i < 3; i++)
        ck_assert_msg(!wf_file_meta(f, keys[i]) == (w->shared != (i == 0)), "%s", keys[i]);
    const char *vocabulary = wf_file_meta(f, w->shared ? keys[0] : keys[1]);
    ck_assert_ptr_nonnull(strstr(vocabulary, "h"));
    wf_file_free(f);
    ok("mkdir away; cp m.safetensors away; cd away; printf 'haus hund\\nunbekannt\\n' | "
       "generate --model m.safetensors --quiet --max-len-b 5");
    ck_assert_int_eq(count_of(result.out, "\n"), 2);
}

/* Two files, and one file with TABs, give the same pairs and the same model. */
TEST(one_file_or_two_are_the_same) {
    ok(WORDS "--max-steps 4 -o one");
    ok("train --train-src src --train-tgt tgt --tokenizer word " TINY
       "--batch-size 5 --lr-steps 40 --max-steps 4 -o two");
    ck_assert(same_files("one", "two"));
}

TEST_ROWS(words_are_learned_by_heart, 2) {
    run("train --train pairs --tokenizer word --valid pairs --d-model 32 --heads 2 "
        "--layers %d --d-ff 64 --threads 1 --quiet --dropout 0 --label-smoothing 0 --batch-size 8 "
        "--lr 0.01 "
        "--warmup 20 --max-steps %d --valid-every 0 -o m --arch %s",
        1 + _i, _i ? 1000 : 800, _i ? "language" : "transformer");
    expect(0);
    int exact = 0;
    ck_assert_int_eq(sscanf(result.out, "exact match %d/24", &exact), 1);
    ck_assert_int_ge(exact, 22);
    ok("generate --model m --beam 1 --quiet < src | paste - tgt | awk -F '\t' '$1 == $2' | wc -l");
    ck_assert_int_ge(atoi(result.out), 22);
}

/* Lines without a TAB are targets for a language model. It generates such lines, and gives each of
 * the n lines that it has learned a log-probability of about -log n. */
TEST(plain_text_is_learned_without_sources) {
    ok("for i in 1 2 3 4 5; do printf 'a cat\\nthe dog\\n\\tone bird\\n'; done > plain");
    ok("train --arch language --train plain --valid plain --tokenizer char --d-model 32 --heads 2 "
       "--layers 1 --d-ff 64 --dropout 0 --label-smoothing 0 --max-steps 300 --warmup 20 --lr 0.01 "
       "--threads 1 -o m");
    assert_contains(result.err, "On 15 sequences it has learned from: loss");
    ck_assert(!strstr(result.err, "BLEU")); /* without sources there are no outputs to score */
    ck_assert_str_eq(result.out, "");
    ok("yes '' | head -30 | generate --model m --sample --quiet > drawn");
    ok("grep -c -E '^(a cat|the dog|one bird)$' drawn; sort -u drawn | wc -l");
    int known, kinds;
    ck_assert_int_eq(sscanf(result.out, "%d %d", &known, &kinds), 2);
    ck_assert(known >= 27 && kinds >= 3);
    ok("printf '\\tthe dog\\n' | generate --model m --score --quiet");
    ck_assert_double_eq_tol(atof(result.out), -log(3), 0.1);
    run("train --train plain " TINY);
    expect(1);
    assert_contains(result.err, "line 1 of plain has no TAB");
}

/* With few pairs the training is short, and the default warm-up is shorter still. */
TEST(few_pairs_need_no_options) {
    ok("head -3 pairs > few");
    ok("train --train few --tokenizer word " SIZE "--threads 1 --quiet -o m");
    ck_assert(meta_number("m", "train.warmup") < meta_number("m", "train.lr-steps"));
    run("train --train few --tokenizer word " SIZE "--threads 1 --quiet --warmup 500");
    expect(2);
    assert_contains(result.err, "--warmup 500 leaves nothing");
}

/* ---- the same training ---------------------------------------------------------------------- */

static const struct recipe {
    const char *settings; /* options that a resume reads from the file */
    const char *told;     /* options that a resume must be given again */
} recipes[] = {
    { "", "" },
    { "--accum 3", "" },
    { "--ema 0.9", "" },
    { "--dropout 0.3 --attention-dropout 0.2", "" },
    { "--accum 2 --ema 0.5 --dropout 0.1", "--valid turned --valid-every 3" },
    { "--lr 0.03", "--valid turned --valid-every 7" }, /* a part ends at a validation */
    { "--lr 0.03", "--valid pairs --valid-every 0" },
    { "--arch language --accum 2 --ema 0.5 --dropout 0.1", "--valid turned --valid-every 3" },
};

/* A training in parts, which end within an epoch and at its end, and with other numbers of threads,
 * gives the file of one training. */
TEST_ROWS(parts_are_the_whole, COUNT_OF(recipes)) {
    const struct recipe *r = &recipes[_i];
    run(WORDS "%s %s --max-steps 14 -o whole.safetensors", r->settings, r->told);
    expect(0);
    run(WORDS "%s %s --max-steps 7 -o parts.safetensors", r->settings, r->told);
    expect(0);
    ck_assert(!same_files("whole.safetensors", "parts.safetensors"));
    for (int i = 0; i < 2; i++) {
        run("train --train pairs --resume -o parts.safetensors --quiet --threads %d --max-steps %d "
            "%s",
            3 - i, i ? 14 : 10, r->told);
        expect(0);
    }
    ck_assert_msg(same_files("whole.safetensors", "parts.safetensors"), "%s", result.out);
}

/* A part of a training is also validated at its end. A resume must not replace the .best file by
 * worse weights. In row 1 the .best file does not name its training, as in older versions, so it is
 * recognised by its settings. */
TEST_ROWS(resume_keeps_the_best_of_all, 2) {
    ok(WORDS "--valid pairs --valid-every 4 --max-steps 14 --lr 0.003 -o m.safetensors");
    double best = meta_number("m.best.safetensors", "train.best");
    if (_i) change_meta("m.best.safetensors", "weft.run", NULL);
    ok("cp m.best.safetensors before");
    /* without this key, a resume accepts other validation data */
    change_meta("m.safetensors", "train.valid-data", NULL);
    /* losses on the turned pairs are all worse than the best loss on the original ones */
    ok("train --resume -o m.safetensors --train pairs --valid turned --valid-every 1 --max-steps "
       "16 --quiet --log log");
    for (int i = 0; i < 2; i++) ck_assert(logged("log", "valid", "loss", i) > best);
    ck_assert(same_files("m.best.safetensors", "before"));
}

TEST(epochs_say_where_a_resume_stops) {
    ok(WORDS "--max-steps 7 -o m");
    ok("train --resume -o m --train pairs --quiet --epochs 3");
    ck_assert_int_eq((int)meta_number("m", "train.step"), 15);
}

TEST(limits_of_a_batch_are_told) {
    static const char *const told[][2] = {
        { "--batch-size 5 --max-tokens 0", ", batches of 5, peak" },
        { "--max-tokens 90", ", batches of at most 90 tokens, peak" },
        { "--batch-size 5 --max-tokens 90", ", batches of 5 and at most 90 tokens, peak" },
    };
    for (int i = 0; i < COUNT_OF(told); i++) {
        run("train --train pairs --tokenizer word --d-model 16 --heads 2 --layers 2 --enc-layers 1 "
            "--threads 1 --warmup 1 --max-steps 1 %s",
            told[i][0]);
        expect(0);
        assert_contains(result.err, told[i][1]);
        assert_contains(result.err, " 1 + 2 layers");
    }
}

/* Rewrites a model's file with one more row in the tables of one side, but the old settings and
 * vocabularies. */
static void widen(const char *path, int side) {
    static const char *const kept[] = { "train.", "src_tokenizer.", "tgt_tokenizer." };
    wf_meta meta[100];
    char message[WF_MESSAGE] = "";
    int n = 0;
    wf_file *f = wf_file_open("m");
    wf_model *before = wf_model_load(f, NULL, WF_F32, 1, message);
    ck_assert_msg(before != NULL, "%s", message);
    wf_transformer_config c = wf_transformer_of(before)->config;
    wf_model_free(before);
    *(side ? &c.tgt_vocab : &c.src_vocab) += 1;
    for (int i = 0; i < wf_file_meta_count(f); i++)
        for (int k = 0; k < COUNT_OF(kept); k++)
            if (strncmp(wf_file_meta_at(f, i).key, kept[k], strlen(kept[k])) == 0)
                meta[n++] = wf_file_meta_at(f, i);
    wf_model *m = wf_transformer_new(&c, NULL, WF_F32, 1, message);
    ck_assert_msg(m, "%s", message);
    wf_trainer *t =
        wf_trainer_new(m->graph, m->loss.loss, m->loss.count,
                       &(wf_trainer_options){ .optimizer = wf_optimizer_defaults(WF_ADAM),
                                              .schedule = { .peak = 1e-3 } });
    ck_assert_msg(wf_model_save(m, path, t, meta, n, message), "%s", message);
    wf_trainer_free(t), wf_model_free(m), wf_file_free(f);
}

/* A resume refuses a model with more rows than its vocabulary has entries: it could not write their
 * tokens. */
TEST_ROWS(resume_needs_the_vocabularies_of_the_model, 2) {
    static const char *const says[] = { "the source vocabulary has 12 entries and the model 13",
                                        "the target vocabulary has 12 entries and the model 13" };
    ok(WORDS "--valid pairs --max-steps 2 -o m");
    widen("wide", _i);
    run("train --resume -o wide --train pairs --valid pairs --max-steps 4");
    expect(1);
    assert_contains(result.err, says[_i]);
}

TEST(threads_change_nothing) {
    for (int threads = 1; threads <= 5; threads += 2) {
        run("train --train pairs --tokenizer char " SIZE "--quiet --warmup 2 --dropout 0.1 --accum "
            "2 --batch-size 5 --ema 0.9 --max-steps 6 --threads %d -o %d",
            threads, threads);
        expect(0);
    }
    ck_assert(same_files("1", "3"));
    ck_assert(same_files("1", "5"));
}

/* The largest difference between the parameters of two models, relative to the largest
 * parameter. */
static double parameters_apart(const char *a, const char *b) {
    wf_file *f = opened(a), *g = opened(b);
    double apart = 0, largest = 0;
    for (int i = 0; i < wf_file_count(f); i++) {
        const wf_entry *x = wf_file_at(f, i), *y = wf_file_find(g, x->name);
        if (strncmp(x->name, "transformer.", 12) != 0) continue;
        ck_assert(y && y->bytes == x->bytes && strcmp(x->dtype, "F32") == 0);
        const float *p = x->data, *q = y->data;
        for (size_t k = 0; k < x->bytes / sizeof *p; k++) {
            apart = fmax(apart, fabs((double)p[k] - (double)q[k]));
            largest = fmax(largest, fabs((double)p[k]));
        }
    }
    wf_file_free(f), wf_file_free(g);
    return apart / largest;
}

/* An update from all pairs gives the same parameters with one batch as with several (--accum),
 * without dropout. */
TEST(accumulated_batches_are_the_large_one) {
    static const char *const cuts[] = { "--batch-size 24", "--batch-size 12 --accum 2",
                                        "--batch-size 5 --accum 5", "--batch-size 12" };
    for (int i = 0; i < 4; i++) {
        run("train --train pairs --tokenizer word " TINY "--optimizer sgd --lr 0.1 --dropout 0 "
            "--lr-steps 20 --max-steps 6 %s -o %d.safetensors",
            cuts[i], i);
        expect(0);
    }
    ck_assert(parameters_apart("0.safetensors", "1.safetensors") < 1e-5);
    ck_assert(parameters_apart("0.safetensors", "2.safetensors") < 1e-5);
    ck_assert(parameters_apart("0.safetensors", "3.safetensors") > 1e-3);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void make_refused_files(void) {
    make_files();
    ok(WORDS "--max-steps 3 -o m.safetensors");
    ok("head -23 tgt > short; printf 'a\\tb\\nc\\t\\377\\n' > bytes; printf 'a\\n\\nb\\n' > gap; "
       "printf 'a\\tb\\n\\tc\\n' > no_source; : > nothing; mkdir folder.best; tac pairs > tacit");
}

SETUP(make_refused_files, leave_folder)

TEST_ROWS(refusal_says_what_to_do, COUNT_OF(refusals)) {
    const struct refusal *r = &refusals[_i];
    ok("ls > .before; cksum pairs m.safetensors > .sums");
    run("%s", r->command);
    ck_assert_msg(result.status == r->status, "%s: exit code %d, not %d:\n%s", r->command,
                  result.status, r->status, result.err);
    assert_contains(result.err, r->says);
    const char *hint = strstr(result.err, "Try 'train --help'.\n");
    ck_assert_msg(strchr(result.err, '\n') + 1 == (hint ? hint : strchr(result.err, '\0')),
                  "%s: not one sentence: %s", r->command, result.err);
    ck_assert_str_eq(result.out, "");
    ok("ls | cmp - .before && cksum pairs m.safetensors | cmp - .sums");
}

/* Files with pairs of which a side is missing, some with the line ends of Windows. `left` is what
 * the printed command leaves of them. */
static const struct {
    const char *write, *options, *left;
} lacking[] = {
    { "printf 'a\\tb\\n\\nc\\t\\n\\td\\ne\\tf\\n' > f", "--train f", "a\tb\ne\tf\n" },
    { "printf 'a\\tb\\r\\nc\\t\\r\\n\\r\\n\\td\\r\\ne\\tf\\r\\n' > f", "--train f",
      "a\tb\ne\tf\n" },
    { "printf 'a\\tb\\r\\n\\r\\nc\\t\\r\\n\\td\\r\\n' > f", "--arch language --train f",
      "a\tb\n\td\n" },
    { "printf 'a\\n\\nb\\ne\\n' > f; printf 'x\\ny\\n\\nz\\n' > g", "--train-src f --train-tgt g",
      "a\tx\ne\tz\n" },
    { "printf 'a\\r\\n\\r\\nb\\r\\n' > f; printf 'x\\r\\ny\\r\\nz\\r\\n' > g",
      "--train-src f --train-tgt g", "a\tx\nb\tz\n" },
    { "printf 'a\\r\\n\\r\\nb\\r\\n' > f; printf 'x\\r\\ny\\r\\n\\r\\n' > g",
      "--arch language --train-src f --train-tgt g", "a\tx\n\ty\n" },
};

TEST_ROWS(the_printed_command_leaves_pairs, COUNT_OF(lacking)) {
    static const char *const fit = "--tokenizer char " TINY "--valid-size 0 --max-steps 3";
    char command[WF_MESSAGE];
    run("%s; train %s %s", lacking[_i].write, lacking[_i].options, fit);
    expect(1);
    const char *at = strstr(result.err, "awk "), *end = at ? strstr(at, " leaves ") : NULL;
    ck_assert_msg(end, "%s", result.err);
    bool two = strstr(result.err, "paste SOURCES TARGETS | ");
    snprintf(command, sizeof command, "%.*s", (int)(end - at), at);
    run("%s | %s > left; cat left", two ? "paste f g" : "cat f", command);
    expect(0);
    ck_assert_str_eq(result.out, lacking[_i].left);
    run("train --train left %s %s",
        strstr(lacking[_i].options, "language") ? "--arch language" : "", fit);
    expect(0);
}

/* If a line is taken out of the pairs, the same line must be taken out of the alignments. */
TEST(alignments_lose_the_same_lines) {
    ok("printf 'a\\r\\n\\r\\nb\\r\\n' > f; printf 'x\\r\\ny\\r\\nz\\r\\n' > g; printf "
       "'0-0\\n\\n0-0\\n' > h");
    run("train --train-src f --train-tgt g --alignments h");
    expect(1);
    const char *at = strstr(result.err, "awk "), *end = at ? strstr(at, " leaves ") : NULL;
    ck_assert_msg(end, "%s", result.err);
    assert_contains(end, "; take the same line out of ALIGNMENTS\n");
    run("paste f g | %.*s > left && sed 2d h > links && train --train left --alignments links " TINY
        "--tokenizer char --valid-size 0 --max-steps 3",
        (int)(end - at), at);
    expect(0);
}

/* A line without TAB has no empty side, so the printed command keeps it. train then refuses the
 * line. */
TEST(the_printed_command_keeps_what_is_no_pair) {
    ok("printf 'a\\tb\\nc d\\n\\te\\n' > f");
    run("tac f | train --train -");
    expect(1);
    const char *at = strstr(result.err, "awk "), *end = at ? strstr(at, " leaves ") : NULL;
    ck_assert_msg(end, "%s", result.err);
    run("%.*s f > left; train --train left", (int)(end - at), at);
    expect(1);
    assert_contains(result.err, "line 2 of left has no TAB");
}

/* ---- what is said and kept ------------------------------------------------------------------- */

SETUP(make_files, leave_folder)

TEST(long_pairs_are_counted) {
    ok("{ cat pairs; printf 'a b c d e f g\\th\\ni\\tj k l m n o p\\n'; } > long");
    ok("train --train long --tokenizer word --max-len 6 " SIZE "--threads 1 --warmup 2 --max-steps "
       "2");
    assert_contains(result.err, "training 24 pairs");
    assert_contains(result.err, "skipped 2 of 26 pairs: longer than 6 tokens");
}

TEST(patience_stops_at_the_best) {
    ok("train --train pairs --valid turned --tokenizer word " SIZE
       "--threads 1 --warmup 2 --lr 0.005 --lr-schedule constant --batch-size 24 --dropout 0 "
       "--valid-every 5 --patience 3 --max-steps 2000 -o m.safetensors --log log --curve c.svg");
    assert_contains(result.err, "stopped: 3 validations without a lower loss than ");
    double lowest = INFINITY;
    int n = 0, at = 0;
    for (double loss; loss = logged("log", "valid", "loss", n), !isnan(loss); n++)
        if (loss < lowest) lowest = loss, at = n;
    ck_assert_msg(at == n - 4, "validation %d of %d was the best", at, n);
    ck_assert_int_eq((int)logged("log", "end", "step", 0), 5 * n);
    ck_assert_double_eq_tol(meta_number("m.best.safetensors", "train.best"), lowest, 1e-9);
    ck_assert_int_eq((int)meta_number("m.best.safetensors", "train.step"), 5 * (at + 1));
    ck_assert_int_eq((int)meta_number("m.safetensors", "train.step"), 5 * n);
    ok("generate --model m.best.safetensors --quiet < src | wc -l");
    ck_assert_int_eq(atoi(result.out), PAIRS);
    ok("grep -c '<svg' c.svg; grep -c 'held-out data' c.svg; grep -c Learning c.svg");
}

TEST(log_holds_the_metrics) {
    ok(WORDS "--valid pairs --valid-every 2 --max-steps 4 --log log");
    static const char *const keys[] = { "bleu", "bleu_13a", "chrf", "cer", "wer", "loss" };
    for (int i = 0; i < COUNT_OF(keys); i++) {
        double value = logged("log", "valid", keys[i], 1);
        ck_assert_msg(value >= 0 && value <= 100, "%s: %g", keys[i], value);
    }
    ck_assert_int_eq((int)logged("log", "valid", "step", 0), 2);
    ck_assert_int_eq((int)logged("log", "valid", "step", 1), 4);
    ck_assert(isnan(logged("log", "valid", "loss", 2))); /* no second validation at the end */
    ck_assert_double_eq_tol(logged("log", "step", "epoch", 0), 0.8, 1e-9);
}

TEST(dry_run_says_much_and_does_nothing) {
    ok("ls > .before; echo '{\"event\":\"kept\"}' > log");
    ok("train --train pairs --tokenizer word " SIZE "--threads 1 --warmup 2 --accum 2 --ema 0.9 "
       "--valid turned --epochs 3 --dry-run -o m.safetensors --curve c.svg --log log");
    assert_contains(result.err, " parameters\n");
    assert_contains(result.err, "of memory\n");
    assert_contains(result.err, "for an epoch, ");
    ck_assert_str_eq(result.out, "");
    ok("cat log; rm log; ls | cmp - .before");
    ck_assert_str_eq(result.out, "{\"event\":\"kept\"}\n");
}

/* The memory that train says it needs. */
static double said_memory(const char *options) {
    run("train %s --json; true", options);
    expect(0);
    const char *at = strstr(result.out, "\"memory\":");
    ck_assert_msg(at != NULL, "%s", result.err);
    return strtod(at + strlen("\"memory\":"), NULL);
}

/* A dry run predicts the memory that a run reports, and a run takes at most 1.2 times as much. The
 * validation of this run needs more than a step. Whether the prediction is too high cannot be
 * tested: on a machine short of memory the measured peak is lower. */
TEST(dry_run_says_what_a_run_takes) {
    const char *options =
        "--task copy --batch-size 1 --max-len 512 --valid-size 50 --d-model 64 "
        "--heads 1 --layers 1 --d-ff 512 --max-steps 1 --lr-steps 1000 --threads 1";
    char dry[256];
    snprintf(dry, sizeof dry, "%s --dry-run", options);
    double said = said_memory(dry);
    ck_assert(said_memory(options) == said);
    struct rusage children;
    ck_assert_int_eq(getrusage(RUSAGE_CHILDREN, &children), 0);
    double peak = 1024.0 * (double)children.ru_maxrss;
    if (!SANITIZED) ck_assert_msg(peak <= 1.2 * said, "%.0f bytes said, %.0f taken", said, peak);
}

/* Each adds its own. */
TEST(memory_counts_validation_averages_and_saving) {
    static const char *const more[] = { "", "--valid turned", "--valid turned -o m.safetensors",
                                        "--valid turned -o m.safetensors --ema 0.9",
                                        "--valid turned -o m.safetensors --ema 0.9 --accum 2" };
    char options[256];
    double least = 0;
    for (int i = 0; i < COUNT_OF(more); i++) {
        snprintf(options, sizeof options, "--train pairs --tokenizer word " TINY "--dry-run %s",
                 more[i]);
        double said = said_memory(options);
        ck_assert_msg(said > least, "%s: %.0f, not more than %.0f", more[i], said, least);
        least = said;
    }
}

TEST(signal_saves_and_text_goes_on) {
    run("train --train pairs --tokenizer word " TINY
        "--batch-size 5 --lr-steps 1000000 --max-steps 1000000 --log log --log-every 1 -o "
        "m.safetensors & pid=$!\n"
        "until grep -q '\"step\":7,' log 2> /dev/null; do sleep 0.01; done\n"
        "kill -TERM $pid; wait $pid");
    expect(143);
    long step = (long)meta_number("m.safetensors", "train.step");
    ck_assert_int_ge(step, 7);
    run("train --resume -o m.safetensors --train pairs --quiet --max-steps %ld", step + 3);
    expect(0);
    run("train --train pairs --tokenizer word " TINY
        "--batch-size 5 --lr-steps 1000000 --max-steps %ld -o same.safetensors",
        step + 3);
    expect(0);
    ck_assert(same_files("m.safetensors", "same.safetensors"));
}

/* ---- tasks on text --------------------------------------------------------------------------- */

TEST_ROWS(text_task_lowers_the_loss, 2) {
    static const char *const tasks[] = { "add", "date" };
    run("train --task %s " TINY "--max-tokens 1024 --max-steps 80 --lr-steps 300 --lr 0.01 "
        "--valid-size 40 --valid-every 40 --log log --log-every 10 -o m.safetensors",
        tasks[_i]);
    expect(0);
    double first = logged("log", "step", "loss", 0), last = logged("log", "step", "loss", 7);
    ck_assert_msg(last < 0.85 * first, "%s: the loss went from %g to %g", tasks[_i], first, last);
    ck_assert(logged("log", "valid", "loss", 1) < logged("log", "valid", "loss", 0));
    ck_assert_int_eq((int)logged("log", "test", "sequences", 0), 40);
    ok(_i ? "echo 'March 3, 1998' | generate --model m.safetensors --quiet"
          : "echo 12+345 | generate --model m.safetensors --quiet");
    ck_assert_msg(strspn(result.out, "0123456789-") > 0, "%s", result.out);
}
