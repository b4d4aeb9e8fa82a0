/* tests/models/test_model_file.c - the model's file: a saved model is loaded with the same values,
 * training resumes bit for bit, and files that do not fit are refused with a message and leave the
 * model as it was.
 *
 * Files made by PyTorch are loaded in test_torch.c; damaged bytes are tested in test_file.c and
 * test_damage.c. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include <stdio.h>
#include <unistd.h>

#include "core/file/loader.h"
#include "core/file_internal.h"
#include "models/choices.h"
#include "tests/suites.h"
#include "tests/support/models.h"

TESTS(model_file)

static char folder[] = "/tmp/weft-models-XXXXXX", path[64], other[64];

static void make_folder(void) {
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a.safetensors", folder);
    snprintf(other, sizeof other, "%s/b.safetensors", folder);
}

static void remove_folder(void) {
    unlink(path), unlink(other), rmdir(folder);
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
}

static void save(const wf_model *m, wf_trainer *t) {
    char message[WF_MESSAGE];
    wf_meta extra = { "task", "copy" };
    ck_assert_msg(wf_model_save(m, path, t, &extra, 1, message), "%s", message);
}

static wf_file *open_file(const char *name) {
    wf_file *f = wf_file_open(name);
    ck_assert_msg(wf_file_ok(f), "%s", wf_file_error(f));
    return f;
}

static wf_model *load(const wf_training_config *training, wf_dtype real) {
    char message[WF_MESSAGE];
    wf_file *f = open_file(path);
    wf_model *m = wf_model_load(f, training, real, 99, message);
    ck_assert_msg(m != NULL, "%s", message);
    wf_file_free(f);
    return m;
}

/* Parameters and moments hold the same values. */
static void assert_equal(const wf_model *a, const wf_model *b, bool moments) {
    for (int id = 0; id < wf_node_count(a->graph); id++) {
        const wf_tensor *t = wf_node(a->graph, id), *u = wf_node(b->graph, id);
        bool moment = t->kind == WF_BUFFER && strncmp(t->name, "optimizer.", 10) == 0;
        if (t->kind != WF_PARAM && !(moment && moments)) continue;
        double *x = leaf_values(t), *y = leaf_values(u);
        ck_assert_str_eq(t->name, u->name);
        ck_assert_msg(memcmp(x, y, (size_t)wf_count(t) * sizeof *x) == 0, "%s differs", t->name);
        free(x), free(y);
    }
}

/* ---- out and in ------------------------------------------------------------------------------ */

static wf_transformer_config unusual_config(wf_tie tie) {
    wf_transformer_config c = small_config();
    c.tie = tie, c.activation = WF_SILU, c.positions = WF_POSITIONS_LEARNED,
    c.norm_first = c.decoder_norm = false, c.embedding_norm = true;
    c.encoder_layers = 1, c.bias = c.output_bias = c.scale_embedding = false,
    c.layer_norm_eps = 1.1e-6;
    c.pad_id = 3, c.start_id = 1, c.end_id = 2, c.max_len = 21;
    if (tie == WF_TIE_ALL) {
        c.decoder = WF_DECODER_SSRU;
        c.positions = WF_POSITIONS_TENSOR2TENSOR;
        c.norm_first = c.raw_keys = c.zero_start = true;
    }
    if (tie != WF_TIE_INPUTS) return c;
    c.norm = WF_RMS_NORM;
    c.gated = c.relative_per_layer = c.scale_output = true;
    c.head_dim = 5;
    c.attention_scale = 0.7;
    c.relative_buckets = 6;
    c.relative_distance = 11;
    return c;
}

SETUP(make_folder, remove_folder)

