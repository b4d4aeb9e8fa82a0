/* tests/tools/test_train_init.c - train --init, fine-tuning from a model's file: the weights and
 * settings that are taken from it, frozen parameters, and resumes with the same bits.
 *
 * The data are two dozen pairs of short sentences, in two halves. Refusals are rows of
 * train_refusals.inc. */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "core/file.h"
#include "tests/suites.h"
#include "tests/support/commands.h"
#include "tests/support/support.h"

TESTS(train_init)

#define SIZE "--d-model 16 --heads 2 --layers 1 --d-ff 16 "
#define NEW "train --train one --threads 1 --quiet --warmup 2 --batch-size 5 --lr-steps 60 " SIZE
#define TUNE "train --train two --threads 1 --quiet --warmup 2 --batch-size 5 --lr-steps 40 "

/* Writes the files one and two, halves of the pairs with the same words, and both, all pairs. */
static void make_halves(void) {
    enter_folder();
    ok("awk 'BEGIN { split(\"haus hund katze baum stadt garten vogel fluss\", a);"
       " split(\"house dog cat tree town garden bird river\", b);"
       " for (i = 0; i < 24; i++) { n = 2 + i % 4; s = t = \"\";"
       " for (k = 0; k < n; k++) { w = 1 + (i + 3 * k * (1 + int(i / 8))) % 8;"
       " s = s (k ? \" \" : \"\") a[w]; t = t (k ? \" \" : \"\") b[w] }"
       " print s \"\\t\" t }}' > both; head -12 both > one; tail -12 both > two");
}

static wf_file *opened(const char *path) {
    wf_file *f = wf_file_open(path);
    ck_assert_msg(wf_file_ok(f), "%s", wf_file_error(f));
    return f;
}

static bool same_bytes(const wf_entry *a, const wf_entry *b) {
    return a && b && a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0;
}

/* Counts the tensors of a whose names begin with `prefix`: those with the same bytes in b, and
 * those with other bytes. */
static void count_same(const char *a, const char *b, const char *prefix, int *same, int *other) {
    wf_file *f = opened(a), *g = opened(b);
    *same = *other = 0;
    for (int i = 0; i < wf_file_count(f); i++) {
        const wf_entry *e = wf_file_at(f, i);
        if (strncmp(e->name, prefix, strlen(prefix)) != 0) continue;
        ++*(same_bytes(e, wf_file_find(g, e->name)) ? same : other);
    }
    wf_file_free(f), wf_file_free(g);
}

static void assert_same_meta(const char *a, const char *b, const char *prefix) {
    wf_file *f = opened(a), *g = opened(b);
    int n = 0;
    for (int i = 0; i < wf_file_meta_count(f); i++) {
        wf_meta pair = wf_file_meta_at(f, i);
        if (strncmp(pair.key, prefix, strlen(prefix)) != 0) continue;
        const char *value = wf_file_meta(g, pair.key);
        ck_assert_msg(value && strcmp(value, pair.value) == 0, "%s: %s", pair.key, value);
        n++;
    }
    ck_assert_int_gt(n, 0);
    wf_file_free(f), wf_file_free(g);
}

static bool has_meta(const char *path, const char *key) {
    wf_file *f = opened(path);
    bool has = wf_file_meta(f, key);
    wf_file_free(f);
    return has;
}

/* ---- what is taken --------------------------------------------------------------------------- */

static const char *const models[] = {
    "--tokenizer word",
    "--tokenizer char --share-vocab --tie all --norm post --activation gelu",
    "--tokenizer bpe --vocab-size 60 --positions learned --norm pre --tie decoder",
    "--tokenizer word --ema 0.9 --accum 2 --optimizer lion",
    "--arch language --tokenizer word",
    "--arch language --form llama --kv-heads 1 --tokenizer byte-bpe --vocab-size 270",
};

SETUP(make_halves, leave_folder)

/* A fine-tuning starts from the weights of the file: at a rate of nearly 0 they stay. It does not
 * take the moments of the file, whatever its optimizer was. */
