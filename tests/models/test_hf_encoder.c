/* tests/models/test_hf_encoder.c - folders of Hugging Face with encoders: what transformers and
 * sentence-transformers computed of small models that record_encoder.py recorded, and folders that
 * are refused, each by its sentence.
 *
 * Vectors of 1,000 hostile lines by 20 larger models are compared by encoder_peer.py, which needs
 * these libraries. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include "hf_files.h"
#include "hf_wall.h"
#include "models/encoder.h"
#include "models/text_internal.h"
#include "tests/suites.h"

TESTS(hf_encoder)

SETUP(make_folder, remove_folder)

static const char *const names[] = { "enc_dense",  "enc_old",     "enc_many", "enc_roberta",
                                     "enc_distil", "enc_classes", "enc_mpnet" };

static wf_file *values_of(const char *path) {
    char file[512];
    place(file, path, "values.safetensors");
    wf_file *f = wf_file_open(file);
    ck_assert_msg(wf_file_ok(f), "%s", wf_file_error(f));
    return f;
}

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

/* The head of classes, and its labels. */
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

/* Encodes the recorded lines into ids [n,64] with their lengths, and compares them. Returns n. */
static int encode_lines(const wf_hf *hf, const char *path, const wf_file *f, int32_t *ids,
                        int32_t *length) {
    char file[512], message[WF_MESSAGE] = "";
    size_t bytes;
    place(file, path, "lines.txt");
    char *lines = read_whole(file, &bytes), *line = lines;
    const wf_entry *e = entry(f, "lines");
    for (int i = 0; i < e->shape[0]; i++) {
        const int32_t *want = (const int32_t *)e->data + i * e->shape[1];
        int64_t n =
            wf_tokenizer_encode(hf->src, line, strcspn(line, "\n"), ids + i * 64, 64, message);
        ck_assert_msg(n >= 0 && n <= hf->model->max_len, "%s", message);
        for (int k = 0; k < e->shape[1]; k++)
            ck_assert_msg(k < n ? ids[i * 64 + k] == want[k] : want[k] < 0, "line %d, id %d", i, k);
        length[i] = (int32_t)n;
        line += strcspn(line, "\n") + 1;
    }
    free(lines);
    return (int)e->shape[0];
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
    const int64_t E = wf_encoder_width(m);
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
    ck_assert_int_eq(want->shape[1], wf_encoder_width(hf.model));
    const int S = longest(length, n), most = (int)hf.model->max_len;
    float *ours = vectors_of(hf.model, NULL, n, S, ids, length, n);
    for (int64_t i = 0; i < n * want->shape[1]; i++)
        ck_assert_double_eq_tol(ours[i], ((const float *)want->data)[i], 4e-6);
    /* in any batch, with more padding, on any number of threads */
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
    ck_assert(memcmp(x, y, (size_t)(lines * wf_encoder_width(again)) * sizeof *x) == 0);
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

/* In and, `out`, out again, as in test_hf.c. */
TEST_ROWS(every_failure_is_survived, 4 * 3) {
    static const char *const some[] = { "enc_dense", "enc_roberta", "enc_classes" };
    char message[WF_MESSAGE] = "";
    bool out = _i & 1, persistent = _i & 2;
    const wall_work in_or_out = { out ? "export" : "import", out ? exporting : importing, false };
    recorded(some[_i / 4], imported);
    wf_hf whole = import(imported);
    exported = &whole;
    ck_assert_msg(wf_hf_export(&whole, folder, &whole_files, message), "%s", message);
    wall_fail_each(&in_or_out, persistent);
    wf_hf_free(&whole);
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
    c->pool_last = c->pool_first = true;
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

/* Models that weft makes go out and compute the same. */
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
    ck_assert_int_eq(wf_encoder_width(hf.model), wf_encoder_width(again.model));
    ck_assert_int_eq(wf_encoder_of(again.model)->config.classes,
                     wf_encoder_of(hf.model)->config.classes);
    if (wf_encoder_of(hf.model)->config.classes)
        ck_assert_str_eq(again.class_names, "LABEL_0\nLABEL_1\nLABEL_2\nLABEL_3");
    ck_assert(memcmp(x, y, (size_t)(2 * wf_encoder_width(hf.model)) * sizeof *x) == 0);
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

/* Labels that the folder could not have: fewer than classes, too long. */
TEST(labels_of_a_folder_are_as_many_as_classes) {
    static const char *const says[] = { "it has 2 labels for 4 classes",
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

/* ---- folders that are refused ---------------------------------------------------------------- */

static const changed_folder changed[] = {
    { "enc_distil", "config.json", "\"dim\": 8", "\"dim\": 9", "9 is not divisible by 2 heads" },
    { "enc_dense", "config.json", "\"hidden_size\": 8", "\"hidden_size\": 10",
      "1_Pooling/config.json: 'embedding_dimension' is 8, not 10" },
    { "enc_dense", "config.json", "\"hidden_size\": 8,", "", "'hidden_size' is missing, and" },
    { "enc_dense", "config.json", "\"hidden_size\": 8", "\"hidden_size\": 8, \"hiddn_size\": 8",
      "'hiddn_size' is not known of this family" },
    { "enc_dense", "config.json", "\"intermediate_size\": 12", "\"intermediate_size\": 13",
      "'encoder.layer.0.intermediate.dense.weight' is [12,8] in the file, not [13,8]" },
    { "enc_dense", "config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3",
      "'bert.encoder.layer.2.attention.self.query.weight' is missing" },
    { "enc_dense", "config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1",
      "'encoder.layer.1.attention.output.LayerNorm.bias' is in the weights but not in" },
    { "enc_dense", "config.json", "\"is_decoder\": false", "\"is_decoder\": true",
      "'is_decoder' is true, not false" },
    { "enc_dense", "config.json", "\"is_decoder\": false",
      "\"position_embedding_type\": \"relative_key\"",
      "'position_embedding_type' is \"relative_key\", not \"absolute\"" },
    { "enc_dense", "config.json", "\"BertModel\"", "\"BertForSequenceClassification\"",
      "'classifier.weight' is missing, as BertForSequenceClassification has it" },
    { "enc_dense", "config.json", "\"BertModel\"", "\"BertForTokenClassification\"",
      "'architectures' is [\"BertForTokenClassification\"], not BertModel, BertForMaskedLM or" },
    { "enc_mpnet", "config.json", "\"relative_attention_num_buckets\": 32",
      "\"relative_attention_num_buckets\": 40", "'relative_attention_num_buckets' is 40, not 32" },
    { "enc_mpnet", "config.json", "\"pad_token_id\": 1", "\"pad_token_id\": 0",
      "'pad_token_id' is 0, not 1, from which MPNet counts positions" },
    { "enc_mpnet", "model.safetensors", "relative_attention_bias", "relative_attention_bi_s",
      "'mpnet.encoder.relative_attention_bias.weight' is missing" },
    { "enc_classes", "config.json", "\"negative\",", "\"a \\\"b\\\"\",",
      "'id2label' has 'a \"b\"' twice" },
    { "enc_classes", "config.json", "\"0\": \"negative\",", "",
      "'id2label' has 2 labels for 3 classes" },
    { "enc_classes", "config.json", "\"0\": \"negative\"", "\"5\": \"negative\"",
      "'id2label' has no label of one line for 0" },
    { "enc_classes", "config.json", "\"dim\": 8",
      "\"dim\": 8, \"problem_type\": \"multi_label_classification\"",
      "'problem_type' is \"multi_label_classification\", not \"single_label_classification\"" },
    { "enc_classes", "model.safetensors", "pre_classifier.weight", "pre_classifier.wight_",
      "'pre_classifier.weight' is missing" },
    { "enc_dense", "config.json", "\"pad_token_id\": 0", "\"pad_token_id\": 100",
      "'pad_token_id' is not in the vocabulary of 100" },
    { "enc_dense", "config.json", "1e-12", "2", "the layer norm's eps is 2" },
    { "enc_dense", "tokenizer.json", "\"WordPiece\"", "\"WordPeace\"", "tokenizer.json: " },
    { "enc_dense", "modules.json", "base.modules.dense.Dense", "models.LSTM",
      "weft has no module 'LSTM' in '2_Dense' at this place" },
    { "enc_dense", "modules.json", "1_Pooling", "2_Pooling",
      "it does not begin with a Transformer in the folder itself and a Pooling" },
    { "enc_dense", "modules.json", "\"idx\": 0", "\"index\": 0", "'index' is not known here" },
    { "enc_dense", "1_Pooling/config.json", "\"mean\"", "\"median\"",
      "'pooling_mode' is \"median\", not some of cls, max, mean" },
    { "enc_dense", "1_Pooling/config.json", "\"mean\"", "[\"mean\", \"cls\"]",
      "'pooling_mode' is [\"mean\",\"cls\"], not some of" },
    { "enc_dense", "1_Pooling/config.json", "\"mean\"", "\"cls\"", NULL },
    { "enc_dense", "1_Pooling/config.json", "\"embedding_dimension\": 8",
      "\"embedding_dimension\": 9", "'embedding_dimension' is 9, not 8" },
    { "enc_dense", "1_Pooling/config.json", "\"include_prompt\": true", "\"include_prompt\": false",
      "'include_prompt' is false, not true" },
    { "enc_dense", "2_Dense/config.json", "\"in_features\": 8", "\"in_features\": 16",
      "'in_features' is 16, not 8" },
    { "enc_dense", "2_Dense/config.json", "activation.Tanh", "activation.Softplus",
      "not Identity, Tanh, ReLU, GELU or SiLU" },
    { "enc_dense", "2_Dense/config.json", "\"out_features\": 6", "\"out_features\": 7",
      "2_Dense/model.safetensors: " },
    { "enc_dense", "2_Dense/config.json", "\"bias\": true", "\"bias\": false",
      "'linear.bias' is in the weights but not in such a layer" },
    { "enc_dense", "2_Dense/config.json", "\"bias\": true", "\"use_residual\": true",
      "'use_residual' is true, not false" },
    { "enc_dense", "3_Normalize/config.json", "\"sentence_embedding\"", "\"token_embeddings\"",
      "'module_input_name' is \"token_embeddings\", not" },
    { "enc_old", "sentence_bert_config.json", "\"do_lower_case\": false", "\"do_lower_case\": true",
      "'do_lower_case' is true, not false" },
    { "enc_old", "sentence_bert_config.json", "20", "0", "'max_seq_length' is no count" },
    { "enc_old", "1_Pooling/config.json", "\"pooling_mode_mean_tokens\": true",
      "\"pooling_mode_mean_tokens\": 1", "'pooling_mode_mean_tokens' is 1, not true or false" },
    { "enc_old", "model.safetensors", "pooler.dense.bias", "pooler.dense.bla_",
      "'bert.pooler.dense.bias' is missing" },
    { "enc_roberta", "config.json", "\"max_position_embeddings\": 24",
      "\"max_position_embeddings\": 2", "is 2, of which 2 are not used" },
    { "enc_roberta", "config.json", "\"tie_word_embeddings\": true",
      "\"tie_word_embeddings\": false", "'lm_head.decoder.weight' is missing" },
    { "enc_roberta", "config.json", "\"type_vocab_size\": 1", "\"type_vocab_size\": 2",
      "token_type_embeddings.weight" },
};

static const char *const files[] = { "config.json",
                                     "model.safetensors",
                                     "pytorch_model.bin",
                                     "tokenizer.json",
                                     "tokenizer_config.json",
                                     "modules.json",
                                     "sentence_bert_config.json",
                                     "config_sentence_transformers.json",
                                     "1_Pooling/config.json",
                                     "2_Dense/config.json",
                                     "2_Dense/model.safetensors",
                                     "3_Normalize/config.json" };

TEST_ROWS(a_changed_folder_is_refused_in_a_sentence, COUNT_OF(changed)) {
    assert_changed(&changed[_i], files, COUNT_OF(files));
}

/* ---- vocab.txt ------------------------------------------------------------------------------- */

/* Writes the tokens of a recorded model, a line each, and its other files but tokenizer.json. */
static void copy_with_vocabulary(const char *name, const char *ending) {
    char path[512], file[512];
    wf_hf hf = import(recorded(name, path));
    for (int i = 0; i < COUNT_OF(files); i++) {
        place(file, path, files[i]);
        if (access(file, F_OK) != 0 || strcmp(files[i], "tokenizer.json") == 0) continue;
        copy_changed_of(name, files[i], NULL, NULL);
    }
    place(file, folder, "vocab.txt");
    FILE *f = fopen(file, "w");
    for (int32_t id = 0; id < wf_tokenizer_size(hf.src); id++)
        fprintf(f, "%s%s", wf_tokenizer_piece(hf.src, id), ending);
    fclose(f);
    wf_hf_free(&hf);
}

#define CLASS "\"tokenizer_class\": \"TokenizersBackend\""

/* With a vocab.txt alone lines have the recorded ids. */
TEST_ROWS(a_vocabulary_without_steps_is_read, 2) {
    static const char *const in[] = { "enc_many", "enc_distil" };
    static const char *const endings[] = { "\n", "\r\n" };
    char path[512], message[WF_MESSAGE] = "";
    int32_t ids[16 * 64] = { 0 }, length[16];
    copy_with_vocabulary(in[_i], endings[_i]);
    copy_changed_of(in[_i], "tokenizer_config.json", CLASS,
                    "\"tokenizer_class\": \"BertTokenizer\"");
    wf_hf hf = import(folder);
    ck_assert_str_eq(hf.notes, "");
    wf_file *f = values_of(recorded(in[_i], path));
    ck_assert_int_gt(encode_lines(&hf, path, f, ids, length), 3);
    wf_file_free(f);
    wf_hf_free(&hf);
    /* case counts where tokenizer_config.json says so: there are no such tokens */
    copy_changed_of(in[_i], "tokenizer_config.json", CLASS, "\"do_lower_case\": false");
    hf = import(folder);
    ck_assert_int_eq(wf_tokenizer_encode(hf.src, "THE", 3, ids, 64, message), 3);
    ck_assert_str_eq(wf_tokenizer_piece(hf.src, ids[1]), "[UNK]");
    wf_hf_free(&hf);
}

static const struct {
    const char *settings, *ending, *says;
} bad_vocabularies[] = {
    { "\"tokenizer_class\": \"BertJapaneseTokenizer\"", "\n",
      "'tokenizer_class' of tokenizer_config.json is not BertTokenizer" },
    { "\"do_lower_case\": 3", "\n", "'do_lower_case' is neither true nor false" },
    { NULL, " \n", "vocab.txt: there is no [UNK]" },
    { NULL, "\n\n", "tokenizer.json: its ids reach" },
};

TEST_ROWS(a_bad_vocabulary_is_refused, COUNT_OF(bad_vocabularies)) {
    char message[WF_MESSAGE] = "";
    wf_hf hf;
    copy_with_vocabulary("enc_many", bad_vocabularies[_i].ending);
    copy_changed_of("enc_many", "tokenizer_config.json", CLASS,
                    bad_vocabularies[_i].settings ? bad_vocabularies[_i].settings
                                                  : "\"do_lower_case\": true");
    ck_assert(!wf_hf_import(folder, &hf, message));
    assert_contains(message, bad_vocabularies[_i].says);
    wf_hf_free(&hf);
}

/* Notes name a default prompt, and a tokenizer that is missing. */
TEST(differences_are_told) {
    for (int i = 0; i < 2; i++) copy_changed_of("enc_old", files[i], NULL, NULL);
    wf_hf hf = import(folder);
    assert_contains(hf.notes, "no vocab.txt: the model reads token ids");
    ck_assert(!hf.src && wf_encoder_of(hf.model)->config.pool_mean);
    ck_assert(!wf_encoder_of(hf.model)->config.normalize);
    wf_hf_free(&hf);
    for (int i = 0; i < COUNT_OF(files); i++) {
        bool prompts = strcmp(files[i], "config_sentence_transformers.json") == 0;
        if (strcmp(files[i], "pytorch_model.bin") == 0) continue;
        copy_changed_of("enc_dense", files[i], prompts ? "\"default_prompt_name\": null" : NULL,
                        "\"default_prompt_name\": \"query\"");
    }
    hf = import(folder);
    assert_contains(hf.notes, "encode() puts the prompt \"query\" before each line");
    wf_hf_free(&hf);
}
