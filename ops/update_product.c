/* ops/update_product.c - Adam's step within the products that make the gradient.
 *
 *     dW[m, n] = a[m, k] b[k, n];   then adam_step (update.c) with dW
 *
 * For a weight W of y = x W^T the gradient is dW = dy^T x. A block of its rows is computed and used
 * at once, so that it never goes to memory and the traffic of p, m and v hides behind the
 * arithmetic. Where slices of W's rows were used, like those for queries and for keys and values,
 * dW is several products one below the other. Not possible where the update must know the norm of
 * all gradients first. What is here is how the work is cut, by shape; the arithmetic is gemm_adam
 * of kernels/. */
#include "update.h"

/* Operands: the leaf and its moments, scale, rates, and a and b of every part. */
enum { IN_SCALE = ADAM_V + 1, IN_RATES, IN_PARTS, MAX_PARTS = (WF_MAX_OPERANDS - IN_PARTS) / 2 };

typedef struct product_attrs {
    wf_adam_options adam;
    unsigned transposed[MAX_PARTS]; /* as of matmul: WF_TRANSPOSE_A, WF_TRANSPOSE_B */
} product_attrs;

/* One part: it owns the m rows of the leaf behind those of the parts before it. */
typedef struct product {
    const wf_view *a, *b;
    int64_t m, n, k, inner; /* k of a, and of b */
    int64_t a_row, a_col, b_row, b_col;
} product;

static int count_parts(const wf_call *c) {
    return (c->n_in - IN_PARTS) / 2;
}

