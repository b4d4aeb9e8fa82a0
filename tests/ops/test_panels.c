/* tests/ops/test_panels.c - weights packed in panels: products have the bits of row-major weights;
 * with bf16, those of the rounded weights; and ops that cannot read panels get row-major
 * weights. */
#include "models/model_internal.h"
#include "tests/suites.h"
#include "tests/support/models.h"

TESTS(panels)

/* ---- one matrix, read in every way that panels allow ----------------------------------------- */

static const struct {
    int64_t n, k, m;
} sizes[] = {
    { 64, 8, 1 },    { 1, 1, 1 },     { 63, 7, 2 },    { 65, 33, 3 },
    { 128, 64, 4 },  { 192, 31, 5 },  { 200, 17, 6 },  { 129, 513, 7 },
    { 96, 1030, 2 }, { 256, 70, 40 }, { 1000, 65, 2 }, { 70, 5, 33 },
};

enum { READERS = 5 };

typedef struct matrix {
    wf_graph *g;
    wf_tensor *w, *fetch[READERS];
    int n_fetch;
} matrix;

static wf_tensor *numbers(wf_graph *g, const char *name, int ndim, const int64_t *shape) {
    int64_t n = 1;
    for (int i = 0; i < ndim; i++) n *= shape[i];
    double *data = malloc((size_t)n * sizeof *data);
    for (int64_t i = 0; i < n; i++) data[i] = number(key_of(name, 3), (uint64_t)i) - 0.5;
    wf_tensor *t = param_of(g, name, ndim, shape, data);
    free(data);
    return t;
}

static matrix open_matrix(wf_dtype real, int i) {
    int64_t n = sizes[i].n, k = sizes[i].k, m = sizes[i].m;
    matrix x = { .g = new_graph(real) };
    wf_graph *g = x.g;
    x.w = numbers(g, "w", SHAPE(n, k));
    wf_tensor *a = numbers(g, "a", SHAPE(m, k)), *at = numbers(g, "at", SHAPE(k, m));
    wf_tensor *batch = numbers(g, "batch", SHAPE(2, 1, k)), *bias = numbers(g, "bias", SHAPE(n));
    int32_t ids[] = { 0, (int32_t)(n - 1), (int32_t)(n / 2) };
    wf_tensor *last = wf_slice(x.w, 0, n > 64 ? 64 : 0, WF_END);
    x.fetch[x.n_fetch++] = wf_gemm(a, x.w, bias, WF_TRANSPOSE_B);
    x.fetch[x.n_fetch++] = wf_gemm(at, x.w, NULL, WF_TRANSPOSE_A | WF_TRANSPOSE_B);
    x.fetch[x.n_fetch++] = wf_gemm(batch, x.w, NULL, WF_TRANSPOSE_B);
    x.fetch[x.n_fetch++] = wf_gemm(a, last, NULL, WF_TRANSPOSE_B);
    x.fetch[x.n_fetch++] = wf_embedding(x.w, ids_of(g, "ids", SHAPE(3), ids));
    return x;
}

static bool copies(const matrix *x) {
    wf_plan *p = wf_plan_new(
        x->g, &(wf_plan_options){ .fetch = (wf_tensor **)x->fetch, .n_fetch = x->n_fetch });
    bool found = false;
    for (int i = 0; i < wf_step_count(p); i++) {
        wf_step s;
        found |= wf_step_at(p, i, &s) && s.op == &wf_op_copy;
    }
    wf_plan_free(p);
    return found;
}

static void assert_same(const matrix *a, const matrix *b, int threads, const char *what) {
    values x[READERS], y[READERS];
    evaluate((wf_tensor **)a->fetch, a->n_fetch, 1, false, x);
    evaluate((wf_tensor **)b->fetch, b->n_fetch, threads, false, y);
    for (int i = 0; i < a->n_fetch; i++)
        ck_assert_msg(same_bits(x[i], y[i]), "%s: reader %d, %d threads", what, i, threads);
    free_values(x, a->n_fetch), free_values(y, b->n_fetch);
}

