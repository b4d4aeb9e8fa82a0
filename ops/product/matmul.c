/* ops/product/matmul.c - the matrix product, batched: c[..., m, n] = a[..., m, k] b[..., k, n] +
 * addend.
 *
 * Leading axes broadcast. Operands may have any strides, and either may be transposed, so that a
 * transpose costs nothing. The addend (the C of BLAS; optional) broadcasts to c, and the sum over k
 * starts with it: it is a bias, or a gradient to which the product is added. The division into
 * tasks is in blocking.c, the arithmetic in the gemm of kernels/, where each element is one chain
 * of additions over k, so dividing rows and columns changes no bit. Only for the gradient of a
 * small weight, k is divided, too. */
#include <string.h>

#include "blocking.h"
#include "core/compose.h"
#include "core/op_internal.h"
#include "ops/base/op_base.h"
#include "ops/base/panels.h"
#include "ops/base/shapes.h"
#include "ops/base/walk.h"
#include "ops/rules.h"

enum { ADDEND = 2 }; /* operands: a, b, addend */

typedef struct gemm_attrs {
    unsigned transposed; /* bits WF_TRANSPOSE_A and WF_TRANSPOSE_B */
    /* the product is the gradient of a matrix b: k counts the rows of a, and may be divided */
    bool gradient;
} gemm_attrs;

/* The gradient of a weight of at most SMALL_WEIGHT elements is summed in pieces of k, of at least
 * LEAST_PIECE rows each: then each piece can read rows that are in the cache of its processor. */
enum { SMALL_WEIGHT = 1 << 15, LEAST_PIECE = 160, MOST_PIECES = 8 };

