/* ops/shape/index.c - indexing by ids (i32): embedding reads rows of a table, and its backward op
 * adds to them; arange and position_ids make consecutive numbers. An id out of range fails the run,
 * with a message that states the id and its position. Elements along any axis are picked in
 * gather.c. */
#include <stdio.h>
#include <string.h>

#include "core/graph_internal.h"
#include "index.h"
#include "ops/base/op_base.h"
#include "ops/base/panels.h"
#include "ops/base/shapes.h"
#include "ops/base/walk.h"
#include "ops/emit/loops.h"
#include "ops/rules.h"

/* ---- ids ------------------------------------------------------------------------------------- */

/* Writes the index of element i of ids as "[1,2]". */
static const char *place(const wf_view *ids, int64_t i, char *text, size_t size) {
    int64_t index[WF_MAX_DIMS];
    for (int a = ids->ndim - 1; a >= 0; a--) {
        index[a] = i % ids->shape[a];
        i /= ids->shape[a];
    }
    return wf_shape_text(NULL, ids->ndim, index, text, size);
}

bool wf_id_outside(const wf_call *c, int64_t id, const wf_view *ids, int64_t i, int64_t below) {
    char text[96];
    return wf_fail(c, "id %lld at %s is outside 0..%lld", (long long)id,
                   place(ids, i, text, sizeof text), (long long)below - 1);
}

/* Reads element i of ids. False, after wf_fail with its value and place, unless it is in [0,
 * below). */
static bool id_at(const wf_call *c, const wf_view *ids, int64_t i, int64_t below, int64_t *id) {
    *id = ((const int32_t *)ids->data)[i];
    return (*id >= 0 && *id < below) || wf_id_outside(c, *id, ids, i, below);
}

/* ---- embedding: y[i, :] = table[ids[i], :] --------------------------------------------------- */

static bool shape_embedding(wf_call *c) {
    const wf_view *table = &c->in[0], *ids = &c->in[1];
    if (!wf_want_real(c, 0) || !wf_want(c, 1, WF_I32)) return false;
    if (table->ndim != 2) return wf_fail(c, "the table %s is not [rows, width]", wf_show(c, table));
    if (ids->ndim == WF_MAX_DIMS)
        return wf_fail(c, "ids of %d axes, at most %d", ids->ndim, WF_MAX_DIMS - 1);
    wf_set_shape(&c->out[0], table->dtype, ids->ndim, ids->shape);
    c->out[0].shape[c->out[0].ndim++] = table->shape[1];
    return true;
}

static int64_t tasks_embedding(const wf_call *c, int phase) {
    return phase == 0 ? wf_task_count(wf_view_count(&c->in[1]), row_grain(c->in[0].shape[1])) : 0;
}

static bool eval_embedding(const wf_call *c, int phase, int64_t task, void *scratch) {
    const wf_view *table = &c->in[0], *ids = &c->in[1];
    int64_t width = table->shape[1], from, to, id;
    size_t bytes = (size_t)width * wf_dtype_size(table->dtype);
    (void)phase;
    (void)scratch;
    wf_task_range(wf_view_count(ids), row_grain(width), task, &from, &to);
    for (int64_t i = from; i < to; i++) {
        if (!id_at(c, ids, i, table->shape[0], &id)) return false;
        if (table->layout)
            wf_panel_row(table, id, wf_at(&c->out[0], i * width));
        else
            memcpy(wf_at(&c->out[0], i * width), wf_at(table, id * width), bytes);
    }
    return true;
}

static bool emit_embedding(wf_emitter *e, const wf_call *c) {
    int64_t width = c->in[0].shape[1];
    wf_emit_may_fail(e);
    wf_emit_table(e, 0, 1);
    wf_emit_text(e, "for (int i = 0; i < %n; i++) {\n", wf_view_count(&c->in[1]));
    wf_emit_text(e, "if (ids[i] < 0 || ids[i] >= %n) return 1;\n", c->in[0].shape[0]);
    if (c->in[0].layout == WF_PANELS)
        wf_emit_text(e, "row_in_panels(%n, %n, table, ids[i], out + i * %n);\n}\n",
                     c->in[0].shape[0], width, width);
    else if (c->in[0].layout == WF_PANELS_INT8)
        wf_emit_text(e,
                     "for (int j = 0; j < %n; j++)\n"
                     "out[i * %n + j] = (float)table[ids[i] * %n + j] * table_scales[ids[i]];\n}\n",
                     width, width, width);
    else
        wf_emit_text(e,
                     "for (int j = 0; j < %n; j++) out[i * %n + j] = table[ids[i] * %n + j];\n}\n",
                     width, width, width);
    return true;
}

