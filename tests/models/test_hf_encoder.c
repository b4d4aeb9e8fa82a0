/* tests/models/test_hf_encoder.c - folders of Hugging Face with encoders: small models that
 * record_encoder.py recorded compute what transformers and sentence-transformers computed, and are
 * exported and imported again. Folders that are refused: test_hf_encoder_folders.c.
 *
 * Vectors of 1,000 hostile lines by larger models are compared by encoder_peer.py, which needs
 * these libraries. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include "hf_encoder_files.h"
#include "hf_wall.h"
#include "tests/suites.h"

TESTS(hf_encoder)

SETUP(make_folder, remove_folder)

static const char *const names[] = { "enc_dense",  "enc_old",     "enc_many", "enc_roberta",
                                     "enc_distil", "enc_classes", "enc_mpnet" };

/* ---- what the libraries computed ------------------------------------------------------------- */

/* Fetches f32 values of the recorded rows; the caller frees them. */
static float *computed(const wf_model *m, wf_tensor *wanted, const wf_file *f) {
    const wf_entry *src = entry(f, "src");
    wf_tensor *const inputs[] = { m->src, m->src_length };
    wf_plan *p = wf_plan_new(
        m->graph,
        &(wf_plan_options){ .fetch = &wanted, .n_fetch = 1, .feed = inputs, .n_feed = 2 });
    ck_assert(wf_bind(p, "B", src->shape[0]) && wf_bind(p, "S", src->shape[1]));
    ck_assert(wf_feed(p, m->src, src->data, src->bytes));
    ck_assert(wf_feed(p, m->src_length, ids_in(f, "src_length"), entry(f, "src_length")->bytes));
    size_t bytes = wf_bound_bytes(p, wanted);
    float *out = malloc(bytes);
    ck_assert_msg(wf_run(p) && wf_fetch(p, wanted, out, bytes), "%s", wf_plan_error(p));
    wf_plan_free(p);
    return out;
}

/* Asserts that values [B,S,n] of tokens are those of a recorded tensor of f64 or f32. */
static void assert_near(const float *ours, const wf_file *f, const char *name, double bound) {
    const wf_entry *src = entry(f, "src"), *want = entry(f, name);
    const int64_t S = src->shape[1], n = want->shape[2];
    bool f64 = strcmp(want->dtype, "F64") == 0;
    for (int64_t b = 0; b < src->shape[0]; b++)
        for (int64_t i = 0; i < ids_in(f, "src_length")[b] * n; i++) {
            int64_t k = b * S * n + i;
            double x = f64 ? ((const double *)want->data)[k] : ((const float *)want->data)[k];
            ck_assert_double_eq_tol(ours[k], x, bound);
        }
}

TEST_ROWS(tokens_have_the_vectors_of_transformers, COUNT_OF(names)) {
    char path[512];
    wf_hf hf = import(recorded(names[_i], path));
    wf_file *f = values_of(path);
    float *hidden = computed(hf.model, hf.model->hidden, f);
    assert_near(hidden, f, "hidden", 4e-6);
    free(hidden);
    ck_assert_int_eq(wf_encoder_of(hf.model)->config.masked_lm,
                     wf_file_find(f, "log_probs") != NULL);
    if (wf_file_find(f, "log_probs")) {
        float *logs = computed(hf.model, hf.model->log_probs, f);
        assert_near(logs, f, "log_probs", 2e-5);
        free(logs);
    }
    wf_file_free(f), wf_hf_free(&hf);
}

/* Classification: lines have the logits of transformers, and classes have their labels. */
TEST(lines_have_the_classes_of_transformers) {
    char path[512];
    wf_hf hf = import(recorded("enc_classes", path));
    wf_file *f = values_of(path);
    const wf_entry *want = entry(f, "class_log_probs");
    ck_assert_str_eq(hf.class_names, "negative\na \"b\"\nHäuser");
    ck_assert_int_eq(want->shape[1], 3);
    float *logs = computed(hf.model, hf.model->log_probs, f);
    for (int64_t i = 0; i < want->shape[0] * 3; i++)
        ck_assert_double_eq_tol(logs[i], ((const double *)want->data)[i], 2e-6);
    free(logs);
    wf_file_free(f), wf_hf_free(&hf);
}