TEST_ROWS(what_goes_in_comes_out, 8) {
    wf_transformer_config c = unusual_config((wf_tie)(_i / 2));
    wf_dtype real = _i % 2 ? WF_F64 : WF_F32;
    wf_model *m = open_model(&c, NULL, real, 3);
    save(m, NULL);
    wf_model *n = load(NULL, real);
    const wf_transformer_config *d = &wf_transformer_of(n)->config;
    ck_assert(d->src_vocab == c.src_vocab && d->tgt_vocab == c.tgt_vocab &&
              d->max_len == c.max_len && d->d_model == c.d_model && d->num_heads == c.num_heads &&
              d->dim_feedforward == c.dim_feedforward && d->encoder_layers == c.encoder_layers &&
              d->decoder_layers == c.decoder_layers);
    ck_assert(d->activation == c.activation && d->positions == c.positions && d->tie == c.tie &&
              d->norm_first == c.norm_first && d->encoder_norm == c.encoder_norm &&
              d->decoder_norm == c.decoder_norm && d->scale_embedding == c.scale_embedding &&
              d->embedding_norm == c.embedding_norm && d->bias == c.bias &&
              d->output_bias == c.output_bias);
    ck_assert(d->norm == c.norm && d->gated == c.gated && d->head_dim == c.head_dim &&
              d->attention_scale == c.attention_scale &&
              d->relative_buckets == c.relative_buckets &&
              d->relative_distance == c.relative_distance &&
              d->relative_per_layer == c.relative_per_layer && d->scale_output == c.scale_output);
    ck_assert(d->decoder == c.decoder && d->raw_keys == c.raw_keys &&
              d->zero_start == c.zero_start);
    ck_assert(d->layer_norm_eps == c.layer_norm_eps && d->pad_id == c.pad_id &&
              d->start_id == c.start_id && d->end_id == c.end_id);
    assert_equal(m, n, false);
    wf_file *f = open_file(path);
    ck_assert(wf_file_checked(f));
    ck_assert_str_eq(wf_file_meta(f, "task"), "copy");
    ck_assert_int_eq(wf_file_count(f), wf_parameters(m->graph, NULL, NULL, 0));
    wf_file_free(f), close_model(n), close_model(m);
}

static void assert_meta(const wf_file *f, const char *key, const char *value) {
    const char *found = wf_file_meta(f, key);
    ck_assert_msg(found && strcmp(found, value) == 0, "%s is %s, not %s", key,
                  found ? found : "not there", value);
}

TEST(choices_are_stored_by_name) {
    wf_transformer_config c = unusual_config(WF_TIE_DECODER);
    wf_model *m = open_model(&c, NULL, WF_F32, 3);
    save(m, NULL);
    wf_file *f = open_file(path);
    assert_meta(f, "weft.config.activation", "silu");
    assert_meta(f, "weft.config.positions", "learned");
    assert_meta(f, "weft.config.tie", "decoder");
    wf_file_free(f), close_model(m);
}

/* A recorded file of an older version, which stored choices as numbers, is read. */
TEST(choices_of_before_are_read) {
    char message[WF_MESSAGE] = "", name[512];
    wf_file *f = open_file(source_path("tests/data/model_tied.safetensors", name, sizeof name));
    assert_meta(f, "weft.config.activation", "3");
    assert_meta(f, "weft.config.positions", "1");
    assert_meta(f, "weft.config.tie", "2");
    wf_model *m = wf_model_load(f, NULL, WF_F32, 1, message);
    ck_assert_msg(m != NULL, "%s", message);
    ck_assert(wf_transformer_of(m)->config.activation == WF_SILU &&
              wf_transformer_of(m)->config.tie == WF_TIE_ALL &&
              wf_transformer_of(m)->config.positions == WF_POSITIONS_SINUSOIDAL);
    wf_file_free(f);
    save(m, NULL);
    f = open_file(path);
    assert_meta(f, "weft.config.activation", "silu");
    assert_meta(f, "weft.config.positions", "sinusoidal");
    assert_meta(f, "weft.config.tie", "all");
    wf_file_free(f), close_model(m);
}

