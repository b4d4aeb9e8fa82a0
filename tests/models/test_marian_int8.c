/* tests/models/test_marian_int8.c - int8 models of Marian, computed as Marian does: integer
 * products and their rounding have the bits of the published formula; scales of activations are
 * those that numpy computes by Marian's rule. */
#include <math.h>
#include <unistd.h>

#include "core/graph_internal.h"
#include "marian_files.h"
#include "tests/suites.h"

TESTS(marian_int8)

/* ---- in Marian's arithmetic ------------------------------------------------------------------ */

static const int in_int8[] = { 1, 3, 5, 6, 8 };

/* Imports a recorded int8 file, saves the model, and loads it with Marian's int8 products. */
static wf_model *load_int8(wf_hf *hf, const char *model, size_t bytes) {
    char message[WF_MESSAGE] = "", path[] = "/tmp/weft-marian-XXXXXX";
    close(mkstemp(path));
    import(model, bytes, hf);
    ck_assert_msg(wf_model_save(hf->model, path, NULL, NULL, 0, message), "%s", message);
    wf_file *f = wf_file_open(path);
    wf_model *m = wf_marian_load(f, message);
    ck_assert_msg(m != NULL, "%s", message);
    wf_file_free(f);
    unlink(path);
    return m;
}

TEST_ROWS(integers_give_the_recorded_ids, COUNT_OF(in_int8)) {
    size_t bytes, size;
    char *model = recorded_file(in_int8[_i], "", &size);
    char *text = recorded_file(in_int8[_i], ".int8.txt", &bytes);
    wf_hf hf;
    wf_model *m = load_int8(&hf, model, size);
    assert_recorded(m, &hf.generation, text);
    wf_model_free(m);
    wf_hf_free(&hf);
    free(model);
    free(text);
}

/* Some products of shared.bin: the buffers of their panels, and the names of their matrices and
 * biases in the file. */
static const struct {
    const char *panels, *matrix, *bias;
} products[] = {
    { "transformer.encoder.layers.0.self_attn.int8.panels.16", "encoder_l1_self_Wk",
      "encoder_l1_self_bk" },
    { "transformer.encoder.layers.0.linear2.int8.panels.0", "encoder_l1_ffn_W2",
      "encoder_l1_ffn_b2" },
    { "transformer.decoder.layers.0.ssru.input.int8.panels.0", "decoder_l1_rnn_W", NULL },
    { "transformer.decoder.layers.1.multihead_attn.int8.panels.32", "decoder_l2_context_Wv",
      "decoder_l2_context_bv" },
    { "src_embedding.int8.panels.0", "Wemb", "decoder_ff_logit_out_b" },
};

static wf_tensor *product_of(const wf_model *m, const char *panels) {
    for (int id = 0; id < wf_node_count(m->graph); id++) {
        wf_tensor *t = wf_node(m->graph, id);
        if (t->kind == WF_COMPUTED && strcmp(t->op->name, "marian_product") == 0 &&
            strcmp(t->in[1]->name, panels) == 0)
            return t;
    }
    return NULL;
}

/* One value of a product by the published formula: sums of integers, then f32. */
static float formula(const marian_item *w, int64_t row, int64_t k, const float *x, float qa,
                     float bias) {
    int32_t sum = 0, of_row = 0;
    volatile float u = 1 / (qa * w->multiplier);
    volatile float shift = 127 * u;
    volatile float scaled;
    volatile float prepared;
    for (int64_t p = 0; p < k; p++) {
        volatile float by = x[p] * qa;
        int32_t a = (int32_t)fminf(fmaxf(rintf(by), -127), 127) + 127;
        sum += a * (signed char)w->data[row * k + p];
        of_row += (signed char)w->data[row * k + p];
    }
    shift = shift * (float)of_row;
    prepared = bias - shift;
    scaled = u * (float)sum;
    return scaled + prepared;
}

