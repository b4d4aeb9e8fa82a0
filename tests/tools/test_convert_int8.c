/* tests/tools/test_convert_int8.c - models with weights in int8: converted from state_dicts and
 * from models, read in every form, and converted back to f32. */
#include <stdio.h>
#include <unistd.h>

#include "core/file.h"
#include "core/file_internal.h"
#include "models/model_internal.h"
#include "tests/suites.h"
#include "tests/support/commands.h"
#include "tests/support/models.h"

TESTS(convert_int8)
SETUP(enter_folder, leave_folder)

enum { MOST = 1024, NAME = 128, META = 128 };

static const struct {
    wf_tie tie;
    bool norm_first, bias;
    const char *flags;
} models[] = {
    { WF_TIE_NONE, false, true, "--norm post" },
    { WF_TIE_DECODER, true, true, "--norm pre" },
    { WF_TIE_ALL, false, false, "--norm post" },
};

static void save_model(int i) {
    char message[WF_MESSAGE];
    wf_transformer_config c = small_config();
    c.tie = models[i].tie, c.norm_first = models[i].norm_first, c.bias = models[i].bias;
    if (c.tie == WF_TIE_ALL) c.src_vocab = c.tgt_vocab;
    wf_model *m = open_model(&c, NULL, WF_F32, 7);
    wf_meta meta = { "tokenizer.none", "kept" };
    ck_assert_msg(wf_model_save(m, "model", NULL, &meta, 1, message), "%s", message);
    close_model(m);
}

static wf_file *open_file(const char *path) {
    wf_file *f = wf_file_open(path);
    ck_assert_msg(wf_file_ok(f), "%s", wf_file_error(f));
    return f;
}

/* The name of part q, k or v of "x.in_proj_weight" or "x.in_proj_weight_scale": "x.q_proj_weight"
 * etc.; NULL if the name is another one. */
static const char *part_name(const char *name, int part, char *text) {
    const char *at = strstr(name, "in_proj_weight");
    if (!at) return NULL;
    snprintf(text, NAME, "%.*s%c_proj_weight%s", (int)(at - name), name, "qkv"[part],
             at + strlen("in_proj_weight"));
    return text;
}

/* Copies the model's file `from` to `to`, with separate matrices of q, k and v. */
static void separate(const char *from, const char *to) {
    static wf_entry entries[MOST];
    static char names[MOST][NAME];
    char message[WF_MESSAGE];
    wf_meta meta[META];
    wf_file *f = open_file(from);
    int n = 0, n_meta = wf_file_meta_count(f);
    ck_assert(3 * wf_file_count(f) <= MOST && n_meta <= META);
    for (int i = 0; i < n_meta; i++) meta[i] = wf_file_meta_at(f, i);
    for (int i = 0; i < wf_file_count(f); i++) {
        entries[n++] = *wf_file_at(f, i);
        if (!part_name(wf_file_at(f, i)->name, 0, names[n])) continue;
        n--;
        for (int part = 0; part < 3; part++) {
            wf_entry *e = &entries[n++];
            *e = *wf_file_at(f, i);
            e->bytes /= 3, e->shape[0] /= 3;
            e->data = (const char *)e->data + (size_t)part * e->bytes;
            e->name = part_name(wf_file_at(f, i)->name, part, names[n]);
        }
    }
    ck_assert_msg(wf_file_save(to, entries, n, meta, n_meta, message), "%s", message);
    wf_file_free(f);
}

TEST_ROWS(int8_is_the_same_from_every_side, COUNT_OF(models)) {
    save_model(_i);
    ok("convert --weights int8 model -o small");
    assert_contains(result.err, "B, small: ");
    ok("convert --weights f32 small -o back");
    ok("convert --weights int8 back -o again; cmp small again");
    ok("convert --weights int8 small -o again; cmp small again");
    separate("small", "parts");
    ok("convert --weights int8 parts -o again; cmp small again");
    wf_file *f = open_file("small");
    ck_assert_str_eq(wf_file_meta(f, "tokenizer.none"), "kept");
    ck_assert_str_eq(
        wf_file_find(f, "output.weight") ? wf_file_find(f, "output.weight")->dtype : "I8", "I8");
    ck_assert_str_eq(wf_file_find(f, "transformer.encoder.layers.0.linear1.weight")->dtype, "I8");
    ck_assert_str_eq(wf_file_find(f, "transformer.encoder.layers.0.norm1.weight")->dtype, "F32");
    wf_file_free(f);
    ok("convert --to torch small -o of_small; convert --to torch back -o of_back; "
       "cmp of_small of_back");
    run("convert --heads 2 --positions sinusoidal --weights int8 %s of_small -o from_torch",
        models[_i].flags);
    expect(0);
    wf_file *torch = open_file("from_torch");
    f = open_file("small");
    const wf_entry *a = wf_file_find(f, "transformer.encoder.layers.0.linear1.weight");
    const wf_entry *b = wf_file_find(torch, a->name);
    ck_assert(a->bytes == b->bytes);
    ck_assert_mem_eq(a->data, b->data, a->bytes);
    wf_file_free(f), wf_file_free(torch);
}