/* The words and numbers of choices in files may never change their meaning. */
TEST(words_and_numbers_of_choices_stay) {
    ck_assert(strncmp(WF_NAMES(WF_ACTIVATION_NAMES), "relu|gelu|gelu-tanh|silu", 24) == 0);
    ck_assert_str_eq(WF_NAMES(WF_POSITIONS_NAMES),
                     "none|sinusoidal|learned|rotary|sinusoidal-halves|sinusoidal-fairseq|"
                     "sinusoidal-rotary|sinusoidal-tensor2tensor");
    ck_assert_str_eq(WF_NAMES(WF_DECODER_KIND_NAMES), "attention|ssru|average");
    ck_assert_str_eq(WF_NAMES(WF_TIE_NAMES), "none|decoder|all|inputs");
    ck_assert_str_eq(WF_NAMES(WF_OPTIMIZER_NAMES), "sgd|adam|adamw|rmsprop|adagrad|lion");
    ck_assert_str_eq(WF_NAMES(WF_SCHEDULE_NAMES), "constant|linear|cosine|inverse-sqrt|noam");
    ck_assert_str_eq(WF_NAMES(WF_TOKEN_NAMES),
                     "word|char|bpe|byte|text-char|byte-bpe|sentencepiece|byte-level|json");
    ck_assert_str_eq(wf_activation_name(WF_SILU), "silu");
    ck_assert_ptr_null(wf_activation_name(WF_ACTIVATION_COUNT));
    ck_assert_ptr_null(wf_tie_name(-1));
}

/* Tied tables are one table in the file, under the first of their names; the other names are
 * aliases in the metadata. */
TEST_ROWS(tied_tables_are_stored_once, 4) {
    wf_transformer_config c = small_config();
    c.tie = (wf_tie)_i;
    wf_model *m = open_model(&c, NULL, WF_F32, 3);
    save(m, NULL);
    wf_file *f = open_file(path);
    static const char *const names[] = { "src_embedding.weight", "tgt_embedding.weight",
                                         "output.weight" };
    const int first[] = { 3, 1, 0, 0 }; /* for each kind of tie, the name that is stored */
    for (int i = 0; i < 3; i++) {
        bool alias = i > first[_i] && (_i != WF_TIE_INPUTS || i < 2);
        ck_assert((wf_file_find(f, names[i]) == NULL) == alias);
        if (alias) ck_assert_str_eq(wf_file_meta(f, names[i]), names[first[_i]]);
    }
    ck_assert(wf_file_find(f, "src_position.weight") ==
              NULL); /* sinusoids are computed, not stored */
    wf_file_free(f), close_model(m);
}

static void train(wf_trainer *t, const wf_model *m, int from, int to) {
    static sentences b;
    ck_assert_int_eq(wf_trainer_steps(t), from - 1);
    for (int step = from; step <= to; step++) {
        copy_sentences(&b, 8, 3, 8, 17, true, (uint64_t)(10 * step));
        train_step(t, m, &b);
    }
}

/* Loads the trainer's state from the file from which the model was loaded. */
static void resume(wf_trainer *t, int64_t steps) {
    wf_file *f = open_file(path);
    assert_trainer(t, wf_trainer_resume(t, f, steps));
    wf_file_free(f);
}

static char *bytes_of(const char *name, long *size) {
    FILE *f = fopen(name, "rb");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fseek(f, 0, SEEK_END), 0);
    *size = ftell(f);
    char *bytes = malloc((size_t)*size + 1);
    ck_assert_ptr_nonnull(bytes);
    rewind(f);
    ck_assert_uint_eq(fread(bytes, 1, (size_t)*size, f), (size_t)*size);
    fclose(f);
    return bytes;
}

/* Asserts that the checkpoints of a and b are the same file, byte for byte. */
static void assert_same_file(const wf_model *a, wf_trainer *of_a, const wf_model *b,
                             wf_trainer *of_b) {
    long n, m;
    save(a, of_a);
    char *first = bytes_of(path, &n);
    save(b, of_b);
    char *second = bytes_of(path, &m);
    ck_assert_int_eq(n, m);
    ck_assert_msg(memcmp(first, second, (size_t)n) == 0, "the files differ");
    free(first), free(second);
}

/* 100 steps, a save, a load, and 100 more steps with other threads give the file of 200 steps in
 * one run. */
