/* ops/update_product.c - Adam's step within the product that makes the gradient.
 *
 *     dW[m, n] = a[m, k] b[k, n];   then adam_step (update.c) with dW
 *
 * For a weight W of y = x W^T the gradient is dW = dy^T x. A block of its rows is computed and used
 * at once, so that it never goes to memory and the traffic of p, m and v hides behind the
 * arithmetic. Not possible where the update must know the norm of all gradients first. What is here
 * is how the work is cut, by shape; the arithmetic is gemm_adam of kernels/. */
#include "update.h"

enum { IN_A = ADAM_V + 1, IN_B, IN_SCALE, IN_RATES, OPERANDS };

typedef struct product_attrs {
    wf_adam_options adam;
    unsigned transposed; /* as of matmul: WF_TRANSPOSE_A, WF_TRANSPOSE_B */
} product_attrs;

/* Columns of a task's block at most, and at least where it is cut for the sake of ENOUGH_TASKS. */
enum { MOST_COLUMNS = 512, LEAST_COLUMNS = 128, ENOUGH_TASKS = 8 };

typedef struct product {
    int64_t m, n, k, inner; /* k of a, and of b */
    int64_t a_row, a_col, b_row, b_col;
    bool upright; /* a is stood upright in the work memory first: its columns are contiguous */
    int64_t rows, columns, row_blocks, column_blocks;
} product;

