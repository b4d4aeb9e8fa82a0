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

typedef struct product {
    int64_t m, n, k, inner; /* k of a, and of b */
    int64_t a_row, a_col, b_row, b_col;
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
    c->scratch_bytes = WF_KERNEL(c->in[IN_A].dtype, gemm_adam_scratch);
    return true;
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static wf_cut cut_of(const wf_call *c, const product *p) {
    return wf_cut_upright(p->m, p->n, WF_UPDATE_COLUMNS, c->in[IN_A].dtype);
}

static int64_t tasks_product(const wf_call *c, int phase) {
    product p = product_of(c);
    if (phase > 0 || p.m == 0 || p.n == 0) return 0;
    wf_cut cut = cut_of(c, &p);
    return cut.row_blocks * cut.column_blocks;
}

static bool eval_product(const wf_call *c, int phase, int64_t task, void *scratch) {
    const product_attrs *attrs = c->attrs;
    product p = product_of(c);
    wf_adam_rule rule;
    if (!wf_adam_rule_of(c, &attrs->adam, IN_SCALE, &rule)) return false;
    (void)phase;
    wf_cut cut = cut_of(c, &p);
    int64_t i = task / cut.column_blocks * cut.rows, j = task % cut.column_blocks * cut.columns;
    int64_t m = p.m - i < cut.rows ? p.m - i : cut.rows;
    int64_t n = p.n - j < cut.columns ? p.n - j : cut.columns;
    int64_t at = i * p.n + j;
    WF_KERNEL(c->in[IN_A].dtype,
              gemm_adam(m, n, p.k, wf_at(&c->in[IN_A], i * p.a_row), p.a_row, p.a_col,
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
    if (!is_plain_product(grad) || wf_gemm_cuts_k(grad))
        return wf_adam_rows_step(param, m, v, grad, scale, rates, options);
    product_attrs attrs = { options ? *options : wf_adam_default, wf_gemm_transposed(grad) };
    return wf_record(&wf_op_adam_product_step, OPERANDS,
                     (wf_tensor *[]){ param, m, v, grad->in[0], grad->in[1], scale, rates },
                     &attrs);
}