TEST_ROWS(products_have_the_bits_of_the_formula, COUNT_OF(products)) {
    static sentences b;
    size_t bytes;
    char *model = recorded_file(1, "", &bytes), name[MARIAN_NAME], message[WF_MESSAGE];
    marian_file f;
    wf_hf hf;
    wf_model *m = load_int8(&hf, model, bytes);
    ck_assert(wf_marian_open(&f, model, bytes, message));
    const marian_item *w = wf_marian_find(&f, products[_i].matrix);
    const marian_item *bias = products[_i].bias ? wf_marian_find(&f, products[_i].bias) : NULL;
    snprintf(name, sizeof name, "%s_QuantMultA", products[_i].matrix);
    float qa = wf_marian_value(wf_marian_find(&f, name), 0);
    wf_tensor *y = product_of(m, products[_i].panels);
    ck_assert(w && y);
    wf_tensor *fetched[] = { y, y->in[0] };
    wf_plan_options o = { .fetch = fetched, .n_fetch = 2, .n_feed = 4 };
    o.feed = (wf_tensor *[]){ m->src, m->src_length, m->tgt, m->labels };
    wf_plan *p = wf_plan_new(m->graph, &o);
    random_sentences(&b, &wf_transformer_of(m)->config, 5, 6, 7, 5);
    values made = run_for(p, m, &b, y);
    int64_t shape[WF_MAX_DIMS], n = w->count;
    wf_bound_shape(p, y->in[0], shape);
    n /= shape[2];
    float *x = malloc(wf_bound_bytes(p, y->in[0]));
    ck_assert(wf_fetch(p, y->in[0], x, wf_bound_bytes(p, y->in[0])));
    for (int64_t row = 0; row < shape[0] * shape[1]; row++)
        for (int64_t i = 0; i < n; i++) {
            float want = formula(w, i, shape[2], x + row * shape[2], qa,
                                 bias ? wf_marian_value(bias, i) : 0);
            ck_assert_msg((float)made.data[row * n + i] == want, "row %d, column %d", (int)row,
                          (int)i);
        }
    free(x);
    free_values(&made, 1);
    wf_plan_free(p);
    wf_marian_close(&f);
    wf_model_free(m);
    wf_hf_free(&hf);
    free(model);
}

static wf_tensor *rows_of(const wf_model *m, const wf_tensor *ids) {
    for (int id = 0; id < wf_node_count(m->graph); id++) {
        wf_tensor *t = wf_node(m->graph, id);
        if (t->kind == WF_COMPUTED && strcmp(t->op->name, "marian_rows") == 0 && t->in[1] == ids)
            return t;
    }
    return NULL;
}

/* Embeddings read the integers of a table that the output shares, and of one for sources alone,
 * whose multiplier is found. Their rows are those of the model in f32, and no matrix is kept in f32
 * beside its integers. */
TEST_ROWS(rows_are_those_of_the_table, COUNT_OF(in_int8)) {
    static sentences b;
    size_t bytes;
    char *model = recorded_file(in_int8[_i], "", &bytes);
    wf_hf hf;
    wf_model *m = load_int8(&hf, model, bytes);
    wf_tensor *table = wf_find(hf.model->graph, "src_embedding.weight");
    wf_tensor *y = rows_of(m, m->src);
    ck_assert(table && y);
    wf_plan_options o = { .fetch = &y, .n_fetch = 1, .n_feed = 4 };
    o.feed = (wf_tensor *[]){ m->src, m->src_length, m->tgt, m->labels };
    wf_plan *p = wf_plan_new(m->graph, &o);
    random_sentences(&b, &wf_transformer_of(m)->config, 5, 6, 7, 5);
    values made = run_for(p, m, &b, y);
    double *all = leaf_values(table);
    int64_t k = table->shape[1], n = made.count / k;
    ck_assert_int_eq(n, 5 * 6);
    for (int64_t i = 0; i < n * k; i++)
        ck_assert_msg(made.data[i] == all[b.src[i / k] * k + i % k], "row %d, column %d",
                      (int)(i / k), (int)(i % k));
    int matrices = 0;
    for (int id = 0; id < m->own_nodes; id++) {
        const wf_tensor *t = wf_node(m->graph, id);
        bool matrix = t->kind == WF_PARAM && t->ndim == 2 && !strstr(t->name, "position");
        ck_assert_msg(!matrix || !wf_leaf_lent(t), "%s", t->name);
        matrices += matrix;
    }
    ck_assert_int_gt(matrices, 10);
    free(all);
    free_values(&made, 1);
    wf_plan_free(p);
    wf_model_free(m);
    wf_hf_free(&hf);
    free(model);
}