static int longest(const int32_t *length, int n) {
    int most = 1;
    for (int i = 0; i < n; i++)
        if (length[i] > most) most = length[i];
    return most;
}

/* The vectors of n rows of 64 ids, of which S columns are used, `batch` rows at a time. */
static float *vectors_of(wf_model *m, wf_pool *pool, int n, int S, const int32_t *ids,
                         const int32_t *length, int batch) {
    const int64_t E = wf_encoder_of(m)->vectors->shape[1];
    int32_t *src = calloc((size_t)(batch * S), sizeof *src);
    float *out = calloc((size_t)(n * E), sizeof *out);
    wf_plan *p = wf_encoder_plan(m, pool);
    for (int i = 0; i < n; i += batch) {
        int rows = n - i < batch ? n - i : batch;
        for (int k = 0; k < rows * S; k++) src[k] = ids[(i + k / S) * 64 + k % S];
        ck_assert_msg(wf_encoder_run(m, p, rows, S, src, length + i, out + i * E), "%s",
                      wf_plan_error(p));
    }
    wf_plan_free(p), free(src);
    return out;
}

TEST_ROWS(lines_have_the_vectors_of_sentence_transformers, COUNT_OF(names)) {
    char path[512];
    int32_t ids[16 * 64] = { 0 }, length[16];
    wf_hf hf = import(recorded(names[_i], path));
    wf_file *f = values_of(path);
    ck_assert(hf.src && hf.src == hf.tgt);
    ck_assert_str_eq(hf.notes, "");
    int n = encode_lines(&hf, path, f, ids, length);
    const wf_entry *want = entry(f, "vectors");
    ck_assert_int_eq(want->shape[1], wf_encoder_of(hf.model)->vectors->shape[1]);
    const int S = longest(length, n), most = (int)hf.model->max_len;
    float *ours = vectors_of(hf.model, NULL, n, S, ids, length, n);
    for (int64_t i = 0; i < n * want->shape[1]; i++)
        ck_assert_double_eq_tol(ours[i], ((const float *)want->data)[i], 4e-6);
    /* the vectors have the same bits in any batch, with more padding, and on any number of
     * threads */
    wf_pool *pool = wf_pool_new(2);
    for (int batch = 1; batch < 4; batch++) {
        float *again = vectors_of(hf.model, batch & 1 ? pool : NULL, n, most, ids, length, batch);
        ck_assert(memcmp(ours, again, (size_t)(n * want->shape[1]) * sizeof *ours) == 0);
        free(again);
    }
    free(ours), wf_pool_free(pool);
    wf_file_free(f), wf_hf_free(&hf);
}

/* ---- a model's file -------------------------------------------------------------------------- */

