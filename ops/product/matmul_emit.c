/* ops/product/matmul_emit.c - the matrix product as C (core/emit/emitter.h). */
#include "blocking.h"
#include "ops/base/op_base.h"
#include "ops/emit/loops.h"

/* PANEL: floats of scratch that the emitted function `product` uses */
enum { ADDEND = 2, PANEL = 1024 };

typedef struct addend {
    bool given;
    int64_t row, column; /* the addend's strides along the last two axes; 0 where it broadcasts */
} addend;

static addend addend_of(const wf_call *c) {
    const wf_view *d = &c->in[ADDEND], *y = &c->out[0];
    if (d->ndim < 0) return (addend){ false, 0, 0 };
    return (addend){ true, wf_broadcast_stride(d, y, y->ndim - 2),
                     wf_broadcast_stride(d, y, y->ndim - 1) };
}

/* The sum begins with the addend. If that has no rows of adjacent elements, it is copied to the
 * result first. */
static void emit_one(wf_emitter *e, const wf_product *p, const wf_walk *w, addend d,
                     wf_layout layout) {
    static const char *const functions[] = { [WF_ROW_MAJOR] = "product",
                                             [WF_PANELS] = "product_in_panels",
                                             [WF_PANELS_INT8] = "product_in_int8" };
    static const char *const ends[] = { [WF_ROW_MAJOR] = ", %n, scratch);\n",
                                        [WF_PANELS] = ", %n);\n",
                                        [WF_PANELS_INT8] = ", %n, work);\n" };
    /* the functions read only an addend whose rows are dense and whose row stride is not
     * negative */
    bool copies = d.given && ((d.column != 1 && p->n > 1) || d.row < 0);
    if (copies) {
        wf_emit_text(e, "for (int r = 0; r < %n; r++)\nfor (int s = 0; s < %n; s++)\nout[", p->m,
                     p->n);
        wf_emit_element_at(e, w, 0, "j");
        wf_emit_text(e, " + r * %n + s] = addend[", p->n);
        wf_emit_element_at(e, w, 3, "j");
        wf_emit_text(e, " + r * %n + s * %n];\n", d.row, d.column);
    }
    wf_emit_text(e, "%s(%n, %n, %n, a + ", functions[layout], p->m, p->n, p->k);
    wf_emit_element_at(e, w, 1, "j");
    wf_emit_text(e, ", %n, %n, b", p->a_row, p->a_col);
    if (layout == WF_PANELS_INT8) wf_emit_text(e, ", b_scales");
    if (layout == WF_ROW_MAJOR) {
        wf_emit_text(e, " + ");
        wf_emit_element_at(e, w, 2, "j");
        wf_emit_text(e, ", %n, %n", p->b_row, p->b_col);
    }
    wf_emit_text(e, ", ");
    if (d.given) {
        wf_emit_text(e, copies ? "out + " : "addend + ");
        wf_emit_element_at(e, w, copies ? 0 : 3, "j");
    } else {
        wf_emit_text(e, "0");
    }
    int64_t d_row = copies ? p->n : d.row;
    if (!d.given) d_row = -1;
    wf_emit_text(e, ", %n, out + ", d_row);
    wf_emit_element_at(e, w, 0, "j");
    wf_emit_text(e, ends[layout], p->n);
}

/* Writes a product whose k is divided into pieces: the product of each piece, in the work memory,
 * then the sum of the addend and all of them. */
static void emit_pieces(wf_emitter *e, const wf_product *p, addend d) {
    int64_t size = p->m * p->n;
    wf_emit_text(e, "float *piece = work;\n");
    for (int64_t i = 0; i < p->pieces; i++) {
        int64_t from = p->k * i / p->pieces, k = p->k * (i + 1) / p->pieces - from;
        wf_emit_text(e, "product(%n, %n, %n, a + %n, %n, %n, b + %n, ", p->m, p->n, k,
                     from * p->a_col, p->a_row, p->a_col, from * p->b_row);
        wf_emit_text(e, "%n, %n, 0, -1, piece + %n, %n, scratch);\n", p->b_row, p->b_col, i * size,
                     p->n);
    }
    wf_emit_text(e, "for (int i = 0; i < %n; i++)\nfor (int j = 0; j < %n; j++) {\n", p->m, p->n);
    if (d.given)
        wf_emit_text(e, "float sum = addend[i * %n + j * %n] + piece[i * %n + j];\n", d.row,
                     d.column, p->n);
    else
        wf_emit_text(e, "float sum = piece[i * %n + j];\n", p->n);
    for (int64_t i = 1; i < p->pieces; i++)
        wf_emit_text(e, "sum += piece[%n + i * %n + j];\n", i * size, p->n);
    wf_emit_text(e, "out[i * %n + j] = sum;\n}\n", p->n);
}

/* If the whole batch has one b, and the rows of a, of c and of the addend follow each other evenly,
 * they become the rows of one taller product. */
static void merge_rows(wf_product *p, wf_walk *w, addend *d) {
    if (w->columns <= 1 || w->step[2] != 0) return;
    int64_t a_row = p->m == 1 ? w->step[1] : p->a_row, d_row = p->m == 1 ? w->step[3] : d->row;
    if (w->step[1] != a_row * p->m || w->step[0] != p->n * p->m) return;
    if (d->given && w->step[3] != d_row * p->m) return;
    p->a_row = a_row;
    d->row = d_row;
    p->m *= w->columns;
    w->columns = 1;
}

bool wf_emit_matmul(wf_emitter *e, const wf_call *c) {
    wf_product p = *(const wf_product *)c->plan;
    const wf_view *y = &c->out[0];
    addend d = addend_of(c);
    wf_layout layout = c->in[1].layout;
    wf_walk w;
    if (wf_view_count(y) == 0) return true;
    if (layout == WF_ROW_MAJOR) wf_emit_scratch(e, PANEL);
    if (p.pieces > 1) {
        emit_pieces(e, &p, d);
        return true;
    }
    wf_view lead[4] = {
        wf_leading_axes(y), wf_leading_axes(&c->in[0]), wf_leading_axes(&c->in[1]), { 0 }
    };
    if (d.given) lead[3] = wf_leading_axes(&c->in[ADDEND]);
    p.m = y->shape[y->ndim - 2];
    wf_walk_start(&w, 4, (const wf_view *[]){ &lead[0], &lead[1], &lead[2], &lead[3] });
    merge_rows(&p, &w, &d);
    wf_emit_rows(e, &w, 'i');
    wf_emit_text(e, "for (int j = 0; j < %n; j++) {\n", w.columns);
    emit_one(e, &p, &w, d, layout);
    wf_emit_text(e, "}\n");
    return true;
}