TEST_ROWS(a_checkpoint_resumes_bit_for_bit, 3) {
    wf_transformer_config c = small_config();
    wf_training_config training = with_dropout(0.1);
    wf_optimizer_options o = adam_options();
    o.kind = (wf_optimizer_kind)_i, o.momentum = 0.9;
    wf_pool *two = wf_pool_new(2), *three = wf_pool_new(3);
    wf_model *m = open_model(&c, &training, WF_F32, 99), *n;
    wf_trainer *t = open_trainer(m, &o, 1e-3, two), *u;
    train(t, m, 1, 100);
    save(m, t);
    n = load(&training, WF_F32);
    u = open_trainer(n, &o, 1e-3, three);
    resume(u, 100);
    assert_equal(m, n, true);
    train(t, m, 101, 200), train(u, n, 101, 200);
    assert_equal(m, n, true);
    assert_same_file(m, t, n, u);
    wf_trainer_free(t), wf_trainer_free(u);
    close_model(m), close_model(n);
    n = load(NULL, WF_F32); /* a checkpoint is loaded without a trainer */
    ck_assert_ptr_null(wf_find(n->graph, "optimizer.rates"));
    close_model(n), wf_pool_free(two), wf_pool_free(three);
}

TEST(weights_alone_start_a_training) {
    wf_transformer_config c = small_config();
    wf_model *m = open_model(&c, NULL, WF_F64, 3);
    save(m, NULL);
    wf_model *n = load(NULL, WF_F32); /* f64 becomes f32; missing moments are zeros */
    wf_trainer *t = open_trainer(n, NULL, 1e-3, NULL);
    resume(t, 0);
    double *v = leaf_values(wf_trainer_optimizer(t)->moments[0][0]);
    ck_assert(v[0] == 0);
    train(t, n, 1, 2);
    free(v), wf_trainer_free(t);
    close_model(m), close_model(n);
}

/* ---- what does not fit ----------------------------------------------------------------------- */

enum { MOST = 512 };

/* A change with which a file is written again. The entry of this name is flattened to one axis,
 * dropped (name NULL), or renamed; or the metadata of `key` is dropped (value NULL) or set. */
typedef struct change {
    const char *entry, *name, *key, *value;
    bool flat;
} change;

static void rewrite(const change *c) {
    static wf_entry entries[MOST];
    wf_meta meta[64];
    char message[WF_MESSAGE];
    wf_file *f = open_file(path);
    int n = 0, n_meta = 0;
    for (int i = 0; i < wf_file_count(f); i++) {
        entries[n] = *wf_file_at(f, i);
        bool meant = c->entry && strcmp(entries[n].name, c->entry) == 0;
        if (meant && c->flat)
            entries[n].shape[0] *= entries[n].shape[1], entries[n].ndim = 1;
        else if (meant && !c->name)
            continue;
        else if (meant)
            entries[n].name = c->name;
        n++;
    }
    for (int i = 0; i < wf_file_meta_count(f); i++) {
        meta[n_meta] = wf_file_meta_at(f, i);
        bool meant = c->key && strcmp(meta[n_meta].key, c->key) == 0;
        if (meant && !c->value) continue;
        if (meant) meta[n_meta].value = c->value;
        n_meta++;
    }
    ck_assert_msg(wf_file_save(other, entries, n, meta, n_meta, message), "%s", message);
    wf_file_free(f);
}

#define KEY(field) .key = "weft.config." field
#define ENCODER "transformer.encoder.layers.0."

