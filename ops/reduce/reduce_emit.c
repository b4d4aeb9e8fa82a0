/* ops/reduce/reduce_emit.c - sums, maxima and minima over axes as C (core/emit/emitter.h). */
#include "ops/base/op_base.h"
#include "reduction.h"

/* ---- across: each result is folded over its own elements ------------------------------------- */

/* Write C that makes `from` a pointer to the elements: to x itself, or to a copy in scratch. */
static void emit_elements(wf_emitter *e, const reduction *r) {
    const wf_walk *w = &r->reduced;
    if (w->rows == 1 && w->step[0] == 1) {
        wf_emit_text(e, "const float *from = x + ");
        wf_emit_element_at(e, &r->kept, 1, "j");
        wf_emit_text(e, ";\n");
        return;
    }
    wf_emit_scratch(e, r->length);
    wf_emit_text(e, "const float *from = scratch;\nint n = 0;\n");
    wf_emit_rows(e, w, 'k');
    wf_emit_text(e, "for (int k = 0; k < %n; k++) scratch[n++] = x[", w->columns);
    wf_emit_element_at(e, &r->kept, 1, "j");
    wf_emit_text(e, " + ");
    wf_emit_row_at(e, w, 'k', 0);
    wf_emit_text(e, " + k * %n];\n", w->step[0]);
}

static void emit_across(wf_emitter *e, const reduction *r, fold_kind kind) {
    int64_t n = r->length;
    const char *sign = kind == FOLD_MIN ? "-1.0f" : "1.0f", *minus = kind == FOLD_MIN ? "-" : "";
    int64_t pieces = r->pieces > 1 ? wf_emit_ranges(e, "piece", n, BLOCK) : 1;
    wf_emit_rows(e, &r->kept, 'i');
    wf_emit_text(e, "for (int j = 0; j < %n; j++) {\n", r->kept.columns);
    emit_elements(e, r);
    if (kind != FOLD_SUM) {
        wf_emit_text(e, "out[");
        wf_emit_element_at(e, &r->kept, 0, "j");
        wf_emit_text(e, "] = %sextreme(%n, from, %s);\n}\n", minus, n, sign);
        return;
    }
    wf_emit_text(e, "double total = 0;\n");
    if (pieces > 1)
        wf_emit_text(e,
                     "for (int p = 0; p < %n; p++)\n"
                     "total += sum(piece[p + 1] - piece[p], from + piece[p]);\nout[",
                     pieces);
    else
        wf_emit_text(e, "total += sum(%n, from);\nout[", n);
    wf_emit_element_at(e, &r->kept, 0, "j");
    wf_emit_text(e, "] = (float)total;\n}\n");
}

/* ---- down: rows into a row of results -------------------------------------------------------- */

/* Writes a C loop over the results of a row. Its statement is `before`, the index of the result in
 * brackets, and `after`. */
static void emit_row(wf_emitter *e, const reduction *r, const char *before, const char *after) {
    wf_emit_text(e, "for (int j = 0; j < %n; j++) %s[", r->kept.columns, before);
    wf_emit_element_at(e, &r->kept, 0, "j");
    wf_emit_text(e, "]%s\n", after);
}

/* Write C for the element of x that is folded next. */
static void emit_operand(wf_emitter *e, const reduction *r) {
    wf_emit_text(e, "x[");
    wf_emit_element_at(e, &r->kept, 1, "j");
    wf_emit_text(e, " + ");
    wf_emit_row_at(e, &r->reduced, 'k', 0);
    wf_emit_text(e, " + k * %n]", r->reduced.step[0]);
}

/* Writes C for a reduction over rows, a row at a time. A sum adds up to ROWS rows in scratch, and
 * then adds scratch to the results, which keeps f32 sums accurate. Maxima and minima need no
 * scratch. */
static void emit_down(wf_emitter *e, const reduction *r, fold_kind kind) {
    static const char *const starts[] = { [FOLD_SUM] = " = 0;",
                                          [FOLD_MAX] = " = -infinity.number;",
                                          [FOLD_MIN] = " = infinity.number;" };
    const char *start = starts[kind];
    if (kind == FOLD_SUM)
        wf_emit_scratch(e, r->kept.columns);
    else
        wf_emit_text(e, "float_bits infinity;\ninfinity.word = UINT32_C(0x7f800000);\n");
    wf_emit_rows(e, &r->kept, 'i');
    wf_emit_text(e, "{\n");
    if (kind == FOLD_SUM) wf_emit_text(e, "int n = 0;\n");
    emit_row(e, r, "out", start);
    if (kind == FOLD_SUM)
        wf_emit_text(e, "for (int j = 0; j < %n; j++) scratch[j] = 0;\n", r->kept.columns);
    wf_emit_rows(e, &r->reduced, 'k');
    wf_emit_text(e, "for (int k = 0; k < %n; k++) {\n", r->reduced.columns);
    if (kind == FOLD_SUM) {
        wf_emit_text(e, "for (int j = 0; j < %n; j++) scratch[j] += ", r->kept.columns);
        emit_operand(e, r);
        wf_emit_text(e, ";\nif (++n < %d) continue;\n", ROWS);
        emit_row(e, r, "out", " += scratch[j];");
        wf_emit_text(e, "for (int j = 0; j < %n; j++) scratch[j] = 0;\nn = 0;\n}\n",
                     r->kept.columns);
        emit_row(e, r, "out", " += scratch[j];");
    } else {
        emit_row(e, r, "{\nfloat *y = &out", ";");
        wf_emit_text(e, kind == FOLD_MAX ? "*y = max_of(*y, " : "*y = -max_of(-*y, -");
        emit_operand(e, r);
        wf_emit_text(e, ");\n}\n}\n");
    }
    wf_emit_text(e, "}\n");
}

bool wf_emit_reduction(wf_emitter *e, const wf_call *c, fold_kind kind) {
    const reduction *r = c->plan;
    if (r->results == 0) return true;
    if (r->across)
        emit_across(e, r, kind);
    else
        emit_down(e, r, kind);
    return true;
}