TEST_ROWS(panels_change_no_bit, COUNT_OF(sizes)) {
    for (wf_dtype real = WF_F32; real <= WF_F64; real++) {
        matrix rows = open_matrix(real, _i), panels = open_matrix(real, _i);
        ck_assert(wf_pack_weights(panels.g, WF_PANELS, NULL));
        ck_assert(!copies(&panels));
        assert_same(&rows, &panels, 1, "panels");
        assert_same(&rows, &panels, 3, "panels");
        end_graph(rows.g), end_graph(panels.g);
    }
}

TEST_ROWS(bf16_is_the_product_with_rounded_weights, COUNT_OF(sizes)) {
    matrix rows = open_matrix(WF_F32, _i), rounded = open_matrix(WF_F32, _i);
    ck_assert(wf_pack_weights(rounded.g, WF_PANELS_BF16, NULL));
    ck_assert(!copies(&rounded));
    size_t bytes = wf_bytes(rounded.w);
    float *kept = malloc(bytes), *before = malloc(bytes);
    ck_assert(wf_read(rows.w, before, bytes) && wf_read(rounded.w, kept, bytes));
    for (int64_t i = 0; i < wf_count(rows.w); i++)
        ck_assert(fabsf(kept[i] - before[i]) <= fabsf(before[i]) / 256);
    ck_assert(wf_write(rows.w, kept, bytes));
    assert_same(&rows, &rounded, 1, "bf16");
    assert_same(&rows, &rounded, 2, "bf16");
    free(kept), free(before);
    end_graph(rows.g), end_graph(rounded.g);
}

/* ---- what is kept ---------------------------------------------------------------------------- */

static float from_word(uint32_t word) {
    float x;
    memcpy(&x, &word, sizeof x);
    return x;
}

TEST(bf16_rounds_to_nearest_or_even) {
    static const uint32_t given[][2] = {
        /* the bits of an f32, and of its value in bf16 */
        { 0x3F808000, 0x3F800000 }, { 0x3F818000, 0x3F820000 }, { 0x3F808001, 0x3F810000 },
        { 0x3F807FFF, 0x3F800000 }, { 0xBF818000, 0xBF820000 }, { 0x7F7FFFFF, 0x7F800000 },
        { 0x7F800000, 0x7F800000 }, { 0xFF800000, 0xFF800000 }, { 0x80000000, 0x80000000 },
        { 0x00018000, 0x00020000 },
    };
    enum { N = COUNT_OF(given) };
    float data[80], kept[80];
    for (int i = 0; i < 80; i++) data[i] = from_word(given[i % N][0]);
    data[79] = from_word(0x7F800001); /* a NaN that would be an infinity without its lower half */
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *w = wf_param(g, "w", SHAPE(80, 1), wf_init_zeros());
    ck_assert(wf_set_layout(w, WF_PANELS_BF16) && wf_write(w, data, sizeof data));
    ck_assert(wf_read(w, kept, sizeof kept));
    ck_assert(isnan(kept[79]));
    for (int i = 0; i < 79; i++) {
        float expected = from_word(given[i % N][1]);
        ck_assert_msg(memcmp(&kept[i], &expected, sizeof expected) == 0, "%a became %a", data[i],
                      kept[i]);
    }
    end_graph(g);
}

