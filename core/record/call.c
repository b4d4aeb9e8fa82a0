/* core/record/call.c - fills the call that an op's shape rule reads, and stores the message of a
 * rule that fails. Also functions of views. */
#include "core/op_internal.h"
#include "record.h"

#include <stdio.h>
#include <string.h>

void wf_fill_call(recorded_call *r, wf_graph *g, const wf_op *op, int n, wf_tensor *const *in,
                  const void *attrs, wf_report *report) {
    r->call = (wf_call){ .op = op, .attrs = attrs, .graph = g, .in = r->in, .out = r->out };
    r->call.n_in = n;
    r->call.n_out = result_count(op);
    r->call.report = report;
    for (int i = 0; i < n; i++) {
        r->in[i] = (wf_view){ .ndim = -1 };
        if (!in[i]) continue;
        wf_set_shape(&r->in[i], in[i]->dtype, in[i]->ndim, in[i]->shape);
        wf_dense_strides(in[i]->ndim, in[i]->shape, r->in[i].stride);
    }
    for (int k = 0; k < r->call.n_out; k++) r->out[k] = (wf_view){ 0 };
}

/* ---- reports --------------------------------------------------------------------------------- */

void wf_report_reset(wf_report *r, bool bound) {
    atomic_flag_clear(&r->taken);
    atomic_init(&r->next, 0);
    r->message[0] = '\0';
    r->bound = bound;
}

bool wf_fail(const wf_call *c, const char *format, ...) {
    if (atomic_flag_test_and_set(&c->report->taken)) return false;
    va_list args;
    va_start(args, format);
    vsnprintf(c->report->message, sizeof c->report->message, format, args);
    va_end(args);
    return false;
}

const char *wf_show(const wf_call *c, const wf_view *v) {
    if (v->ndim < 0) return "none";
    char *buffer = c->report->shown[atomic_fetch_add(&c->report->next, 1) % SHOWN];
    return wf_shape_text(c->report->bound ? NULL : c->graph, v->ndim, v->shape, buffer, SHOWN_SIZE);
}

/* ---- views ----------------------------------------------------------------------------------- */

int64_t wf_view_count(const wf_view *v) {
    int64_t n = 1;
    for (int i = 0; i < v->ndim; i++) n *= v->shape[i]; /* checked when the view was made */
    return n;
}

bool wf_view_dense(const wf_view *v) {
    int64_t step = 1;
    for (int i = v->ndim - 1; i >= 0; i--) {
        if (v->shape[i] != 1 && v->stride[i] != step) return wf_view_count(v) == 0;
        step *= v->shape[i];
    }
    return true;
}

void wf_view_rows(const wf_view *v, int64_t *rows, int64_t *columns) {
    *columns = v->ndim > 0 ? v->shape[v->ndim - 1] : 1;
    *rows = 1;
    for (int i = 0; i < v->ndim - 1; i++) *rows *= v->shape[i];
}

bool wf_same_shape(const wf_view *a, const wf_view *b) {
    return a->ndim == b->ndim &&
           (a->ndim <= 0 || memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof a->shape[0]) == 0);
}

void wf_dense_strides(int ndim, const int64_t *shape, int64_t *stride) {
    int64_t step = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        stride[i] = step;
        step *= shape[i] ? shape[i] : 1;
    }
}

size_t wf_view_unit(const wf_view *v) {
    if (v->layout == WF_PANELS_INT8) return 1;
    return v->layout == WF_PANELS_BF16 ? 2 : wf_dtype_size(v->dtype);
}

/* In int8 each row is padded to a multiple of 4 bytes, and has a float as its scale. */
size_t wf_view_bytes(const wf_view *v, int64_t elements) {
    if (v->layout != WF_PANELS_INT8) return (size_t)elements * wf_view_unit(v);
    size_t k = (size_t)v->shape[1];
    return k ? (size_t)elements / k * ((k + 3) / 4 * 4 + sizeof(float)) : 0;
}

void wf_set_shape(wf_view *v, wf_dtype dtype, int ndim, const int64_t *shape) {
    *v = (wf_view){ .dtype = dtype, .ndim = ndim };
    if (ndim > 0) memcpy(v->shape, shape, (size_t)ndim * sizeof *shape);
}

bool wf_broadcast_shapes(wf_call *c, const wf_view *a, const wf_view *b, wf_view *out) {
    wf_view result = { .dtype = a->dtype, .ndim = a->ndim > b->ndim ? a->ndim : b->ndim };
    for (int i = 1; i <= result.ndim; i++) {
        int64_t x = i <= a->ndim ? a->shape[a->ndim - i] : 1;
        int64_t y = i <= b->ndim ? b->shape[b->ndim - i] : 1;
        if (x != y && x != 1 && y != 1)
            return wf_fail(c, "%s and %s do not broadcast: axis %d from the right is %lld and %lld",
                           wf_show(c, a), wf_show(c, b), i, (long long)x, (long long)y);
        result.shape[result.ndim - i] = x == 1 ? y : x;
    }
    *out = result;
    return true;
}

int wf_axis(int axis, int ndim) {
    if (ndim <= 0) return -1;
    int i = axis < 0 ? axis + ndim : axis;
    return i >= 0 && i < ndim ? i : -1;
}
