/* tests/core/file/test_kinds.c - the kind that a file's metadata name: a checkpoint, the best
 * weights or a model, and of which training. Parameters that a program has added to a model are in
 * its file, too.
 *
 * WEFT_TOOLS names the folder of the programs. data/before*.safetensors were written before files
 * named their kind, from the lines "a b<TAB>b a" and "b a<TAB>a b", by train --train two --valid
 * two --tokenizer char --d-model 2 --heads 1 --layers 1 --d-ff 1 --max-steps 4 --lr 0.1 --warmup 1
 * --lr-steps 100 --batch-size 2 --dropout 0 --valid-every 2. */
#include <stdio.h>
#include <unistd.h>

#include "tests/suites.h"
#include "tests/support/commands.h"
#include "tests/support/models.h"
#include "tools/train/settings/settings_file.h"

TESTS(kinds)

#define SIZE "--quiet --heads 2 --layers 1 --d-ff 16 --lr 1e-2 --warmup 2 --lr-steps 1000 "
#define TRAIN "train --train pairs --valid pairs --tokenizer word --batch-size 10 --dropout 0 " SIZE

static void make_files(void) {
    enter_folder();
    ok("for i in 1 2 3 4 5 6 7 8 9 10 11 12; do "
       "echo \"eins $((i%7)) zwei $((i%5))\tone $((i%7)) two $((i%5))\"; done > pairs; "
       "sed 1,3d pairs > others");
}

static wf_file *open_file(const char *path) {
    wf_file *f = wf_file_open(path);
    ck_assert_msg(wf_file_ok(f), "%s", wf_file_error(f));
    return f;
}

static void assert_meta(const char *path, const char *key, const char *value) {
    wf_file *f = open_file(path);
    const char *found = wf_file_meta(f, key);
    ck_assert_msg(found && strcmp(found, value) == 0, "%s: %s is %s, not %s", path, key,
                  found ? found : "not there", value);
    wf_file_free(f);
}

static void run_of(const char *path, char run[20]) {
    wf_file *f = open_file(path);
    const char *found = wf_file_meta(f, "weft.run");
    ck_assert_msg(found && strlen(found) == 16, "%s", path);
    strcpy(run, found);
    wf_file_free(f);
}

/* Removes keys from a file's metadata, as in files of versions that did not write them yet. */
static void forget(const char *path, int n_keys, const char *const *keys) {
    static wf_entry entries[512];
    wf_meta meta[128];
    char message[WF_MESSAGE];
    wf_file *f = open_file(path);
    int n = wf_file_count(f), n_meta = 0;
    ck_assert_int_le(n, COUNT_OF(entries));
    ck_assert_int_le(wf_file_meta_count(f), COUNT_OF(meta));
    for (int i = 0; i < n; i++) entries[i] = *wf_file_at(f, i);
    for (int i = 0; i < wf_file_meta_count(f); i++) {
        bool keep = true;
        meta[n_meta] = wf_file_meta_at(f, i);
        for (int k = 0; k < n_keys; k++) keep = keep && strcmp(meta[n_meta].key, keys[k]) != 0;
        n_meta += keep;
    }
    ck_assert_int_eq(n_meta, wf_file_meta_count(f) - n_keys);
    ck_assert_msg(wf_file_save(path, entries, n, meta, n_meta, message), "%s", message);
    wf_file_free(f);
}

static void forget_kind(const char *path) {
    forget(path, 2, (const char *const[]){ "weft.kind", "weft.run" });
}

/* ---- what a file is ------------------------------------------------------------------------ */

SETUP(make_files, leave_folder)