/* Marian's int8 products are refused for a model from an f32 file, for one that was trained after
 * the import, and for one with a negative scale. */
TEST(other_models_have_no_integers) {
    static const char *const why[] = { "has no scales of activations",
                                       "'encoder_l1_ffn_W1' has other values",
                                       "a scale of its activations is -1" };
    size_t bytes;
    char message[WF_MESSAGE] = "", path[] = "/tmp/weft-marian-XXXXXX";
    close(mkstemp(path));
    for (int i = 0; i < 3; i++) {
        char *model = recorded_file(i > 0, "", &bytes);
        wf_hf hf;
        import(model, bytes, &hf);
        wf_tensor *t = wf_find(hf.model->graph, "transformer.encoder.layers.0.linear1.weight");
        double *numbers = leaf_values(t);
        numbers[1] += 1e-3;
        if (i == 1) ck_assert(write_doubles(t, numbers));
        wf_tensor *scales = wf_find(hf.model->graph, WF_MARIAN_SCALES);
        ck_assert((scales != NULL) == (i > 0));
        if (i == 2) ck_assert(wf_write(scales, (float[64]){ 1, -1 }, wf_bytes(scales)));
        ck_assert(wf_model_save(hf.model, path, NULL, NULL, 0, message));
        wf_file *f = wf_file_open(path);
        ck_assert(!wf_marian_load(f, message));
        assert_contains(message, why[i]);
        wf_file_free(f);
        free(numbers);
        free(model);
        wf_hf_free(&hf);
    }
    unlink(path);
}

/* The scales of activations in a file do not make a language model a translator. */
TEST(a_language_model_has_no_integers) {
    char message[WF_MESSAGE] = "", path[] = "/tmp/weft-marian-XXXXXX";
    close(mkstemp(path));
    wf_model *m = open_language_model(false, NULL, 17, 16);
    wf_param(m->graph, WF_MARIAN_SCALES, 2, (int64_t[]){ 4, 2 }, wf_init_normal(1));
    ck_assert_msg(wf_model_save(m, path, NULL, NULL, 0, message), "%s", message);
    wf_file *f = wf_file_open(path);
    ck_assert(wf_file_find(f, WF_MARIAN_SCALES) && !wf_marian_load(f, message));
    assert_contains(message, "only an encoder-decoder Transformer has Marian's arithmetic");
    wf_file_free(f);
    wf_model_free(m);
    unlink(path);
}

/* ---- scales of activations ------------------------------------------------------------------- */

enum { PAIRS = 40, WIDEST = 64 };

/* The recorded sources and outputs as one batch. */
typedef struct pairs {
    int32_t src[PAIRS * WIDEST], tgt[PAIRS * WIDEST], src_length[PAIRS], tgt_length[PAIRS];
    wf_batch batch;
} pairs;

/* Moves the rows together, from a width of WIDEST to `to`. */
static void narrow(int32_t *ids, int64_t to) {
    for (int i = 0; i < PAIRS; i++)
        memmove(ids + i * to, ids + i * WIDEST, (size_t)to * sizeof *ids);
}

static void read_pairs(pairs *p, char *text, int32_t start) {
    int32_t S = 0, T = 0;
    *p = (pairs){ .batch.B = PAIRS };
    for (int i = 0; i < PAIRS; i++) {
        p->src_length[i] = read_ids(&text, p->src + i * WIDEST);
        while (*text == ' ') text++;
        p->tgt[i * WIDEST] = start;
        p->tgt_length[i] = 1 + read_ids(&text, p->tgt + i * WIDEST + 1);
        if (p->src_length[i] > S) S = p->src_length[i];
        if (p->tgt_length[i] > T) T = p->tgt_length[i];
    }
    narrow(p->src, S);
    narrow(p->tgt, T);
    p->batch = (wf_batch){ PAIRS, S, T, p->src, p->src_length, p->tgt, NULL };
}

