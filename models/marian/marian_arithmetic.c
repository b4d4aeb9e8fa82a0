/* models/marian/marian_arithmetic.c - the arithmetic of Marian's int8 files: int8shiftAlphaAll.
 *
 * A matrix has one multiplier, qB, and so have the activations that it is multiplied with, qA. With
 * u = 1 / (qA qB) and the sum w' of each row of integers w, a product is
 *
 *     a = clamp(round(qA x), -127, 127) + 127,   y = u (a . w) + (b - 127 u w')
 *
 * where a . w is an exact sum of integers and the rest is f32. The bias is rounded as Firefox's own
 * engine rounds it. The integers of a row of W, and u, lie in a buffer as panels (ops/kernels). The
 * kernels sum signed integers, so a . w is computed as (a - 127) . w + 127 w'. All other steps are
 * those of f32. Embeddings read their rows from the integers of a table, too: a matrix is in memory
 * once, with a byte for each number. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph_internal.h"
#include "core/product_hook.h"
#include "core/record/record.h"
#include "marian_file.h"
#include "models/message.h"
#include "models/model_internal.h"
#include "ops/base/panels.h"
#include "ops/custom.h"
#include "ops/kernels/kernels.h"
#include "ops/shape/index.h"

/* ---- the ops --------------------------------------------------------------------------------- */

/* Operands: x [...,k]; for a matrix [n,k], its panels [n, (k + 3) / 4 + 1], 127 times the sum of
 * each row [n], b - 127 u w' [n], and qA [1]. */
enum { X, PANELS, SHIFT, BIAS, FACTOR, OPERANDS };
/* LONGEST: the most columns, so that sums of products up to 254 * 127 fit in 32 bits. LEAST_*:
 * about how many elements one task rounds or multiplies. */
enum { LONGEST = 1 << 16, LEAST_ROUNDED = 1 << 14, LEAST_MULTIPLIED = 1 << 17 };

typedef struct product_plan {
    int64_t m, n, k, rows_of_task, panels_of_task;
    bool with_dot;
} product_plan;

static bool shape_product(wf_call *c) {
    const wf_view *x = &c->in[X];
    if (x->ndim < 1 || x->dtype != WF_F32) return wf_fail(c, "%s is not f32", wf_show(c, x));
    wf_set_shape(&c->out[0], WF_F32, x->ndim, x->shape);
    c->out[0].shape[x->ndim - 1] = c->in[BIAS].shape[0];
    return true;
}

static bool plan_product(wf_call *c, void *plan) {
    product_plan *p = plan;
    const wf_view *x = &c->in[X];
    p->n = c->in[BIAS].shape[0];
    p->k = x->shape[x->ndim - 1];
    p->m = p->k ? wf_view_count(x) / p->k : 0;
    p->rows_of_task = LEAST_ROUNDED / (p->k + 1) + 1;
    p->panels_of_task = LEAST_MULTIPLIED / (wf_panel_rows(WF_F32) * (p->k + 1)) + 1;
    p->with_dot = wf_has_dot();
    c->work_bytes = (size_t)p->m * wf_int8_row_bytes(p->k);
    return true;
}

static int64_t panels_of(const product_plan *p) {
    return (p->n + wf_panel_rows(WF_F32) - 1) / wf_panel_rows(WF_F32);
}

/* Rows of x are rounded first. Then a task multiplies all of them with some panels. */
static int64_t tasks_product(const wf_call *c, int phase) {
    const product_plan *p = c->plan;
    if (phase > 1 || p->m == 0) return 0;
    return phase == 0 ? wf_task_count(p->m, p->rows_of_task)
                      : wf_task_count(panels_of(p), p->panels_of_task);
}