static uint32_t panels_embedding(const wf_call *c) {
    (void)c;
    return 1;
}

/* The gradient of a row that was read n times is the sum of n rows of dy. */
static void grad_embedding(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    (void)need;
    wf_tensor *const in[] = { dy[0], y->in[1], y->in[0], NULL };
    dx[0] = wf_record(&wf_op_embedding_backward, 4, in, NULL);
}

/* Shapes: table [V, D] real, ids [...] i32 -> [..., D].
 * Limits: An id outside of 0..V-1 fails the run, with its place in the message. */
const wf_op wf_op_embedding = {
    .name = "embedding",
    .family = "index",
    .formula = "embedding(table, ids): table[ids]: a row of the table for each id",
    .arity = 2,
    .shape = shape_embedding,
    .grad = grad_embedding,
    .nondiff = 1 << 1,
    .run = &(const wf_kernel){ .tasks = tasks_embedding,
                               .eval = eval_embedding,
                               .emit = emit_embedding,
                               .panels = panels_embedding },
};

wf_tensor *wf_embedding(wf_tensor *table, wf_tensor *ids) {
    return wf_record(&wf_op_embedding, 2, (wf_tensor *[]){ table, ids }, NULL);
}

/* ---- embedding_backward(dy, ids, table, addend) ---------------------------------------------- */

/* embedding_backward adds dy[i, :] to row ids[i] of the addend, or of zeros in the table's
 * shape. */

enum { STRIPE = 64, EMBEDDING_ADDEND = 3 }; /* STRIPE: columns of a task */

static bool shape_embedding_backward(wf_call *c) {
    const wf_view *dy = &c->in[0], *ids = &c->in[1], *table = &c->in[2];
    wf_view expect = *ids;
    if (!wf_want_real(c, 0) || !wf_want(c, 1, WF_I32)) return false;
    if (table->ndim != 2) return wf_fail(c, "the table %s is not [rows, width]", wf_show(c, table));
    if (ids->ndim == WF_MAX_DIMS)
        return wf_fail(c, "ids of %d axes, at most %d", ids->ndim, WF_MAX_DIMS - 1);
    expect.shape[expect.ndim++] = table->shape[1];
    if (!wf_same_shape(dy, &expect))
        return wf_fail(c, "%s is not a row for each id of %s", wf_show(c, dy), wf_show(c, ids));
    if (!wf_addend_like(c, EMBEDDING_ADDEND, table)) return false;
    wf_set_shape(&c->out[0], dy->dtype, table->ndim, table->shape);
    return true;
}

/* If the result overwrites the addend there is nothing to do, but the number of tasks must not
 * depend on that. */
void wf_addend_or_zeros(const wf_call *c, int operand, int64_t task) {
    const wf_view *y = &c->out[0], *addend = &c->in[operand];
    size_t size = wf_dtype_size(y->dtype);
    int64_t from, to;
    wf_task_range(wf_view_count(y), WF_GRAIN, task, &from, &to);
    if (from >= to || (addend->ndim >= 0 && addend->data == y->data)) return;
    if (addend->ndim >= 0)
        memcpy(wf_at(y, from), wf_at(addend, from), (size_t)(to - from) * size);
    else
        memset(wf_at(y, from), 0, (size_t)(to - from) * size);
}

/* Phase 0 writes the initial values. In phase 1 each task has a stripe of columns, and adds rows of
 * dy in the order of the ids. */
static int64_t tasks_embedding_backward(const wf_call *c, int phase) {
    if (phase == 0) return wf_elementwise_tasks(c, 0);
    return phase == 1 ? wf_task_count(c->out[0].shape[1], STRIPE) : 0;
}

static bool eval_embedding_backward(const wf_call *c, int phase, int64_t task, void *scratch) {
    const wf_view *dy = &c->in[0], *ids = &c->in[1], *y = &c->out[0];
    int64_t width = y->shape[1], n = wf_view_count(ids), from, to, id;
    (void)scratch;
    if (phase == 0) {
        wf_addend_or_zeros(c, EMBEDDING_ADDEND, task);
        return true;
    }
    wf_task_range(width, STRIPE, task, &from, &to);
    for (int64_t i = 0; i < n; i++) {
        if (!id_at(c, ids, i, y->shape[0], &id)) return false;
        WF_KERNEL(y->dtype,
                  accumulate(to - from, wf_at(dy, i * width + from), wf_at(y, id * width + from)));
    }
    return true;
}

