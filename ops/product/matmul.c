/* ops/product/matmul.c - the matrix product, batched: c[..., m, n] = a[..., m, k] b[..., k, n] + addend.
 *
 * Leading axes broadcast; operands may have any strides, and either may be taken transposed, so
 * that a transpose costs nothing. The addend, if there is one, broadcasts to c and is where the
 * sum over k begins: a bias, or a gradient to which this product is a further share. What is here
 * is how a product is cut into tasks, by its shape alone; the arithmetic is the gemm of kernels/,
 * where each element is one chain over k, so that no cut of rows and columns changes a bit. Only
 * the gradient of a small weight is cut along k. */
#include <string.h>

#include "ops/base/op.h"
#include "ops/base/shapes.h"
#include "ops/base/walk.h"
#include "ops/rules.h"

enum { ADDEND = 2 }; /* operands: a, b, addend */

typedef struct gemm_attrs {
    unsigned transposed; /* WF_TRANSPOSE_A, WF_TRANSPOSE_B */
    bool gradient;       /* of a matrix b: k are the rows of what was multiplied with it */
} gemm_attrs;

/* Multiply-adds that make a task worth its start; elements of b that are cheap to pack anew for
 * every block of rows. */
#define LEAST_TASK (1 << 18)
#define SMALL_B (1 << 14)
/* The gradient of a weight of so many elements at most is summed piece by piece of k, each of so
 * many rows at least: it is the rows of its operands that lie near one processor or another. */
enum { SMALL_WEIGHT = 1 << 15, LEAST_PIECE = 160, MOST_PIECES = 8 };
/* Tasks wanted of a large product; how many are enough not to cut its rows as well; rows that a
 * block has at least when they are cut. */
enum { MOST_TASKS = 64, ENOUGH_TASKS = 8, LEAST_ROWS = 80 };
/* Of a block where a is upright: columns at most and, if they are cut for more tasks, at least;
 * rows at least. */
enum { MOST_COLUMNS = 1024, LEAST_COLUMNS = 512, LEAST_UPRIGHT = 60 };
#define LEAST_STREAM (1 << 17) /* bytes of panels that are worth a task */

/* Operand i as it is multiplied: its last two axes swapped if it is taken transposed. */
static wf_view side(const wf_call *c, int i) {
    wf_view v = c->in[i];
    const gemm_attrs *attrs = c->attrs;
    if (!(attrs->transposed >> i & 1) || v.ndim < 2) return v;
    int rows = v.ndim - 2, columns = v.ndim - 1;
    v.shape[rows] = c->in[i].shape[columns], v.shape[columns] = c->in[i].shape[rows];
    v.stride[rows] = c->in[i].stride[columns], v.stride[columns] = c->in[i].stride[rows];
    return v;
}

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

static bool addend_fits(wf_call *c) {
    wf_view sum;
    if (c->in[ADDEND].ndim < 0) return true;
    if (!wf_want_real(c, ADDEND) || !wf_broadcast_shapes(c, &c->out[0], &c->in[ADDEND], &sum))
        return false;
    return wf_same_shape(&sum, &c->out[0]) ||
           wf_fail(c, "%s does not broadcast to %s", wf_show(c, &c->in[ADDEND]),
                   wf_show(c, &c->out[0]));
}

/* ---- shapes ---------------------------------------------------------------------------------- */

/* Is k cut, if it is long enough? */
static bool cuts_k(const gemm_attrs *attrs, int64_t m, int64_t n) {
    return attrs->gradient && attrs->transposed == WF_TRANSPOSE_A && m <= SMALL_WEIGHT &&
           n <= SMALL_WEIGHT && m * n <= SMALL_WEIGHT;
}

/* How many pieces k is cut into; 1: the chain is whole. */
static int64_t pieces_of(const wf_call *c, int64_t m, int64_t n, int64_t k) {
    int64_t pieces = 1;
    if (!cuts_k(c->attrs, m, n)) return 1;
    while (2 * pieces <= MOST_PIECES && k / (2 * pieces) >= LEAST_PIECE) pieces *= 2;
    return pieces;
}