TEST_ROWS(a_training_starts_from_the_model, COUNT_OF(models)) {
    int same, other;
    run(NEW "%s --max-steps 9 -o base", models[_i]);
    expect(0);
    ok(TUNE "--init base --optimizer sgd --momentum 0 --lr 1e-9 --clip-norm 1e-9 --max-steps 1 "
            "-o tuned");
    ck_assert_str_eq(result.err, "");
    count_same("base", "tuned", "", &same, &other);
    ck_assert_msg(same >= 10, "%d the same, %d not", same, other);
    count_same("tuned", "base", "", &same, &other);
    ck_assert_msg(other == 0, "%d the same, %d not", same, other);
    assert_same_meta("base", "tuned", "weft.config.");
    assert_same_meta("base", "tuned",
                     strstr(models[_i], "share") || strstr(models[_i], "arch") ? "tokenizer."
                                                                               : "src_tokenizer.");
    ck_assert(has_meta("tuned", "train.init") && !has_meta("tuned", "train.d-model"));
    ok(TUNE "--init base --max-steps 4 -o tuned --overwrite");
    count_same("base", "tuned", "", &same, &other);
    ck_assert_int_gt(other, 10);
    ok("cut -f 1 both | generate --model tuned --quiet --max-len-b 5 | wc -l");
    ck_assert_int_eq(atoi(result.out), 24);
}

/* The weights are read from a .best file, from an int8 file, and from that one converted to f32. */
TEST(any_file_of_a_model_will_do) {
    static const char *const files[] = { "base.best", "int8", "f32" };
    ok(NEW "--tokenizer word --max-steps 9 -o base --valid both");
    ok("convert --weights int8 base.best -o int8; convert --weights f32 int8 -o f32");
    for (int i = 0; i < 3; i++) {
        run(TUNE "--init %s --max-steps 3 -o %d", files[i], i);
        expect(0);
    }
    ck_assert(!same_files("0", "1"));
    change_meta("1", "train.init", ""), change_meta("2", "train.init", ""); /* other bytes */
    change_meta("1", "weft.run", NULL), change_meta("2", "weft.run", NULL);
    ck_assert(same_files("1", "2"));
}

/* Metadata of the file that train does not use, such as settings of a search or unknown keys, are
 * copied to the new file. */
TEST(what_others_wrote_is_handed_on) {
    ok(NEW "--tokenizer word --max-steps 3 -o base");
    change_meta("base", "generate.beam", "4"), change_meta("base", "elsewhere", "\xc3\xa9\n");
    ok(TUNE "--init base --max-steps 5 -o whole");
    ok(TUNE "--init base --max-steps 3 -o tuned");
    ok("train --resume -o tuned --train two --max-steps 5 --quiet");
    assert_same_meta("base", "tuned", "generate.");
    assert_same_meta("base", "tuned", "elsewhere");
    ck_assert(same_files("whole", "tuned"));
}

/* If a search of the model forces a first token, such as a language, the training puts it before
 * each target. Sample outputs are shown without it. */
TEST(forced_first_tokens_are_learned) {
    static const char *const says[] = { "42 target tokens", "54 target tokens" };
    ok(NEW "--tokenizer word --max-steps 3 -o base");
    for (int i = 0; i < 2; i++) {
        if (i) change_meta("base", "generate.forced", "7");
        ok("train --init base --train two --valid one --threads 1 --warmup 2 --batch-size 5 "
           "--lr-steps 40 --max-steps 6 -o whole --overwrite");
        assert_contains(result.err, says[i]);
    }
    ok(TUNE "--init base --valid one --max-steps 3 -o parts");
    ok("train --resume --train two --valid one -o parts --max-steps 6 --quiet");
    ck_assert(same_files("whole", "parts"));
    change_meta("base", "generate.forced", "77");
    run(TUNE "--init base --max-steps 3");
    expect(1);
    assert_contains(result.err, "generate.forced: there is no id 77");
}

TEST(running_text_and_numbers_are_trained_on_too) {
    ok("train --text both --tokenizer byte --text-eval-size 0 --max-len 64 --warmup 2 --max-steps "
       "5 --max-tokens 128 --quiet --threads 1 " SIZE "-o base");
    ok("train --init base --text two --text-eval-size 0 --max-tokens 128 --max-steps 5 --quiet "
       "--threads 1 -o tuned --log log");
    ok("grep -c '\"max-len\":\"64\"' log");
    run("train --init base --text two --max-len 65 --max-steps 5");
    expect(2);
    assert_contains(result.err, "--max-len 65: the model in base takes at most 64 tokens");
    run("train --init base --task copy --max-steps 5");
    expect(1);
    assert_contains(result.err, "base is a model of text");
    ok(TUNE "--init base --max-len 28 --max-steps 2 -o pairs"); /* what fits of them */
    ok("train --task copy --max-len 5 --max-steps 4 --valid-size 0 --quiet " SIZE "-o numbers");
    ok("train --task sort --init numbers --max-steps 9 --valid-size 0 --quiet -o sort");
    ok("train --resume -o sort --max-steps 12 --valid-size 0 --quiet --task sort --init numbers");
    run("train --init numbers --train two --max-steps 5");
    expect(1);
    assert_contains(result.err, "numbers holds no vocabulary");
    ok(NEW "--arch language --tokenizer byte --max-steps 3 -o pairs --overwrite");
    run("train --init pairs --text both --max-steps 5");
    expect(1);
    assert_contains(result.err, "was not made for this task");
}

