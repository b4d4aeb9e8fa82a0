/* ops/product/int8.c - the product with a weight in int8 panels: c = a w^T + d.
 *
 * Each row of a is rounded to int8 with a scale of its own, so that no result depends on the rows
 * beside it. So before the products there is one pass over a, whose result all tasks share. */
#include "int8.h"
#include "core/op_internal.h"
#include "ops/base/walk.h"

#include "ops/base/op_base.h"

/* About how many elements a task rounds. The few rows of a decoder are then mostly one task. */
#define LEAST_ROUNDED (1 << 14)

void wf_int8_prepare(wf_int8_plan *p, wf_call *c) {
    p->group = LEAST_ROUNDED / (p->k + 1) + 1;
    p->with_dot = wf_has_dot();
    c->work_bytes = (size_t)(p->count * p->m) * wf_int8_row_bytes(p->k);
    c->scratch_bytes = p->a_col == 1 ? 0 : (size_t)p->k * sizeof(float);
}

int64_t wf_int8_round_tasks(const wf_int8_plan *p) {
    return wf_task_count(p->count * p->m, p->group);
}

/* Row number `row` among all rows of a; copied if its elements are not contiguous. */
static const float *row_of_a(wf_int8_plan *p, const wf_call *c, int64_t row, float *scratch) {
    wf_walk *w = &p->batch;
    int64_t which = row / p->m;
    wf_walk_seek(w, which / w->columns);
    const float *a =
        wf_at(&c->in[0], w->at[1] + which % w->columns * w->step[1] + row % p->m * p->a_row);
    if (p->a_col == 1) return a;
    for (int64_t i = 0; i < p->k; i++) scratch[i] = a[i * p->a_col];
    return scratch;
}

void wf_int8_round_rows(const wf_int8_plan *plan, const wf_call *c, int64_t task, void *scratch) {
    wf_int8_plan p = *plan; /* a copy, because its walk is advanced */
    int64_t from, to;
    wf_task_range(p.count * p.m, p.group, task, &from, &to);
    for (int64_t row = from; row < to; row++)
        wf_f32()->int8_row(p.k, row_of_a(&p, c, row, scratch), p.with_dot,
                           (char *)c->work + (size_t)row * wf_int8_row_bytes(p.k));
}

void wf_int8_multiply(const wf_int8_plan *p, const wf_call *c, int64_t j, int64_t n, const void *d,
                      int64_t d_row) {
    const wf_view *w = &c->in[1];
    wf_f32()->int8_panels(
        &(wf_int8_product){ .m = p->count * p->m,
                            .n = n,
                            .k = p->k,
                            .a = c->work,
                            .panels = (const char *)w->data + wf_view_bytes(w, j * p->k),
                            .d = d,
                            .c = wf_at(&c->out[0], j),
                            .c_row = p->n,
                            .d_row = d_row,
                            .with_dot = p->with_dot });
}
