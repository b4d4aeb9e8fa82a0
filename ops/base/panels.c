/* ops/base/panels.c - weights packed in panels (wf_layout): which parameters may be packed, and the
 * conversions. The products that read them are in matmul.c, kernels/panels.inc and int8.inc. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/int8_row.h"
#include "core/graph_internal.h"
#include "core/op_internal.h"
#include "op_base.h"
#include "panels.h"

/* ---- copies: row-major to panels, panels to row-major; a task is a panel --------------------- */

int64_t wf_panel_rows(wf_dtype type) {
    int64_t rows = WF_KERNEL(type, panel_rows);
    assert(WF_PANEL_MOST % rows == 0);
    return rows;
}

/* The number of rows in the panel that begins with row `from`. */
static int64_t width_from(const wf_view *x, int64_t from) {
    int64_t left = x->shape[0] - from, whole = wf_panel_rows(x->dtype);
    return left < whole ? left : whole;
}

/* Packs a panel in int8: first the scales of the rows, then for every 4 columns one word of each
 * row. A word has the 4 numbers q + 128 as bytes. */
static void pack_int8(int64_t width, int64_t k, const float *rows, void *panel) {
    enum { BLOCK = 64 }; /* columns handled at a time: whole cache lines of each row */
    unsigned char *words = (unsigned char *)panel + width * 4;
    float *scale = panel;
    for (int64_t r = 0; r < width; r++) scale[r] = wf_int8_scale(k, rows + r * k);
    for (int64_t from = 0; from < k; from += BLOCK)
        for (int64_t r = 0; r < width; r++) {
            int8_t q[BLOCK] = { 0 };
            int64_t n = k - from < BLOCK ? k - from : BLOCK;
            wf_int8_round(n, rows + r * k + from, scale[r], q);
            for (int64_t p = 0; p < (n + 3) / 4 * 4; p++)
                words[((from + p) / 4 * width + r) * 4 + p % 4] = (unsigned char)(q[p] + 128);
        }
}

static void unpack_int8(int64_t width, int64_t k, const void *panel, int64_t r, float *row) {
    const unsigned char *from = (const unsigned char *)panel + (width + r) * 4;
    float scale = ((const float *)panel)[r];
    for (int64_t p = 0; p < k; p++) row[p] = (float)(from[p / 4 * width * 4 + p % 4] - 128) * scale;
}

int64_t wf_repack_tasks(const wf_call *c, int phase) {
    int64_t whole = wf_panel_rows(c->in[0].dtype);
    return phase == 0 ? (c->in[0].shape[0] + whole - 1) / whole : 0;
}

bool wf_repack_eval(const wf_call *c, int phase, int64_t task, void *scratch) {
    const wf_view *x = &c->in[0], *y = &c->out[0];
    int64_t k = x->shape[1], from = task * wf_panel_rows(x->dtype), width = width_from(x, from);
    (void)phase;
    (void)scratch;
    void *source = (char *)x->data + wf_view_bytes(x, from * k);
    void *target = (char *)y->data + wf_view_bytes(y, from * k);
    if (y->layout == WF_PANELS_INT8)
        pack_int8(width, k, source, target);
    else if (x->layout == WF_PANELS_INT8)
        for (int64_t r = 0; r < width; r++)
            unpack_int8(width, k, source, r, (float *)target + r * k);
    else if (y->layout)
        WF_KERNEL(x->dtype, pack_panel(width, k, source, target, y->layout == WF_PANELS_BF16));
    else
        WF_KERNEL(x->dtype, unpack_panel(width, k, source, x->layout == WF_PANELS_BF16, target));
    return true;
}

void wf_panel_row(const wf_view *x, int64_t row, void *out) {
    int64_t k = x->shape[1], whole = wf_panel_rows(x->dtype);
    int64_t panel = row / whole * whole, width = width_from(x, panel);
    const void *from = (char *)x->data + wf_view_bytes(x, panel * k);
    if (x->layout == WF_PANELS_INT8)
        unpack_int8(width, k, from, row - panel, out);
    else
        WF_KERNEL(x->dtype,
                  unpack_row(width, k, from, x->layout == WF_PANELS_BF16, row - panel, out));
}

/* ---- some of the rows ------------------------------------------------------------------------ */

/* Copies a row's scale and its words, from one panel in int8 to another. */
static void take_int8(const wf_view *x, int64_t row, void *panel, int64_t width, int64_t r) {
    int64_t k = x->shape[1], whole = wf_panel_rows(x->dtype);
    int64_t first = row / whole * whole, from_width = width_from(x, first), from_r = row - first;
    const uint32_t *from = (const void *)((char *)x->data + wf_view_bytes(x, first * k));
    uint32_t *to = panel;
    for (int64_t i = 0; i <= (k + 3) / 4; i++) to[i * width + r] = from[i * from_width + from_r];
}