TEST(parameters_of_others_are_not_lost_in_silence) {
    ok(NEW "--tokenizer word --max-steps 3 -o base");
    change_meta("base", "weft.added", "adapter.a\nadapter.b\n");
    run(TUNE "--init base --max-steps 5");
    expect(1);
    assert_contains(result.err, "'adapter.a' the first");
}

/* ---- what is frozen -------------------------------------------------------------------------- */

/* Frozen parameters keep their bits, most parameters of the decoder change, and the file has no
 * optimizer moments of the frozen encoder. */
TEST_ROWS(frozen_parameters_stay_as_they_are, 4) {
    static const char *const ways[] = { "--init base", "--init base --accum 2 --ema 0.9",
                                        "--init base --dropout 0.2 --optimizer adamw",
                                        ("--tokenizer word --accum 2 " SIZE) };
    int same, other;
    ok(NEW "--tokenizer word --max-steps 5 -o base");
    for (int i = 1; i < 5; i += 3) {
        run(TUNE "%s --freeze transformer.encoder,src_embedding --max-steps %d -o %d", ways[_i], i,
            i);
        expect(0);
    }
    const char *before = _i < 3 ? "base" : "1"; /* of a new model, the first weights */
    count_same(before, "4", "transformer.encoder", &same, &other);
    ck_assert(same > 8 && other == 0);
    count_same(before, "4", "src_embedding", &same, &other);
    ck_assert(same == 1 && other == 0);
    count_same(before, "4", "transformer.decoder", &same, &other);
    ck_assert(other > 12);
    count_same("4", "4", "optimizer.transformer.encoder", &same, &other);
    ck_assert_int_eq(same, 0);
    count_same("4", "4", "optimizer.transformer.decoder", &same, &other);
    ck_assert_int_gt(same, 12);
}

static double said_memory(const char *options) {
    run(TUNE "--init base --dry-run --json %s", options);
    expect(0);
    const char *at = strstr(result.out, "\"memory\":");
    ck_assert_ptr_nonnull(at);
    return strtod(at + strlen("\"memory\":"), NULL);
}

TEST(freezing_takes_less_memory) {
    ok("train --train one --quiet --max-steps 3 --warmup 1 --tokenizer word --d-model 64 --layers "
       "3 -o base");
    ck_assert(said_memory("--freeze transformer") < 0.8 * said_memory(""));
    ok("train --init base --train two --warmup 2 --freeze transformer --dry-run");
    assert_contains(result.err, "frozen of them: ");
    assert_contains(result.err, "start    the weights in base");
    ok("ls | grep -c .");
    ck_assert_int_eq(atoi(result.out), 4); /* nothing was written */
}

/* A number that is not finite is found while parameters are frozen. It is named if it is in a
 * frozen parameter. */
TEST(a_bad_number_is_found_beside_frozen_ones) {
    ok(NEW "--tokenizer word --max-steps 3 -o base");
    change_values("base", "transformer.decoder", 1e30f);
    run(TUNE "--init base --freeze transformer --max-steps 5");
    expect(3);
    assert_contains(result.err, "is not finite");
    change_values("base", "transformer.encoder", NAN);
    run(TUNE "--init base --freeze transformer --max-steps 5");
    expect(3);
    assert_contains(result.err, "the parameter transformer.encoder.");
}

/* ---- the same training ----------------------------------------------------------------------- */

static const char *const tunings[] = {
    "",
    "--freeze output,trans",
    "--accum 2 --ema 0.5 --dropout 0.1 --freeze trans",
    "--valid one --valid-every 3 --lr 0.01 --max-len 4",
};

/* A fine-tuning in parts, with --init repeated in a resume or not, and with other numbers of
 * threads, gives the same file. */