TEST(a_file_says_what_it_is) {
    char runs[3][20];
    ok(TRAIN "--d-model 16 --max-steps 4 --valid-every 2 --threads 1 -o m.safetensors");
    assert_meta("m.safetensors", "weft.kind", "checkpoint");
    assert_meta("m.best.safetensors", "weft.kind", "best");
    run_of("m.safetensors", runs[0]), run_of("m.best.safetensors", runs[1]);
    ck_assert_str_eq(runs[0], runs[1]);
    ok("convert --to torch m.safetensors -o s.safetensors && convert --heads 2 --norm pre "
       "--positions sinusoidal --scale-embedding s.safetensors -o c.safetensors");
    assert_meta("c.safetensors", "weft.kind", "model");
    ok("inspect m.best.safetensors | grep -E 'weft.kind +best$'");
    /* Runs that differ only in steps, validation, threads or output file are the same training;
     * runs with another seed, model, vocabulary, averaging or data are not. */
    ok("mkdir there && " TRAIN "--d-model 16 --max-steps 7 --threads 2 -o there/x.safetensors");
    run_of("there/x.safetensors", runs[1]);
    ck_assert_str_eq(runs[0], runs[1]);
    static const char *const other[] = { "--d-model 16 --seed 2", "--d-model 8",
                                         "--d-model 16 --share-vocab", "--d-model 16 --ema 0.5" };
    for (int i = 0; i < COUNT_OF(other); i++) {
        run("%s %s --max-steps 4 --overwrite -o x.safetensors", TRAIN, other[i]);
        expect(0);
        run_of("x.safetensors", runs[2]);
        ck_assert_msg(strcmp(runs[0], runs[2]) != 0, "%s", other[i]);
    }
    ok("mv others pairs && " TRAIN "--d-model 16 --max-steps 4 --overwrite -o x.safetensors");
    run_of("x.safetensors", runs[2]);
    ck_assert_msg(strcmp(runs[0], runs[2]) != 0, "other data");
}

/* ---- a resume takes a checkpoint ----------------------------------------------------------- */

/* train does not resume a file of the best weights, of trainings with and without averaged weights
 * and moments. Its metadata may name its kind, or lack it, as in files of older versions. */
TEST_ROWS(weights_alone_are_not_resumed, 4) {
    static const char *const options[] = { "", "--ema 0.9 ", "--optimizer sgd --momentum 0 ",
                                           "--optimizer sgd --momentum 0 --ema 0.9 " };
    run(TRAIN "--d-model 16 %s--max-steps 4 --valid-every 2 -o m.safetensors", options[_i]);
    expect(0);
    for (int before = 0; before < 2; before++) {
        if (before) forget_kind("m.best.safetensors"), forget_kind("m.safetensors");
        ok("cp m.best.safetensors kept");
        run("train --resume --train pairs --valid pairs --max-steps 6 --quiet -o "
            "m.best.safetensors");
        /* SGD without momentum or averages has no optimizer state, so an old file of the best
         * weights cannot be told from a checkpoint. */
        if (before && _i == 2) continue;
        expect(1);
        assert_contains(result.err, "m.best.safetensors holds the weights of a training but not "
                                    "the state of its optimizer: resume the file");
        ok("cmp m.best.safetensors kept");
        ok("cp m.safetensors n.safetensors && train --resume --train pairs --valid pairs "
           "--max-steps 6 --quiet -o n.safetensors");
        assert_meta("n.safetensors", "weft.kind", "checkpoint");
    }
}

/* 4 steps and 4 more from a checkpoint without a kind, as older versions wrote it, give the file of
 * 8 steps, with its kind. */
TEST(a_file_of_before_resumes_to_the_same_bytes) {
    ok(TRAIN "--d-model 16 --ema 0.9 --max-steps 8 --valid-every 2 -o whole.safetensors");
    ok(TRAIN "--d-model 16 --ema 0.9 --max-steps 4 --valid-every 2 -o m.safetensors");
    forget_kind("m.safetensors"), forget_kind("m.best.safetensors");
    ok("train --resume --train pairs --valid pairs --valid-every 2 --max-steps 8 --quiet -o "
       "m.safetensors");
    ck_assert(same_files("m.safetensors", "whole.safetensors"));
    ck_assert(same_files("m.best.safetensors", "whole.best.safetensors"));
}