static bool eval_product(const wf_call *c, int phase, int64_t task, void *scratch) {
    const product_plan *p = c->plan;
    const float *x = c->in[X].data, *factor = c->in[FACTOR].data;
    int64_t from, to, row_bytes = (int64_t)wf_int8_row_bytes(p->k);
    (void)scratch;
    if (phase == 0) {
        wf_task_range(p->m, p->rows_of_task, task, &from, &to);
        for (int64_t i = from; i < to; i++)
            wf_f32()->int8_row_by(p->k, x + i * p->k, *factor, p->with_dot,
                                  (char *)c->work + i * row_bytes);
        return true;
    }
    wf_task_range(panels_of(p), p->panels_of_task, task, &from, &to);
    from *= wf_panel_rows(WF_F32);
    to = to * wf_panel_rows(WF_F32) < p->n ? to * wf_panel_rows(WF_F32) : p->n;
    const char *panels = c->in[PANELS].data;
    wf_f32()->int8_panels(
        &(wf_int8_product){ .m = p->m,
                            .n = to - from,
                            .k = p->k,
                            .a = c->work,
                            .panels = panels + from * (int64_t)wf_int8_weight_bytes(p->k),
                            .d = (const float *)c->in[BIAS].data + from,
                            .shift = (const int32_t *)c->in[SHIFT].data + from,
                            .c = (float *)c->out[0].data + from,
                            .c_row = p->n,
                            .with_dot = p->with_dot });
    return true;
}

static double flops_product(const wf_call *c) {
    const product_plan *p = c->plan;
    return 2 * (double)p->m * (double)p->n * (double)p->k;
}

static const wf_op product = {
    .name = "marian_product",
    .family = "matmul",
    .formula = "marian_product(x, panels, shift, bias, factor): round(factor x) W^T, scaled + bias",
    .arity = OPERANDS,
    .shape = shape_product,
    .no_grad = "its activations are rounded: train the model in f32",
    .run = &(const wf_kernel){ .plan_bytes = sizeof(product_plan),
                               .plan = plan_product,
                               .tasks = tasks_product,
                               .eval = eval_product,
                               .flops = flops_product },
};

/* Operands: the panels of a table [n,k] as above, ids, and qB [1]. */
enum { ROWS_PANELS, ROWS_IDS, ROWS_MULTIPLIER, ROWS_OPERANDS };

typedef struct rows_attrs {
    int64_t width; /* k */
} rows_attrs;

static bool shape_rows(wf_call *c) {
    const wf_view *ids = &c->in[ROWS_IDS];
    if (!wf_want(c, ROWS_IDS, WF_I32)) return false;
    if (ids->ndim == WF_MAX_DIMS)
        return wf_fail(c, "ids of %d axes, at most %d", ids->ndim, WF_MAX_DIMS - 1);
    wf_set_shape(&c->out[0], WF_F32, ids->ndim, ids->shape);
    c->out[0].shape[c->out[0].ndim++] = ((const rows_attrs *)c->attrs)->width;
    return true;
}

static int64_t rows_in_task(const wf_call *c) {
    return WF_GRAIN / (((const rows_attrs *)c->attrs)->width + 1) + 1;
}

static int64_t tasks_rows(const wf_call *c, int phase) {
    return phase == 0 ? wf_task_count(wf_view_count(&c->in[ROWS_IDS]), rows_in_task(c)) : 0;
}

/* The words of a row of the panels, 4 columns each: column p is words[p / 4 * *step + p % 4]. */
static unsigned char *words_of_row(void *panels, int64_t rows, int64_t k, int64_t row,
                                   int64_t *step) {
    int64_t whole = wf_panel_rows(WF_F32), first = row / whole * whole;
    int64_t width = rows - first < whole ? rows - first : whole;
    *step = width * 4;
    return (unsigned char *)panels + first * (int64_t)wf_int8_weight_bytes(k) +
           (width + row - first) * 4;
}

static bool eval_rows(const wf_call *c, int phase, int64_t task, void *scratch) {
    const wf_view *panels = &c->in[ROWS_PANELS], *ids = &c->in[ROWS_IDS];
    const float multiplier = *(const float *)c->in[ROWS_MULTIPLIER].data;
    int64_t k = ((const rows_attrs *)c->attrs)->width, from, to, step;
    (void)phase;
    (void)scratch;
    wf_task_range(wf_view_count(ids), rows_in_task(c), task, &from, &to);
    for (int64_t i = from; i < to; i++) {
        int64_t id = ((const int32_t *)ids->data)[i], n = panels->shape[0];
        if (id < 0 || id >= n) return wf_id_outside(c, id, ids, i, n);
        const unsigned char *words = words_of_row(panels->data, n, k, id, &step);
        float *row = wf_at(&c->out[0], i * k);
        for (int64_t p = 0; p < k; p++)
            row[p] = (float)(words[p / 4 * step + p % 4] - 128) / multiplier;
    }
    return true;
}

