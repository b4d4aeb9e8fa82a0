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
 * those of f32. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph_internal.h"
#include "core/product_hook.h"
#include "marian_file.h"
#include "models/message.h"
#include "models/model_internal.h"
#include "ops/base/panels.h"
#include "ops/custom.h"
#include "ops/kernels/kernels.h"

/* ---- the op ---------------------------------------------------------------------------------- */

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

/* ---- in the place of the model's products ---------------------------------------------------- */

/* A part of a weight, [rows, k], and the buffers of its product. */
typedef struct matrix {
    wf_tensor *weight, *in[OPERANDS];
    int part;
} matrix;

typedef struct recording {
    matrix *of;
    int n, most;
} recording;

static void add_buffers(matrix *a, int64_t rows, int64_t k, int64_t first) {
    const wf_graph *g = a->weight->graph;
    static const char *const names[] = { NULL, "panels", "shift", "bias", "factor" };
    const wf_dtype types[] = { WF_F32, WF_I32, WF_I32, WF_F32, WF_F32 };
    const int64_t one = 1, panel[] = { rows, (int64_t)wf_int8_weight_bytes(k) / 4 };
    const int64_t *const shapes[] = { NULL, panel, &rows, &rows, &one };
    char name[64];
    for (int i = PANELS; i < OPERANDS; i++) {
        snprintf(name, sizeof name, "int8.%s.%lld", names[i], (long long)first);
        a->in[i] = wf_transient_buffer((wf_graph *)(uintptr_t)g, name, types[i],
                                       i == PANELS ? 2 : 1, shapes[i], wf_init_zeros());
    }
}

/* The hook of products: records a product of int8 in the place of y. */
static wf_tensor *replace(void *user, wf_tensor *y, wf_tensor *x, wf_tensor *weight,
                          int64_t first) {
    recording *r = user;
    int64_t rows = y->shape[y->ndim - 1], k = weight->shape[1];
    if (k > LONGEST) return wf_poison(y->graph, "a width of %lld is too large", (long long)k);
    if (r->n == r->most) {
        int most = 2 * r->most + 64;
        matrix *more = realloc(r->of, (size_t)most * sizeof *more);
        if (!more) return wf_poison(y->graph, "out of memory");
        r->of = more;
        r->most = most;
    }
    matrix *a = &r->of[r->n++];
    *a = (matrix){ .weight = weight, .part = (int)(first / rows) };
    add_buffers(a, rows, k, first);
    a->in[X] = x;
    return wf_record(&product, OPERANDS, a->in, NULL);
}