TEST(recorded_files_of_before_are_resumed) {
    char path[512];
    source_path("tests/data/before.safetensors", path, sizeof path);
    run("printf 'a b\\tb a\\nb a\\ta b\\n' > two; cp %s . && cp %.*s.best.safetensors .; chmod +w "
        "*",
        path, (int)(strlen(path) - strlen(".safetensors")), path);
    expect(0);
    ok("cp before.best.safetensors kept; train --resume --train two --valid two --valid-every 100 "
       "--max-steps 5 -o before.safetensors");
    assert_contains(result.err, "resumed  before.safetensors after step 4");
    assert_contains(result.err, "are in before.best.safetensors");
    assert_meta("before.safetensors", "weft.kind", "checkpoint");
    assert_meta("before.safetensors", "train.step", "5");
    run("train --resume --train two --valid two --max-steps 6 -o kept");
    expect(1);
    assert_contains(result.err, "not the state of its optimizer");
    ok("generate --model kept --quiet < two");
}

/* ---- settings that older files lack ---------------------------------------------------------- */

/* A setting that was added later has a value (option.before) for files without it. */
TEST(settings_that_came_later_have_what_was_done_before) {
    char keys[SETTINGS_META][64];
    const char *list[SETTINGS_META];
    int n = 0;
    ok("train --task copy " SIZE "--d-model 16 --max-steps 8 -o whole.safetensors");
    ok("train --task copy " SIZE "--d-model 16 --max-steps 4 -o m.safetensors");
    for (const option *o = train_program.options; o < train_program.options + train_program.n; o++)
        if (o->before) {
            ck_assert(o->stored);
            snprintf(keys[n], sizeof *keys, "train.%s", o->name);
            assert_meta("m.safetensors", keys[n], o->before);
            list[n] = keys[n], n++;
        }
    ck_assert_int_ge(n, 6);
    forget("m.safetensors", n, list);
    ok("train --resume --max-steps 8 --quiet -o m.safetensors");
    ck_assert(same_files("m.safetensors", "whole.safetensors"));
}

TEST(a_file_that_lacks_another_setting_is_refused) {
    char key[64], sentence[128];
    ok("train --task copy " SIZE "--d-model 16 --max-steps 2 -o m.safetensors");
    for (const option *o = train_program.options; o < train_program.options + train_program.n; o++)
        if (o->stored && !o->before) {
            ok("cp m.safetensors x.safetensors");
            snprintf(key, sizeof key, "train.%s", o->name);
            forget("x.safetensors", 1, (const char *const[]){ key });
            run("train --resume --max-steps 3 --quiet -o x.safetensors");
            expect(1);
            snprintf(sentence, sizeof sentence,
                     "x.safetensors lacks the setting --%s: it can't be resumed", o->name);
            assert_contains(result.err, sentence);
        }
}

/* The settings accum and ema came after these files. Without them, the file of the best weights
 * beside the checkpoint still counts as of the same training, now and in later resumes. */
TEST(recorded_files_resume_without_the_settings_of_later) {
    static const char *const later[] = { "train.accum", "train.ema" };
    char path[512], runs[2][20];
    source_path("tests/data/before.safetensors", path, sizeof path);
    run("printf 'a b\\tb a\\nb a\\ta b\\n' > two; cp %s . && cp %.*s.best.safetensors .; chmod +w "
        "*",
        path, (int)(strlen(path) - strlen(".safetensors")), path);
    expect(0);
    forget("before.safetensors", 2, later), forget("before.best.safetensors", 2, later);
    for (int steps = 5; steps < 7; steps++) {
        run("train --resume --train two --valid two --valid-every 100 --max-steps %d -o "
            "before.safetensors",
            steps);
        expect(0);
        assert_contains(result.err, "are in before.best.safetensors");
        assert_meta("before.safetensors", "train.accum", "1");
        assert_meta("before.safetensors", "train.ema", "0");
        run_of("before.safetensors", runs[steps - 5]);
    }
    ck_assert_str_eq(runs[0], runs[1]);
}

/* Training A leaves a file of its best weights. Training B, on the same pairs, is stopped before
 * its first validation. When B is resumed beside that file, train must not take it for B's own. */
TEST(the_best_of_another_training_is_not_taken) {
    for (int before = 0; before < 2; before++) {
        ok(TRAIN "--d-model 32 --max-steps 40 --valid-every 20 --overwrite -o m.safetensors");
        ok("cp m.best.safetensors of_a");
        ok(TRAIN "--d-model 16 --seed 7 --max-steps 2 --valid-every 0 -o b.safetensors");
        ok("mv b.safetensors m.safetensors; rm b.best.safetensors");
        if (before) forget_kind("m.safetensors"), forget_kind("m.best.safetensors");
        ok("! train --resume --train pairs --valid pairs --valid-every 2 --max-steps 4 -o "
           "m.safetensors");
        assert_contains(result.err, "m.best.safetensors is not of this training");
        if (!before) ok("cmp m.best.safetensors of_a");
    }
}