TEST_ROWS(a_file_has_all_of_it, COUNT_OF(names)) {
    char path[512], message[WF_MESSAGE];
    wf_meta meta[WF_TOKENIZER_META];
    int n = 0;
    int32_t ids[16 * 64] = { 0 }, length[16];
    wf_hf hf = import(recorded(names[_i], path));
    wf_file *known = values_of(path);
    int lines = encode_lines(&hf, path, known, ids, length);
    ck_assert(wf_tokenizer_to_meta(hf.src, "tokenizer", meta, &n, message));
    place(path, folder, "model.safetensors");
    ck_assert_msg(wf_model_save(hf.model, path, NULL, meta, n, message), "%s", message);
    wf_file *f = wf_file_open(path);
    wf_model *again = wf_model_load(f, NULL, WF_F32, 0, message);
    ck_assert_msg(again != NULL, "%s", message);
    const wf_encoder_config *a = &wf_encoder_of(hf.model)->config;
    const wf_encoder_config *b = &wf_encoder_of(again)->config;
    ck_assert(a->max_len == b->max_len && a->positions == b->positions && a->types == b->types);
    ck_assert(a->counted_positions == b->counted_positions && a->pad_id == b->pad_id);
    ck_assert(a->pooler == b->pooler && a->masked_lm == b->masked_lm && a->tied == b->tied);
    ck_assert(a->relative_buckets == b->relative_buckets);
    ck_assert(a->relative_distance == b->relative_distance);
    ck_assert(a->classes == b->classes && a->pooler_activation == b->pooler_activation);
    ck_assert(a->dense == b->dense && a->dense_activation == b->dense_activation);
    ck_assert(a->normalize == b->normalize && a->similarity_scale == b->similarity_scale);
    ck_assert(a->activation == b->activation && a->layer_norm_eps == b->layer_norm_eps);
    const int S = longest(length, lines);
    float *x = vectors_of(hf.model, NULL, lines, S, ids, length, lines);
    float *y = vectors_of(again, NULL, lines, S, ids, length, lines);
    ck_assert(memcmp(x, y, (size_t)(lines * wf_encoder_of(again)->vectors->shape[1]) * sizeof *x) ==
              0);
    wf_tokenizer *t = wf_tokenizer_from_meta(f, "tokenizer", message);
    ck_assert_msg(t != NULL, "%s", message);
    assert_same_tokenizer(hf.src, t);
    free(x), free(y);
    wf_tokenizer_free(t), wf_model_free(again), wf_file_free(f), wf_file_free(known);
    wf_hf_free(&hf);
}

/* ---- out and in ------------------------------------------------------------------------------ */

TEST_ROWS(what_is_written_is_read_again, COUNT_OF(names)) {
    char path[512], message[WF_MESSAGE] = "";
    wf_hf hf = import(recorded(names[_i], path));
    ck_assert_msg(wf_hf_export(&hf, folder, &whole_files, message), "%s", message);
    ck_assert_str_eq(hf.notes, "");
    wf_hf again = import(folder);
    assert_same(&hf, &again);
    ck_assert(!hf.class_names == !again.class_names);
    if (hf.class_names) ck_assert_str_eq(hf.class_names, again.class_names);
    wf_hf_free(&hf), wf_hf_free(&again);
}

/* Imports and exports while allocations fail: see test_hf.c. */
TEST_ROWS(every_failure_is_survived, 4 * 3) {
    static const char *const some[] = { "enc_dense", "enc_roberta", "enc_classes" };
    survive_failures(some[_i / 4], _i % 4);
}

static wf_hf made(void (*change)(wf_encoder_config *c)) {
    char message[WF_MESSAGE] = "";
    wf_hf hf = { .generation.options = wf_decode_defaults() };
    wf_encoder_config c = wf_encoder_defaults();
    c.vocab = 11;
    c.d_model = 12;
    c.num_heads = 2;
    c.dim_feedforward = 10;
    c.layers = 1;
    c.max_len = 9;
    change(&c);
    hf.model = wf_encoder_new(&c, NULL, WF_F32, 3, message);
    ck_assert_msg(hf.model != NULL, "%s", message);
    return hf;
}

static void plain(wf_encoder_config *c) {
    c->normalize = false;
}
static void typed(wf_encoder_config *c) {
    c->types = 1;
}
static void counted(wf_encoder_config *c) {
    c->counted_positions = true;
    c->types = 2;
    c->pad_id = 1;
}
static void dense(wf_encoder_config *c) {
    c->dense = 5;
    c->dense_bias = false;
    c->pooling |= WF_POOLING_LAST | WF_POOLING_FIRST;
}
static void untied(wf_encoder_config *c) {
    c->masked_lm = true;
    c->tied = false;
}
static void classes(wf_encoder_config *c) {
    c->pooler = true;
    c->classes = 4;
    c->types = 2;
}
static void counted_classes(wf_encoder_config *c) {
    counted(c);
    classes(c);
}
static void relu_classes(wf_encoder_config *c) {
    classes(c);
    c->types = 0;
    c->pooler_activation = WF_DENSE_RELU;
}
static void relative(wf_encoder_config *c) {
    c->counted_positions = true;
    c->pad_id = 1;
    c->relative_buckets = 32;
    c->relative_distance = 128;
}
static void other_buckets(wf_encoder_config *c) {
    relative(c);
    c->relative_buckets = 16;
}
static void other_pooler(wf_encoder_config *c) {
    classes(c);
    c->pooler_activation = WF_DENSE_RELU;
}
static void other_eps(wf_encoder_config *c) {
    c->layer_norm_eps = 1e-5;
}
static void no_types(wf_encoder_config *c) {
    c->counted_positions = true;
}
static void pooler_alone(wf_encoder_config *c) {
    c->pooler = true;
}
static void other_head(wf_encoder_config *c) {
    c->masked_lm = true;
    c->head_activation = WF_RELU;
}