/* Writes the file "mixed": the tensors of the file "model", but the matrix of this name in int8,
 * from the file "small". */
static void mix(const char *name) {
    wf_entry entries[MOST];
    wf_meta meta[META];
    wf_file *f = open_file("model"), *small = open_file("small");
    int n = 0, n_meta = wf_file_meta_count(f);
    for (int i = 0; i < n_meta; i++) meta[i] = wf_file_meta_at(f, i);
    for (int i = 0; i < wf_file_count(f); i++, n++) {
        entries[n] = *wf_file_at(f, i);
        if (strcmp(entries[n].name, name) != 0) continue;
        entries[n] = *wf_file_find(small, name);
        const wf_entry *scale = wf_file_scale_of(small, wf_file_find(small, name));
        ck_assert_ptr_nonnull(scale);
        entries[++n] = *scale;
    }
    ck_assert_int_eq(n, wf_file_count(f) + 1);
    ck_assert(wf_file_save("mixed", entries, n, meta, n_meta, NULL));
    wf_file_free(f), wf_file_free(small);
}

static bool rounded(const char *path, wf_layout layout) {
    wf_file *f = open_file(path);
    wf_model *m = wf_model_record(f, NULL, WF_F32, 0, NULL);
    ck_assert(wf_pack_weights(m->graph, layout, NULL));
    bool is = wf_model_rounded(m, f);
    wf_model_free(m), wf_file_free(f);
    return is;
}

/* By default generate rounds no weights: in a file with one int8 matrix the others stay f32. */
TEST_ROWS(only_rounded_weights_are_int8_by_default, COUNT_OF(models)) {
    save_model(_i);
    ok("convert --weights int8 model -o small");
    mix("transformer.encoder.layers.0.linear1.weight");
    separate("small", "parts");
    ck_assert(rounded("small", WF_PANELS_INT8) && rounded("parts", WF_PANELS_INT8));
    ck_assert(!rounded("small", WF_PANELS) && !rounded("small", WF_ROW_MAJOR));
    ck_assert(!rounded("model", WF_PANELS_INT8) && !rounded("mixed", WF_PANELS_INT8));
    const char *same = "printf '4 5 6\\n7 8\\n' | generate --json --model %s > a && "
                       "printf '4 5 6\\n7 8\\n' | generate --json --model %s > b && cmp a b";
    char command[512];
    snprintf(command, sizeof command, same, "mixed", "mixed --weights f32"), ok(command);
    snprintf(command, sizeof command, same, "small", "small --weights int8"), ok(command);
}

/* convert does not replace a checkpoint by a model, which has less in it, without --overwrite. */
TEST(a_training_is_replaced_only_on_request) {
    ok("train --task copy --d-model 16 --heads 2 --layers 1 --d-ff 16 --threads 1 --quiet "
       "--max-steps 2 -o training; convert --weights int8 training -o small; cp training before");
    run("convert --weights int8 small -o training");
    expect(1);
    assert_contains(result.err,
                    "training is the checkpoint of a training, which can go on from it");
    ck_assert(same_files("training", "before"));
    ok("convert --weights int8 small -o small2; convert --weights int8 small -o small2");
    ok("convert --weights int8 small --overwrite -o training; cmp training small2");
}

static const struct {
    const char *arguments;
    int status;
    const char *says;
} refusals[] = {
    { "model -o out", 1, "is a model of weft already; --to torch makes a state_dict of it" },
    { "--weights int8 --heads 2 model -o out", 2, "--heads would have no effect: the model says" },
    { "--to torch --weights int8 model -o out", 2, "--weights would have no effect" },
    { "--weights int4 model -o out", 2, "'int4' is not one of f32|int8" },
    { "--weights int8 broken -o out", 1, "is NaN or infinite: it cannot be kept as int8" },
    { "--weights f32 cut -o out", 1, "cut" },
};

TEST_ROWS(what_cannot_be_is_refused, COUNT_OF(refusals)) {
    static wf_entry entries[MOST];
    static float changed[1 << 16];
    wf_meta meta[META];
    save_model(0);
    ok("convert --weights int8 model -o small; head -c 9000 small > cut");
    wf_file *f = open_file("model");
    int n = wf_file_count(f), n_meta = wf_file_meta_count(f);
    for (int i = 0; i < n_meta; i++) meta[i] = wf_file_meta_at(f, i);
    for (int i = 0; i < n; i++) {
        entries[i] = *wf_file_at(f, i);
        if (strcmp(entries[i].name, "output.weight") != 0) continue;
        ck_assert(entries[i].bytes <= sizeof changed);
        memcpy(changed, entries[i].data, entries[i].bytes);
        changed[3] = NAN, entries[i].data = changed;
    }
    ck_assert(wf_file_save("broken", entries, n, meta, n_meta, NULL));
    wf_file_free(f);
    int status = run("convert %s < /dev/null", refusals[_i].arguments)->status;
    ck_assert_msg(status == refusals[_i].status, "exit code %d: %s", status, result.err);
    assert_contains(result.err, refusals[_i].says);
    ck_assert_msg(access("out", F_OK) != 0, "a model was written all the same");
}