static product part_of(const wf_call *c, int i) {
    const product_attrs *attrs = c->attrs;
    const wf_view *a = &c->in[IN_PARTS + 2 * i], *b = a + 1;
    bool ta = attrs->transposed[i] & WF_TRANSPOSE_A, tb = attrs->transposed[i] & WF_TRANSPOSE_B;
    product p = { .a = a, .b = b };
    p.m = a->shape[ta], p.k = a->shape[!ta], p.n = b->shape[!tb], p.inner = b->shape[tb];
    p.a_row = a->stride[ta], p.a_col = a->stride[!ta];
    p.b_row = b->stride[tb], p.b_col = b->stride[!tb];
    return p;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static bool is_product(wf_call *c, int i) {
    product p = part_of(c, i);
    if (!wf_want_real(c, IN_PARTS + 2 * i) || !wf_want_real(c, IN_PARTS + 2 * i + 1)) return false;
    if (p.a->ndim != 2 || p.b->ndim != 2)
        return wf_fail(c, "%s x %s: not two matrices", wf_show(c, p.a), wf_show(c, p.b));
    return p.inner == p.k ||
           wf_fail(c, "%s x %s: inner dimensions %lld and %lld differ", wf_show(c, p.a),
                   wf_show(c, p.b), (long long)p.k, (long long)p.inner);
}

/* The parts one below the other are the leaf's gradient. */
static bool parts_fit(wf_call *c) {
    const wf_view *leaf = &c->in[ADAM_PARAM];
    int64_t rows = 0;
    if (leaf->ndim != 2) return wf_fail(c, "the leaf %s is not a matrix", wf_show(c, leaf));
    for (int i = 0; i < count_parts(c); i++) {
        if (!is_product(c, i)) return false;
        product p = part_of(c, i);
        if (p.n != leaf->shape[1] || p.m > leaf->shape[0] - rows)
            return wf_fail(c, "the gradient from row %lld on is [%lld,%lld], the leaf %s",
                           (long long)rows, (long long)p.m, (long long)p.n, wf_show(c, leaf));
        rows += p.m;
    }
    return rows == leaf->shape[0] || wf_fail(c, "the gradient has %lld rows, the leaf is %s",
                                             (long long)rows, wf_show(c, leaf));
}

static bool shape_product(wf_call *c) {
    const product_attrs *attrs = c->attrs;
    if (!wf_adam_fits(c, &attrs->adam, IN_SCALE) || !parts_fit(c)) return false;
    c->scratch_bytes = WF_KERNEL(c->in[ADAM_PARAM].dtype, gemm_adam_scratch);
    return true;
}

/* ---- tasks ----------------------------------------------------------------------------------- */

/* How a part is cut, and into how many blocks. */
static int64_t blocks_of(const product *p, wf_cut *cut) {
    if (p->m == 0 || p->n == 0) return 0;
    *cut = wf_cut_upright(p->m, p->n, WF_UPDATE_COLUMNS, p->a->dtype);
    return cut->row_blocks * cut->column_blocks;
}

static int64_t tasks_product(const wf_call *c, int phase) {
    int64_t tasks = 0;
    wf_cut cut;
    for (int i = 0; phase == 0 && i < count_parts(c); i++) {
        product p = part_of(c, i);
        tasks += blocks_of(&p, &cut);
    }
    return tasks;
}

/* A block of a part whose rows begin at the leaf's row `first`. */
static void update_block(const wf_call *c, const product *p, const wf_cut *cut, int64_t block,
                         int64_t first, const wf_adam_rule *rule, void *scratch) {
    int64_t i = block / cut->column_blocks * cut->rows;
    int64_t j = block % cut->column_blocks * cut->columns;
    int64_t m = p->m - i < cut->rows ? p->m - i : cut->rows;
    int64_t n = p->n - j < cut->columns ? p->n - j : cut->columns;
    int64_t at = (first + i) * p->n + j;
    WF_KERNEL(p->a->dtype, gemm_adam(m, n, p->k, wf_at(p->a, i * p->a_row), p->a_row, p->a_col,
                                     wf_at(p->b, j * p->b_col), p->b_row, p->b_col,
                                     wf_at(&c->in[ADAM_PARAM], at), wf_at(&c->in[ADAM_M], at),
                                     wf_at(&c->in[ADAM_V], at), p->n, rule, scratch));
}

static bool eval_product(const wf_call *c, int phase, int64_t task, void *scratch) {
    const product_attrs *attrs = c->attrs;
    wf_adam_rule rule;
    if (!wf_adam_rule_of(c, &attrs->adam, IN_SCALE, &rule)) return false;
    (void)phase;
    int64_t first = 0;
    for (int i = 0; i < count_parts(c); i++) {
        wf_cut cut = { 0 };
        product p = part_of(c, i);
        int64_t blocks = blocks_of(&p, &cut);
        if (task < blocks) {
            update_block(c, &p, &cut, task, first, &rule, scratch);
            break;
        }
        task -= blocks, first += p.m;
    }
    return true;
}

static double flops_product(const wf_call *c) {
    double flops = 0;
    for (int i = 0; i < count_parts(c); i++) {
        product p = part_of(c, i);
        flops += (15.0 + 2.0 * (double)p.k) * (double)p.m * (double)p.n;
    }
    return flops;
}

const wf_op wf_op_adam_product_step = {
    .name = "adam_product_step",
    .family = "update",
    .arity = -1,
    .attr_bytes = sizeof(product_attrs),
    .shape = shape_product,
    .no_grad = "an update has no value to differentiate",
    .writes = 1 << ADAM_PARAM | 1 << ADAM_M | 1 << ADAM_V,
    .run =
        &(const wf_kernel){
            .tasks = tasks_product,
            .eval = eval_product,
            .flops = flops_product,
            .strided = ~0u << IN_PARTS,
        },
};

/* ---- which gradients ------------------------------------------------------------------------- */

/* matmul: operands a, b, addend */
static bool is_plain_product(const wf_tensor *t) {
    return t && t->op == &wf_op_matmul && t->in[0]->ndim == 2 && t->in[1]->ndim == 2 && !t->in[2];
}

/* The products that the gradient of a leaf is made of, one below the other; their number, or 0 if
 * it is made otherwise, one of them is summed in pieces, or one reads what the step writes. */
static int products_of(const wf_adam_leaves *leaves, wf_tensor *grad,
                       wf_tensor *part[WF_MAX_OPERANDS]) {
    int n = 1;
    if (is_plain_product(grad))
        part[0] = grad;
    else
        n = wf_stacked(grad, part);
    for (int i = 0; i < n; i++)
        if (!is_plain_product(part[i]) || wf_gemm_cuts_k(part[i]) ||
            wf_adam_writes(leaves, part[i]->in[0]) || wf_adam_writes(leaves, part[i]->in[1]))
            return 0;
    return n <= MAX_PARTS ? n : 0;
}

wf_tensor *wf_adam_product_step(wf_tensor *param, wf_tensor *m, wf_tensor *v, wf_tensor *grad,
                                wf_tensor *scale, wf_tensor *rates,
                                const wf_adam_options *options) {
    wf_tensor *part[WF_MAX_OPERANDS], *in[WF_MAX_OPERANDS] = { param, m, v, scale, rates };
    int n = products_of(&(wf_adam_leaves){ { param, m, v } }, grad, part);
    if (n == 0) return wf_adam_rows_step(param, m, v, grad, scale, rates, options);
    product_attrs attrs = { .adam = options ? *options : wf_adam_default };
    for (int i = 0; i < n; i++) {
        attrs.transposed[i] = wf_gemm_transposed(part[i]);
        in[IN_PARTS + 2 * i] = part[i]->in[0], in[IN_PARTS + 2 * i + 1] = part[i]->in[1];
    }
    return wf_record(&wf_op_adam_product_step, IN_PARTS + 2 * n, in, &attrs);
}