static bool shape_matmul(wf_call *c) {
    if (!wf_want_real(c, 0) || !wf_want_real(c, 1)) return false;
    wf_view a = side(c, 0), b = side(c, 1), *y = &c->out[0];
    if (a.ndim < 2 || b.ndim < 2)
        return wf_fail(c, "%s x %s: both must have rows and columns", wf_show(c, &a),
                       wf_show(c, &b));
    int64_t k = a.shape[a.ndim - 1], inner = b.shape[b.ndim - 2];
    if (k != inner)
        return wf_fail(c, "%s x %s: inner dimensions %lld and %lld differ", wf_show(c, &a),
                       wf_show(c, &b), (long long)k, (long long)inner);
    if (!batches_fit(&a, &b))
        return wf_fail(c, "%s x %s: the leading axes do not broadcast", wf_show(c, &a),
                       wf_show(c, &b));
    wf_view left = leading(&a), right = leading(&b);
    if (!wf_broadcast_shapes(c, &left, &right, y)) return false;
    y->dtype = a.dtype;
    y->shape[y->ndim++] = a.shape[a.ndim - 2];
    y->shape[y->ndim++] = b.shape[b.ndim - 1];
    return addend_fits(c);
}

/* ---- cutting into tasks ---------------------------------------------------------------------- */

typedef struct cut {       /* the blocks of a product, each a task */
    int64_t rows, columns; /* of a block */
    int64_t row_blocks, column_blocks;
} cut;