static bool emit_embedding_backward(wf_emitter *e, const wf_call *c) {
    int64_t width = c->out[0].shape[1];
    bool adds = c->in[EMBEDDING_ADDEND].ndim >= 0;
    wf_emit_may_fail(e);
    wf_emit_text(e, "for (int i = 0; i < %n; i++) out[i] = %s;\n", wf_view_count(&c->out[0]),
                 adds ? "addend[i]" : "0");
    wf_emit_text(e, "for (int i = 0; i < %n; i++) {\n", wf_view_count(&c->in[1]));
    wf_emit_text(e, "if (ids[i] < 0 || ids[i] >= %n) return 1;\n", c->out[0].shape[0]);
    wf_emit_text(e, "for (int j = 0; j < %n; j++) out[ids[i] * %n + j] += dy[i * %n + j];\n}\n",
                 width, width, width);
    return true;
}

/* The result is linear: dy[i, :] gets row ids[i] of the cotangent, and the addend all of it. */
static void grad_embedding_backward(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx,
                                    uint32_t need) {
    if (need & 1) dx[0] = wf_embedding(dy[0], y->in[1]);
    dx[EMBEDDING_ADDEND] = dy[0];
}

bool wf_fuse_embedding_add(wf_rewrite *r, const wf_tensor *sum, const wf_tensor *rows) {
    return wf_fuse_addend(r, sum, rows, EMBEDDING_ADDEND);
}

/* Shapes: dy [..., D] real, ids [...] i32, table [V, D] for its shape, addend [V, D] or absent ->
 * [V, D].
 * Limits: Rows of one id are added in the order of the ids, whatever the number of threads. */
const wf_op wf_op_embedding_backward = {
    .name = "embedding_backward",
    .family = "index",
    .formula =
        "embedding_backward(dy, ids, table, addend): dtable[r] = the sum of dy[i] over ids[i] = "
        "r, + addend",
    .arity = 4,
    .shape = shape_embedding_backward,
    .grad = grad_embedding_backward,
    .nondiff = 1 << 1,
    .optional = 1 << EMBEDDING_ADDEND,
    .shape_only = 4,
    .run = &(const wf_kernel){ .tasks = tasks_embedding_backward,
                               .eval = eval_embedding_backward,
                               .emit = emit_embedding_backward,
                               .exclusive = true,
                               .in_place = 1 << EMBEDDING_ADDEND },
};

/* ---- arange: 0, 1, ...; position_ids: P, P + 1, ...; one for each step of an axis ------------ */

static bool shape_count(wf_call *c) {
    const int *axis = c->attrs;
    if (!wf_want_axis(c, *axis, c->in[0].ndim)) return false;
    wf_set_shape(&c->out[0], WF_I32, 1, &c->in[0].shape[*axis]);
    return true;
}

static bool count_from(const wf_call *c, int64_t first) {
    int32_t *y = c->out[0].data;
    for (int64_t i = 0; i < c->out[0].shape[0]; i++) y[i] = (int32_t)(first + i);
    return true;
}

static bool emit_count(wf_emitter *e, const wf_call *c, int64_t first) {
    wf_emit_text(e, "for (int i = 0; i < %n; i++) out[i] = %n + i;\n", c->out[0].shape[0], first);
    return true;
}

/* Shapes: like of any shape -> i32 [n], n its size along the axis.
 * Limits: n is the bound size, so that it follows the length of a batch. */
#define COUNT(NAME, text, first)                                                                   \
    static bool eval_##NAME(const wf_call *c, int phase, int64_t task, void *scratch) {            \
        (void)phase, (void)task, (void)scratch;                                                    \
        return count_from(c, first);                                                               \
    }                                                                                              \
    static bool emit_##NAME(wf_emitter *e, const wf_call *c) {                                     \
        return emit_count(e, c, first);                                                            \
    }                                                                                              \
    const wf_op wf_op_##NAME = {                                                                   \
        .name = #NAME,                                                                             \
        .family = "constant",                                                                      \
        .formula = #NAME "(like): " text,                                                          \
        .arity = 1,                                                                                \
        .attr_bytes = sizeof(int),                                                                 \
        .attributes = "int axis",                                                                  \
        .shape = shape_count,                                                                      \
        .no_grad = "it reads only a shape",                                                        \
        .shape_only = 1,                                                                           \
        .run = &(const wf_kernel){ .eval = eval_##NAME, .strided = 1, .emit = emit_##NAME },       \
    };                                                                                             \
    wf_tensor *wf_##NAME(wf_tensor *like, int axis) {                                              \
        axis = wf_pick_axis(axis, wf_rank(like));                                                  \
        return wf_record(&wf_op_##NAME, 1, &like, &axis);                                          \
    }
COUNT(arange, "0, 1, ... n - 1, for the n steps of the axis", 0)
COUNT(position_ids, "P, P + 1, ... P + n - 1, for the n steps of the axis", c->position)
#undef COUNT
