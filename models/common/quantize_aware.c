/* models/common/quantize_aware.c - quantisation-aware training (Jacob et al. 2018): the graph of a
 * model rounds its matrices to int8 and back, as a file in int8 will hold them.
 *
 * The parameters stay in f32. Rounding has no useful derivative, so the gradient of a rounded
 * matrix is taken for that of its parameter (straight-through: Bengio et al. 2013). Activations are
 * not rounded: their scales are found in the trained model, row by row or by calibration. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/int8_row.h"
#include "core/emit/emitter.h"
#include "core/graph_internal.h"
#include "core/record/record.h"
#include "models/kind.h"
#include "models/marian/marian_file.h"
#include "models/message.h"
#include "ops/custom.h"

/* ---- the op ---------------------------------------------------------------------------------- */

/* rows_of_scale: by Marian's rule, how many rows in succession share a scale; 0: by weft's rule
 * each row has its own scale. */
typedef struct rounding {
    int64_t rows_of_scale;
} rounding;

static bool shape_rounded(wf_call *c) {
    const wf_view *x = &c->in[0];
    const rounding *r = c->attrs;
    if (x->dtype != WF_F32) return wf_fail(c, "%s is not f32", wf_show(c, x));
    if (x->ndim != 2 || (r->rows_of_scale && x->shape[0] % r->rows_of_scale))
        return wf_fail(c, "%s has no such rows", wf_show(c, x));
    wf_set_shape(&c->out[0], WF_F32, 2, x->shape);
    return true;
}

/* If several rows share a scale, a first phase finds the largest |x| of each row in work memory. */
static bool plan_rounded(wf_call *c, void *plan) {
    const rounding *r = c->attrs;
    (void)plan;
    if (r->rows_of_scale) c->work_bytes = (size_t)c->in[0].shape[0] * sizeof(float);
    return true;
}

static int64_t grain(const wf_call *c) {
    return WF_GRAIN / (c->in[0].shape[1] + 1) + 1; /* rows of a task */
}

static int64_t tasks_rounded(const wf_call *c, int phase) {
    const rounding *r = c->attrs;
    int phases = r->rows_of_scale ? 2 : 1;
    return phase < phases ? wf_task_count(c->in[0].shape[0], grain(c)) : 0;
}

/* The largest |x|. Without the sign, the bits of floats are ordered like the numbers, with infinity
 * and NaN above all others. So an infinity or a NaN is found as the largest. */
static float largest_of(int64_t n, const float *x) {
    uint32_t largest = 0;
    float value;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        bits &= UINT32_MAX >> 1;
        largest = bits > largest ? bits : largest;
    }
    memcpy(&value, &largest, sizeof value);
    return value;
}

/* Rounds a row to int8 and back, where `largest` is its largest |x|. A row with an infinity or a
 * NaN is copied without rounding, so that the loss shows it. */
static void round_by_rows(int64_t n, const float *x, float largest, float *y) {
    float scale = isfinite(largest) ? wf_int8_scale_of(largest) : 1;
    if (!isfinite(largest))
        memcpy(y, x, (size_t)n * sizeof *y);
    else
        for (int64_t i = 0; i < n; i++)
            y[i] = scale > 0 ? wf_int8_nearest(x[i] / scale) * scale : 0;
}

static void round_as_marian(int64_t n, const float *x, float largest, float *y) {
    float multiplier = isfinite(largest) ? wf_marian_multiplier(largest) : 1;
    if (!isfinite(largest))
        memcpy(y, x, (size_t)n * sizeof *y);
    else
        for (int64_t i = 0; i < n; i++) y[i] = wf_marian_integer(x[i], multiplier) / multiplier;
}

static bool eval_rounded(const wf_call *c, int phase, int64_t task, void *scratch) {
    const rounding *r = c->attrs;
    int64_t from, to, n = c->in[0].shape[1], rows = r->rows_of_scale, group = -1;
    const float *x = c->in[0].data;
    float *y = c->out[0].data, *of_rows = c->work, largest = 0;
    (void)scratch;
    wf_task_range(c->in[0].shape[0], grain(c), task, &from, &to);
    for (int64_t i = from; i < to; i++) {
        if (!rows)
            round_by_rows(n, x + i * n, largest_of(n, x + i * n), y + i * n);
        else if (phase == 0)
            of_rows[i] = largest_of(n, x + i * n);
        else {
            if (i / rows != group) {
                group = i / rows;
                largest = largest_of(rows, of_rows + group * rows);
            }
            round_as_marian(n, x + i * n, largest, y + i * n);
        }
    }
    return true;
}