TEST_ROWS(parts_of_a_tuning_are_the_whole, 2 * COUNT_OF(tunings)) {
    const char *how = tunings[_i / 2];
    const char *told = strstr(how, "--valid") ? "--valid one --valid-every 3" : "";
    run(NEW "--tokenizer word --max-steps 4 -o base %s", _i % 2 ? "--arch language" : "");
    expect(0);
    run(TUNE "--init base %s --max-steps 14 -o whole.safetensors", how);
    expect(0);
    run(TUNE "--init base %s --max-steps 6 -o parts.safetensors", how);
    expect(0);
    for (int i = 0; i < 2; i++) {
        run("train --train two --resume -o parts.safetensors %s --quiet --threads %d --max-steps "
            "%d %s",
            i ? "" : "--init base", 3 - i, i ? 14 : 10, told);
        expect(0);
    }
    ck_assert(same_files("whole.safetensors", "parts.safetensors"));
}

/* The initial model and the frozen parameters are part of a training's identity (weft.run). */
TEST(another_model_is_another_training) {
    char runs[3][20];
    ok(NEW "--tokenizer word --max-steps 4 -o base; cp base copy");
    ok(NEW "--tokenizer word --max-steps 4 --lr 0.01 -o other");
    static const char *const how[] = { "--init base", "--init other",
                                       "--init base --freeze output" };
    for (int i = 0; i < 3; i++) {
        run(TUNE "%s --max-steps 3 -o m%d", how[i], i);
        expect(0);
        wf_file *f = opened((const char[]){ 'm', (char)('0' + i), 0 });
        snprintf(runs[i], sizeof runs[i], "%s", wf_file_meta(f, "weft.run"));
        wf_file_free(f);
    }
    ck_assert(strcmp(runs[0], runs[1]) && strcmp(runs[0], runs[2]));
    run("train --resume --train two --init other -o m0 --max-steps 5");
    expect(2);
    assert_contains(result.err, "m0 was not started from the model in other: leave --init out");
    ok("train --resume --train two --init copy -o m0 --max-steps 5 --quiet"); /* by its weights */
    run("train --resume --train one --init other -o base --max-steps 5");
    expect(2);
    assert_contains(result.err, "base was not started from the model in other");
    run("train --resume --train two -o m2 --max-steps 5 --freeze src");
    expect(2);
    assert_contains(result.err, "m2 was trained with --freeze output, not --freeze src");
    run("train --resume --train two -o m0 --max-steps 6 --freeze output");
    expect(2);
    assert_contains(result.err, "m0 was trained with nothing frozen, not --freeze output");
    run("train --resume --train two -o m0 --max-steps 6 --d-model 16");
    expect(2);
    assert_contains(result.err, "--d-model would have no effect: a resume takes it from the file");
}

/* A model that learned one half begins the other half with a lower loss. */
TEST(tuning_begins_where_the_model_is) {
    static const char *const how[] = { "--tokenizer word " SIZE, "--init base" };
    double loss[2];
    ok(NEW "--tokenizer word --dropout 0 --lr 0.01 --max-steps 60 -o base");
    for (int i = 0; i < 2; i++) {
        run(TUNE "%s --dropout 0 --max-steps 1 --log log --log-every 1; grep -o '\"loss\":[0-9.]*' "
                 "log | head -1 | cut -d: -f2; rm log",
            how[i]);
        expect(0);
        loss[i] = atof(result.out);
    }
    ck_assert_msg(loss[1] > 0 && loss[1] < 0.95 * loss[0], "%g, %g", loss[0], loss[1]);
}

/* ---- vocabularies that are there ------------------------------------------------------------- */

#define DE "--spm-src " WEFT_TEST_DATA "/words_de.spm "
#define EN "--spm-tgt " WEFT_TEST_DATA "/words_en.spm "

/* The vocabulary has weft's special symbols first, and then the pieces of the SentencePiece file,
 * in its order. */