typedef struct product {
    wf_walk batch; /* over the products of the batch: of c, a and b */
    int64_t count; /* products */
    int64_t m, n, k, a_row, a_col, b_row, b_col;
    cut cut;
    int64_t group;  /* products of a task, where they are small */
    int64_t pieces; /* of k: each a task, its sums in the work memory */
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

/* `size` in about so many pieces, each a multiple of the tile but the last: *block is a piece's
 * size. Returns their number. */
static int64_t blocks_of(int64_t size, int64_t pieces, int64_t tile, int64_t *block) {
    *block = (size + pieces - 1) / pieces;
    *block = (*block + tile - 1) / tile * tile;
    return (size + *block - 1) / *block;
}

/* Of [m, n] whose a is taken transposed: gemm stands it upright, block of rows by block of rows.
 * Rows first, and columns only so that a block of b stays in the cache, or that there are enough
 * tasks. */
static cut cut_upright(int64_t m, int64_t n, wf_dtype type) {
    int64_t r = (m + WF_UPRIGHT_ROWS - 1) / WF_UPRIGHT_ROWS;
    int64_t s = (n + MOST_COLUMNS - 1) / MOST_COLUMNS;
    while (r * s < ENOUGH_TASKS && n / (2 * s) >= LEAST_COLUMNS) s *= 2;
    if (r * s < ENOUGH_TASKS) r = (ENOUGH_TASKS + s - 1) / s;
    if (r > 1 && m / r < LEAST_UPRIGHT) r = m / LEAST_UPRIGHT > 1 ? m / LEAST_UPRIGHT : 1;
    cut all;
    all.row_blocks = blocks_of(m, r, WF_KERNEL(type, gemm_rows), &all.rows);
    all.column_blocks = blocks_of(n, s, WF_KERNEL(type, gemm_columns), &all.columns);
    return all;
}

/* Of a small b the rows of a are cut, in two, four, eight...: then the same rows of one op after
 * another tend to meet the same processor. Else columns first: each block packs its columns of b
 * once, and every cut of the rows packs them again. */
static void cut_product(product *p, wf_dtype type) {
    int64_t row_tile = WF_KERNEL(type, gemm_rows), column_tile = WF_KERNEL(type, gemm_columns);
    double cost = (double)p->m * (double)p->n * (double)(p->k ? p->k : 1);
    int64_t wanted = (MOST_TASKS + p->count - 1) / p->count, r = 1, s = 1;
    if (wanted > cost / LEAST_TASK) wanted = (int64_t)(cost / LEAST_TASK);
    if (wanted < 1) wanted = 1;
    bool one_panel = p->b_row == p->n && p->n <= column_tile;
    if (p->k * p->n <= SMALL_B || one_panel) {
        int64_t least_rows = one_panel ? 4 * row_tile : LEAST_ROWS;
        while (2 * r <= wanted && p->m / (2 * r) >= least_rows) r *= 2;
        wanted /= r;
    }
    if (r == 1) {
        s = (p->n + column_tile - 1) / column_tile;
        if (s > wanted) s = wanted;
        if (s * p->count < ENOUGH_TASKS) r = (wanted < ENOUGH_TASKS ? wanted : ENOUGH_TASKS) / s;
        if (r > p->m / LEAST_ROWS) r = p->m / LEAST_ROWS;
    }
    p->cut.row_blocks = blocks_of(p->m, r > 1 ? r : 1, row_tile, &p->cut.rows);
    p->cut.column_blocks = blocks_of(p->n, s, column_tile, &p->cut.columns);
    p->group = cost < LEAST_TASK ? (int64_t)(LEAST_TASK / cost) : 1;
}

/* Blocks of whole panels: of few rows the time is that in which the panels come from memory. */
static void cut_panels(product *p, size_t unit) {
    double bytes = (double)p->n * (double)p->k * (double)unit;
    int64_t panels = (p->n + WF_PANEL_ROWS - 1) / WF_PANEL_ROWS;
    int64_t wanted = (int64_t)(bytes / LEAST_STREAM) + 1;
    if (wanted > MOST_TASKS) wanted = MOST_TASKS;
    if (wanted > panels) wanted = panels;
    p->cut.column_blocks = blocks_of(p->n, wanted, WF_PANEL_ROWS, &p->cut.columns);
}

/* No products where there is nothing to compute. */
static bool plan_matmul(wf_call *c, void *plan) {
    product *p = plan;
    const gemm_attrs *attrs = c->attrs;
    const wf_view *a = &c->in[0], *b = &c->in[1], *y = &c->out[0];
    int ta = attrs->transposed & WF_TRANSPOSE_A ? 1 : 0,
        tb = attrs->transposed & WF_TRANSPOSE_B ? 1 : 0;
    int i = a->ndim - 2, j = b->ndim - 2;
    *p = (product){ .group = 1, .pieces = 1 };
    if (wf_view_count(y) == 0) return true;
    p->m = a->shape[i + ta], p->k = a->shape[i + !ta], p->n = b->shape[j + !tb];
    p->a_row = a->stride[i + ta], p->a_col = a->stride[i + !ta];
    p->b_row = b->stride[j + tb], p->b_col = b->stride[j + !tb];
    wf_view lead[] = { leading(y), leading(a), leading(b) };
    wf_walk_start(&p->batch, 3, (const wf_view *[]){ &lead[0], &lead[1], &lead[2] });
    p->count = p->batch.rows * p->batch.columns;
    merge_rows(p);
    p->pieces = pieces_of(c, p->m, p->n, p->k);
    bool upright = p->count == 1 && p->a_row == 1 && p->a_col > 1 && p->n >= WF_UPRIGHT_COLUMNS;
    if (upright)
        p->cut = cut_upright(p->m, p->n, y->dtype);
    else
        cut_product(p, y->dtype);
    if (b->layout) cut_panels(p, wf_view_unit(b));
    c->scratch_bytes =
        b->layout ? WF_KERNEL(y->dtype, panel_scratch) : WF_KERNEL(y->dtype, gemm_scratch);
    if (p->pieces > 1) c->work_bytes = (size_t)(p->pieces * p->m * p->n) * wf_dtype_size(y->dtype);
    return true;
}

static int64_t tasks_matmul(const wf_call *c, int phase) {
    const product *p = c->plan;
    if (phase > 1 || p->count == 0) return 0;
    if (p->pieces > 1) return p->pieces;
    if (phase == 1) return 0;
    return p->cut.row_blocks * p->cut.column_blocks * wf_task_count(p->count, p->group);
}

/* Where the addend's row for row `row` of all of c's rows begins. */
static int64_t addend_row(const wf_call *c, int64_t row) {
    const wf_view *d = &c->in[ADDEND], *y = &c->out[0];
    int64_t at = 0;
    for (int i = y->ndim - 2, j = d->ndim - 2; j >= 0; i--, j--) {
        if (d->shape[j] > 1) at += row % y->shape[i] * d->stride[j];
        row /= y->shape[i];
    }
    return at;
}

/* Where the sums of a block of c begin: at the addend's rows if they lie one after another, or are
 * one row for all; else at c, into which the addend is copied. */
typedef struct beginning {
    const void *data; /* NULL: zeros */
    int64_t row;      /* elements from one row to the next */
} beginning;

static bool one_row_for_all(const wf_view *d) {
    for (int i = 0; i + 1 < d->ndim; i++)
        if (d->shape[i] != 1) return false;
    return true;
}

static void copy_addend(const wf_call *c, int64_t row, int64_t m, int64_t j, int64_t n) {
    const wf_view *d = &c->in[ADDEND], *y = &c->out[0];
    int64_t width = y->shape[y->ndim - 1];
    int64_t step = d->ndim > 0 && d->shape[d->ndim - 1] > 1 ? d->stride[d->ndim - 1] : 0;
    for (int64_t i = row; i < row + m; i++) {
        int64_t from = addend_row(c, i) + j * step, to = i * width + j;
        for (int64_t x = 0; x < n; x++) wf_put(y, to + x, wf_get(d, from + x * step));
    }
}

/* Of m rows from `row`, n columns from j. */
static beginning begin(const wf_call *c, int64_t row, int64_t m, int64_t j, int64_t n) {
    const wf_view *d = &c->in[ADDEND], *y = &c->out[0];
    int64_t width = y->shape[y->ndim - 1];
    if (d->ndim < 0) return (beginning){ NULL, 0 };
    bool same = wf_same_shape(d, y) && wf_view_dense(d);
    bool wide = d->ndim > 0 && d->shape[d->ndim - 1] == width && d->stride[d->ndim - 1] == 1;
    if (same) return (beginning){ wf_at(d, row * width + j), width };
    if (wide && one_row_for_all(d)) return (beginning){ wf_at(d, j), 0 };
    copy_addend(c, row, m, j, n);
    return (beginning){ wf_at(y, row * width + j), width };
}

/* The block of c at y: m rows of a, n columns from j. */
static void multiply_panels(const product *p, const wf_call *c, int64_t m, int64_t n, const void *a,
                            int64_t j, void *y, beginning d, void *scratch) {
    const wf_view *b = &c->in[1];
    wf_panel_product block = { .m = m,
                               .n = n,
                               .k = p->k,
                               .a = a,
                               .a_row = p->a_row,
                               .a_col = p->a_col,
                               .panels =
                                   (const char *)b->data + j * p->k * (int64_t)wf_view_unit(b),
                               .c = y,
                               .c_row = p->n,
                               .bf16 = b->layout == WF_PANELS_BF16,
                               .d = d.data,
                               .d_row = d.row };
    WF_KERNEL(c->out[0].dtype, gemm_panels(&block, scratch));
}

/* Rows from i and columns from j of product `which`. */
static void multiply(product *p, const wf_call *c, int64_t which, int64_t i, int64_t j,
                     void *scratch) {
    wf_walk *w = &p->batch;
    int64_t at = which % w->columns;
    int64_t m = p->m - i < p->cut.rows ? p->m - i : p->cut.rows;
    int64_t n = p->n - j < p->cut.columns ? p->n - j : p->cut.columns;
    wf_walk_seek(w, which / w->columns);
    const void *a = wf_at(&c->in[0], w->at[1] + at * w->step[1] + i * p->a_row);
    const void *b = wf_at(&c->in[1], w->at[2] + at * w->step[2] + j * p->b_col);
    void *y = wf_at(&c->out[0], w->at[0] + at * w->step[0] + i * p->n + j);
    beginning d = begin(c, which * p->m + i, m, j, n);
    if (c->in[1].layout) {
        multiply_panels(p, c, m, n, a, j, y, d, scratch);
        return;
    }
    WF_KERNEL(c->out[0].dtype, gemm(m, n, p->k, a, p->a_row, p->a_col, b, p->b_row, p->b_col, y,
                                    p->n, d.data, d.row, scratch));
}

/* One piece of k, whole rows and columns. */
static void multiply_piece(const product *p, const wf_call *c, int64_t piece, void *scratch) {
    int64_t from = p->k * piece / p->pieces, k = p->k * (piece + 1) / p->pieces - from;
    wf_view work = { .data = c->work, .dtype = c->out[0].dtype };
    WF_KERNEL(work.dtype, gemm(p->m, p->n, k, wf_at(&c->in[0], from * p->a_col), p->a_row, p->a_col,
                               wf_at(&c->in[1], from * p->b_row), p->b_row, p->b_col,
                               wf_at(&work, piece * p->m * p->n), p->n, NULL, 0, scratch));
}

/* addend + piece 0 + piece 1 + ..., one of as many blocks of rows as there are pieces. */
static void sum_pieces(const product *p, const wf_call *c, int64_t block) {
    int64_t from = p->m * block / p->pieces, to = p->m * (block + 1) / p->pieces, n = p->n;
    wf_view work = { .data = c->work, .dtype = c->out[0].dtype };
    beginning d = begin(c, from, to - from, 0, n);
    wf_view addend = { .data = (void *)(uintptr_t)d.data, .dtype = work.dtype };
    for (int64_t i = from; i < to; i++) {
        const void *first = d.data ? wf_at(&addend, (i - from) * d.row) : wf_at(&work, i * n);
        void *y = wf_at(&c->out[0], i * n);
        if (first != y) memcpy(y, first, (size_t)n * wf_dtype_size(work.dtype));
        for (int64_t piece = d.data ? 0 : 1; piece < p->pieces; piece++)
            WF_KERNEL(work.dtype, accumulate(n, wf_at(&work, (piece * p->m + i) * n), y));
    }
}

static bool eval_matmul(const wf_call *c, int phase, int64_t task, void *scratch) {
    product p = *(const product *)c->plan; /* its walk moves */
    int64_t from, to;
    if (p.pieces > 1) {
        phase == 0 ? multiply_piece(&p, c, task, scratch) : sum_pieces(&p, c, task);
        return true;
    }
    const cut *by = &p.cut;
    int64_t column = task % by->column_blocks, row = task / by->column_blocks % by->row_blocks;
    wf_task_range(p.count, p.group, task / by->column_blocks / by->row_blocks, &from, &to);
    for (int64_t which = from; which < to; which++)
        multiply(&p, c, which, row * by->rows, column * by->columns, scratch);
    return true;
}

/* The right side, if it is one matrix taken transposed. */
static uint32_t panels_matmul(const wf_call *c) {
    const gemm_attrs *attrs = c->attrs;
    return attrs->transposed & WF_TRANSPOSE_B && c->in[1].ndim == 2 ? 1 << 1 : 0;
}

static double flops_matmul(const wf_call *c) {
    wf_view a = side(c, 0);
    return 2 * (double)wf_view_count(&c->out[0]) * (double)a.shape[a.ndim - 1];
}

/* ---- gradient -------------------------------------------------------------------------------- */

/* All leading axes as rows of one matrix. */
static wf_tensor *tall(wf_tensor *x) {
    return x->ndim == 2 ? x : wf_reshape(x, 2, (int64_t[]){ WF_REST, WF_KEEP });
}

static wf_tensor *record(wf_tensor *a, wf_tensor *b, wf_tensor *addend, const gemm_attrs *attrs) {
    return wf_record(&wf_op_matmul, 3, (wf_tensor *[]){ a, b, addend }, attrs);
}

/* c_ij = sum_p a_ip b_pj. With L's slope dc:  dL/da_ip = sum_j dc_ij b_pj, that is dA = dC B^T,
 * and dL/db_pj = sum_i a_ip dc_ij, that is dB = A^T dC; for an operand X that is taken transposed
 * the share is the transpose of that, which is a product with its sides exchanged. A B shared by
 * the batch is one product over all rows. The addend moves c one to one. */
static void grad_matmul(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    wf_tensor *a = y->in[0], *b = y->in[1], *dc = dy[0];
    unsigned flags = ((const gemm_attrs *)y->attrs)->transposed;
    bool ta = flags & WF_TRANSPOSE_A, tb = flags & WF_TRANSPOSE_B;
    if (need & 1)
        dx[0] = ta ? wf_gemm(b, dc, NULL, WF_TRANSPOSE_B | (tb ? WF_TRANSPOSE_A : 0))
                   : wf_gemm(dc, b, NULL, tb ? 0 : WF_TRANSPOSE_B);
    if ((need & 2) && b->ndim == 2 && !ta) a = tall(a), dc = tall(dc);
    if (need & 2) {
        unsigned sides = tb ? WF_TRANSPOSE_A | (ta ? WF_TRANSPOSE_B : 0) : ta ? 0 : WF_TRANSPOSE_A;
        gemm_attrs attrs = { sides, b->ndim == 2 };
        dx[1] = tb ? record(dc, a, NULL, &attrs) : record(a, dc, NULL, &attrs);
    }
    if (need >> ADDEND & 1) dx[ADDEND] = dy[0];
}

bool wf_product_onto(wf_rewrite *r, const wf_tensor *sum, const wf_tensor *share) {
    return wf_begin_with(r, sum, share, ADDEND);
}

const wf_op wf_op_matmul = {
    .name = "matmul",
    .family = "matmul",
    .arity = 3,
    .attr_bytes = sizeof(gemm_attrs),
    .shape = shape_matmul,
    .grad = grad_matmul,
    .optional = 1 << ADDEND,
    .run = &(const wf_kernel){ .plan_bytes = sizeof(product),
                               .plan = plan_matmul,
                               .tasks = tasks_matmul,
                               .eval = eval_matmul,
                               .flops = flops_matmul,
                               .panels = panels_matmul,
                               .strided = 1 << 0 | 1 << 1 | 1 << ADDEND,
                               .exclusive = true,
                               .in_place = 1 << ADDEND },
};

wf_tensor *wf_gemm(wf_tensor *a, wf_tensor *b, wf_tensor *addend, unsigned transposed) {
    return record(a, b, addend, &(gemm_attrs){ transposed, false });
}

wf_tensor *wf_matmul(wf_tensor *a, wf_tensor *b) {
    return wf_gemm(a, b, NULL, 0);
}