static bool emit_rounded(wf_emitter *e, const wf_call *c) {
    const rounding *r = c->attrs;
    int64_t rows = r->rows_of_scale ? r->rows_of_scale : 1, n = rows * c->in[0].shape[1];
    wf_emit_text(e, "for (int i = 0; i < %n; i++)\n", c->in[0].shape[0] / rows);
    wf_emit_text(e, "%s(%n, %s + i * %n, %s + i * %n);\n",
                 r->rows_of_scale ? "round_weights_as_marian" : "round_weights", n,
                 wf_emit_operand(e, 0), n, wf_emit_result(e, 0, NULL), n);
    return true;
}

static void grad_rounded(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    (void)y;
    (void)need;
    dx[0] = dy[0];
}

static const wf_op fake_quantize = {
    .name = "fake_quantize",
    .family = "elementwise",
    .formula = "fake_quantize(x): x rounded to int8, times its scale",
    .arity = 1,
    .attr_bytes = sizeof(rounding),
    .attributes = "int64_t rows_of_scale",
    .shape = shape_rounded,
    .grad = grad_rounded,
    .run = &(const wf_kernel){ .plan = plan_rounded,
                               .tasks = tasks_rounded,
                               .eval = eval_rounded,
                               .emit = emit_rounded },
};

/* ---- in the place of the model's matrices ---------------------------------------------------- */

/* How the parameters are rounded, in the order in which they are declared. */
typedef struct declared {
    int seen, n;
    struct {
        bool rounded;
        rounding by;
    } of[];
} declared;

static wf_tensor *round_matrix(void *user, wf_tensor *param) {
    declared *d = user;
    int i = d->seen++;
    if (i >= d->n || !d->of[i].rounded) return NULL;
    return wf_record(&fake_quantize, 1, &param, &d->of[i].by);
}

/* Adds to d how an int8 file would hold a parameter. `plain` is the model without rounding. */
static void find_rounding(const wf_model *plain, const wf_tensor *param, bool marian, declared *d) {
    char name[MARIAN_NAME];
    int i = d->n++, parts = 1;
    if (!marian) {
        d->of[i].rounded = wf_layout_of(param) == WF_PANELS_INT8;
        return;
    }
    marian_form form =
        wf_marian_name(&wf_transformer_of(plain)->config, param->name, 0, &parts, name);
    d->of[i].rounded = form == MARIAN_MATRIX || form == MARIAN_TABLE;
    d->of[i].by.rows_of_scale = param->shape[0] / parts;
}

/* True if the model's matrices can be rounded to int8. False with message. By weft's rule `plain`
 * is packed as int8, so that find_rounding sees which matrices this changes. By Marian's rule the
 * model must be one that Marian's settings can describe. */
static bool can_round(const wf_model *plain, bool marian, char *message) {
    if (!wf_ok(plain->graph)) return fail(message, "%s", wf_error(plain->graph));
    if (!marian) return wf_pack_weights(plain->graph, WF_PANELS_INT8, message);
    if (!wf_transformer_of(plain)) return fail(message, "Marian has no such model");
    char *settings = wf_marian_write_settings(&wf_transformer_of(plain)->config, message);
    free(settings);
    return settings != NULL;
}

static void round_as(wf_model *m, const wf_model *plain) {
    bool marian = m->training.quantize_aware == WF_QUANTIZE_MARIAN;
    char message[WF_MESSAGE] = "";
    if (!can_round(plain, marian, message)) {
        wf_poison(m->graph, "quantize-aware: its matrices cannot be rounded to int8: %s", message);
        return;
    }
    int nodes = wf_node_count(plain->graph);
    declared *d = wf_graph_alloc(m->graph, sizeof *d + (size_t)nodes * sizeof *d->of);
    if (!d) return;
    for (int id = 0; id < nodes; id++)
        if (wf_node(plain->graph, id)->kind == WF_PARAM)
            find_rounding(plain, wf_node(plain->graph, id), marian, d);
    wf_on_param(m->graph, round_matrix, d);
}

void wf_quantize_begin(wf_model *m) {
    char message[WF_MESSAGE] = "";
    if (!wf_ok(m->graph)) return;
    if (m->training.adapters.rank || m->training.on_param) {
        wf_poison(m->graph, "a model is quantisation-aware, or has adapters or a hook of its "
                            "parameters, not both");
        return;
    }
    if (!wf_quantize_name((int)m->training.quantize_aware)) {
        wf_poison(m->graph, "there is no rounding %d of matrices", (int)m->training.quantize_aware);
        return;
    }
    wf_model *plain = m->kind->record(m->config, NULL, WF_F32, 0, message);
    if (plain)
        round_as(m, plain);
    else
        wf_poison(m->graph, "%s", message);
    wf_model_free(plain);
}