static const wf_op table_rows = {
    .name = "marian_rows",
    .family = "index",
    .formula = "marian_rows(panels, ids, multiplier): rows of integers, divided by the multiplier",
    .arity = ROWS_OPERANDS,
    .attr_bytes = sizeof(rows_attrs),
    .attributes = "int64_t width",
    .shape = shape_rows,
    .no_grad = "its table has integers: train the model in f32",
    .run = &(const wf_kernel){ .tasks = tasks_rows, .eval = eval_rows },
};

/* ---- in the place of the model's products and rows ------------------------------------------- */

/* Rows [rows, k] of a weight: part number `part` of equal parts. in: the operands of its product,
 * which are the input X and buffers of the matrix; an embedding reads in[PANELS] and multiplier. */
typedef struct matrix {
    wf_tensor *weight, *in[OPERANDS], *multiplier;
    int part;
    bool multiplied;
} matrix;

typedef struct recording {
    wf_model *values; /* the same model with its weights in f32; its scales [matrices, 2] */
    const float *scales;
    matrix *of;
    int n, most;
} recording;

static wf_tensor *new_buffer(const matrix *a, const char *name, int64_t first, wf_dtype type,
                             int ndim, const int64_t *shape) {
    char text[64];
    snprintf(text, sizeof text, "int8.%s.%lld", name, (long long)first);
    return wf_transient_buffer(a->weight->graph, text, type, ndim, shape, wf_init_zeros());
}

/* The matrix of these rows. Its first use, by a product or an embedding, makes the panels. NULL:
 * the graph has failed. */
static matrix *matrix_of(recording *r, wf_tensor *weight, int64_t rows, int64_t first) {
    int64_t k = weight->shape[1], panel[] = { rows, (int64_t)wf_int8_weight_bytes(k) / 4 };
    int part = (int)(first / rows);
    for (int i = 0; i < r->n; i++)
        if (r->of[i].weight == weight && r->of[i].part == part) return &r->of[i];
    if (k > LONGEST)
        return wf_poison(weight->graph, "a width of %lld is too large", (long long)k), NULL;
    if (r->n == r->most) {
        int most = 2 * r->most + 64;
        matrix *more = realloc(r->of, (size_t)most * sizeof *more);
        if (!more) return wf_poison(weight->graph, "out of memory"), NULL;
        r->of = more;
        r->most = most;
    }
    matrix *a = &r->of[r->n++];
    *a = (matrix){ .weight = weight, .part = part };
    a->in[PANELS] = new_buffer(a, "panels", first, WF_I32, 2, panel);
    return a;
}

/* The hook of products: records a product of int8 in the place of y. */
static wf_tensor *replace(void *user, wf_tensor *y, wf_tensor *x, wf_tensor *weight,
                          int64_t first) {
    int64_t rows = y->shape[y->ndim - 1], one = 1;
    matrix *a = matrix_of(user, weight, rows, first);
    if (!a) return y;
    assert(!a->multiplied); /* its buffers are those of one product */
    a->multiplied = true;
    a->in[X] = x;
    a->in[SHIFT] = new_buffer(a, "shift", first, WF_I32, 1, &rows);
    a->in[BIAS] = new_buffer(a, "bias", first, WF_F32, 1, &rows);
    a->in[FACTOR] = new_buffer(a, "factor", first, WF_F32, 1, &one);
    return wf_record(&product, OPERANDS, a->in, NULL);
}

/* True if each of n values is an integer of -127 to 127, divided by the multiplier. */
static bool divided_by(float multiplier, const float *values, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        float number = rintf(values[i] * multiplier);
        if (!(fabsf(number) <= 127) || number / multiplier != values[i]) return false;
    }
    return true;
}

/* The multiplier of a table that is not multiplied, for which a file has no scale: 127 / the
 * largest |value|, or a neighbouring float. 0: none of them fits all values. */
static float find_multiplier(const float *values, int64_t n) {
    enum { NEIGHBOURS = 2 };
    float largest = 0;
    for (int64_t i = 0; i < n; i++) largest = fmaxf(largest, fabsf(values[i]));
    float multiplier = 127 / largest;
    if (!(largest > 0) || !isfinite(multiplier)) return 0;
    for (int i = 0; i < NEIGHBOURS; i++) multiplier = nextafterf(multiplier, 0);
    for (int i = 0; i <= 2 * NEIGHBOURS; i++, multiplier = nextafterf(multiplier, INFINITY))
        if (divided_by(multiplier, values, n)) return multiplier;
    return 0;
}

