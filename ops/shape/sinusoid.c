/* ops/shape/sinusoid.c - sinusoidal position encodings (Vaswani et al. 2017, 3.5):
 *
 *     PE[p, 2i] = sin(p / 10000^(2i/D))      PE[p, 2i+1] = cos(same)
 *
 * as initial values of a table, and as an op that needs no table; both give the same bits. The
 * other forms have all sines before all cosines. In the forms of fairseq and tensor2tensor the
 * factor of the longest wave is exactly 10000. */
#include <math.h>

#include "index.h"
#include "ops/base/op_base.h"
#include "ops/base/scalars.h"
#include "ops/base/shapes.h"
#include "ops/emit/loops.h"

typedef struct sinusoid_attrs {
    int64_t dim;
    wf_sinusoid_form form;
} sinusoid_attrs;

/* A column of the table: a sine or a cosine with one wave length, at positions that count from
 * `first`. */
typedef struct wave {
    double length, first;
    bool cosine;
} wave;

/* True if the longest wave is 10000 times the shortest. */
static bool is_exact(wf_sinusoid_form form) {
    return form == WF_SINUSOID_FAIRSEQ || form == WF_SINUSOID_TENSOR2TENSOR;
}

static wave wave_of(int64_t column, int64_t dim, wf_sinusoid_form form) {
    int64_t sines = (dim + 1) / 2; /* with an odd width, there is one cosine less */
    bool halves = form != WF_SINUSOID_PAIRS;
    wave w = { .cosine = halves ? column >= sines : column % 2,
               .first = form == WF_SINUSOID_FAIRSEQ ? 2 : 0 };
    double i = (double)(!halves ? column / 2 : w.cosine ? column - sines : column);
    w.length = wf_pow_of(10000, is_exact(form) ? i / ((double)sines - 1) : 2 * i / (double)dim);
    return w;
}

static double value_at(int64_t position, const wave *w) {
    double angle = ((double)position + w->first) / w->length;
    return w->cosine ? wf_cos_of(angle) : wf_sin_of(angle);
}

/* ---- a table --------------------------------------------------------------------------------- */

/* Position p counts from 0. */
static void fill_sinusoid(const wf_init *init, uint64_t key, wf_dtype dtype, int ndim,
                          const int64_t *shape, void *data) {
    wf_view y = { .data = data, .dtype = dtype };
    int64_t dim = shape[ndim - 1], count = 1;
    (void)key;
    for (int i = 0; i < ndim; i++) count *= shape[i]; /* cannot overflow: checked by the engine */
    for (int64_t column = 0; column < dim; column++) {
        wave w = wave_of(column, dim, (wf_sinusoid_form)init->a);
        for (int64_t e = column; e < count; e += dim) wf_put(&y, e, value_at(e / dim, &w));
    }
}

wf_init wf_init_sinusoid(wf_sinusoid_form form) {
    return (wf_init){ .fill = fill_sinusoid, .a = form };
}

/* ---- y[..., column] of ids [...] ------------------------------------------------------------- */

static bool shape_sinusoid(wf_call *c) {
    const sinusoid_attrs *a = c->attrs;
    const wf_view *ids = &c->in[0];
    if (!wf_want(c, 0, WF_I32)) return false;
    if (a->dim < 0) return wf_fail(c, "a width of %lld, not 0 or more", (long long)a->dim);
    if (a->form < WF_SINUSOID_PAIRS || a->form > WF_SINUSOID_TENSOR2TENSOR)
        return wf_fail(c, "there is no form number %d", (int)a->form);
    if (is_exact(a->form) && (a->dim % 2 || a->dim == 2))
        return wf_fail(c, "%s's sinusoids are even and 4 or more wide, not %lld",
                       a->form == WF_SINUSOID_FAIRSEQ ? "fairseq" : "tensor2tensor",
                       (long long)a->dim);
    if (ids->ndim == WF_MAX_DIMS)
        return wf_fail(c, "ids of %d axes, at most %d", ids->ndim, WF_MAX_DIMS - 1);
    wf_set_shape(&c->out[0], wf_real(c->graph), ids->ndim, ids->shape);
    c->out[0].shape[c->out[0].ndim++] = a->dim;
    return true;
}

static int64_t tasks_sinusoid(const wf_call *c, int phase) {
    const sinusoid_attrs *a = c->attrs;
    return phase == 0 ? wf_task_count(wf_view_count(&c->in[0]), row_grain(a->dim)) : 0;
}

static bool eval_sinusoid(const wf_call *c, int phase, int64_t task, void *scratch) {
    const sinusoid_attrs *a = c->attrs;
    const int32_t *ids = c->in[0].data;
    int64_t from, to;
    (void)phase;
    (void)scratch;
    wf_task_range(wf_view_count(&c->in[0]), row_grain(a->dim), task, &from, &to);
    for (int64_t column = 0; column < a->dim; column++) {
        wave w = wave_of(column, a->dim, a->form);
        for (int64_t i = from; i < to; i++)
            wf_put(&c->out[0], i * a->dim + column, value_at(ids[i], &w));
    }
    return true;
}

/* The wave lengths are written as a table of constants. */
static bool emit_sinusoid(wf_emitter *e, const wf_call *c) {
    const sinusoid_attrs *a = c->attrs;
    if (wf_view_count(&c->out[0]) == 0) return true;
    wf_emit_text(e, "static const double length[] = {");
    for (int64_t i = 0; i < a->dim; i++)
        wf_emit_text(e, i % 4 ? " %g," : "\n%g,", wave_of(i, a->dim, a->form).length);
    wf_emit_text(e, "\n};\nfor (int i = 0; i < %n; i++)\nfor (int j = 0; j < %n; j++) {\n",
                 wf_view_count(&c->in[0]), a->dim);
    wf_emit_text(e, "double angle_of = ((double)ids[i] + %g) / length[j];\n",
                 wave_of(0, a->dim, a->form).first);
    wf_emit_text(
        e, a->form == WF_SINUSOID_PAIRS ? "int cosine = j %% 2;\n" : "int cosine = j >= %n;\n",
        (a->dim + 1) / 2);
    wf_emit_text(e, "double value = cosine ? cos_in_double(angle_of) : sin_in_double(angle_of);\n");
    wf_emit_text(e, "out[i * %n + j] = (float)value;\n}\n", a->dim);
    return true;
}

/* Shapes: ids [...] i32 -> real [..., D].
 * Limits: D is 0 or more; of the forms of fairseq and tensor2tensor even, and 4 or more. */
const wf_op wf_op_sinusoid = {
    .name = "sinusoid",
    .family = "constant",
    .formula = "sinusoid(ids): y[p,2i] = sin(p / 10000^(2i/D)), y[p,2i+1] = cos(p / 10000^(2i/D))",
    .arity = 1,
    .attr_bytes = sizeof(sinusoid_attrs),
    .attributes = "int64_t dim, int form",
    .shape = shape_sinusoid,
    .no_grad = "it is a function of integers",
    .nondiff = 1,
    .run =
        &(const wf_kernel){ .tasks = tasks_sinusoid, .eval = eval_sinusoid, .emit = emit_sinusoid },
};

wf_tensor *wf_sinusoid(wf_tensor *ids, int64_t dim, wf_sinusoid_form form) {
    return wf_record(&wf_op_sinusoid, 1, &ids, &(sinusoid_attrs){ dim, form });
}