static wf_model *record(const wf_file *f, recording *r, char *message) {
    wf_product_hook hook = { replace, r };
    const wf_training_config training = { .on_param = wf_set_product_hook, .user = &hook };
    wf_model *m = wf_model_record(f, &training, WF_F32, 0, message);
    if (!m) return NULL;
    m->training.on_param = NULL;
    m->training.user = NULL;
    *wf_product_hook_of(m->graph) = (wf_product_hook){ NULL, NULL };
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

/* Buffers of a product on the host. */
typedef struct filling {
    unsigned char *panels; /* [rows, weight bytes] */
    int32_t *shift;
    float *bias, *values, *biases;
} filling;

/* Writes the integers of a row to its panel, and the row's scale to the panel's beginning. */
static void put_row(const filling *l, const int8_t *q, int64_t row, int64_t rows, int64_t k,
                    float scale) {
    int64_t whole = wf_panel_rows(WF_F32), first = row / whole * whole;
    int64_t width = rows - first < whole ? rows - first : whole, r = row - first;
    unsigned char *panel = l->panels + first * (int64_t)wf_int8_weight_bytes(k);
    memcpy(panel + r * 4, &scale, sizeof scale);
    for (int64_t p = 0; p < (k + 3) / 4 * 4; p++)
        panel[(width + p / 4 * width + r) * 4 + p % 4] = (unsigned char)((p < k ? q[p] : 0) + 128);
}

/* Fills the buffers with the integers of the weights: each weight is its integer divided by qB.
 * False: a weight is no such quotient. */
static bool fill_rows(const matrix *a, filling *l, int64_t rows, int64_t k, const float scales[2]) {
    const float u = 1 / (scales[0] * scales[1]), shift = 127 * u;
    int8_t q[LONGEST];
    if (!(u > 0) || !isfinite(u)) return false;
    for (int64_t row = 0; row < rows; row++) {
        const float *w = l->values + (a->part * rows + row) * k;
        int32_t sum = 0;
        for (int64_t p = 0; p < k; p++) {
            float number = rintf(w[p] * scales[1]);
            if (!(fabsf(number) <= 127) || number / scales[1] != w[p]) return false;
            q[p] = (int8_t)number;
            sum += q[p];
        }
        put_row(l, q, row, rows, k, u);
        l->shift[row] = 127 * sum;
        float bias = l->biases ? l->biases[a->part * rows + row] : 0;
        l->bias[row] = bias - shift * (float)sum;
    }
    return true;
}

static bool write_buffers(const matrix *a, const filling *l, const float *factor) {
    wf_tensor *const *in = a->in;
    return wf_write(in[PANELS], l->panels, wf_bytes(in[PANELS])) &&
           wf_write(in[SHIFT], l->shift, wf_bytes(in[SHIFT])) &&
           wf_write(in[BIAS], l->bias, wf_bytes(in[BIAS])) &&
           wf_write(in[FACTOR], factor, wf_bytes(in[FACTOR]));
}

/* scales: qA and qB. */
static bool fill(const wf_model *m, const matrix *a, const float scales[2], char *message) {
    char name[MARIAN_NAME];
    int parts;
    wf_marian_name(&wf_transformer_of(m)->config, a->weight->name, a->part, &parts, name);
    int64_t rows = a->weight->shape[0] / parts, k = a->weight->shape[1];
    wf_tensor *bias = bias_of(a->weight, name);
    filling l = { .panels = malloc((size_t)rows * wf_int8_weight_bytes(k) + 1) };
    l.shift = malloc((size_t)rows * sizeof *l.shift + 1);
    l.bias = malloc((size_t)rows * sizeof *l.bias + 1);
    l.values = malloc(wf_bytes(a->weight) + 1);
    l.biases = bias ? malloc(wf_bytes(bias) + 1) : NULL;
    bool ok = l.panels && l.shift && l.bias && l.values && (!bias || l.biases) &&
              wf_read(a->weight, l.values, wf_bytes(a->weight)) &&
              (!bias || wf_read(bias, l.biases, wf_bytes(bias)));
    if (!ok) fail(message, "out of memory");
    if (ok && !fill_rows(a, &l, rows, k, scales))
        ok = fail(message,
                  "'%s' has other values than its file in int8 had; convert --from marian without "
                  "--weights int8 keeps them",
                  name);
    if (ok && !write_buffers(a, &l, scales)) ok = fail(message, "out of memory");
    free(l.panels), free(l.shift), free(l.bias), free(l.values), free(l.biases);
    return ok;
}

/* Fills the buffers of all products. Then it frees the matrices in f32, which nothing else reads;
 * token tables stay, because embeddings read them. */
static bool fill_all(wf_model *m, const recording *r, const float *scales, char *message) {
    for (int i = 0; i < r->n; i++) {
        int at = wf_marian_scale_index(m, r->of[i].weight, r->of[i].part);
        if (at < 0) return fail(message, "'%s' has no scale", r->of[i].weight->name);
        if (!fill(m, &r->of[i], scales + 2 * at, message)) return false;
    }
    for (int i = 0; i < r->n; i++)
        if (!wf_marian_is_table(m, r->of[i].weight)) wf_leaf_forget(r->of[i].weight);
    return true;
}

wf_model *wf_marian_load(const wf_file *f, char *message) {
    recording r = { .n = 0 };
    if (!wf_file_find(f, WF_MARIAN_SCALES))
        return fail(message, "it has no scales of activations: convert --from marian of an "
                             ".intgemm.alphas.bin keeps them"),
               NULL;
    wf_model *m = record(f, &r, message);
    float *scales = NULL;
    bool ok = m && (wf_transformer_of(m) ||
                    fail(message, "only an encoder-decoder Transformer has Marian's arithmetic"));
    if (ok) {
        wf_tensor *t = wf_marian_declare_scales(m);
        scales = malloc(wf_bytes(t) + 1);
        ok = (scales != NULL || fail(message, "out of memory")) &&
             wf_model_load_weights(m, f, message);
        ok = ok && (wf_read(t, scales, wf_bytes(t)) || fail(message, "out of memory"));
        for (int64_t i = 0; ok && i < wf_count(t); i++)
            ok = (scales[i] > 0 && isfinite(scales[i])) ||
                 fail(message, "a scale of its activations is %g, not above 0 and finite",
                      (double)scales[i]);
        ok = ok && fill_all(m, &r, scales, message);
    }
    free(scales);
    free(r.of);
    if (ok) return m;
    wf_model_free(m);
    return NULL;
}