/* The multiplier qB of a token table. 0: its values are not int8 integers over one multiplier. */
static float multiplier_of(const recording *r, const wf_tensor *table) {
    int at = wf_marian_scale_index(r->values, table, 0);
    if (at >= 0) return r->scales[2 * at + 1];
    const float *values = wf_leaf_lent(table);
    return values ? find_multiplier(values, wf_count(table)) : 0;
}

/* The hook of embeddings: in the place of y, records an op that reads the same rows from
 * integers. */
static wf_tensor *replace_rows(void *user, wf_tensor *y, wf_tensor *table, wf_tensor *ids) {
    recording *r = user;
    const wf_tensor *values = wf_find(r->values->graph, table->name);
    int64_t one = 1, k = table->shape[1];
    float multiplier = values ? multiplier_of(r, values) : 0;
    matrix *a = multiplier > 0 ? matrix_of(r, table, table->shape[0], 0) : NULL;
    if (!a) return y;
    if (!a->multiplier) {
        a->multiplier = new_buffer(a, "multiplier", 0, WF_F32, 1, &one);
        if (!wf_write(a->multiplier, &multiplier, sizeof multiplier))
            return wf_poison(y->graph, "out of memory");
    }
    wf_tensor *in[] = { a->in[PANELS], ids, a->multiplier };
    return wf_record(&table_rows, ROWS_OPERANDS, in, &(rows_attrs){ k });
}