/* Models that weft makes are exported and imported, and compute the same. */
TEST_ROWS(what_is_made_here_computes_the_same_there, 9) {
    static void (*const changes[])(wf_encoder_config *) = {
        plain, typed, counted, dense, untied, classes, counted_classes, relu_classes, relative
    };
    char message[WF_MESSAGE] = "";
    int32_t ids[2 * 64] = { 3, 9, 1, 7, 5 }, length[] = { 5, 3 };
    memcpy(ids + 64, ids, 3 * sizeof *ids);
    wf_hf hf = made(changes[_i]);
    ck_assert_msg(wf_hf_export(&hf, folder, &whole_files, message), "%s", message);
    assert_contains(hf.notes, "the folder has no tokenizer");
    wf_hf again = import(folder);
    float *x = vectors_of(hf.model, NULL, 2, 5, ids, length, 2);
    float *y = vectors_of(again.model, NULL, 2, 5, ids, length, 2);
    ck_assert_int_eq(wf_encoder_of(hf.model)->vectors->shape[1],
                     wf_encoder_of(again.model)->vectors->shape[1]);
    ck_assert_int_eq(wf_encoder_of(again.model)->config.classes,
                     wf_encoder_of(hf.model)->config.classes);
    if (wf_encoder_of(hf.model)->config.classes)
        ck_assert_str_eq(again.class_names, "LABEL_0\nLABEL_1\nLABEL_2\nLABEL_3");
    ck_assert(memcmp(x, y, (size_t)(2 * wf_encoder_of(hf.model)->vectors->shape[1]) * sizeof *x) ==
              0);
    free(x), free(y);
    wf_hf_free(&hf), wf_hf_free(&again);
}

TEST(what_no_family_has_is_not_written) {
    static const struct {
        void (*change)(wf_encoder_config *c);
        const char *sentence;
    } rows[] = {
        { other_eps, "its norms' eps is not that of DistilBERT" },
        { no_types, "it has no token types, which RoBERTa has" },
        { pooler_alone, "it has a pooler and no token types, which BERT has" },
        { other_buckets, "it has a bias of distances, but is not as MPNet otherwise" },
        { other_pooler, "the function of its pooler is not that of its family" },
        { other_head, "the activation of its head is not that of its layers" },
    };
    for (int i = 0; i < COUNT_OF(rows); i++) {
        char message[WF_MESSAGE] = "";
        wf_hf hf = made(rows[i].change);
        ck_assert(!wf_hf_export(&hf, folder, &whole_files, message));
        assert_contains(message, rows[i].sentence);
        wf_hf_free(&hf);
    }
}

/* An export is refused if the labels are fewer than the classes, or if one is too long for a
 * model's file. */
TEST(labels_of_a_folder_are_as_many_as_classes) {
    static const char *const says[] = { "it names 2 labels, but has 4 classes",
                                        "its label 1 has not 1 to 255 bytes of one line" };
    char message[WF_MESSAGE] = "", text[270];
    for (int i = 0; i < COUNT_OF(says); i++) {
        wf_hf hf = made(classes);
        snprintf(text, sizeof text, "%0*d\nb%s", i ? 256 : 1, 0, i ? "\nc\nd" : "");
        hf.class_names = strdup(text);
        ck_assert(!wf_hf_export(&hf, folder, &whole_files, message));
        assert_contains(message, says[i]);
        wf_hf_free(&hf);
    }
}