/* ---- parameters that a program has added ----------------------------------------------------- */

static const double ones[] = { 1, 2, 3 }, twos[] = { 4, 5, 6 };

/* Adds a parameter of three numbers to a recorded Transformer. */
static wf_tensor *add(wf_model *m, const char *name, const double *three) {
    return param_of(m->graph, name, 1, (int64_t[]){ 3 }, three);
}

static bool holds(const wf_tensor *t, const double *three) {
    double *have = leaf_values(t);
    bool same = memcmp(have, three, sizeof ones) == 0;
    free(have);
    return same;
}

static void save_model(const wf_model *m, const char *path) {
    char message[WF_MESSAGE];
    ck_assert_msg(wf_model_save(m, path, NULL, NULL, 0, message), "%s", message);
}

SETUP(enter_folder, leave_folder)

TEST(added_parameters_are_saved_and_loaded) {
    char message[WF_MESSAGE] = "";
    wf_transformer_config c = small_config();
    wf_model *m = open_model(&c, NULL, WF_F32, 3);
    save_model(m, "plain");
    add(m, "lora_A", ones), add(m, "lora_B", twos);
    save_model(m, "added");
    wf_file *f = open_file("added"), *plain = open_file("plain");
    ck_assert_str_eq(wf_file_meta(f, "weft.added"), "lora_A\nlora_B\n");
    ck_assert_int_eq(wf_file_count(f), wf_file_count(plain) + 2);
    wf_model *n = wf_model_load(f, NULL, WF_F32, 1, message);
    ck_assert_msg(n != NULL, "%s", message);
    wf_tensor *a = add(n, "lora_A", twos), *other = add(n, "other", twos);
    ck_assert_msg(wf_model_load_weights(n, f, message), "%s", message);
    ck_assert(holds(a, ones) && holds(other, twos)); /* the file's, and its own */
    ck_assert_msg(wf_model_load_weights(n, plain, message), "%s", message);
    ck_assert(holds(a, ones));
    add(n, "lora_B", ones);
    save_model(n, "again");
    wf_file *again = open_file("again");
    ck_assert_str_eq(wf_file_meta(again, "weft.added"), "lora_A\nother\nlora_B\n");
    wf_file_free(f), wf_file_free(plain), wf_file_free(again);
    close_model(m), close_model(n);
}

TEST(added_parameters_of_another_shape_are_refused) {
    char message[WF_MESSAGE] = "";
    wf_transformer_config c = small_config();
    wf_model *m = open_model(&c, NULL, WF_F32, 3), *n = open_model(&c, NULL, WF_F32, 3);
    add(m, "lora_A", ones);
    save_model(m, "added");
    param_of(n->graph, "lora_A", 1, (int64_t[]){ 2 }, ones);
    wf_file *f = open_file("added");
    ck_assert(!wf_model_load_weights(n, f, message));
    assert_contains(message, "'lora_A' is [3] in the file, not [2] as in the model");
    wf_file_free(f), close_model(m), close_model(n);
}

/* A state dict leaves out added parameters: PyTorch's nn.Transformer has none, and
 * load_state_dict(strict=True) would refuse them. */
TEST(a_state_dict_is_of_the_transformer_alone) {
    char message[WF_MESSAGE] = "";
    wf_transformer_config c = small_config();
    wf_model *m = open_model(&c, NULL, WF_F32, 3);
    add(m, "lora_A", ones);
    ck_assert_msg(wf_transformer_save_state_dict(m, "s", false, message), "%s", message);
    wf_file *f = open_file("s");
    ck_assert(wf_file_find(f, "lora_A") == NULL);
    wf_model *n = wf_transformer_from_state_dict(f, &c, WF_F32, message);
    ck_assert_msg(n != NULL, "%s", message);
    wf_file_free(f), close_model(m), close_model(n);
}
