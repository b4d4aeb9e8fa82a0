/* weft/ops/create_ops.h - constants, random tensors, initial values, and the ops that the engine
 * itself records. See ops.h. */
#ifndef WEFT_OPS_CREATE_OPS_H
#define WEFT_OPS_CREATE_OPS_H

#include "../core/graph.h"
#include "../core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- initial values: initial_values.c -------------------------------------------------------- */
/* zeros: every element is 0; constant: every element is `value` */
WF_API wf_init wf_init_zeros(void);
WF_API wf_init wf_init_constant(double value);
WF_API wf_init wf_init_uniform(double bound); /* in [-bound, bound) */
WF_API wf_init wf_init_normal(double std);    /* mean 0 */

/* The generator behind these initial values, for a program's own data: number `index` of the stream
 * `key`. Element i of init_uniform(b) is b (2 wf_random_uniform(key, i) - 1), that of
 * init_normal(s) is s wf_random_normal(key, i), rounded to the leaf's type. */
WF_API double wf_random_uniform(uint64_t key, uint64_t index); /* in [0, 1): 53 bits */
WF_API double wf_random_normal(uint64_t key, uint64_t index);  /* mean 0, variance 1 */

/* ---- constants with a shape, which may contain extents: full.c. wf_constant_array: graph.h --- */
/* wf_full: every element is `value`; wf_zeros: 0; wf_ones: 1. dtype: WF_I32, or the real type of
 * the graph. */
WF_API wf_tensor *wf_full(wf_graph *g, wf_dtype dtype, int ndim, const int64_t *shape,
                          double value);
WF_API wf_tensor *wf_zeros(wf_graph *g, wf_dtype dtype, int ndim, const int64_t *shape);
WF_API wf_tensor *wf_ones(wf_graph *g, wf_dtype dtype, int ndim, const int64_t *shape);

/* ---- random: random.c ------------------------------------------------------------------------ */
/* Random tensors draw in every plan, training or not, and the next run draws other numbers
 * (wf_random_step). `like` gives the shape: a tensor, or wf_shape. site: a name for the place, as
 * in wf_dropout, or NULL. */
WF_API wf_tensor *wf_rand(wf_tensor *like, const char *site);  /* uniform in [0, 1) */
WF_API wf_tensor *wf_randn(wf_tensor *like, const char *site); /* normal: mean 0, variance 1 */
/* 1 with probability p, else 0; gradient zeros */
WF_API wf_tensor *wf_bernoulli(wf_tensor *p, const char *site);
/* logits [...,V] -> i32 [...]: an index, drawn with its probability under softmax. The run fails if
 * a row has a NaN or +inf, or only -inf. */
WF_API wf_tensor *wf_categorical(wf_tensor *logits, const char *site);

/* ---- the ops that the engine records itself: elementwise/chain.c, binary.inc ----------------- */
/* a + b, with broadcasting; i32, too. */
WF_API wf_tensor *wf_add(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_fill(wf_tensor *like, double value);   /* value in like's shape, real */
WF_API wf_tensor *wf_sum_to(wf_tensor *x, wf_tensor *like); /* sum over broadcast axes */
extern WF_API const wf_op wf_op_copy; /* copies any strides to row-major, for any dtype */

#ifdef __cplusplus
}
#endif
#endif
