/* weft/ops/custom.h - helps programs to define their own ops: loops over strided and broadcast
 * operands, tasks, checks. core/op.h explains what an op is. The library's ops are written with the
 * same functions.
 *
 * This is a complete op, y = x / (1 + |x|), with its gradient (1 - |y|)^2. It works for f32 and
 * f64, any strides, and any number of threads. The program checks its gradient:
 *
 *     #include <math.h>
 *     #include <stdio.h>
 *     #include <weft/ops/custom.h>
 *
 *     WF_ELEMENTWISE(eval_softsign, x / (1 + fabs(x)))
 *
 *     static void grad_softsign(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx,
 *                               uint32_t need) {
 *         (void)need;
 *         dx[0] = wf_mul(dy[0], wf_square(wf_affine(wf_abs(y), -1, 1)));
 *     }
 *
 *     static const wf_kernel run_softsign = { WF_ELEMENTWISE_RUN(eval_softsign) };
 *     static const wf_op softsign = { .name = "softsign",
 *                                     .family = "elementwise",
 *                                     .formula = "softsign(x): x / (1 + |x|)",
 *                                     .arity = 1,
 *                                     .shape = wf_same_as_operands,
 *                                     .grad = grad_softsign,
 *                                     .run = &run_softsign };
 *
 *     static wf_tensor *softsign_of(wf_tensor *x) {
 *         return wf_record(&softsign, 1, &x, NULL);
 *     }
 *
 *     int main(void) {
 *         wf_graph *g = wf_graph_new(&(wf_graph_options){ .real = WF_F64 });
 *         wf_tensor *x = wf_param(g, "x", 2, (int64_t[]){ 3, 5 }, wf_init_normal(1));
 *         wf_tensor *y = softsign_of(wf_transpose(x, 0, 1));
 *         wf_tensor *loss = wf_sum(wf_square(y), WF_ALL_AXES, false);
 *         double error = wf_check_gradients(g, loss, &x, 1, NULL);
 *         printf("%s error %s\n", wf_error(g),
 *                error < 1e-8 ? "below 1e-8" : "too large");
 *         wf_graph_free(g);
 *         return !(error < 1e-8);
 *     }
 *
 * An op of several phases, with work memory, or that reads packed weights, sets more fields of
 * wf_kernel: core/kernel.h. Operands come row-major without gaps, unless the kernel says
 * `strided`. */
#ifndef WEFT_OPS_CUSTOM_H
#define WEFT_OPS_CUSTOM_H

#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- elements -------------------------------------------------------------------------------- */

enum { WF_GRAIN = 16384 }; /* largest size of a task, in elements; wf_task_range may add up to 15 */

/* A pointer to element i of a view's memory. i is an offset in elements, such as a sum of indices
 * times strides, and not the number of an element in row-major order. */
static inline void *wf_at(const wf_view *v, int64_t i) {
    return (char *)v->data + i * (v->dtype == WF_F64 ? 8 : 4);
}
/* Read one element as a double; write one from a double. */
WF_API double wf_get(const wf_view *v, int64_t i);
WF_API void wf_put(const wf_view *v, int64_t i, double value);