static wf_model *record(const wf_file *f, recording *r, char *message) {
    wf_product_hook hook = { .call = replace, .user = r, .rows = replace_rows };
    const wf_training_config training = { .on_param = wf_set_product_hook, .user = &hook };
    wf_model *m = wf_model_record(f, &training, WF_F32, 0, message);
    if (!m) return NULL;
    m->training.on_param = NULL;
    m->training.user = NULL;
    *wf_product_hook_of(m->graph) = (wf_product_hook){ .call = NULL };
    if (wf_ok(m->graph)) return m;
    fail(message, "%s", wf_error(m->graph));
    wf_model_free(m);
    return NULL;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* The bias that belongs to a weight. NULL: there is none. */
static wf_tensor *bias_of(const wf_tensor *weight, const char *name) {
    char path[MARIAN_NAME + 64];
    size_t n = strlen(weight->name) - strlen("weight");
    if (strstr(name, "Wemb"))
        snprintf(path, sizeof path, "output.bias");
    else
        snprintf(path, sizeof path, "%.*sbias", (int)n, weight->name);
    return wf_find(weight->graph, path);
}

/* The memory of a matrix's buffers, and the values that fill it. */
typedef struct filling {
    unsigned char *panels; /* [rows, weight bytes] */
    int32_t *shift;        /* NULL: the matrix is not multiplied */
    float *bias;
    const float *values, *biases;
} filling;

/* Writes the integers of a row to its panel, and the row's scale to the panel's beginning. */
static void put_row(const filling *l, const int8_t *q, int64_t row, int64_t rows, int64_t k,
                    float scale) {
    int64_t whole = wf_panel_rows(WF_F32), step;
    unsigned char *words = words_of_row(l->panels, rows, k, row, &step);
    unsigned char *panel = l->panels + row / whole * whole * (int64_t)wf_int8_weight_bytes(k);
    memcpy(panel + row % whole * 4, &scale, sizeof scale);
    for (int64_t p = 0; p < (k + 3) / 4 * 4; p++)
        words[p / 4 * step + p % 4] = (unsigned char)((p < k ? q[p] : 0) + 128);
}

/* Fills the buffers with the integers of the weights: each weight is its integer divided by qB.
 * scales: qA, or 1 if the matrix is not multiplied, and qB. False: a weight is no such quotient. */
static bool fill_rows(const matrix *a, const filling *l, int64_t rows, int64_t k,
                      const float scales[2]) {
    const float u = 1 / (scales[0] * scales[1]), shift = 127 * u;
    int8_t q[LONGEST];
    if (!(u > 0) || !isfinite(u)) return false;
    for (int64_t row = 0; row < rows; row++) {
        const float *w = l->values + (a->part * rows + row) * k;
        int32_t sum = 0;
        if (!divided_by(scales[1], w, k)) return false;
        for (int64_t p = 0; p < k; p++) {
            q[p] = (int8_t)rintf(w[p] * scales[1]);
            sum += q[p];
        }
        put_row(l, q, row, rows, k, u);
        if (!l->shift) continue;
        l->shift[row] = 127 * sum;
        float bias = l->biases ? l->biases[a->part * rows + row] : 0;
        l->bias[row] = bias - shift * (float)sum;
    }
    return true;
}

/* Fills the buffers of a matrix. */
static bool fill(const recording *r, const matrix *a, char *message) {
    char name[MARIAN_NAME];
    int parts;
    const wf_tensor *weight = wf_find(r->values->graph, a->weight->name);
    wf_marian_name(&wf_transformer_of(r->values)->config, weight->name, a->part, &parts, name);
    int64_t rows = weight->shape[0] / parts, k = weight->shape[1];
    int at = wf_marian_scale_index(r->values, weight, a->part);
    if (at < 0 && a->multiplied) return fail(message, "'%s' has no scale", weight->name);
    const float alone[] = { 1, at < 0 ? multiplier_of(r, weight) : 0 };
    const float *scales = at < 0 ? alone : r->scales + 2 * at;
    const wf_tensor *bias = a->multiplied ? bias_of(weight, name) : NULL;
    filling l = { .panels = wf_leaf_data(a->in[PANELS]), .values = wf_leaf_lent(weight) };
    if (a->multiplied) {
        l.shift = wf_leaf_data(a->in[SHIFT]);
        l.bias = wf_leaf_data(a->in[BIAS]);
        l.biases = bias ? wf_leaf_lent(bias) : NULL;
    }
    bool ok = l.panels && l.values && (!bias || l.biases) &&
              (!a->multiplied ||
               (l.shift && l.bias && wf_write(a->in[FACTOR], scales, wf_bytes(a->in[FACTOR]))));
    if (!ok) return fail(message, "out of memory");
    return fill_rows(a, &l, rows, k, scales) ||
           fail(message,
                "'%s' has other values than its file in int8 had; convert --from marian without "
                "--weights int8 keeps them",
                name);
}

static bool is_filled(const recording *r, const wf_tensor *weight) {
    for (int i = 0; i < r->n; i++)
        if (r->of[i].weight == weight) return true;
    return false;
}

/* Fills the buffers of all matrices, and copies the other leaves. Matrices get no values in f32,
 * because nothing reads them. */
static bool fill_all(wf_model *m, const recording *r, char *message) {
    for (int i = 0; i < r->n; i++)
        if (!fill(r, &r->of[i], message)) return false;
    for (int id = 0; id < wf_node_count(r->values->graph); id++) {
        const wf_tensor *from = wf_node(r->values->graph, id);
        const void *data = wf_leaf_lent(from);
        wf_tensor *to = data ? wf_find(m->graph, from->name) : NULL;
        if (to && !is_filled(r, to) && !wf_write(to, data, wf_bytes(from)))
            return fail(message, "out of memory");
    }
    return true;
}

/* The model in f32 with its scales, which are checked. NULL with message. */
static wf_model *load_values(const wf_file *f, const float **scales, char *message) {
    wf_model *m = wf_model_record(f, NULL, WF_F32, 0, message);
    bool ok = m && (wf_transformer_of(m) ||
                    fail(message, "only an encoder-decoder Transformer has Marian's arithmetic"));
    const wf_tensor *t = ok ? wf_marian_declare_scales(m) : NULL;
    ok = ok && wf_model_load_weights(m, f, message) &&
         ((*scales = wf_leaf_lent(t)) || fail(message, "out of memory"));
    for (int64_t i = 0; ok && i < wf_count(t); i++)
        ok = ((*scales)[i] > 0 && isfinite((*scales)[i])) ||
             fail(message, "a scale of its activations is %g, not above 0 and finite",
                  (double)(*scales)[i]);
    if (ok) return m;
    wf_model_free(m);
    return NULL;
}

wf_model *wf_marian_load(const wf_file *f, char *message) {
    recording r = { .n = 0 };
    if (!wf_file_find(f, WF_MARIAN_SCALES))
        return fail(message, "it has no scales of activations: convert --from marian of an "
                             ".intgemm.alphas.bin keeps them"),
               NULL;
    r.values = load_values(f, &r.scales, message);
    wf_model *m = r.values ? record(f, &r, message) : NULL;
    bool ok = m && fill_all(m, &r, message);
    wf_model_free(r.values);
    free(r.of);
    if (ok) return m;
    wf_model_free(m);
    return NULL;
}