TEST(values_survive_every_change_of_layout) {
    static const wf_layout order[] = { WF_PANELS, WF_ROW_MAJOR,   WF_PANELS_BF16,
                                       WF_PANELS, WF_PANELS_BF16, WF_ROW_MAJOR };
    wf_graph *g = new_graph(WF_F32), *late = new_graph(WF_F32);
    wf_init init = wf_init_uniform(1);
    wf_tensor *w = wf_param(g, "w", SHAPE(130, 9), init);
    wf_tensor *untouched = wf_param(late, "w", SHAPE(130, 9), init);
    float first[130 * 9], now[130 * 9];
    bool rounded = false;
    ck_assert(wf_set_layout(untouched, WF_PANELS)); /* before it has values */
    ck_assert(wf_read(w, first, sizeof first) && wf_read(untouched, now, sizeof now));
    ck_assert_mem_eq(first, now, sizeof first);
    for (int i = 0; i < COUNT_OF(order); i++) {
        ck_assert(wf_set_layout(w, order[i]) && wf_read(w, now, sizeof now));
        bool rounds = order[i] == WF_PANELS_BF16 && !rounded; /* once */
        ck_assert((memcmp(first, now, sizeof now) != 0) == rounds);
        memcpy(first, now, sizeof now);
        rounded |= rounds;
    }
    end_graph(g), end_graph(late);
}

static wf_tensor *itself;
static bool taken, written;

static void fill_and_ask(const wf_init *init, uint64_t key, wf_dtype dtype, int ndim,
                         const int64_t *shape, void *data) {
    const wf_init uniform = wf_init_uniform(init->a);
    uniform.fill(&uniform, key, dtype, ndim, shape, data);
    taken = wf_set_layout(itself, WF_PANELS);
    written = wf_write(itself, data, wf_bytes(itself));
}

/* An init function cannot change the layout of the parameter that it fills. */
TEST(a_parameter_that_is_filled_is_left_alone) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *w = itself = wf_param(g, "w", SHAPE(20, 9), (wf_init){ fill_and_ask, 1, 0 });
    float first[180], now[180];
    taken = written = true;
    ck_assert(wf_read(w, first, sizeof first) && !taken && !written);
    for (int i = 0; i < 2; i++) /* the second time the weight has that layout already */
        ck_assert(wf_set_layout(w, WF_PANELS) && wf_read(w, now, sizeof now));
    ck_assert_mem_eq(first, now, sizeof first);
    end_graph(g);
}

/* Changing the layout of a large weight frees its old memory, and keeps its values. */
TEST(memory_of_another_layout_is_given_back) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *w[2];
    const int64_t n = 700; /* 2 MB */
    float *first = malloc((size_t)(n * n) * 4), *now = malloc((size_t)(n * n) * 4);
    ck_assert(first && now);
    for (int i = 0; i < 2; i++) w[i] = wf_param(g, i ? "b" : "a", SHAPE(n, n), wf_init_uniform(1));
    for (int i = 0; i < 2; i++) {
        ck_assert(wf_read(w[i], first, wf_bytes(w[i])));
        for (int k = 0; k < 3; k++) /* there, back, and there */
            ck_assert(wf_set_layout(w[i], k == 1 ? WF_ROW_MAJOR : WF_PANELS));
        ck_assert(wf_read(w[i], now, wf_bytes(w[i])));
        ck_assert_mem_eq(first, now, wf_bytes(w[i]));
    }
    free(first), free(now);
    end_graph(g);
}

/* ---- refusals, and readers of rows ----------------------------------------------------------- */

TEST(refusals_change_nothing) {
    char message[WF_MESSAGE];
    wf_graph *wide = new_graph(WF_F64), *g = new_graph(WF_F32);
    wf_tensor *w = numbers(g, "w", SHAPE(70, 4)), *a = numbers(g, "a", SHAPE(2, 4));
    wf_tensor *y = wf_gemm(a, w, NULL, WF_TRANSPOSE_B), *d = numbers(wide, "d", SHAPE(4, 4));
    ck_assert(!wf_pack_weights(NULL, WF_PANELS, message));
    ck_assert(!wf_pack_weights(wide, WF_PANELS_BF16, message));
    assert_contains(message, "f32 only");
    ck_assert(!wf_set_layout(d, WF_PANELS_BF16) && !wf_set_layout(NULL, WF_PANELS));
    ck_assert(!wf_set_layout(y, WF_PANELS) && !wf_set_layout(w, (wf_layout)7));
    ck_assert(!wf_set_layout(numbers(g, "vector", SHAPE(4)), WF_PANELS));
    wf_plan *p = wf_plan_new(g, &(wf_plan_options){ .fetch = &y, .n_fetch = 1 });
    ck_assert(!wf_pack_weights(g, WF_PANELS, message) && !wf_set_layout(w, WF_PANELS));
    assert_contains(message, "before the graph's first plan");
    ck_assert_msg(wf_run(p), "%s", wf_plan_error(p));
    wf_plan_free(p);
    ck_assert(wf_pack_weights(g, WF_PANELS, message));
    end_graph(g), end_graph(wide);
}