static const struct {
    change c;
    const char *reason;
} misfits[] = {
    { { KEY("d_model") }, "no 'weft.config.d_model'" },
    { { KEY("d_model"), .value = "sixteen" },
      "'weft.config.d_model' is 'sixteen', not a whole number" },
    { { KEY("d_model"), .value = " 16" }, "not a whole number" },
    { { KEY("d_model"), .value = "" }, "not a whole number" },
    { { KEY("d_model"), .value = "16x" }, "not a whole number" },
    { { KEY("d_model"), .value = "99999999999999999999" }, "not a whole number" },
    { { KEY("d_model"), .value = "99999999999" }, "not a whole number" },
    { { KEY("d_model"), .value = "-99999999999" }, "not a whole number" },
    { { KEY("d_model"), .value = "1000000" }, "d_model is 1000000" },
    { { KEY("d_model"), .value = "32" }, "is [17,16] in the file, not [17,32] as in the model" },
    { { KEY("num_heads"), .value = "5" }, "not divisible by 5 heads" },
    { { KEY("encoder_layers"), .value = "2000000000" }, "encoder layers is 2000000000" },
    { { KEY("encoder_layers"), .value = "3" },
      "'transformer.encoder.layers.2.self_attn.in_proj_weight' is in the model" },
    { { KEY("encoder_layers"), .value = "1" }, "is in the file but not in the model" },
    { { KEY("norm_first"), .value = "2" }, "'weft.config.norm_first' cannot be 2" },
    { { KEY("activation"), .value = "99" }, "activation is 99" },
    { { KEY("activation"), .value = "tanh" },
      "'weft.config.activation' is 'tanh', not one of relu|gelu|gelu-tanh|silu" },
    { { KEY("activation"), .value = "rel" }, "'rel', not one of" },
    { { KEY("tie"), .value = "" }, "'', not one of none|decoder|all" },
    { { KEY("positions"), .value = "learned" },
      "'src_position.weight' is in the model but not in the file" },
    { { KEY("pad_id"), .value = "17" }, "padding id is 17" },
    { { KEY("layer_norm_eps"), .value = "nan" }, "'nan', not a number" },
    { { KEY("layer_norm_eps"), .value = "1e-5x" }, "'1e-5x', not a number" },
    { { KEY("layer_norm_eps"), .value = "2" }, "eps is 2" },
    { { KEY("layer_norm_eps") }, "no 'weft.config.layer_norm_eps'" },
    { { KEY("tie"), .value = "1" },
      "'tgt_embedding.weight' and 'output.weight' differ in the file" },
    { { KEY("positions"), .value = "2" },
      "'src_position.weight' is in the model but not in the file" },
    { { .entry = "output.bias" }, "'output.bias' is in the model but not in the file" },
    { { .entry = "output.bias", .name = "output.bais" },
      "'output.bais' is in the file but not in the model" },
    { { .entry = "output.bias", .name = "transformer.q_proj_weight" },
      "'transformer.q_proj_weight' is in the file but not in the model" },
    { { .entry = "output.bias", .name = ENCODER "self_attn.q_proj_weight" },
      "self_attn.q_proj_weight' is in the file but not in the model" },
    { { .entry = ENCODER "linear1.weight", .flat = true },
      "linear1.weight' is [384] in the file, not [24,16]" },
    { { .entry = ENCODER "self_attn.in_proj_weight", .name = ENCODER "self_attn.q_proj_weight" },
      "'transformer.encoder.layers.0.self_attn.in_proj_weight' is in the model but not in the "
      "file" },
};

TEST_ROWS(a_file_that_does_not_fit_is_told, COUNT_OF(misfits)) {
    char message[WF_MESSAGE] = "";
    wf_transformer_config c = small_config();
    wf_model *m = open_model(&c, NULL, WF_F32, 3);
    save(m, NULL);
    rewrite(&misfits[_i].c);
    wf_file *f = open_file(other);
    ck_assert(wf_model_load(f, NULL, WF_F32, 1, message) == NULL);
    assert_contains(message, misfits[_i].reason);
    ck_assert(wf_model_load(f, NULL, WF_F32, 1, NULL) == NULL);
    wf_file_free(f), close_model(m);
}

