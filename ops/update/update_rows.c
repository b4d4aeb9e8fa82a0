/* ops/update/update_rows.c - the gradient of an embedding table in an optimizer, computed row by
 * row from the ids: its sum of squares, and the step of Adam.
 *
 *     G[r, :] = sum of dy[i, :] over ids[i] = r;   then square_sum or adam_step (update.c) with G
 *
 * For a table that embedding (index.c) read, G is embedding_backward(dy, ids, table): zeros, except
 * in the few rows that were read. Each row of G is summed when it is needed and never written to
 * memory: the time for the sum of squares depends on the number of ids, not on the size of the
 * table, and the step of Adam reads and writes only the table, m and v. The gradient of a table
 * that is read twice, or tied to the output, is a sum of several terms and is computed like any
 * other. */
#include "ops/rules.h"
#include "ops/shape/index.h"
#include "update.h"

/* ---- the ids of each row --------------------------------------------------------------------- */

/* Linked lists in the work memory of a call, built in phase 0. -1 ends a list. */
typedef struct id_lists {
    int64_t n;      /* ids */
    int64_t *first; /* [rows]: index of the first id of the row */
    int64_t *next;  /* [n]: index of the next id of the same row */
} id_lists;

static id_lists lists_of(const wf_call *c, const wf_view *ids, const wf_view *table) {
    int64_t *work = c->work;
    return (id_lists){ wf_view_count(ids), work, work + table->shape[0] };
}

/* Never 0: there is always work memory to point to. */
static size_t list_bytes(const wf_view *ids, const wf_view *table) {
    return (size_t)(table->shape[0] + wf_view_count(ids) + 1) * sizeof(int64_t);
}

/* From the last id to the first; each is put in front of the list of its row. */
static bool build_lists(const wf_call *c, const wf_view *ids, const wf_view *table) {
    id_lists l = lists_of(c, ids, table);
    int64_t rows = table->shape[0], row;
    for (row = 0; row < rows; row++) l.first[row] = -1;
    for (int64_t i = l.n - 1; i >= 0; i--) {
        if (!wf_id_at(c, ids, i, rows, &row)) return false;
        l.next[i] = l.first[row], l.first[row] = i;
    }
    return true;
}

/* ---- rows_square_sum(dy, ids, table): the square_sum of embedding_backward(dy, ids, table) --- */

enum { SUM_DY, SUM_IDS, SUM_TABLE, SUM_OPERANDS, STRIPE = 64 /* columns of a task */ };

static int64_t stripe_count(const wf_call *c) {
    return wf_task_count(c->in[SUM_TABLE].shape[1], STRIPE);
}

static bool shape_square_sum(wf_call *c) {
    if (!wf_rows_fit(c, SUM_DY)) return false;
    wf_set_shape(&c->out[0], c->in[SUM_DY].dtype, 0, NULL);
    return true;
}

static bool plan_square_sum(wf_call *c, void *plan) {
    (void)plan;
    c->work_bytes =
        list_bytes(&c->in[SUM_IDS], &c->in[SUM_TABLE]) + (size_t)stripe_count(c) * sizeof(double);
    c->scratch_bytes = STRIPE * sizeof(double);
    return true;
}

static int64_t tasks_square_sum(const wf_call *c, int phase) {
    return phase == 1 ? stripe_count(c) : phase <= 2;
}

/* Rows are summed in the order of their first ids. */
static double stripe_sum(const wf_call *c, const id_lists *l, int64_t task, void *row) {
    const wf_view *dy = &c->in[SUM_DY];
    const int32_t *ids = c->in[SUM_IDS].data;
    int64_t width = c->in[SUM_TABLE].shape[1], from, to;
    double total = 0;
    wf_task_range(width, STRIPE, task, &from, &to);
    for (int64_t i = 0; i < l->n; i++) {
        if (l->first[ids[i]] != i) continue;
        WF_KERNEL(dy->dtype, sum_list(to - from, wf_at(dy, from), width, l->next, i, row));
        total += WF_KERNEL(dy->dtype, square_sum(to - from, row));
    }
    return total;
}

/* Phase 0: the lists; phase 1: stripes of columns; phase 2: the sums of the stripes, in order. */
static bool eval_square_sum(const wf_call *c, int phase, int64_t task, void *scratch) {
    const wf_view *ids = &c->in[SUM_IDS], *table = &c->in[SUM_TABLE];
    if (phase == 0) return build_lists(c, ids, table);
    id_lists l = lists_of(c, ids, table);
    double *stripe = (double *)(l.next + l.n), total = 0;
    if (phase == 1) {
        stripe[task] = stripe_sum(c, &l, task, scratch);
        return true;
    }
    for (int64_t i = 0; i < stripe_count(c); i++) total += stripe[i];
    wf_put(&c->out[0], 0, total);
    return true;
}

static void decompose_square_sum(wf_tensor *y, wf_tensor **results) {
    wf_tensor *const *in = y->in;
    results[0] = wf_square_sum(wf_embedding_backward(in[SUM_DY], in[SUM_IDS], in[SUM_TABLE]));
}

static double flops_square_sum(const wf_call *c) {
    return 3.0 * (double)wf_view_count(&c->in[SUM_DY]);
}