/* Repeat statements with `real` as float or as double: WF_REALS(type, real *y = ...; ...) */
#define WF_REALS(type, ...)                                                                        \
    do {                                                                                           \
        if ((type) == WF_F64) {                                                                    \
            typedef double real;                                                                   \
            __VA_ARGS__                                                                            \
        } else {                                                                                   \
            typedef float real;                                                                    \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    } while (0)

/* ---- element by element ---------------------------------------------------------------------- */

/* Define an eval function by an expression of x, y, z: the elements of up to three operands, which
 * broadcast. `attrs` points to the op's attributes. */
/* clang-format off */
#define WF_ELEMENTWISE(name, expression)                                                           \
    static bool name(const wf_call *c, int phase, int64_t task, void *scratch) {                   \
        const void *attrs = c->attrs;                                                              \
        wf_runs r;                                                                                 \
        (void)phase, (void)scratch, (void)attrs;                                                   \
        for (wf_runs_start(&r, c, task, false); wf_runs_next(&r);)                                 \
            WF_REALS(c->out[0].dtype,                                                              \
                const real *px = (const real *)r.in[0];                                            \
                const real *py = c->n_in > 1 ? (const real *)r.in[1] : px;                         \
                const real *pz = c->n_in > 2 ? (const real *)r.in[2] : px;                         \
                real *to = (real *)r.out;                                                          \
                for (int64_t i = 0; i < r.n; i++) {                                                \
                    const real x = px[i], y = py[i], z = pz[i];                                    \
                    (void)x, (void)y, (void)z;                                                     \
                    to[i] = (real)(expression);                                                    \
                });                                                                                \
        return true;                                                                               \
    }
/* clang-format on */
/* The members of a wf_kernel whose eval function WF_ELEMENTWISE has defined. */
#define WF_ELEMENTWISE_RUN(name)                                                                   \
    .tasks = wf_elementwise_tasks, .eval = name, .strided = 7, .in_place = 7

/* Runs divide the elements of out[0] that belong to a task into pieces of consecutive elements. In
 * a run, operands have step 0 or 1 (only 1, unless `repeat`); operands with other strides are first
 * copied to a buffer. There may be at most three operands:
 *
 *     for (wf_runs_start(&r, c, task, true); wf_runs_next(&r);)
 *         kernel(r.n, r.in[0], r.step[0], ..., r.out); */
enum { WF_WALKERS = 4, WF_GATHERED = 256 };
/* A walk visits the rows of several views together. Its shape is that of views[0], to which the
 * others broadcast. Axes that are contiguous in all views are merged, so that dense views of one
 * shape are a single row. */
typedef struct wf_walk {
    int n;    /* number of views, at most WF_WALKERS */
    int ndim; /* number of axes before the row's own, after merging */
    int64_t rows, columns;
    int64_t shape[WF_MAX_DIMS]; /* sizes of the axes before the row's own */
    /* stride of each view along the axes before the row's own; 0 where the view broadcasts */
    int64_t stride[WF_WALKERS][WF_MAX_DIMS];
    int64_t step[WF_WALKERS];   /* step of each view along a row */
    int64_t index[WF_MAX_DIMS]; /* index of the current row */
    int64_t at[WF_WALKERS];     /* offset of the current row in each view */
} wf_walk;
typedef struct wf_runs {
    int64_t n; /* elements of this run */
    void *out;
    const void *in[WF_WALKERS - 1];
    int64_t step[WF_WALKERS - 1];
    const wf_call *call;
    bool repeat, gathers;
    bool spans; /* one run of elements may go on through several short rows */
    /* for runs of elements over several rows, how each operand is read: IN_PLACE and so on in
     * walk.c */
    uint8_t way[WF_WALKERS - 1];
    /* column: position in the row; left: elements of the task that remain, those of the current run
     * included */
    int64_t column, left;
    wf_walk walk;
    double gathered[WF_WALKERS - 1][WF_GATHERED];
} wf_runs;
/* The runs of a task of an elementwise op: call start, and then next until it returns false, which
 * means that there are no more runs. */
WF_API void wf_runs_start(wf_runs *r, const wf_call *c, int64_t task, bool repeat);
WF_API bool wf_runs_next(wf_runs *r);
/* The number of tasks of an elementwise op: the member `tasks` of a wf_kernel whose eval function
 * uses wf_runs. Phases other than 0 have none. */
WF_API int64_t wf_elementwise_tasks(const wf_call *c, int phase);

/* ---- rows ------------------------------------------------------------------------------------ */

/* wf_row_tasks divides the rows of in[0] (along its last axis) into tasks of about WF_GRAIN
 * elements. wf_row_range gives the rows [from, to) of a task. In a row-major view row i begins at
 * wf_at(v, i * columns). */
WF_API int64_t wf_row_tasks(const wf_call *c, int phase);
WF_API void wf_row_range(const wf_call *c, int64_t task, int64_t *from, int64_t *to);

/* ---- shape rules and checks ------------------------------------------------------------------ */

/* A shape rule: out[0] is real and has the shape to which all operands broadcast. There are at most
 * three, all real. */
WF_API bool wf_same_as_operands(wf_call *c);
/* True if operand i has this type (wf_want), or the graph's real type (wf_want_real). Otherwise
 * they fail the call and return false. */
WF_API bool wf_want(wf_call *c, int i, wf_dtype type);
WF_API bool wf_want_real(wf_call *c, int i);

#ifdef __cplusplus
}
#endif
#endif