/* Operand i as it is multiplied: its last two axes are swapped if it is transposed. */
static wf_view factor(const wf_call *c, int i) {
    wf_view v = c->in[i];
    const gemm_attrs *attrs = c->attrs;
    if (!(attrs->transposed >> i & 1) || v.ndim < 2) return v;
    int rows = v.ndim - 2, columns = v.ndim - 1;
    v.shape[rows] = c->in[i].shape[columns];
    v.shape[columns] = c->in[i].shape[rows];
    v.stride[rows] = c->in[i].stride[columns];
    v.stride[columns] = c->in[i].stride[rows];
    return v;
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

/* True if k may be divided into pieces, provided that k is long enough (pieces_of). */
static bool divides_k(const gemm_attrs *attrs, int64_t m, int64_t n) {
    return attrs->gradient && attrs->transposed == WF_TRANSPOSE_A && m <= SMALL_WEIGHT &&
           n <= SMALL_WEIGHT && m * n <= SMALL_WEIGHT;
}

/* The number of pieces into which k is divided. 1: the sum is one chain. */
static int64_t pieces_of(const wf_call *c, int64_t m, int64_t n, int64_t k) {
    int64_t pieces = 1;
    if (!divides_k(c->attrs, m, n)) return 1;
    while (2 * pieces <= MOST_PIECES && k / (2 * pieces) >= LEAST_PIECE) pieces *= 2;
    return pieces;
}

static bool shape_matmul(wf_call *c) {
    if (!wf_want_real(c, 0) || !wf_want_real(c, 1)) return false;
    wf_view a = factor(c, 0), b = factor(c, 1), *y = &c->out[0];
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
    wf_view left = wf_leading_axes(&a), right = wf_leading_axes(&b);
    if (!wf_broadcast_shapes(c, &left, &right, y)) return false;
    y->dtype = a.dtype;
    y->shape[y->ndim++] = a.shape[a.ndim - 2];
    y->shape[y->ndim++] = b.shape[b.ndim - 1];
    return addend_fits(c);
}

/* ---- division into tasks --------------------------------------------------------------------- */

/* If the whole batch has one b, and the rows of all a are evenly spaced, they become the rows of
 * one taller a. */
static void merge_rows(wf_product *p) {
    wf_walk *w = &p->batch;
    if (p->m == 1) p->a_row = w->step[1];
    if (w->columns <= 1 || w->step[2] != 0) return;
    if (w->step[1] != p->a_row * p->m || w->step[0] != p->n * p->m) return;
    p->m *= w->columns;
    p->count = w->rows;
    w->columns = 1;
}

static void plan_int8(wf_product *p, wf_call *c) {
    p->int8 = (wf_int8_plan){ .batch = p->batch, .count = p->count, .m = p->m, .n = p->n };
    p->int8.k = p->k;
    p->int8.a_row = p->a_row;
    p->int8.a_col = p->a_col;
    wf_int8_prepare(&p->int8, c);
}

/* Fills the plan. If the result is empty, the plan has no products (count 0). */
static bool plan_matmul(wf_call *c, void *plan) {
    wf_product *p = plan;
    const gemm_attrs *attrs = c->attrs;
    const wf_view *a = &c->in[0], *b = &c->in[1], *y = &c->out[0];
    int ta = attrs->transposed & WF_TRANSPOSE_A ? 1 : 0,
        tb = attrs->transposed & WF_TRANSPOSE_B ? 1 : 0;
    int i = a->ndim - 2, j = b->ndim - 2;
    *p = (wf_product){ .group = 1, .pieces = 1 };
    if (wf_view_count(y) == 0) return true;
    p->m = a->shape[i + ta];
    p->k = a->shape[i + !ta];
    p->n = b->shape[j + !tb];
    p->a_row = a->stride[i + ta];
    p->a_col = a->stride[i + !ta];
    p->b_row = b->stride[j + tb];
    p->b_col = b->stride[j + !tb];
    wf_view lead[] = { wf_leading_axes(y), wf_leading_axes(a), wf_leading_axes(b) };
    wf_walk_start(&p->batch, 3, (const wf_view *[]){ &lead[0], &lead[1], &lead[2] });
    p->count = p->batch.rows * p->batch.columns;
    merge_rows(p);
    p->pieces = pieces_of(c, p->m, p->n, p->k);
    if (b->layout) {
        /* time to read an element of b, expressed as a number of bytes; int8 adds 1 for every 16
         * rows of a, because their multiply-adds take as long */
        size_t unit =
            b->layout == WF_PANELS_INT8 ? 1 + (size_t)(p->count * p->m) / 16 : wf_view_unit(b);
        wf_block_panels(p, y->dtype, wf_panel_rows(b->dtype), unit);
        c->scratch_bytes = WF_KERNEL(y->dtype, panel_scratch);
        if (b->layout == WF_PANELS_INT8) plan_int8(p, c);
    } else {
        wf_block_product(p, c);
    }
    return true;
}

enum { COPIED = 1 << 14 }; /* elements of a that a task copies, in whole rows */

static int64_t copied_rows(const wf_product *p) {
    return COPIED / p->k + 1;
}

/* The number of tasks. With pieces, phase 0 has the products and phase 1 their sums. With a copied
 * a, phase 0 has the copies and phase 1 the products; with b in int8, phase 0 rounds the rows of
 * a. */
static int64_t tasks_matmul(const wf_call *c, int phase) {
    const wf_product *p = c->plan;
    if (phase > 1 || p->count == 0) return 0;
    if (p->pieces > 1) return p->pieces;
    if (c->in[1].layout == WF_PANELS_INT8)
        return phase == 0 ? wf_int8_round_tasks(&p->int8) : p->blocks.column_blocks;
    if (p->copies_a && phase == 0) return wf_task_count(p->m, copied_rows(p));
    if (!p->copies_a && phase == 1) return 0;
    return p->blocks.row_blocks * p->blocks.column_blocks * wf_task_count(p->count, p->group);
}

/* The offset of the addend's row that belongs to row `row` of all rows of c. */
static int64_t addend_row(const wf_call *c, int64_t row) {
    const wf_view *d = &c->in[ADDEND], *y = &c->out[0];
    int64_t at = 0;
    for (int i = y->ndim - 2, j = d->ndim - 2; j >= 0; i--, j--) {
        if (d->shape[j] > 1) at += row % y->shape[i] * d->stride[j];
        row /= y->shape[i];
    }
    return at;
}

/* The addend of a block of c, as gemm reads it. It is read where it is if it is row-major and has
 * the shape of c, or if it is one row for all; otherwise it is copied to c. */
typedef struct addend_block {
    const void *data; /* NULL: zeros */
    int64_t row;      /* elements from one row to the next */
} addend_block;

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

/* The addend of m rows from `row` on and n columns from j on. */
static addend_block addend_of(const wf_call *c, int64_t row, int64_t m, int64_t j, int64_t n) {
    const wf_view *d = &c->in[ADDEND], *y = &c->out[0];
    int64_t width = y->shape[y->ndim - 1];
    if (d->ndim < 0) return (addend_block){ NULL, 0 };
    bool same = wf_same_shape(d, y) && wf_view_dense(d);
    bool wide = d->ndim > 0 && d->shape[d->ndim - 1] == width && d->stride[d->ndim - 1] == 1;
    if (same) return (addend_block){ wf_at(d, row * width + j), width };
    if (wide && one_row_for_all(d)) return (addend_block){ wf_at(d, j), 0 };
    copy_addend(c, row, m, j, n);
    return (addend_block){ wf_at(y, row * width + j), width };
}

/* Compute the block of c at y: m rows of a, and n columns from j on. */
static void multiply_panels(const wf_product *p, const wf_call *c, int64_t m, int64_t n,
                            const void *a, int64_t j, void *y, addend_block d, void *scratch) {
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

/* The gemm arguments for m rows of a and n columns of b. */
static wf_matrix_product factors(const wf_product *p, int64_t m, int64_t n, int64_t k,
                                 const void *a, const void *b, void *y) {
    return (wf_matrix_product){ .m = m,
                                .n = n,
                                .k = k,
                                .a = a,
                                .a_row = p->a_row,
                                .a_col = p->a_col,
                                .b = b,
                                .b_row = p->b_row,
                                .b_col = p->b_col,
                                .c = y,
                                .c_row = p->n,
                                .block = p->block,
                                .a_packs = p->packs_a,
                                .b_stays = p->b_stays };
}

/* Compute the block of product `which` that begins at row i and column j. */
static void multiply(wf_product *p, const wf_call *c, int64_t which, int64_t i, int64_t j,
                     void *scratch) {
    wf_walk *w = &p->batch;
    int64_t at = which % w->columns;
    int64_t m = p->m - i < p->blocks.rows ? p->m - i : p->blocks.rows;
    int64_t n = p->n - j < p->blocks.columns ? p->n - j : p->blocks.columns;
    wf_walk_seek(w, which / w->columns);
    const void *a = wf_at(&c->in[0], w->at[1] + at * w->step[1] + i * p->a_row);
    const void *b = wf_at(&c->in[1], w->at[2] + at * w->step[2] + j * p->b_col);
    void *y = wf_at(&c->out[0], w->at[0] + at * w->step[0] + i * p->n + j);
    addend_block d = addend_of(c, which * p->m + i, m, j, n);
    if (c->in[1].layout) {
        multiply_panels(p, c, m, n, a, j, y, d, scratch);
        return;
    }
    wf_matrix_product block = factors(p, m, n, p->k, a, b, y);
    block.d = d.data;
    block.d_row = d.row;
    if (p->copies_a) {
        block.a = c->work;
        block.a_blocks = p->m;
        block.a_first = i;
    }
    WF_KERNEL(c->out[0].dtype, gemm(&block, scratch));
}

/* Copy some rows of a to the work memory: a block of k after the other, each with all rows. */
static void copy_rows(const wf_product *p, const wf_call *c, int64_t task) {
    size_t size = wf_dtype_size(c->out[0].dtype);
    wf_view work = { .data = c->work, .dtype = c->out[0].dtype };
    int64_t first, end;
    wf_task_range(p->m, copied_rows(p), task, &first, &end);
    for (int64_t from = 0; from < p->k; from += p->block) {
        int64_t k = p->k - from < p->block ? p->k - from : p->block;
        for (int64_t i = first; i < end; i++)
            memcpy(wf_at(&work, p->m * from + i * k), wf_at(&c->in[0], i * p->a_row + from),
                   (size_t)k * size);
    }
}

/* Compute the product of one piece of k, for all rows and columns, into the work memory. */
static void multiply_piece(const wf_product *p, const wf_call *c, int64_t piece, void *scratch) {
    int64_t from = p->k * piece / p->pieces, k = p->k * (piece + 1) / p->pieces - from;
    wf_view work = { .data = c->work, .dtype = c->out[0].dtype };
    wf_matrix_product block =
        factors(p, p->m, p->n, k, wf_at(&c->in[0], from * p->a_col),
                wf_at(&c->in[1], from * p->b_row), wf_at(&work, piece * p->m * p->n));
    WF_KERNEL(work.dtype, gemm(&block, scratch));
}

/* Sum addend + piece 0 + piece 1 + ..., for one block of rows. There are as many blocks as
 * pieces. */
static void sum_pieces(const wf_product *p, const wf_call *c, int64_t block) {
    int64_t from = p->m * block / p->pieces, to = p->m * (block + 1) / p->pieces, n = p->n;
    wf_view work = { .data = c->work, .dtype = c->out[0].dtype };
    addend_block d = addend_of(c, from, to - from, 0, n);
    wf_view addend = { .data = (void *)(uintptr_t)d.data, .dtype = work.dtype };
    for (int64_t i = from; i < to; i++) {
        const void *first = d.data ? wf_at(&addend, (i - from) * d.row) : wf_at(&work, i * n);
        void *y = wf_at(&c->out[0], i * n);
        if (first != y) memcpy(y, first, (size_t)n * wf_dtype_size(work.dtype));
        for (int64_t piece = d.data ? 0 : 1; piece < p->pieces; piece++)
            WF_KERNEL(work.dtype, accumulate(n, wf_at(&work, (piece * p->m + i) * n), y));
    }
}

/* Compute some columns of the result for all rows; or in the first phase, round some rows of a. */
static void multiply_int8(const wf_product *p, const wf_call *c, int phase, int64_t task,
                          void *scratch) {
    int64_t j = task * p->blocks.columns;
    int64_t n = p->n - j < p->blocks.columns ? p->n - j : p->blocks.columns;
    if (phase == 0) {
        wf_int8_round_rows(&p->int8, c, task, scratch);
        return;
    }
    addend_block d = addend_of(c, 0, p->count * p->m, j, n);
    wf_int8_multiply(&p->int8, c, j, n, d.data, d.row);
}

static bool eval_matmul(const wf_call *c, int phase, int64_t task, void *scratch) {
    wf_product p = *(const wf_product *)c->plan; /* a copy, because its walk is advanced */
    int64_t from, to;
    if (p.pieces > 1) {
        phase == 0 ? multiply_piece(&p, c, task, scratch) : sum_pieces(&p, c, task);
        return true;
    }
    if (c->in[1].layout == WF_PANELS_INT8) {
        multiply_int8(&p, c, phase, task, scratch);
        return true;
    }
    if (p.copies_a && phase == 0) {
        copy_rows(&p, c, task);
        return true;
    }
    const wf_blocking *by = &p.blocks;
    int64_t column = task % by->column_blocks, row = task / by->column_blocks % by->row_blocks;
    wf_task_range(p.count, p.group, task / by->column_blocks / by->row_blocks, &from, &to);
    for (int64_t which = from; which < to; which++)
        multiply(&p, c, which, row * by->rows, column * by->columns, scratch);
    return true;
}

/* b may be packed in panels if it is one matrix, and transposed. */
static uint32_t panels_matmul(const wf_call *c) {
    const gemm_attrs *attrs = c->attrs;
    return attrs->transposed & WF_TRANSPOSE_B && c->in[1].ndim == 2 ? 1 << 1 : 0;
}

static double flops_matmul(const wf_call *c) {
    wf_view a = factor(c, 0);
    return 2 * (double)wf_view_count(&c->out[0]) * (double)a.shape[a.ndim - 1];
}

/* ---- gradient -------------------------------------------------------------------------------- */

/* Merge all leading axes into the rows of one matrix. */
static wf_tensor *tall(wf_tensor *x) {
    return x->ndim == 2 ? x : wf_reshape(x, 2, (int64_t[]){ WF_REST, WF_KEEP });
}

static wf_tensor *record(wf_tensor *a, wf_tensor *b, wf_tensor *addend, const gemm_attrs *attrs) {
    return wf_record(&wf_op_matmul, 3, (wf_tensor *[]){ a, b, addend }, attrs);
}

/* The operand of a copy, or b itself if it is no copy. The operand may be the transpose of a
 * row-major matrix, which the product reads as it is. */
static wf_tensor *source_of(wf_tensor *b) {
    return b->op == &wf_op_copy ? b->in[0] : b;
}

/* c_ij = sum_p a_ip b_pj. With dc = dL/dc:  dL/da_ip = sum_j dc_ij b_pj, that is dA = dC B^T, and
 * dL/db_pj = sum_i a_ip dc_ij, that is dB = A^T dC. For a transposed operand the gradient is the
 * transpose of that, which is the product with its factors exchanged. If the whole batch has one B,
 * dB is one product over all rows. If B is the transpose of a matrix, the gradient is computed as
 * that matrix lies, with the factors exchanged: the same sums, without a copy, in rows as long as
 * those of A. The gradient of the addend is dC. */
static void grad_matmul(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    wf_tensor *a = y->in[0], *b = y->in[1], *dc = dy[0];
    unsigned flags = ((const gemm_attrs *)y->attrs)->transposed;
    bool ta = flags & WF_TRANSPOSE_A, tb = flags & WF_TRANSPOSE_B;
    if (need & 1)
        dx[0] = ta ? wf_gemm(b, dc, NULL, WF_TRANSPOSE_B | (tb ? WF_TRANSPOSE_A : 0))
                   : wf_gemm(dc, source_of(b), NULL, tb ? 0 : WF_TRANSPOSE_B);
    if ((need & 2) && b->ndim == 2 && !ta) {
        a = tall(a);
        dc = tall(dc);
    }
    if (need & 2) {
        unsigned sides = tb ? WF_TRANSPOSE_A | (ta ? WF_TRANSPOSE_B : 0) : ta ? 0 : WF_TRANSPOSE_A;
        gemm_attrs attrs = { sides, b->ndim == 2 };
        if (sides == WF_TRANSPOSE_A && !tb && wf_is_turned(b))
            dx[1] = wf_transpose(record(dc, a, NULL, &attrs), 0, 1);
        else
            dx[1] = tb ? record(dc, a, NULL, &attrs) : record(a, dc, NULL, &attrs);
    }
    if (need >> ADDEND & 1) dx[ADDEND] = dy[0];
}

bool wf_fuse_matmul_add(wf_rewrite *r, const wf_tensor *sum, const wf_tensor *y) {
    return wf_fuse_addend(r, sum, y, ADDEND);
}

/* Shapes: a [..., m, k], b [..., k, n], addend broadcasts to y -> y [..., m, n]; leading axes
 * broadcast.
 * Limits: Two axes or more, all real. Inner sizes that differ fail the graph. Each element is one
 * chain of multiply-adds over k, but for a b kept as int8, and for the gradient of a small b. */
const wf_op wf_op_matmul = {
    .name = "matmul",
    .family = "matmul",
    .formula = "matmul(a, b, addend): a b + addend; a^T if transposed is 1 or 3, b^T if 2 or 3",
    .arity = 3,
    .attr_bytes = sizeof(gemm_attrs),
    .attributes = "unsigned transposed, bool gradient",
    .shape = shape_matmul,
    .grad = grad_matmul,
    .optional = 1 << ADDEND,
    .run = &(const wf_kernel){ .plan_bytes = sizeof(wf_product),
                               .plan = plan_matmul,
                               .tasks = tasks_matmul,
                               .eval = eval_matmul,
                               .flops = flops_matmul,
                               .panels = panels_matmul,
                               .strided = 1 << 0 | 1 << 1 | 1 << ADDEND,
                               .exclusive = true,
                               .in_place = 1 << ADDEND,
                               .emit = wf_emit_matmul },
};

wf_tensor *wf_gemm(wf_tensor *a, wf_tensor *b, wf_tensor *addend, unsigned transposed) {
    WF_COMPOSE("gemm", a, b, addend ? addend : a);
    return wf_composed(record(a, b, addend, &(gemm_attrs){ transposed, false }));
}

wf_tensor *wf_matmul(wf_tensor *a, wf_tensor *b) {
    return record(a, b, NULL, &(gemm_attrs){ 0, false });
}