TEST(a_file_that_does_not_fit_changes_nothing) {
    char message[WF_MESSAGE];
    wf_transformer_config c = small_config();
    wf_model *m = open_model(&c, NULL, WF_F32, 3), *same = open_model(&c, NULL, WF_F32, 3),
             *n = open_model(&c, NULL, WF_F32, 4);
    save(n, NULL);
    rewrite(&(change){ .entry = "output.bias" }); /* the last of them */
    wf_file *f = open_file(other);
    ck_assert(!wf_model_load_weights(m, f, message));
    assert_equal(m, same, false);
    wf_file_free(f);
    f = open_file(path);
    ck_assert_msg(wf_model_load_weights(m, f, message), "%s", message);
    assert_equal(m, n, false);
    wf_file_free(f);
    f = wf_file_open("/tmp/weft-there-is-no-such-file");
    ck_assert(!wf_model_load_weights(m, f, message));
    assert_contains(message, "no-such-file");
    ck_assert(!wf_model_load(f, NULL, WF_F32, 1, message) &&
              !wf_model_load_weights(NULL, NULL, message));
    wf_file_free(f), close_model(m), close_model(same), close_model(n);
}

/* Copies the file `path` to `other`, with q, k and v of the first encoder layer as three matrices
 * of zeros, of these types, in place of the packed matrix. */
static void unpack(const char *types[3]) {
    static const char *const names[] = { ENCODER "self_attn.q_proj_weight",
                                         ENCODER "self_attn.k_proj_weight",
                                         ENCODER "self_attn.v_proj_weight" };
    static wf_entry entries[MOST];
    static wf_meta meta[64];
    static const double zeros[16 * 16];
    char message[WF_MESSAGE];
    wf_file *f = open_file(path);
    int n = 0, n_meta = wf_file_meta_count(f);
    for (int i = 0; i < wf_file_count(f); i++)
        if (strcmp(wf_file_at(f, i)->name, ENCODER "self_attn.in_proj_weight") != 0)
            entries[n++] = *wf_file_at(f, i);
    for (int i = 0; i < 3; i++)
        entries[n++] = (wf_entry){ names[i],   types[i], 2,
                                   { 16, 16 }, zeros,    256 * (strcmp(types[i], "F64") ? 4 : 8) };
    for (int i = 0; i < n_meta; i++) meta[i] = wf_file_meta_at(f, i);
    ck_assert_msg(wf_file_save(other, entries, n, meta, n_meta, message), "%s", message);
    wf_file_free(f);
}

TEST(parts_of_a_projection_are_of_one_type) {
    char message[WF_MESSAGE] = "";
    wf_transformer_config c = small_config();
    wf_model *m = open_model(&c, NULL, WF_F32, 3);
    save(m, NULL);
    unpack((const char *[]){ "F32", "F64", "F32" });
    wf_file *f = open_file(other);
    ck_assert(!wf_model_load_weights(m, f, message));
    assert_contains(message, "k_proj_weight' is of another type than '" ENCODER "self_attn.q_pr");
    wf_file_free(f);
    unpack((const char *[]){ "F64", "F64", "F64" });
    f = open_file(other);
    ck_assert_msg(wf_model_load_weights(m, f, message), "%s", message);
    double *w = leaf_values(wf_find(m->graph, ENCODER "self_attn.in_proj_weight"));
    for (int i = 0; i < 3 * 256; i++) ck_assert(w[i] == 0);
    free(w), wf_file_free(f), close_model(m);
}

/* Two int8 tables with the same numbers but other scales are different, so they are not tied. */
TEST(tables_of_other_scales_are_not_tied) {
    static const char q[6] = { 127, 1, 2, 3, 127, 5 };
    static const float scales[2][2] = { { 1, 2 }, { 1, 3 } };
    char message[WF_MESSAGE];
    wf_entry all[6];
    for (int i = 0; i < 3; i++) {
        static const char *const names[][2] = { { "a", "a_scale" },
                                                { "b", "b_scale" },
                                                { "c", "c_scale" } };
        all[2 * i] = (wf_entry){ names[i][0], "I8", 2, { 2, 3 }, q, sizeof q };
        all[2 * i + 1] = (wf_entry){ names[i][1], "F32", 1, { 2 }, scales[i == 2], sizeof *scales };
    }
    ck_assert_msg(wf_file_save(path, all, 6, NULL, 0, message), "%s", message);
    wf_file *f = open_file(path);
    const wf_entry *a = wf_file_find(f, "a"), *b = wf_file_find(f, "b"), *c = wf_file_find(f, "c");
    ck_assert(wf_same_entries(f, a, b) && !wf_same_entries(f, a, c));
    ck_assert(!wf_same_entries(f, a, wf_file_find(f, "a_scale")));
    wf_file_free(f);
}