/* Fills the panel of y that begins with row `first`. buffer has room for its rows. */
static void take_panel(const wf_view *x, const int32_t *rows, const wf_view *y, int64_t first,
                       char *buffer) {
    int64_t k = x->shape[1], width = width_from(y, first);
    size_t row = (size_t)k * wf_dtype_size(x->dtype);
    void *panel = (char *)y->data + wf_view_bytes(y, first * k);
    for (int64_t r = 0; r < width; r++) {
        if (x->layout == WF_PANELS_INT8)
            take_int8(x, rows[first + r], panel, width, r);
        else
            wf_panel_row(x, rows[first + r], buffer + (size_t)r * row);
    }
    if (x->layout == WF_PANELS_INT8) return;
    WF_KERNEL(x->dtype, pack_panel(width, k, (void *)buffer, panel, y->layout == WF_PANELS_BF16));
}

bool wf_take_rows(const wf_view *x, const int32_t *rows, const wf_view *y) {
    int64_t width = x->ndim > 1 ? x->shape[1] : 1, whole = wf_panel_rows(x->dtype);
    size_t row = (size_t)width * wf_dtype_size(x->dtype);
    char *buffer = x->layout ? malloc(row * (size_t)whole + 1) : NULL;
    assert(x->layout == y->layout);
    for (int64_t i = 0; !x->layout && i < y->shape[0]; i++)
        memcpy((char *)y->data + (size_t)i * row, (char *)x->data + (size_t)rows[i] * row, row);
    for (int64_t i = 0; buffer && i < y->shape[0]; i += whole) take_panel(x, rows, y, i, buffer);
    free(buffer);
    return buffer || !x->layout;
}

/* ---- which parameters ------------------------------------------------------------------------ */

/* A set of bits: the operands that a node's kernel can read in panels, for the recorded shapes. */
static uint32_t panels_of(const wf_tensor *t) {
    wf_view in[WF_MAX_OPERANDS], out;
    wf_call c = { .op = t->op, .attrs = t->attrs, .graph = t->graph, .in = in, .out = &out };
    if (!t->op->run || !t->op->run->panels) return 0;
    c.n_in = t->n_in;
    c.n_out = 1;
    wf_set_shape(&out, t->dtype, t->ndim, t->shape);
    for (int i = 0; i < t->n_in; i++) {
        in[i] = (wf_view){ .ndim = -1 };
        if (t->in[i]) wf_set_shape(&in[i], t->in[i]->dtype, t->in[i]->ndim, t->in[i]->shape);
    }
    return t->op->run->panels(&c);
}

/* bits: NEEDS_ROWS: some reader cannot read panels; MULTIPLIED: a product reads the tensor, or a
 * view of it */
enum { NEEDS_ROWS = 1, MULTIPLIED = 2 };

/* Mark how each tensor is read. It can be packed if all its readers can read panels. Packing pays
 * only if one of them is a product, and not for a table that only embedding reads. Readers come
 * after their operands, so nodes are visited from the last to the first. */
static void find_readers(const wf_graph *g, unsigned char *read) {
    for (int id = wf_node_count(g) - 1; id >= 0; id--) {
        const wf_tensor *reader = wf_node(g, id);
        if (reader->kind != WF_COMPUTED || reader->result) continue;
        uint32_t panels = panels_of(reader);
        bool seen = !reader->op->view || read[id] == MULTIPLIED;
        for (int i = 0; i < reader->n_in; i++) {
            if (!reader->in[i] || reader->op->shape_only >> i & 1) continue;
            unsigned char *how = &read[reader->in[i]->id];
            if (!(panels >> i & 1) || !seen)
                *how |= NEEDS_ROWS;
            else if (reader->op != &wf_op_embedding)
                *how |= MULTIPLIED;
        }
    }
}

bool wf_pack_weights(wf_graph *g, wf_layout layout, char *message) {
    const char *why = !wf_ok(g) ? wf_error(g) : NULL;
    if (!why && layout >= WF_PANELS_BF16 && wf_real(g) != WF_F32)
        why = "weights are kept as bf16 or int8 in a graph of f32 only";
    unsigned char *read = why ? NULL : calloc((size_t)wf_node_count(g) + 1, 1);
    if (read)
        find_readers(g, read);
    else if (!why)
        why = "no memory to pack weights";
    for (int id = 0; !why && id < wf_node_count(g); id++) {
        wf_tensor *t = wf_node(g, id);
        if (t->kind != WF_PARAM || t->ndim != 2 || (layout && read[id] != MULTIPLIED)) continue;
        /* bf16 and int8 leave the matrices of adapters in f32: these are small, and they are
         * trained. */
        if (layout >= WF_PANELS_BF16 && wf_from_hook(t)) continue;
        bool fits = t->shape[1] > 0 && t->shape[1] <= WF_INT8_LONGEST;
        if (!wf_set_layout(t, layout == WF_PANELS_INT8 && !fits ? WF_PANELS : layout))
            why = layout == WF_PANELS_INT8
                      ? "weights are packed before the graph's first plan, or there is no memory "
                        "for it, or one is NaN or infinite: it cannot be kept as int8"
                      : "weights are packed before the graph's first plan, or there is no memory "
                        "for it";
    }
    if (why && message) snprintf(message, WF_MESSAGE, "%.255s", why);
    free(read);
    return !why;
}