static product product_of(const wf_call *c) {
    const wf_view *a = &c->in[IN_A], *b = &c->in[IN_B];
    const product_attrs *attrs = c->attrs;
    bool ta = attrs->transposed & WF_TRANSPOSE_A, tb = attrs->transposed & WF_TRANSPOSE_B;
    product p = {
        .m = a->shape[ta], .k = a->shape[!ta], .n = b->shape[!tb], .inner = b->shape[tb]
    };
    p.a_row = a->stride[ta], p.a_col = a->stride[!ta];
    p.b_row = b->stride[tb], p.b_col = b->stride[!tb];
    p.upright = p.a_row == 1 && p.a_col > 1 && p.k > 1;
    return p;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static bool product_fits(wf_call *c) {
    const wf_view *a = &c->in[IN_A], *b = &c->in[IN_B], *leaf = &c->in[ADAM_PARAM];
    if (!wf_want_real(c, IN_A) || !wf_want_real(c, IN_B)) return false;
    if (a->ndim != 2 || b->ndim != 2)
        return wf_fail(c, "%s x %s: not two matrices", wf_show(c, a), wf_show(c, b));
    product p = product_of(c);
    if (p.inner != p.k)
        return wf_fail(c, "%s x %s: inner dimensions %lld and %lld differ", wf_show(c, a),
                       wf_show(c, b), (long long)p.k, (long long)p.inner);
    return (leaf->ndim == 2 && leaf->shape[0] == p.m && leaf->shape[1] == p.n) ||
           wf_fail(c, "the gradient is [%lld,%lld], the leaf %s", (long long)p.m, (long long)p.n,
                   wf_show(c, leaf));
}

static bool shape_product(wf_call *c) {
    const product_attrs *attrs = c->attrs;
    if (!wf_adam_fits(c, &attrs->adam, IN_SCALE) || !product_fits(c)) return false;
    product p = product_of(c);
    int64_t bytes = 0;
    if (p.m &&
        !wf_mul_size(wf_upright_row(p.k) * (int64_t)wf_dtype_size(c->in[IN_A].dtype), p.m, &bytes))
        return wf_fail(c, "%s is too large to be transposed", wf_show(c, &c->in[IN_A]));
    c->scratch_bytes = WF_KERNEL(c->in[IN_A].dtype, gemm_adam_scratch);
    c->work_bytes = (size_t)bytes;
    return true;
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static void cut(product *p, wf_dtype type) {
    int64_t most = WF_KERNEL(type, gemm_adam_rows), pieces = 1;
    p->row_blocks = wf_blocks(p->m, (p->m + most - 1) / most, WF_KERNEL(type, gemm_rows), &p->rows);
    while (p->n > pieces * MOST_COLUMNS ||
           (p->row_blocks * pieces < ENOUGH_TASKS && p->n >= 2 * pieces * LEAST_COLUMNS))
        pieces *= 2;
    p->column_blocks = wf_blocks(p->n, pieces, WF_KERNEL(type, gemm_columns), &p->columns);
}

static int64_t tasks_product(const wf_call *c, int phase) {
    product p = product_of(c);
    if (phase == 0 && p.upright) return wf_task_count(p.m, WF_UPRIGHT_ROWS);
    if (phase > (p.upright ? 1 : 0) || p.m == 0 || p.n == 0) return 0;
    cut(&p, c->in[IN_A].dtype);
    return p.row_blocks * p.column_blocks;
}

static bool eval_product(const wf_call *c, int phase, int64_t task, void *scratch) {
    const product_attrs *attrs = c->attrs;
    product p = product_of(c);
    wf_adam_rule rule;
    if (!wf_adam_rule_of(c, &attrs->adam, IN_SCALE, &rule)) return false;
    if (phase == 0 && p.upright) {
        wf_stand_up(c, &c->in[IN_A], p.m, p.k, p.a_col, task);
        return true;
    }
    wf_view a = c->in[IN_A];
    if (p.upright) a.data = c->work, p.a_row = wf_upright_row(p.k), p.a_col = 1;
    cut(&p, a.dtype);
    int64_t i = task / p.column_blocks * p.rows, j = task % p.column_blocks * p.columns;
    int64_t m = p.m - i < p.rows ? p.m - i : p.rows, n = p.n - j < p.columns ? p.n - j : p.columns;
    int64_t at = i * p.n + j;
    WF_KERNEL(a.dtype, gemm_adam(m, n, p.k, wf_at(&a, i * p.a_row), p.a_row, p.a_col,
                                 wf_at(&c->in[IN_B], j * p.b_col), p.b_row, p.b_col,
                                 wf_at(&c->in[ADAM_PARAM], at), wf_at(&c->in[ADAM_M], at),
                                 wf_at(&c->in[ADAM_V], at), p.n, &rule, scratch));
    return true;
}

static double flops_product(const wf_call *c) {
    return (15.0 + 2.0 * (double)product_of(c).k) * (double)wf_view_count(&c->in[ADAM_PARAM]);
}

const wf_op wf_op_adam_product_step = {
    .name = "adam_product_step",
    .family = "update",
    .arity = OPERANDS,
    .attr_bytes = sizeof(product_attrs),
    .shape = shape_product,
    .tasks = tasks_product,
    .eval = eval_product,
    .no_grad = "an update has no value to differentiate",
    .flops = flops_product,
    .strided = 1 << IN_A | 1 << IN_B,
    .writes = 1 << ADAM_PARAM | 1 << ADAM_M | 1 << ADAM_V,
};

/* matmul: operands a, b, addend */
static bool is_plain_product(const wf_tensor *t) {
    return t && t->op == &wf_op_matmul && t->in[0]->ndim == 2 && t->in[1]->ndim == 2 && !t->in[2];
}

wf_tensor *wf_adam_product_step(wf_tensor *param, wf_tensor *m, wf_tensor *v, wf_tensor *grad,
                                wf_tensor *scale, wf_tensor *rates,
                                const wf_adam_options *options) {
    if (!is_plain_product(grad)) return wf_adam_step(param, m, v, grad, scale, rates, options);
    product_attrs attrs = { options ? *options : wf_adam_default, wf_gemm_transposed(grad) };
    return wf_record(&wf_op_adam_product_step, OPERANDS,
                     (wf_tensor *[]){ param, m, v, grad->in[0], grad->in[1], scale, rates },
                     &attrs);
}