static matrix open_other_readers(void) {
    matrix x = { .g = new_graph(WF_F32) };
    x.w = numbers(x.g, "w", SHAPE(130, 6));
    wf_tensor *a = numbers(x.g, "a", SHAPE(3, 130)), *b = numbers(x.g, "b", SHAPE(3, 6));
    x.fetch[x.n_fetch++] = wf_matmul(a, x.w);
    x.fetch[x.n_fetch++] = wf_gemm(b, wf_slice(x.w, 0, 10, 100), NULL, WF_TRANSPOSE_B);
    x.fetch[x.n_fetch++] = wf_gemm(b, wf_slice(x.w, 0, 0, 100), NULL, WF_TRANSPOSE_B);
    x.fetch[x.n_fetch++] = wf_matmul(b, wf_transpose(x.w, 0, 1));
    x.fetch[x.n_fetch++] = wf_slice(x.w, 0, 64, WF_END);
    return x;
}

TEST(what_reads_rows_is_given_rows) {
    matrix rows = open_other_readers(), panels = open_other_readers();
    ck_assert(wf_pack_weights(panels.g, WF_PANELS, NULL)); /* finds nothing to do */
    assert_same(&rows, &panels, 1, "left as it was");
    ck_assert(wf_set_layout(panels.w, WF_PANELS) && copies(&panels));
    assert_same(&rows, &panels, 2, "converted");
    end_graph(rows.g), end_graph(panels.g);
}

TEST(parameters_in_panels_are_not_updated) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *w = numbers(g, "w", SHAPE(65, 3)), *v = numbers(g, "v", SHAPE(65, 3));
    wf_tensor *update = wf_assign(w, v);
    ck_assert(wf_set_layout(w, WF_PANELS));
    wf_plan *p = wf_plan_new(g, &(wf_plan_options){ .fetch = &update, .n_fetch = 1 });
    ck_assert(!wf_run(p));
    assert_contains(wf_plan_error(p), "not updated");
    wf_plan_free(p);
    end_graph(g);
}

/* ---- the Transformer ------------------------------------------------------------------------- */

static values logits_of(wf_tie tie, wf_layout layout) {
    static sentences b;
    wf_transformer_config c = small_config();
    c.tie = tie, c.d_model = 64;
    wf_model *m = open_model(&c, NULL, WF_F32, 5);
    ck_assert(wf_pack_weights(m->graph, layout, NULL));
    random_sentences(&b, &c, 3, 7, 6, 9);
    wf_plan *p = wf_model_plan(m, WF_PLAN_SCORE, NULL);
    values v = run_for(p, m, &b, m->logits);
    wf_plan_free(p);
    close_model(m);
    return v;
}

TEST(models_have_the_same_logits) {
    for (wf_tie tie = WF_TIE_NONE; tie <= WF_TIE_ALL; tie++) {
        values rows = logits_of(tie, WF_ROW_MAJOR), panels = logits_of(tie, WF_PANELS);
        values rounded = logits_of(tie, WF_PANELS_BF16);
        double far = distance(rounded, rows);
        ck_assert(same_bits(rows, panels));
        ck_assert_msg(far > 0 && far < 0.05, "bf16 logits are %g away", far);
        free_values(&rows, 1), free_values(&panels, 1), free_values(&rounded, 1);
    }
}
