/* ops/reduce/square_sum.c - sums of squares over all elements: one sum, or one for each block of
 * elements.
 *
 * Blocks are WF_SQUARE_BLOCK consecutive elements in row-major order; the last one may be shorter.
 * A norm of gradients is the root of the sum over all blocks of all gradients
 * (nn/train/optimizer.c). So several machines can compute the sums of different blocks, and the
 * bits are the same. */
#include "ops/base/op_base.h"
#include "ops/base/shapes.h"
#include "ops/base/walk.h"
#include "ops/emit/loops.h"
#include "ops/update/sums.h"

static int64_t block_count(const wf_call *c) {
    return (wf_view_count(&c->in[0]) + WF_SQUARE_BLOCK - 1) / WF_SQUARE_BLOCK;
}

static double block_sum(const wf_call *c, int64_t block) {
    int64_t from = block * WF_SQUARE_BLOCK, n = wf_view_count(&c->in[0]) - from;
    if (n > WF_SQUARE_BLOCK) n = WF_SQUARE_BLOCK;
    return WF_KERNEL(c->in[0].dtype, square_sum(n, wf_at(&c->in[0], from)));
}

/* ---- square_sum: sum of x^2 over all elements ------------------------------------------------ */

static bool shape_square_sum(wf_call *c) {
    if (!wf_want_real(c, 0)) return false;
    wf_set_shape(&c->out[0], c->in[0].dtype, 0, NULL);
    return true;
}

/* No elements count as one empty block: without a task in phase 0 there would be no phase 1. */
static int64_t summed_blocks(const wf_call *c) {
    int64_t blocks = block_count(c);
    return blocks > 0 ? blocks : 1;
}

static bool plan_square_sum(wf_call *c, void *plan) {
    (void)plan;
    c->work_bytes = (size_t)summed_blocks(c) * sizeof(double);
    return true;
}

static int64_t tasks_square_sum(const wf_call *c, int phase) {
    return phase == 0 ? summed_blocks(c) : phase == 1;
}

/* Phase 0: the sum of each block; phase 1: their sum, in order. */
static bool eval_square_sum(const wf_call *c, int phase, int64_t task, void *scratch) {
    double *block = c->work, total = 0;
    (void)scratch;
    if (phase == 0) {
        block[task] = block_sum(c, task);
        return true;
    }
    for (int64_t i = 0; i < summed_blocks(c); i++) total += block[i];
    wf_put(&c->out[0], 0, total);
    return true;
}

static bool emit_square_sum(wf_emitter *e, const wf_call *c) {
    int64_t n = wf_view_count(&c->in[0]);
    wf_emit_text(e, "double total = 0;\nfor (int i = 0; i < %n; i += %d)\n", n, WF_SQUARE_BLOCK);
    wf_emit_text(e, "total += squares(%n - i < %d ? %n - i : %d, x + i, 0.0f);\n", n,
                 WF_SQUARE_BLOCK, n, WF_SQUARE_BLOCK);
    wf_emit_text(e, "out[0] = (float)total;\n");
    return true;
}

/* y = sum of x^2: the derivative is 2 x. */
static void grad_square_sum(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    (void)need;
    dx[0] = wf_mul(wf_scale(dy[0], 2), y->in[0]);
}

/* Shapes: x real, of any shape -> [].
 * Limits: In f32 it overflows where the sum is above 3.4e38. */
const wf_op wf_op_square_sum = {
    .name = "square_sum",
    .family = "reduce",
    .formula = "square_sum(x): the sum of x^2 over all elements",
    .arity = 1,
    .shape = shape_square_sum,
    .grad = grad_square_sum,
    .run = &(const wf_kernel){ .plan = plan_square_sum,
                               .tasks = tasks_square_sum,
                               .eval = eval_square_sum,
                               .emit = emit_square_sum,
                               .flops = wf_flops_of_operand },
};

wf_tensor *wf_square_sum(wf_tensor *x) {
    return wf_record(&wf_op_square_sum, 1, &x, NULL);
}

/* ---- square_sums: one of each block ---------------------------------------------------------- */

static bool shape_square_sums(wf_call *c) {
    int64_t blocks = block_count(c);
    if (!wf_want_real(c, 0)) return false;
    wf_set_shape(&c->out[0], c->in[0].dtype, 1, &blocks);
    return true;
}

static int64_t tasks_square_sums(const wf_call *c, int phase) {
    return phase == 0 ? block_count(c) : 0;
}

static bool eval_square_sums(const wf_call *c, int phase, int64_t task, void *scratch) {
    (void)phase;
    (void)scratch;
    wf_put(&c->out[0], task, block_sum(c, task));
    return true;
}

static bool emit_square_sums(wf_emitter *e, const wf_call *c) {
    int64_t n = wf_view_count(&c->in[0]);
    wf_emit_text(e, "for (int b = 0; b < %n; b++) {\nint i = b * %d;\n", block_count(c),
                 WF_SQUARE_BLOCK);
    wf_emit_text(e, "out[b] = (float)squares(%n - i < %d ? %n - i : %d, x + i, 0.0f);\n}\n", n,
                 WF_SQUARE_BLOCK, n, WF_SQUARE_BLOCK);
    return true;
}

/* Shapes: x real, of any shape -> [ceil(elements / 16384)].
 * Limits: The last block may be shorter. Blocks are cut in row-major order. */
const wf_op wf_op_square_sums = {
    .name = "square_sums",
    .family = "reduce",
    .formula = "square_sums(x): the sums of x^2 over blocks of 16384 elements",
    .arity = 1,
    .shape = shape_square_sums,
    .no_grad = "square_sum has a gradient; the sums of blocks are for norms",
    .run = &(const wf_kernel){ .tasks = tasks_square_sums,
                               .eval = eval_square_sums,
                               .emit = emit_square_sums,
                               .flops = wf_flops_of_operand },
};

wf_tensor *wf_square_sums(wf_tensor *x) {
    return wf_record(&wf_op_square_sums, 1, &x, NULL);
}
