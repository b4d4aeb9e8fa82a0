/* ops/matmul.c - the matrix product, batched: c[..., m, n] = a[..., m, k] b[..., k, n].
 *
 * Leading axes broadcast; operands may have any strides, so that a transpose costs nothing. What
 * is here is how a product is cut into tasks, by its shape alone; the arithmetic is the gemm of
 * kernels/, where each element is one chain over k, so that no cut changes a bit. */
#include "internal.h"

/* Multiply-adds that make a task worth its start; tasks wanted of a large product. */
#define LEAST_TASK (1 << 17)
enum { MOST_TASKS = 32 };

/* A view without its last two axes. */
static wf_view leading(const wf_view *v) {
    wf_view lead = *v;
    lead.ndim -= 2;
    return lead;
}

static bool batches_fit(const wf_view *a, const wf_view *b) {
    for (int i = 3; i <= a->ndim && i <= b->ndim; i++) {
        int64_t x = a->shape[a->ndim - i], y = b->shape[b->ndim - i];
        if (x != y && x != 1 && y != 1) return false;
    }
    return true;
}

static bool shape_matmul(wf_call *c) {
    const wf_view *a = &c->in[0], *b = &c->in[1];
    if (!wf_want_real(c, 0) || !wf_want_real(c, 1)) return false;
    if (a->ndim < 2 || b->ndim < 2)
        return wf_fail(c, "%s x %s: both must have rows and columns", wf_show(c, a), wf_show(c, b));
    int64_t m = a->shape[a->ndim - 2], k = a->shape[a->ndim - 1];
    int64_t inner = b->shape[b->ndim - 2], n = b->shape[b->ndim - 1];
    if (k != inner)
        return wf_fail(c, "%s x %s: inner dimensions %lld and %lld differ", wf_show(c, a),
                       wf_show(c, b), (long long)k, (long long)inner);
    if (!batches_fit(a, b))
        return wf_fail(c, "%s x %s: the leading axes do not broadcast", wf_show(c, a),
                       wf_show(c, b));
    wf_view left = leading(a), right = leading(b);
    if (!wf_broadcast_shapes(c, &left, &right, &c->out[0])) return false;
    wf_view *y = &c->out[0];
    y->dtype = a->dtype;
    y->shape[y->ndim++] = m;
    y->shape[y->ndim++] = n;
    c->scratch_bytes = WF_KERNEL(a->dtype, gemm_scratch);
    return true;
}

/* ---- cutting into tasks ---------------------------------------------------------------------- */

typedef struct product {
    wf_walk batch; /* over the products of the batch: of c, a and b */
    int64_t count; /* products */
    int64_t m, n, k, a_row, a_col, b_row, b_col;
    int64_t rows, columns; /* of a task's block */
    int64_t row_blocks, column_blocks;
    int64_t group; /* products of a task, where they are small */
} product;

/* One b for many a: their rows make one taller a, if they follow each other. */
static void merge_rows(product *p) {
    wf_walk *w = &p->batch;
    if (p->m == 1) p->a_row = w->step[1];
    if (w->columns <= 1 || w->step[2] != 0) return;
    if (w->step[1] != p->a_row * p->m || w->step[0] != p->n * p->m) return;
    p->m *= w->columns;
    p->count = w->rows;
    w->columns = 1;
}

static int64_t blocks_of(int64_t size, int64_t pieces, int64_t tile, int64_t *block) {
    *block = (size + pieces - 1) / pieces;
    *block = (*block + tile - 1) / tile * tile;
    return (size + *block - 1) / *block;
}

/* Halve the longer side until there are enough blocks. */
static void cut(product *p, wf_dtype type) {
    int64_t row_tile = WF_KERNEL(type, gemm_rows), column_tile = WF_KERNEL(type, gemm_columns);
    double cost = (double)p->m * (double)p->n * (double)(p->k ? p->k : 1);
    int64_t wanted = (MOST_TASKS + p->count - 1) / p->count, r = 1, s = 1;
    if (wanted > cost / LEAST_TASK) wanted = (int64_t)(cost / LEAST_TASK);
    while (r * s < wanted) {
        bool tall = p->m / r > p->n / s, short_rows = p->m / r <= row_tile,
             short_columns = p->n / s <= column_tile;
        if (short_rows && short_columns) break;
        if ((tall && !short_rows) || short_columns)
            r *= 2;
        else
            s *= 2;
    }
    p->row_blocks = blocks_of(p->m, r, row_tile, &p->rows);
    p->column_blocks = blocks_of(p->n, s, column_tile, &p->columns);
    p->group = cost < LEAST_TASK ? (int64_t)(LEAST_TASK / cost) : 1;
}