/* Two tables of zeros with different shapes are not tied. */
TEST(tied_tables_have_one_shape) {
    static wf_entry entries[MOST];
    static wf_meta meta[64];
    static const float zeros[17 * 16];
    char message[WF_MESSAGE] = "";
    wf_transformer_config c = small_config();
    c.tie = WF_TIE_DECODER;
    wf_model *m = open_model(&c, NULL, WF_F32, 3);
    ck_assert(wf_write(wf_find(m->graph, "tgt_embedding.weight"), zeros, sizeof zeros));
    save(m, NULL);
    wf_file *f = open_file(path);
    int n = 0, n_meta = 0;
    for (; n < wf_file_count(f); n++) entries[n] = *wf_file_at(f, n);
    for (int i = 0; i < wf_file_meta_count(f); i++) meta[n_meta++] = wf_file_meta_at(f, i);
    entries[n++] = (wf_entry){ "output.weight", "F32", 2, { 17, 16 }, zeros, sizeof zeros };
    wf_entry *tied = entries;
    while (strcmp(tied->name, "tgt_embedding.weight") != 0) tied++;
    tied->shape[0] = 16, tied->shape[1] = 17;
    ck_assert_msg(wf_file_save(other, entries, n, meta, n_meta, message), "%s", message);
    wf_file_free(f), f = open_file(other);
    ck_assert(!wf_model_load_weights(m, f, message));
    assert_contains(message, "'tgt_embedding.weight' and 'output.weight' differ in the file");
    wf_file_free(f), close_model(m);
}

/* A checkpoint has all moments or none, and all averages or none. Models load without them. */
TEST(half_a_checkpoint_is_refused) {
    char message[WF_MESSAGE] = "";
    wf_transformer_config c = small_config();
    wf_optimizer_options options = adam_options();
    options.average_decay = 0.5;
    wf_model *m = open_model(&c, NULL, WF_F32, 3);
    wf_trainer *t = open_trainer(m, &options, 1e-3, NULL);
    const wf_optimizer *o = wf_trainer_optimizer(t);
    const wf_tensor *last[] = { o->moments[o->n - 1][o->n_moments - 1], o->averages[o->n - 1] };
    train(t, m, 1, 3);
    save(m, t);
    for (int i = 0; i < 2; i++) {
        rewrite(&(change){ .entry = last[i]->name });
        wf_file *f = open_file(other);
        wf_model *n = wf_model_load(f, NULL, WF_F32, 1, message);
        ck_assert_msg(n, "%s", message);
        assert_equal(m, n, false);
        wf_trainer *u = open_trainer(n, &options, 1e-3, NULL);
        ck_assert(!wf_trainer_resume(u, f, 3) && wf_trainer_steps(u) == 0);
        assert_contains(wf_trainer_error(u), last[i]->name);
        assert_contains(wf_trainer_error(u), "is in the model but not in the file");
        double *v = leaf_values(wf_trainer_optimizer(u)->moments[0][0]);
        for (int64_t k = 0; k < wf_count(o->moments[0][0]); k++) ck_assert(v[k] == 0);
        free(v), wf_trainer_free(u), wf_file_free(f), close_model(n);
    }
    wf_trainer_free(t), close_model(m);
}

TEST(a_trainer_resumes_from_files_alone) {
    wf_transformer_config c = small_config();
    wf_model *m = open_model(&c, NULL, WF_F32, 3);
    save(m, NULL);
    wf_file *f = open_file(path), *none = wf_file_open("/no/such/file");
    wf_trainer *t = open_trainer(m, NULL, 1e-3, NULL);
    ck_assert(!wf_trainer_resume(t, none, 3) && *wf_trainer_error(t));
    ck_assert(!wf_trainer_resume(t, f, -1) && *wf_trainer_error(t));
    ck_assert(!wf_trainer_resume(NULL, f, 3) && wf_trainer_steps(t) == 0);
    ck_assert(wf_trainer_resume(t, f, 3) && wf_trainer_steps(t) == 3);
    wf_file_free(f), wf_file_free(none), wf_trainer_free(t), close_model(m);
}