const wf_op wf_op_rows_square_sum = {
    .name = "rows_square_sum",
    .family = "reduce",
    .arity = SUM_OPERANDS,
    .shape = shape_square_sum,
    .decompose = decompose_square_sum,
    .shape_only = 1 << SUM_TABLE,
    .run = &(const wf_kernel){ .plan = plan_square_sum,
                               .tasks = tasks_square_sum,
                               .eval = eval_square_sum,
                               .flops = flops_square_sum },
};

/* ---- adam_rows_step -------------------------------------------------------------------------- */

enum { IN_DY = ADAM_V + 1, IN_IDS, IN_TABLE, IN_SCALE, IN_RATES, OPERANDS };

/* Rows of a task. */
static int64_t block_rows(const wf_call *c) {
    int64_t width = c->in[ADAM_PARAM].shape[1];
    return width ? (WF_UPDATE_GRAIN + width - 1) / width : WF_UPDATE_GRAIN;
}

static bool shape_adam(wf_call *c) {
    const wf_view *leaf = &c->in[ADAM_PARAM], *table = &c->in[IN_TABLE];
    if (!wf_adam_fits(c, c->attrs, IN_SCALE) || !wf_rows_fit(c, IN_DY)) return false;
    return wf_same_shape(table, leaf) ||
           wf_fail(c, "the gradient is %s, the leaf %s", wf_show(c, table), wf_show(c, leaf));
}

static bool plan_adam(wf_call *c, void *plan) {
    const wf_view *leaf = &c->in[ADAM_PARAM];
    (void)plan;
    c->work_bytes = list_bytes(&c->in[IN_IDS], leaf);
    c->scratch_bytes = (size_t)(block_rows(c) * leaf->shape[1]) * wf_dtype_size(leaf->dtype);
    return true;
}

/* Phase 0: the lists; an id out of range fails here, before anything is written. Phase 1: blocks of
 * rows. */
static int64_t tasks_adam(const wf_call *c, int phase) {
    const wf_view *leaf = &c->in[ADAM_PARAM];
    if (phase > 1 || wf_view_count(leaf) == 0) return phase == 0;
    return phase == 0 ? 1 : (leaf->shape[0] + block_rows(c) - 1) / block_rows(c);
}

static bool eval_adam(const wf_call *c, int phase, int64_t task, void *scratch) {
    const wf_view *p = &c->in[ADAM_PARAM], *dy = &c->in[IN_DY];
    int64_t width = p->shape[1], rows = block_rows(c), from = task * rows;
    wf_adam_rule rule;
    if (!wf_adam_rule_of(c, c->attrs, IN_SCALE, &rule)) return false;
    if (phase == 0) return build_lists(c, &c->in[IN_IDS], p);
    id_lists l = lists_of(c, &c->in[IN_IDS], p);
    if (rows > p->shape[0] - from) rows = p->shape[0] - from;
    wf_view grad = { .data = scratch, .dtype = p->dtype };
    for (int64_t r = 0; r < rows; r++)
        WF_KERNEL(p->dtype, sum_list(width, dy->data, width, l.next, l.first[from + r],
                                     wf_at(&grad, r * width)));
    int64_t at = from * width;
    WF_KERNEL(p->dtype, adam(rows * width, wf_at(p, at), wf_at(&c->in[ADAM_M], at),
                             wf_at(&c->in[ADAM_V], at), scratch, &rule));
    return true;
}

static double flops_adam(const wf_call *c) {
    return 15.0 * (double)wf_view_count(&c->in[ADAM_PARAM]) + (double)wf_view_count(&c->in[IN_DY]);
}

const wf_op wf_op_adam_rows_step = {
    .name = "adam_rows_step",
    .family = "update",
    .arity = OPERANDS,
    .attr_bytes = sizeof(wf_adam_options),
    .shape = shape_adam,
    .no_grad = "an update has no value to differentiate",
    .shape_only = 1 << IN_TABLE,
    .writes = 1 << ADAM_PARAM | 1 << ADAM_M | 1 << ADAM_V,
    .run =
        &(const wf_kernel){
            .plan = plan_adam, .tasks = tasks_adam, .eval = eval_adam, .flops = flops_adam },
};

/* ---- rewrite rules: embedding_backward has the operands dy, ids, table and an addend --------- */

bool wf_fuse_square_sum_rows(wf_rewrite *r, const wf_tensor *sum, const wf_tensor *grad) {
    (void)sum;
    return !grad->in[3] && wf_replace(r, &wf_op_rows_square_sum, SUM_OPERANDS, grad->in, NULL);
}

bool wf_fuse_adam_rows(wf_rewrite *r, const wf_tensor *step, const wf_tensor *grad) {
    wf_tensor *const *s = step->in, *const *in = grad->in;
    wf_tensor *operands[] = { s[ADAM_PARAM], s[ADAM_M], s[ADAM_V],     in[0],
                              in[1],         in[2],     s[ADAM_SCALE], s[ADAM_RATES] };
    return !in[3] && !wf_is_stored_memory(in[0]) &&
           wf_replace(r, &wf_op_adam_rows_step, OPERANDS, operands, step->attrs);
}