/* False if there is nothing to compute. */
static bool plan_product(product *p, const wf_call *c) {
    const wf_view *a = &c->in[0], *b = &c->in[1], *y = &c->out[0];
    wf_view lead[] = { leading(y), leading(a), leading(b) };
    int i = a->ndim - 2, j = b->ndim - 2;
    if (wf_view_count(y) == 0) return false;
    p->m = a->shape[i], p->k = a->shape[i + 1], p->n = b->shape[j + 1];
    p->a_row = a->stride[i], p->a_col = a->stride[i + 1];
    p->b_row = b->stride[j], p->b_col = b->stride[j + 1];
    wf_walk_start(&p->batch, 3, (const wf_view *[]){ &lead[0], &lead[1], &lead[2] });
    p->count = p->batch.rows * p->batch.columns;
    merge_rows(p);
    cut(p, y->dtype);
    return true;
}

static int64_t tasks_matmul(const wf_call *c, int phase) {
    product p;
    if (phase > 0 || !plan_product(&p, c)) return 0;
    return p.row_blocks * p.column_blocks * wf_task_count(p.count, p.group);
}

/* Rows from i and columns from j of product `which`. */
static void multiply(product *p, const wf_call *c, int64_t which, int64_t i, int64_t j,
                     void *scratch) {
    wf_walk *w = &p->batch;
    int64_t at = which % w->columns;
    int64_t m = p->m - i < p->rows ? p->m - i : p->rows;
    int64_t n = p->n - j < p->columns ? p->n - j : p->columns;
    wf_walk_seek(w, which / w->columns);
    const void *a = wf_at(&c->in[0], w->at[1] + at * w->step[1] + i * p->a_row);
    const void *b = wf_at(&c->in[1], w->at[2] + at * w->step[2] + j * p->b_col);
    void *y = wf_at(&c->out[0], w->at[0] + at * w->step[0] + i * p->n + j);
    WF_KERNEL(c->out[0].dtype, gemm(m, n, p->k, a, p->a_row, p->a_col, b, p->b_row, p->b_col, y,
                                    p->n, false, scratch));
}

static bool eval_matmul(const wf_call *c, int phase, int64_t task, void *scratch) {
    product p;
    int64_t from, to;
    (void)phase;
    if (!plan_product(&p, c)) return true;
    int64_t column = task % p.column_blocks, row = task / p.column_blocks % p.row_blocks;
    wf_task_range(p.count, p.group, task / p.column_blocks / p.row_blocks, &from, &to);
    for (int64_t which = from; which < to; which++)
        multiply(&p, c, which, row * p.rows, column * p.columns, scratch);
    return true;
}

static double flops_matmul(const wf_call *c) {
    const wf_view *a = &c->in[0];
    return 2 * (double)wf_view_count(&c->out[0]) * (double)a->shape[a->ndim - 1];
}

/* ---- gradient -------------------------------------------------------------------------------- */

static wf_tensor *transposed(wf_tensor *x) {
    return wf_transpose(x, -2, -1);
}

/* All leading axes as rows of one matrix. */
static wf_tensor *tall(wf_tensor *x) {
    return x->ndim == 2 ? x : wf_reshape(x, 2, (int64_t[]){ WF_REST, WF_KEEP });
}

/* c_ij = sum_p a_ip b_pj. With L's slope dc:  dL/da_ip = sum_j dc_ij b_pj, that is dA = dC B^T,
 * and dL/db_pj = sum_i a_ip dc_ij, that is dB = A^T dC. A B shared by the batch is one product
 * over all rows. */
static void grad_matmul(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    wf_tensor *a = y->in[0], *b = y->in[1];
    if (need & 1) dx[0] = wf_matmul(dy[0], transposed(b));
    if (!(need & 2)) return;
    if (b->ndim == 2)
        dx[1] = wf_matmul(transposed(tall(a)), tall(dy[0]));
    else
        dx[1] = wf_matmul(transposed(a), dy[0]);
}

const wf_op wf_op_matmul = {
    .name = "matmul",
    .family = "matmul",
    .arity = 2,
    .shape = shape_matmul,
    .tasks = tasks_matmul,
    .eval = eval_matmul,
    .grad = grad_matmul,
    .flops = flops_matmul,
    .strided = 3,
};

wf_tensor *wf_matmul(wf_tensor *a, wf_tensor *b) {
    return wf_record(&wf_op_matmul, 2, (wf_tensor *[]){ a, b }, NULL);
}