TEST(a_failed_model_says_why_it_failed) {
    char message[WF_MESSAGE] = "";
    wf_transformer_config c = small_config();
    wf_model *m = open_model(&c, NULL, WF_F32, 3);
    save(m, NULL);
    wf_file *f = open_file(path);
    wf_poison(m->graph, "a mistake of the program's");
    ck_assert(!wf_model_save(m, path, NULL, NULL, 0, message));
    assert_contains(message, "a mistake of the program's");
    ck_assert(!wf_transformer_save_state_dict(m, path, false, message));
    assert_contains(message, "a mistake of the program's");
    ck_assert(!wf_model_load_weights(m, f, message));
    assert_contains(message, "a mistake of the program's");
    ck_assert(!wf_decoder_new(m, NULL, message) && !wf_decoder_new(m, NULL, NULL));
    assert_contains(message, "a mistake of the program's");
    wf_file_free(f), wf_model_free(m);
}

TEST(what_cannot_be_written_is_told) {
    char message[WF_MESSAGE];
    wf_transformer_config c = small_config();
    wf_model *m = open_model(&c, NULL, WF_F32, 3);
    save(m, NULL);
    ck_assert(!wf_model_save(m, "/tmp/no/such/folder/a.safetensors", NULL, NULL, 0, message));
    assert_contains(message, "/tmp/no/such/folder");
    ck_assert(!wf_model_save(NULL, path, NULL, NULL, 0, message));
    ck_assert(!wf_model_save(m, NULL, NULL, NULL, 0, message));
    assert_contains(message, "no path");
    ck_assert(!wf_model_save(m, path, NULL, NULL, 2, message));
    assert_contains(message, "2 pairs of metadata");
    ck_assert(!wf_model_save(m, path, NULL, NULL, -1, message));
    wf_file *f = open_file(path); /* the old one is whole */
    wf_file_free(f), close_model(m);
}

/* ---- bytes that are given back --------------------------------------------------------------- */

/* If the file stores a tied table twice, both are compared. After a load that frees the file's
 * bytes, a second load fails. */
TEST_ROWS(a_file_is_loaded_once_if_its_bytes_are_given_back, 2) {
    char message[WF_MESSAGE] = "";
    wf_transformer_config c = small_config();
    c.tie = _i ? WF_TIE_DECODER : WF_TIE_NONE;
    wf_model *m = open_model(&c, NULL, WF_F32, 3);
    save(m, NULL);
    wf_file *f = open_file(path);
    int n = wf_file_count(f);
    wf_entry entries[256];
    wf_meta meta[64];
    ck_assert(n < 256 && wf_file_meta_count(f) <= 64);
    for (int i = 0; i < n; i++) entries[i] = *wf_file_at(f, i);
    for (int i = 0; i < wf_file_meta_count(f); i++) meta[i] = wf_file_meta_at(f, i);
    const wf_entry *table = wf_file_find(f, "tgt_embedding.weight");
    ck_assert_ptr_nonnull(table);
    if (_i) entries[n] = *table, entries[n++].name = "output.weight";
    ck_assert_msg(wf_file_save(other, entries, n, meta, wf_file_meta_count(f), message), "%s",
                  message);
    wf_file_free(f);
    f = open_file(other);
    wf_file_drop_loaded(f);
    wf_model *once = wf_model_load(f, NULL, WF_F32, 9, message);
    ck_assert_msg(once, "%s", message);
    assert_equal(m, once, false);
    ck_assert_ptr_null(wf_model_load(f, NULL, WF_F32, 9, message));
    assert_contains(message, "its data are not there any more: the file was loaded once");
    wf_file_free(f), close_model(once), close_model(m);
}