/* Asserts that the file has the scales that numpy computed from the text by Marian's rule. */
static void assert_scales(marian_file *f, const char *text) {
    char name[MARIAN_NAME], with_end[MARIAN_NAME + 16];
    int n = 0, length;
    float want;
    for (; sscanf(text, "%100s %f\n%n", name, &want, &length) == 2; text += length, n++) {
        snprintf(with_end, sizeof with_end, "%s_QuantMultA", name);
        const marian_item *item = wf_marian_find(f, with_end);
        ck_assert_msg(item && item->count == 1, "%s", name);
        ck_assert_msg(fabsf(wf_marian_value(item, 0) / want - 1) < 1e-5f, "%s: %g, not %g", name,
                      (double)wf_marian_value(item, 0), (double)want);
    }
    ck_assert_int_gt(n, 10);
}

/* A model with a weight that is no number has no scales. */
TEST(what_is_not_finite_gives_no_scales) {
    static pairs p;
    size_t bytes, size;
    char message[WF_MESSAGE] = "", *model = recorded_file(0, "", &bytes);
    char *text = recorded_file(0, ".txt", &size);
    wf_hf hf;
    import(model, bytes, &hf);
    read_pairs(&p, text, hf.model->start_id);
    wf_tensor *t = wf_find(hf.model->graph, "transformer.encoder.layers.0.linear1.bias");
    double *numbers = leaf_values(t);
    numbers[0] = NAN;
    ck_assert(write_doubles(t, numbers));
    wf_marian_scales *s = wf_marian_scales_new(hf.model, NULL, message);
    ck_assert_msg(s != NULL, "%s", message);
    ck_assert(!wf_marian_scales_add(s, &p.batch, p.tgt_length, message));
    assert_contains(message, "is not finite");
    wf_marian_scales_free(s);
    wf_hf_free(&hf);
    free(numbers), free(model), free(text);
}

/* An int8 file with scales computed from a text is imported as the model with rounded weights, and
 * exported with the same bytes. */
TEST_ROWS(a_text_gives_scales, COUNT_OF(recorded)) {
    static pairs p;
    size_t bytes, size;
    char message[WF_MESSAGE] = "", *model = recorded_file(_i, "", &bytes);
    char *text = recorded_file(_i, ".txt", &size), *want = recorded_file(_i, ".scales", &size);
    wf_hf hf, again;
    marian_file f;
    import(model, bytes, &hf);
    read_pairs(&p, text, hf.model->start_id);
    wf_marian_scales *s = wf_marian_scales_new(hf.model, NULL, message);
    ck_assert_msg(s != NULL, "%s", message);
    ck_assert(!wf_marian_export_int8(hf.model, s, &bytes, message));
    assert_contains(message, "there was no text");
    ck_assert_msg(wf_marian_scales_add(s, &p.batch, p.tgt_length, message), "%s", message);
    char *file = wf_marian_export_int8(hf.model, s, &bytes, message);
    ck_assert_msg(file && wf_marian_open(&f, file, bytes, message), "%s", message);
    assert_scales(&f, want);
    const marian_item *none = wf_marian_find(&f, "none_QuantMultA");
    const marian_item *table = wf_marian_find(&f, "Wemb_QuantMultA");
    if (wf_transformer_of(hf.model)->config.tie == WF_TIE_ALL)
        ck_assert(fabsf(wf_marian_value(table, 0) / wf_marian_value(none, 0) - 1) < 1e-6f);
    else
        ck_assert(!none && !table);
    import(file, bytes, &again);
    char *back = wf_marian_export_like(again.model, file, bytes, message);
    ck_assert_msg(back && memcmp(back, file, bytes) == 0, "%s", message);
    wf_marian_close(&f);
    wf_marian_scales_free(s);
    wf_hf_free(&hf), wf_hf_free(&again);
    free(model), free(text), free(want), free(file), free(back);
}
