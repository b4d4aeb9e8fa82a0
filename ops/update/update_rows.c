/* ops/update/update_rows.c - the gradient of an embedding table in an optimizer, computed row by
 * row from the ids: its sum of squares, and the step of Adam.
 *
 *     G[r, :] = sum of dy[i, :] over ids[i] = r;   then square_sums or adam_step (adam.c) with G
 *
 * For a table that embedding (index.c) read, G is embedding_backward(dy, ids, table): zeros, except
 * in the few rows that were read. Each row of G is summed when it is needed and never written to
 * memory: the sums of squares take little time where no row was read, and the step of Adam reads and
 * writes only the table, m and v. The bits are those of the whole gradient. The gradient of a table
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
        l.next[i] = l.first[row];
        l.first[row] = i;
    }
    return true;
}

/* ---- rows_square_sums(dy, ids, table): the square_sums of embedding_backward(dy, ids, table) - */

enum { SUM_DY, SUM_IDS, SUM_TABLE, SUM_OPERANDS };

static int64_t block_count(const wf_call *c) {
    return (wf_view_count(&c->in[SUM_TABLE]) + WF_SQUARE_BLOCK - 1) / WF_SQUARE_BLOCK;
}

static bool shape_square_sums(wf_call *c) {
    int64_t blocks = block_count(c);
    if (!wf_rows_fit(c, SUM_DY)) return false;
    wf_set_shape(&c->out[0], c->in[SUM_DY].dtype, 1, &blocks);
    return true;
}

static bool plan_square_sums(wf_call *c, void *plan) {
    (void)plan;
    c->work_bytes = list_bytes(&c->in[SUM_IDS], &c->in[SUM_TABLE]);
    c->scratch_bytes = WF_SQUARE_BLOCK * wf_dtype_size(c->in[SUM_DY].dtype);
    return true;
}

/* Phase 0: the lists; phase 1: blocks of the table. */
static int64_t tasks_square_sums(const wf_call *c, int phase) {
    return phase == 0 ? 1 : phase == 1 ? block_count(c) : 0;
}

/* Is there an id of a row that has elements in [from, to)? */
static bool is_touched(const id_lists *l, int64_t from, int64_t to, int64_t width) {
    for (int64_t row = from / width; row * width < to; row++)
        if (l->first[row] >= 0) return true;
    return false;
}

/* The sum of squares of the gradient's elements [from, to), which may begin and end inside rows. */
static double sum_of_range(const wf_call *c, int64_t from, int64_t to, void *scratch) {
    const wf_view *dy = &c->in[SUM_DY];
    const id_lists l = lists_of(c, &c->in[SUM_IDS], &c->in[SUM_TABLE]);
    const wf_view range = { .data = scratch, .dtype = dy->dtype };
    int64_t width = c->in[SUM_TABLE].shape[1];
    if (!is_touched(&l, from, to, width)) return 0;
    for (int64_t at = from, next; at < to; at = next) {
        next = (at / width + 1) * width < to ? (at / width + 1) * width : to;
        WF_KERNEL(dy->dtype, sum_list(next - at, wf_at(dy, at % width), width, l.next,
                                      l.first[at / width], wf_at(&range, at - from)));
    }
    return WF_KERNEL(dy->dtype, square_sum(to - from, scratch));
}

static bool eval_square_sums(const wf_call *c, int phase, int64_t task, void *scratch) {
    const wf_view *table = &c->in[SUM_TABLE];
    int64_t n = wf_view_count(table), from = task * WF_SQUARE_BLOCK, to = from + WF_SQUARE_BLOCK;
    if (phase == 0) return build_lists(c, &c->in[SUM_IDS], table);
    if (to > n) to = n;
    wf_put(&c->out[0], task, sum_of_range(c, from, to, scratch));
    return true;
}

static double flops_square_sums(const wf_call *c) {
    return 3.0 * (double)wf_view_count(&c->in[SUM_DY]);
}

const wf_op wf_op_rows_square_sums = {
    .name = "rows_square_sums",
    .family = "reduce",
    .arity = SUM_OPERANDS,
    .shape = shape_square_sums,
    .no_grad = "only a plan puts it in the place of square_sums",
    .shape_only = 1 << SUM_TABLE,
    .run = &(const wf_kernel){ .plan = plan_square_sums,
                               .tasks = tasks_square_sums,
                               .eval = eval_square_sums,
                               .flops = flops_square_sums },
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

bool wf_fuse_square_sums_rows(wf_rewrite *r, const wf_tensor *sum, const wf_tensor *grad) {
    (void)sum;
    return !grad->in[3] && wf_replace(r, &wf_op_rows_square_sums, SUM_OPERANDS, grad->in, NULL);
}

bool wf_fuse_adam_rows(wf_rewrite *r, const wf_tensor *step, const wf_tensor *grad) {
    wf_tensor *const *s = step->in, *const *in = grad->in;
    wf_tensor *operands[] = { s[ADAM_PARAM], s[ADAM_M], s[ADAM_V],     in[0],
                              in[1],         in[2],     s[ADAM_SCALE], s[ADAM_RATES] };
    return !in[3] && !wf_is_stored_memory(in[0]) &&
           wf_replace(r, &wf_op_adam_rows_step, OPERANDS, operands, step->attrs);
}