TEST_ROWS(sentencepiece_comes_from_its_files, 4) {
    static const struct {
        const char *how, *says, *prefix;
    } rows[] = {
        { DE EN, "31 ids of the source, 29 of the target", "src_tokenizer." },
        { EN "--tokenizer sentencepiece --tie all", "29 ids for both sides", "tgt_tokenizer." },
        { DE "--spm-tgt " WEFT_TEST_DATA "/words_de.spm --tie decoder", "31 ids for both sides",
          "src_tokenizer." },
        { EN "--arch language", "29 ids for both sides", "tokenizer." },
    };
    static const char *const common = "--threads 1 --warmup 2 --batch-size 5 --lr-steps 400 "
                                      "--dropout 0 --lr 0.01 " SIZE;
    run("train --train one %s %s --max-steps 6 -o whole", common, rows[_i].how);
    expect(0);
    assert_contains(result.err, rows[_i].says);
    run("train --train one %s %s --max-steps 3 -o parts", common, rows[_i].how);
    expect(0);
    ok("train --resume --train one -o parts --max-steps 6 --quiet --threads 2");
    ck_assert(same_files("whole", "parts"));
    ok(TUNE "--init whole --max-steps 3 -o tuned");
    assert_same_meta("whole", "tuned", rows[_i].prefix);
    ok("cut -f 1 two | generate --model tuned --quiet --max-len-b 3 | wc -l");
    ck_assert_int_eq(atoi(result.out), 12);
}

TEST(words_are_joined_again) {
    ok("train --train both " DE EN "--threads 1 --quiet --warmup 20 --lr 0.01 --d-model 32 --heads "
       "2 --layers 1 --d-ff 64 --dropout 0 --label-smoothing 0 --batch-size 8 --max-steps 400 -o "
       "m");
    ok("cut -f 1 both | generate --model m --quiet | paste - both | awk -F '\t' '$1 == $3' | wc "
       "-l");
    ck_assert_int_ge(atoi(result.out), 20);
}

/* A model that was exported to a folder and imported again is fine-tuned to the same weights as the
 * original. */
TEST(a_model_from_a_folder_is_trained_on) {
    int same, other;
    ok("train --train one " DE EN "--norm post --positions sinusoidal-halves --activation silu "
       "--threads 1 --quiet --warmup 2 --batch-size 5 --max-steps 6 " SIZE "-o marian");
    ok("convert --to hf marian -o folder && convert --from hf folder -o back");
    ok(TUNE "--init marian --max-steps 4 -o one-way; " TUNE
            "--init back --max-steps 4 -o other-way");
    count_same("one-way", "other-way", "", &same, &other);
    ck_assert_msg(same > 60 && other == 0, "%d the same, %d not", same, other);
    assert_same_meta("back", "other-way", "generate.");
    assert_same_meta("back", "other-way", "src_tokenizer.");
    assert_same_meta("back", "other-way", "weft.config.");
    ok("convert --to hf other-way -o folder2; cmp folder/vocab.json folder2/vocab.json");
    run("convert --to hf other-way -o folder"); /* refused: it has files of another model */
    expect(1);
    assert_contains(result.err, "is there: a model is written into a folder without one");
    run("convert --to hf none -o folder3");
    expect(1);
    ok("test ! -e folder3");
}

static const struct {
    const char *options;
    int status;
    const char *says;
} wrong_files[] = {
    { "--tokenizer sentencepiece", 2, "say which vocabulary, --spm-src FILE" },
    { "--tokenizer word " DE, 2, "--spm-src would have no effect: it is for --tokenizer sent" },
    { DE "--vocab-size 100", 2, "--vocab-size would have no effect: the .spm file says it" },
    { DE "--share-vocab", 2, "--share-vocab would have no effect: the .spm file says it" },
    { DE "--tokenizer-tgt word", 2,
      "--tokenizer-tgt would have no effect: a SentencePiece model cuts each side" },
    { DE EN "--arch language", 2, "has one vocabulary: --spm-src or --spm-tgt alone" },
    { DE EN "--tie all", 2,
      "--tie all: one table of embeddings for both sides needs one vocabulary: leave" },
    { "--spm-src none", 1, "none can't be read: No such file" },
    { "--spm-src one", 1, "one: " },
    { "--spm-src .", 1, ". can't be read: " },
    { "--spm-src /dev/zero", 1, "/dev/zero can't be read: it is too large" },
};

TEST_ROWS(a_vocabulary_that_is_none_is_told, COUNT_OF(wrong_files)) {
    run("train --train one --warmup 1 --max-steps 4 %s", wrong_files[_i].options);
    ck_assert_msg(result.status == wrong_files[_i].status, "%d: %s", result.status, result.err);
    assert_contains(result.err, wrong_files[_i].says);
    run("train --task copy " DE);
    expect(2);
    assert_contains(result.err, "--spm-src would have no effect: it is for tasks on text");
}
