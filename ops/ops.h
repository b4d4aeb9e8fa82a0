/* weft/ops/ops.h - the operations: page of contents. Each section is a header, which can be included
 * alone.
 *
 * Tensors in, a tensor out; nothing to free. Broadcasting follows NumPy: shapes are aligned on the
 * right, and size 1 is repeated. Axes count from 0, or from the end: -1 is the last. Every op has a
 * gradient, or states in its file why not. What an op records never depends on the size of a named
 * extent.
 *
 *     create.h        constants, random tensors, initial values; ops that the engine records itself
 *     elementwise.h   ops on single elements, with broadcasting
 *     reduce.h        sets of axes; reductions, scans and sorting along axes
 *     product.h       matrix products
 *     shape.h         reshape, slice, join, pad: ops that move elements
 *     index.h         embedding, gather, scatter, positions and resizing: ops with ids
 *     convolution.h   convolution and pooling
 *     norm.h          softmax and normalisation
 *     attention.h     rotary positions and scaled dot-product attention
 *     spectrum.h      short-time Fourier transforms and mel filters
 *     training.h      dropout, token losses, KV cache, and updates of parameters */
#ifndef WEFT_OPS_OPS_H
#define WEFT_OPS_OPS_H

#include "../core/file.h"
#include "../core/graph.h"
#include "../core/op.h"
#include "attention.h"
#include "convolution.h"
#include "create.h"
#include "elementwise.h"
#include "index.h"
#include "norm.h"
#include "product.h"
#include "reduce.h"
#include "shape.h"
#include "spectrum.h"
#include "training.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- initial values: initial_values.c ------------------------------------------------------------------ */
WF_API wf_init wf_init_zeros(void);
WF_API wf_init wf_init_constant(double value);
WF_API wf_init wf_init_uniform(double bound); /* in [-bound, bound) */
WF_API wf_init wf_init_normal(double std);    /* mean 0 */

/* The generator that they use, for a program's own data: number `index` of the stream `key`.
 * Element i of init_uniform(b) is b (2 wf_random_uniform(key, i) - 1), that of init_normal(s) is s
 * wf_random_normal(key, i), rounded to the leaf's type. */
WF_API double wf_random_uniform(uint64_t key, uint64_t index); /* in [0, 1): 53 bits */
WF_API double wf_random_normal(uint64_t key, uint64_t index);  /* mean 0, variance 1 */

/* ---- constants with a shape, which may contain extents: full.c. wf_constant_array: graph.h --- */
WF_API wf_tensor *wf_full(wf_graph *g, wf_dtype dtype, int ndim, const int64_t *shape,
                          double value);
WF_API wf_tensor *wf_zeros(wf_graph *g, wf_dtype dtype, int ndim, const int64_t *shape);
WF_API wf_tensor *wf_ones(wf_graph *g, wf_dtype dtype, int ndim, const int64_t *shape);

/* ---- random: random.c ------------------------------------------------------------------------ */
/* In every plan, training or not; the next run draws others (wf_random_step). like gives the shape:
 * a tensor, or wf_shape. site: as of wf_dropout, the name of the place, or NULL. */
WF_API wf_tensor *wf_rand(wf_tensor *like, const char *site);  /* uniform in [0, 1) */
WF_API wf_tensor *wf_randn(wf_tensor *like, const char *site); /* normal: mean 0, variance 1 */
/* 1 with probability p, else 0; gradient zeros */
WF_API wf_tensor *wf_bernoulli(wf_tensor *p, const char *site);
/* logits [...,V] -> i32 [...]: an index with the probability that softmax gives it. A row with a NaN
 * or +inf, or of nothing but -inf, fails the run. */
WF_API wf_tensor *wf_categorical(wf_tensor *logits, const char *site);

/* ---- the ops that the engine records itself: elementwise/chain.c, binary.inc ----------------- */
WF_API wf_tensor *wf_add(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_fill(wf_tensor *like, double value);   /* value in like's shape, real */
WF_API wf_tensor *wf_sum_to(wf_tensor *x, wf_tensor *like); /* sum over broadcast axes */
extern WF_API const wf_op wf_op_copy; /* any strides to row-major, any dtype */

/* ---- elementwise, binary: binary.c, derived.c ------------------------------------------------ */
/* i32: add, sub, mul, maximum, minimum, floor_divide, remainder, fmod take two i32 and give one,
 * exactly; sums and products wrap around, a division by 0 fails the run. neg, abs, square, sign and
 * where take i32, too. Reals and i32 do not mix: wf_cast. */
WF_API wf_tensor *wf_sub(wf_tensor *a, wf_tensor *b); /* a - b */
WF_API wf_tensor *wf_mul(wf_tensor *a, wf_tensor *b); /* a * b */
WF_API wf_tensor *wf_div(wf_tensor *a, wf_tensor *b); /* a / b */
/* on a tie a gets the gradient */
WF_API wf_tensor *wf_maximum(wf_tensor *a, wf_tensor *b);
/* on a tie a gets the gradient */
WF_API wf_tensor *wf_minimum(wf_tensor *a, wf_tensor *b);
/* a^b, as C's pow: 1 for b = 0; NaN for a < 0, unless b is an integer (then the gradient of b
 * alone is NaN). Gradient 0 to a where b = 0, to b where a = 0 and b >= 0 */
WF_API wf_tensor *wf_pow(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_pow_scalar(wf_tensor *x,
                                double exponent);       /* -1, 0.5, 2, 3...: without a log */
WF_API wf_tensor *wf_atan2(wf_tensor *a, wf_tensor *b); /* angle of (b, a); gradient 0 at 0, 0 */
WF_API wf_tensor *wf_logaddexp(wf_tensor *a, wf_tensor *b); /* log(exp(a) + exp(b)) */
WF_API wf_tensor *wf_xlogy(wf_tensor *a, wf_tensor *b);     /* a log(b); 0 for a = 0, b not NaN */
WF_API wf_tensor *wf_fmod(wf_tensor *a, wf_tensor *b);      /* a - trunc(a / b) b: a's sign */
WF_API wf_tensor *wf_remainder(wf_tensor *a, wf_tensor *b); /* a - floor(a / b) b: b's sign */
WF_API wf_tensor *wf_floor_divide(wf_tensor *a, wf_tensor *b); /* floor(a / b); gradient zeros */
/* min(max(x, low), high), either NULL: none. Where x is equal to a bound x has the gradient, which
 * wf_clamp does not give it. */
WF_API wf_tensor *wf_clamp_tensors(wf_tensor *x, wf_tensor *low, wf_tensor *high);
WF_API wf_tensor *wf_lerp(wf_tensor *a, wf_tensor *b, wf_tensor *weight); /* a + weight (b - a) */
/* comparisons of reals or i32: 1 or 0, real */
WF_API wf_tensor *wf_equal(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_not_equal(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_less(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_less_equal(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_greater(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_greater_equal(wf_tensor *a, wf_tensor *b);
/* of masks, or any reals or i32: nonzero is true, and so is NaN. 1 or 0, real */
WF_API wf_tensor *wf_logical_and(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_logical_or(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_logical_xor(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_logical_not(wf_tensor *x);
/* the bits of i32: bits.c. A count outside of 0..31 moves every bit out: 0, or the sign's copies */
WF_API wf_tensor *wf_bitwise_and(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_bitwise_or(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_bitwise_xor(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_bitwise_not(wf_tensor *x);
WF_API wf_tensor *wf_bitwise_left_shift(wf_tensor *x, wf_tensor *count);
WF_API wf_tensor *wf_bitwise_right_shift(wf_tensor *x, wf_tensor *count); /* copies the sign */
WF_API wf_tensor *wf_bitwise_right_shift_logical(wf_tensor *x, wf_tensor *count); /* zeros */
/* 1 or 0 */
WF_API wf_tensor *wf_isnan(wf_tensor *x);
WF_API wf_tensor *wf_isinf(wf_tensor *x);
WF_API wf_tensor *wf_isfinite(wf_tensor *x);

/* ---- elementwise, unary: unary.c, derived.c -------------------------------------------------- */
WF_API wf_tensor *wf_neg(wf_tensor *x);
WF_API wf_tensor *wf_abs(wf_tensor *x); /* gradient 0 at 0 */
WF_API wf_tensor *wf_square(wf_tensor *x);
WF_API wf_tensor *wf_sqrt(wf_tensor *x);
WF_API wf_tensor *wf_rsqrt(wf_tensor *x);      /* 1 / sqrt(x) */
WF_API wf_tensor *wf_reciprocal(wf_tensor *x); /* 1 / x */
WF_API wf_tensor *wf_exp(wf_tensor *x);
WF_API wf_tensor *wf_exp2(wf_tensor *x);  /* 2^x */
WF_API wf_tensor *wf_expm1(wf_tensor *x); /* exp(x) - 1, accurate near 0 */
WF_API wf_tensor *wf_log(wf_tensor *x);   /* natural */
WF_API wf_tensor *wf_log2(wf_tensor *x);
WF_API wf_tensor *wf_log10(wf_tensor *x);
WF_API wf_tensor *wf_log1p(wf_tensor *x); /* log(1 + x), accurate near 0 */
WF_API wf_tensor *wf_sin(wf_tensor *x);
WF_API wf_tensor *wf_cos(wf_tensor *x);
WF_API wf_tensor *wf_tan(wf_tensor *x);
WF_API wf_tensor *wf_asin(wf_tensor *x);
WF_API wf_tensor *wf_acos(wf_tensor *x);
WF_API wf_tensor *wf_atan(wf_tensor *x);
WF_API wf_tensor *wf_sinh(wf_tensor *x);
WF_API wf_tensor *wf_cosh(wf_tensor *x);
WF_API wf_tensor *wf_tanh(wf_tensor *x);
WF_API wf_tensor *wf_asinh(wf_tensor *x);
WF_API wf_tensor *wf_acosh(wf_tensor *x);
WF_API wf_tensor *wf_atanh(wf_tensor *x);
WF_API wf_tensor *wf_erf(wf_tensor *x);
WF_API wf_tensor *wf_erfc(wf_tensor *x); /* 1 - erf(x), accurate for large x */
/* of these the gradient is zeros */
WF_API wf_tensor *wf_floor(wf_tensor *x);
WF_API wf_tensor *wf_ceil(wf_tensor *x);
WF_API wf_tensor *wf_round(wf_tensor *x); /* halves to even */
WF_API wf_tensor *wf_trunc(wf_tensor *x);
WF_API wf_tensor *wf_sign(wf_tensor *x); /* -1, 0, 1; 0 for NaN */
/* activations */
WF_API wf_tensor *wf_sigmoid(wf_tensor *x);     /* 1 / (1 + exp(-x)) */
WF_API wf_tensor *wf_log_sigmoid(wf_tensor *x); /* log(sigmoid(x)), finite for any x */
WF_API wf_tensor *wf_softplus(wf_tensor *x);    /* log(1 + exp(x)) */
WF_API wf_tensor *wf_softsign(wf_tensor *x);    /* x / (1 + |x|) */
WF_API wf_tensor *wf_relu(wf_tensor *x);        /* max(x, 0); gradient 0 at 0 */
WF_API wf_tensor *wf_relu6(wf_tensor *x);       /* min(max(x, 0), 6); gradient 0 at 0 and 6 */
WF_API wf_tensor *wf_leaky_relu(wf_tensor *x, double slope); /* x > 0 ? x : slope x */
WF_API wf_tensor *wf_elu(wf_tensor *x, double alpha);        /* x > 0 ? x : alpha (exp(x) - 1) */
WF_API wf_tensor *wf_selu(wf_tensor *x);                     /* 1.0507 elu(x, 1.6733) */
WF_API wf_tensor *wf_gelu(wf_tensor *x);                     /* x/2 (1 + erf(x / sqrt 2)) */
WF_API wf_tensor *wf_gelu_tanh(wf_tensor *x);   /* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
WF_API wf_tensor *wf_silu(wf_tensor *x);        /* x sigmoid(x) */
WF_API wf_tensor *wf_mish(wf_tensor *x);        /* x tanh(softplus(x)) */
WF_API wf_tensor *wf_hardsigmoid(wf_tensor *x); /* min(max(x + 3, 0), 6) / 6; gradient 0 at -3, 3 */
WF_API wf_tensor *wf_affine(wf_tensor *x, double scale, double shift); /* scale * x + shift */
WF_API wf_tensor *wf_scale(wf_tensor *x, double scale);                /* scale * x */
/* min(max(x, low), high); gradient 0 at a bound */
WF_API wf_tensor *wf_clamp(wf_tensor *x, double low, double high);

/* ---- selection: where.c ---------------------------------------------------------------------- */
/* condition != 0 ? a : b; a and b real or i32. Conditions and masks, here and below, may be real or
 * i32 */
WF_API wf_tensor *wf_where(wf_tensor *condition, wf_tensor *a, wf_tensor *b);
/* mask != 0 ? value : x */
WF_API wf_tensor *wf_masked_fill(wf_tensor *x, wf_tensor *mask, double value);

/* ---- sets of axes ---------------------------------------------------------------------------- */
/* `int axis` is the number of an axis. `uint32_t axes` is a set of axes: WF_AXIS(0) | WF_AXIS(-1).
 * A set carries a mark, so that a number given as a set, and a set given as a number, are refused.
 * i = -8..7, -1 is the last axis; any other i gives an axis that no tensor has */
#define WF_AXIS(i) (WF_NO_AXES | ((int)(i) >= -8 && (int)(i) < 8 ? 1u << ((int)(i)&31) : 1u << 8))
#define WF_LAST_AXIS 0x80010000u /* WF_AXIS(-1) */
#define WF_ALL_AXES 0x7fffffffu
#define WF_NO_AXES 0x00010000u /* the empty set, and the mark of every set */

/* ---- reductions: reduce.c -------------------------------------------------------------------- */
WF_API wf_tensor *wf_sum(wf_tensor *x, uint32_t axes, bool keepdim);
WF_API wf_tensor *wf_mean(wf_tensor *x, uint32_t axes, bool keepdim);
/* equal maxima get equal parts of the gradient */
WF_API wf_tensor *wf_max(wf_tensor *x, uint32_t axes, bool keepdim);
/* equal minima get equal parts of the gradient */
WF_API wf_tensor *wf_min(wf_tensor *x, uint32_t axes, bool keepdim);
WF_API wf_tensor *wf_prod(wf_tensor *x, uint32_t axes, bool keepdim); /* gradient right at 0 */
/* sum of squared deviations / max(elements - correction, 0); its root, with gradient 0 at 0 */
WF_API wf_tensor *wf_var(wf_tensor *x, uint32_t axes, double correction, bool keepdim);
WF_API wf_tensor *wf_std(wf_tensor *x, uint32_t axes, double correction, bool keepdim);
/* p: 1, 2 (gradient 0 at 0), INFINITY, -INFINITY */
WF_API wf_tensor *wf_vector_norm(wf_tensor *x, double p, uint32_t axes, bool keepdim);
/* log(sum(exp(x))) without overflow; all -inf, or no elements: -inf, with gradient 0 */
WF_API wf_tensor *wf_logsumexp(wf_tensor *x, uint32_t axes, bool keepdim);
/* 1 or 0: is any, are all not 0? */
WF_API wf_tensor *wf_any(wf_tensor *x, uint32_t axes, bool keepdim);
WF_API wf_tensor *wf_all(wf_tensor *x, uint32_t axes, bool keepdim);
/* sum of squares of all elements, shape [] */
WF_API wf_tensor *wf_square_sum(wf_tensor *x);
/* sums of squares of each WF_SQUARE_BLOCK elements, in row-major order; not differentiable */
enum { WF_SQUARE_BLOCK = 16384 };
WF_API wf_tensor *wf_square_sums(wf_tensor *x);
/* i32, without that axis; the first of equal maxima; not differentiable */
WF_API wf_tensor *wf_argmax(wf_tensor *x, int axis);
WF_API wf_tensor *wf_argmin(wf_tensor *x, int axis);
/* 1 / (product of the bound sizes of these axes), shape [] */
WF_API wf_tensor *wf_inverse_count(wf_tensor *like, uint32_t axes);
/* the bound size of an axis, i32 []; the product of those of several, real []: shape/size.c */
WF_API wf_tensor *wf_size_of(wf_tensor *like, int axis);
WF_API wf_tensor *wf_count_of(wf_tensor *like, uint32_t axes);

/* ---- scans: scan.c. Along an axis, in order, in double; reverse: from its end ---------------- */
WF_API wf_tensor *wf_cumsum(wf_tensor *x, int axis, bool reverse);  /* x[0] + ... + x[i] */
WF_API wf_tensor *wf_cumprod(wf_tensor *x, int axis, bool reverse); /* x[0] * ... * x[i] */
/* y[i] = a[i] y[i-1] + b[i], y[-1] = 0; a, b and y have one shape */
WF_API wf_tensor *wf_linear_scan(wf_tensor *a, wf_tensor *b, int axis, bool reverse);

/* ---- sorting: sort.c. Stable; NaN is the largest; indices are i32 ---------------------------- */
typedef struct wf_sorted {
    wf_tensor *values, *indices;
} wf_sorted;
WF_API wf_sorted wf_sort(wf_tensor *x, int axis, bool descending);
WF_API wf_tensor *wf_argsort(wf_tensor *x, int axis, bool descending);
/* the k largest (else smallest) along the axis, the best first */
WF_API wf_sorted wf_topk(wf_tensor *x, int64_t k, int axis, bool largest);

/* ---- products: matmul.c, einsum.c ------------------------------------------------------------ */
/* [...,m,k] x [...,k,n] -> [...,m,n]; leading axes broadcast. An element is one chain of
 * multiply-adds over k, in order. (So are its gradients, except that of a matrix b of at most 2^15
 * elements: for many rows of a it is summed in up to 8 parts.) */
WF_API wf_tensor *wf_matmul(wf_tensor *a, wf_tensor *b);
/* a b + addend, either factor with its last two axes swapped; the addend (may be NULL) broadcasts
 * to the product */
enum { WF_TRANSPOSE_A = 1, WF_TRANSPOSE_B = 2 };
WF_API wf_tensor *wf_gemm(wf_tensor *a, wf_tensor *b, wf_tensor *addend, unsigned transposed);
/* "nqhd,nkhd->nhqk"; also the form with implicit output; spaces ignored; repeated letters take
 * diagonals; "..." stands for axes that broadcast, and comes first in an implicit output */
WF_API wf_tensor *wf_einsum(const char *formula, wf_tensor *const *operands, int n);
WF_API wf_tensor *wf_outer(wf_tensor *a, wf_tensor *b);  /* [...,m], [...,n] -> [...,m,n] */
WF_API wf_tensor *wf_vecdot(wf_tensor *a, wf_tensor *b); /* [...,n], [...,n] -> [...] */

/* Pack the weights: keep every parameter that only transposed products (and embeddings) read in
 * this layout (panels.c), so that a product reads it once, in order. WF_PANELS does not change
 * results by a bit. To be called before the graph's first plan, and best before values are written.
 * message[256], or NULL. */
WF_API bool wf_pack_weights(wf_graph *g, wf_layout layout, char *message);

/* ---- shape: shape.c (views unless a layout forces a copy) ------------------------------------ */
#define WF_KEEP 0    /* the axis of x at the same place from that end */
#define WF_REST (-1) /* inferred from the number of elements; at most once */
/* leading and trailing WF_KEEPs copy axes; between them sizes and at most one WF_REST:
 * {KEEP,KEEP,H,REST} splits heads, {REST,KEEP} merges B and T */
WF_API wf_tensor *wf_reshape(wf_tensor *x, int ndim, const int64_t *dims);
WF_API wf_tensor *wf_reshape_like(wf_tensor *x, wf_tensor *like);
/* result axis i is x's axis order[i]; ndim entries */
WF_API wf_tensor *wf_permute(wf_tensor *x, const int *order);
WF_API wf_tensor *wf_transpose(wf_tensor *x, int a, int b); /* swap two axes */
WF_API wf_tensor *wf_squeeze(wf_tensor *x, uint32_t axes);  /* remove axes of size 1 */
/* insert axes of size 1, at these axes of the result */
WF_API wf_tensor *wf_unsqueeze(wf_tensor *x, uint32_t axes);
/* [from, to); negative counts from the end, WF_END is the end */
WF_API wf_tensor *wf_slice(wf_tensor *x, int axis, int64_t from, int64_t to);
#define WF_END INT64_MAX
/* every step-th of those, step >= 1; strides.c */
WF_API wf_tensor *wf_slice_step(wf_tensor *x, int axis, int64_t from, int64_t to, int64_t step);
WF_API wf_tensor *wf_flip(wf_tensor *x, uint32_t axes); /* backwards along them */
/* without axes a, the rows, and b, the columns; its last axis is the diagonal `offset` above the
 * main one */
WF_API wf_tensor *wf_diagonal(wf_tensor *x, int64_t offset, int a, int b);
/* axes of size 1, and new ones in front, to these sizes; WF_KEEP: as it is */
WF_API wf_tensor *wf_expand(wf_tensor *x, int ndim, const int64_t *dims);
WF_API wf_tensor *wf_pad(wf_tensor *x, int axis, int64_t before, int64_t after, double value);
WF_API wf_tensor *wf_concat(wf_tensor *const *x, int n, int axis);
/* along a new axis of the result */
WF_API wf_tensor *wf_stack(wf_tensor *const *x, int n, int axis);
/* n parts, one after the other, of these sizes; into `parts`. What is left is in none. */
WF_API void wf_split(wf_tensor *x, int axis, const int64_t *sizes, int n, wf_tensor **parts);
/* n equal parts; n must divide the axis */
WF_API void wf_chunk(wf_tensor *x, int axis, int n, wf_tensor **parts);
WF_API wf_tensor *wf_flatten(wf_tensor *x, int from, int to); /* axes from..to, as one */
/* x times[i] times along axis i; each step of an axis n times; arrange.c */
WF_API wf_tensor *wf_tile(wf_tensor *x, const int64_t *times);
WF_API wf_tensor *wf_repeat_interleave(wf_tensor *x, int64_t n, int axis);
/* step i of the axis goes to i + shift, around its end */
WF_API wf_tensor *wf_roll(wf_tensor *x, int64_t shift, int axis);
/* of matrices [...,m,n], real or i32: 0 above, or below, the diagonal that many steps above the
 * main one */
WF_API wf_tensor *wf_tril(wf_tensor *x, int64_t diagonal);
WF_API wf_tensor *wf_triu(wf_tensor *x, int64_t diagonal);
WF_API wf_tensor *wf_broadcast_to(wf_tensor *x, wf_tensor *like);
/* i32 <-> real; gradient between reals only */
WF_API wf_tensor *wf_cast(wf_tensor *x, wf_dtype dtype);
WF_API wf_tensor *wf_detach(wf_tensor *x); /* x, without a gradient */

/* ---- index: index.c. ids are i32 ------------------------------------------------------------- */
/* [V,D], [...] -> [...,D]; an id outside 0..V-1 fails the run */
WF_API wf_tensor *wf_embedding(wf_tensor *table, wf_tensor *ids);
/* y[i,k,j] = x[i,ids[i,k,j],j]: ids have x's axes, and its sizes or 1 beside that axis, K along it;
 * gather.c */
WF_API wf_tensor *wf_gather(wf_tensor *x, int axis, wf_tensor *ids);
/* x, and src[i,k,j] added to its element [i,ids[i,k,j],j]; src has the shape that gather gives */
WF_API wf_tensor *wf_scatter_add(wf_tensor *x, int axis, wf_tensor *ids, wf_tensor *src);
/* Scatter with the largest, or the smallest, of x and what is written there; equal ones get equal parts
 * of the gradient. The product, whose gradient is right at 0, that of the gradient where nothing is 0.
 * scatter: the last that is written there, in the order of k; x real or i32. scatter.c */
WF_API wf_tensor *wf_scatter_max(wf_tensor *x, int axis, wf_tensor *ids, wf_tensor *src);
WF_API wf_tensor *wf_scatter_min(wf_tensor *x, int axis, wf_tensor *ids, wf_tensor *src);
WF_API wf_tensor *wf_scatter_mul(wf_tensor *x, int axis, wf_tensor *ids, wf_tensor *src);
WF_API wf_tensor *wf_scatter(wf_tensor *x, int axis, wf_tensor *ids, wf_tensor *src);
/* ids [K]: the same steps of the axis everywhere */
WF_API wf_tensor *wf_index_select(wf_tensor *x, int axis, wf_tensor *ids);
WF_API wf_tensor *wf_index_add(wf_tensor *x, int axis, wf_tensor *ids, wf_tensor *src);
WF_API wf_tensor *wf_index_copy(wf_tensor *x, int axis, wf_tensor *ids, wf_tensor *src);
/* real [...,classes]: 1 where the class is the id, else 0; an id outside has no 1 */
WF_API wf_tensor *wf_one_hot(wf_tensor *ids, int64_t classes);
/* i32 [n], n the bound size of like's axis: 0, 1, ... n-1; for masks, one-hot rows, keys in a
 * cache */
WF_API wf_tensor *wf_arange(wf_tensor *like, int axis);
/* ids [...] -> [...,D]: PE[p,2i] = sin(p / 10000^(2i/D)), PE[p,2i+1] = cos(same); sinusoid.c */
WF_API wf_tensor *wf_sinusoid(wf_tensor *ids, int64_t dim);
WF_API wf_init wf_init_sinusoid(void); /* the same as a table [L,D] */
/* In other places and of other waves, h = D/2:
 *   WF_SINUSOID_HALVES   PE[p,i] = sin(p / 10000^(2i/D)), PE[p,h+i] = cos(same): Marian of
 *                        transformers; of an odd D the sines are one more
 *   WF_SINUSOID_FAIRSEQ  PE[p,i] = sin((p+2) / 10000^(i/(h-1))), PE[p,h+i] = cos(same): fairseq,
 *                        whose rows 0 and 1 are padding's, and M2M100; D even, 4 or more */
typedef enum { WF_SINUSOID_PAIRS, WF_SINUSOID_HALVES, WF_SINUSOID_FAIRSEQ } wf_sinusoid_form;
WF_API wf_tensor *wf_sinusoid_as(wf_tensor *ids, int64_t dim, wf_sinusoid_form form);
WF_API wf_init wf_init_sinusoid_as(wf_sinusoid_form form);
/* P, P+1, ... P+n-1, P the position: for queries, and for position embeddings */
WF_API wf_tensor *wf_position_ids(wf_tensor *like, int axis);

/* An axis resized, resize.c: to a size, to that of the same axis of like, or times a scale, as
 * torch.nn.functional.interpolate. The elements at the ends stay there if corners are aligned. Images are
 * resized axis after axis: wf_interpolate, x [N,C,...] with a size for each axis after C, WF_KEEP: as it
 * is. WF_RESIZE_LINEAR is then bilinear or trilinear, CUBIC bicubic. Nothing is smoothed before. */
typedef enum {
    WF_RESIZE_NEAREST,       /* the element at floor(i n / m), n elements become m */
    WF_RESIZE_NEAREST_EXACT, /* floor((i + 1/2) n / m) */
    WF_RESIZE_LINEAR,
    WF_RESIZE_CUBIC
} wf_resize_mode;
WF_API wf_tensor *wf_resize(wf_tensor *x, int axis, int64_t size, wf_resize_mode mode,
                            bool align_corners);
WF_API wf_tensor *wf_resize_like(wf_tensor *x, int axis, wf_tensor *like, wf_resize_mode mode,
                                 bool align_corners);
WF_API wf_tensor *wf_resize_by(wf_tensor *x, int axis, double scale, wf_resize_mode mode,
                               bool align_corners);
WF_API wf_tensor *wf_interpolate(wf_tensor *x, const int64_t *sizes, wf_resize_mode mode,
                                 bool align_corners);

/* ---- convolution: convolution/ --------------------------------------------------------------- */
/* The windows of an axis, a view: its size becomes (n - dilation (size - 1) - 1) / step + 1, and
 * the elements of a window, `dilation` apart, are a new last axis. Windows begin `step` apart. */
WF_API wf_tensor *wf_unfold(wf_tensor *x, int axis, int64_t size, int64_t step, int64_t dilation);
/* Its adjoint: windows y added at their places in zeros of like's shape, in one order */
WF_API wf_tensor *wf_fold(wf_tensor *y, wf_tensor *like, int axis, int64_t size, int64_t step,
                          int64_t dilation);

/* Options along the rows and the columns of an image; of conv1d, only the first ones are read. One
 * number of stride, padding or dilation is for both: { 2 } is { 2, 2 }, and { 1, WF_NO_PADDING } pads
 * the rows alone. 0 is the default, PyTorch's: stride 1, padding 0, dilation 1, one group. */
#define WF_NO_PADDING INT64_MIN
typedef struct wf_conv_options {
    int64_t stride[2], padding[2], dilation[2];
    int64_t output_padding[2]; /* of the transposes: less than the stride */
    int64_t groups;
} wf_conv_options;
/* x [N,C,H,W], weight [O,C/groups,kh,kw], bias [O] or NULL -> [N,O,H',W'], H' = (H + 2 padding -
 * dilation (kh - 1) - 1) / stride + 1. options may be NULL. An element is one chain of
 * multiply-adds over channels, rows and columns of the kernel, in order, after the bias; that of
 * the gradient of the weight is a sum over images and positions in a fixed order, which depends
 * on the shapes. */
WF_API wf_tensor *wf_conv2d(wf_tensor *x, wf_tensor *weight, wf_tensor *bias,
                            const wf_conv_options *options);
/* x [N,C,L], weight [O,C/groups,k] -> [N,O,L'] */
WF_API wf_tensor *wf_conv1d(wf_tensor *x, wf_tensor *weight, wf_tensor *bias,
                            const wf_conv_options *options);
/* The gradient of conv2d by its x, as an op: x [N,C,H,W], weight [C,O/groups,kh,kw] -> [N,O,H',W'],
 * H' = (H - 1) stride - 2 padding + dilation (kh - 1) + output_padding + 1 */
WF_API wf_tensor *wf_conv_transpose2d(wf_tensor *x, wf_tensor *weight, wf_tensor *bias,
                                      const wf_conv_options *options);
WF_API wf_tensor *wf_conv_transpose1d(wf_tensor *x, wf_tensor *weight, wf_tensor *bias,
                                      const wf_conv_options *options);

/* Pooling: x [N,C,H,W] -> [N,C,H',W'], sizes as of conv2d, one number for both axes as there; of pool1d, x [N,C,L], only the first
 * ones are read. The stride is by default the kernel's size; at most half of a kernel is
 * padding. The mean over a whole image is wf_mean. */
typedef struct wf_pool_options {
    int64_t kernel[2], stride[2], padding[2], dilation[2];
    bool exclude_pad; /* avg_pool: PyTorch's count_include_pad=False */
    /* sizes are rounded up: a last window may reach beyond the padding, if it begins before its end */
    bool ceil_mode;
} wf_pool_options;
/* of equal maxima the first gets the gradient; a NaN is the maximum */
WF_API wf_tensor *wf_max_pool2d(wf_tensor *x, const wf_pool_options *options);
WF_API wf_tensor *wf_max_pool1d(wf_tensor *x, const wf_pool_options *options);
WF_API wf_tensor *wf_avg_pool2d(wf_tensor *x, const wf_pool_options *options);
WF_API wf_tensor *wf_avg_pool1d(wf_tensor *x, const wf_pool_options *options);

/* ---- normalisation: softmax.c, layer_norm.c, rms_norm.c, batch_norm.c ------------------------ */
/* last axis; mask (may be NULL) broadcasts to x, 0 = masked; causal: row i of the last two axes
 * sees j <= i + (columns - rows); a row with all columns masked gives zeros and gradient zero */
WF_API wf_tensor *wf_masked_softmax(wf_tensor *x, wf_tensor *mask, bool causal);
WF_API wf_tensor *wf_softmax(wf_tensor *x, int axis); /* exp(x) / sum(exp(x)) over the axis */
WF_API wf_tensor *wf_log_softmax(wf_tensor *x, int axis);
/* x [E,...], ids [E]: over the rows that have one id, 0..N-1, N the first size of `segments` */
WF_API wf_tensor *wf_segment_softmax(wf_tensor *x, wf_tensor *ids, wf_tensor *segments);
/* last axis; weight, bias [D] or NULL. Rows whose squares overflow are scaled, so that every row of
 * finite numbers has its result; a NaN or an infinity makes its row NaN. So do all three norms. */
WF_API wf_tensor *wf_layer_norm(wf_tensor *x, wf_tensor *weight, wf_tensor *bias, double eps);
/* over these axes together; weight, bias: their sizes, or NULL */
WF_API wf_tensor *wf_layer_norm_over(wf_tensor *x, uint32_t axes, wf_tensor *weight,
                                     wf_tensor *bias, double eps);
/* x / sqrt(mean(x^2) + eps) * weight; last axis; weight [D] or NULL */
WF_API wf_tensor *wf_rms_norm(wf_tensor *x, wf_tensor *weight, double eps);

/* By the channels C of x [N,C,...], batch_norm.c; weight, bias [C] or NULL. group_norm: over the
 * channels and elements of each of `groups` groups of channels of an image. */
WF_API wf_tensor *wf_group_norm(wf_tensor *x, int64_t groups, wf_tensor *weight, wf_tensor *bias,
                                double eps);
/* batch_norm: over each channel, with the mean and the biased variance of the batch in plans that
 * train, and with the running ones, [C], in others. If these are NULL, those of the batch are used in
 * any plan. The layer wf_norm_batch of nn updates running ones. */
typedef struct wf_batch_norm_result {
    wf_tensor *y, *mean, *variance; /* as x; [C], which were used */
} wf_batch_norm_result;
WF_API wf_batch_norm_result wf_batch_norm(wf_tensor *x, wf_tensor *running_mean,
                                          wf_tensor *running_variance, wf_tensor *weight,
                                          wf_tensor *bias, double eps);
WF_API wf_tensor *wf_is_training(wf_tensor *like); /* real []: 1 in a plan that trains, else 0 */

/* ---- rotary positions: rotary.c -------------------------------------------------------------- */
/* x [...,T,d] with pairs of its elements turned by id / base^(2i/d) (Su et al. 2021): elements i
 * and i + d/2, as in Hugging Face's Llama, or if interleaved 2i and 2i + 1, as in the paper. ids
 * [T], or any shape that broadcasts to [...,T]; [B,T] gets a head axis for x [B,H,T,d]. */
WF_API wf_tensor *wf_rotary(wf_tensor *x, wf_tensor *ids, double base, bool interleaved);
/* The same in two steps, so that layers share the sines: ids [...] -> [...,2,dim], computed in
 * double; and x turned by such a table, [T,2,d] or any that broadcasts to [...,T,2,d]; [B,T,2,d]
 * gets a head axis. Row 0 holds the cosines c, row 1 the sines s with their signs:
 *     y[i] = x[i] c[i] + x[p] s[i]     p: the other element of i's pair
 * so that an angle t of elements i < p is c[i] = c[p] = cos t, s[i] = -sin t, s[p] = sin t. The
 * table may be any tensor, such as learned angles, and has its gradient. */
WF_API wf_tensor *wf_rotary_table(wf_tensor *ids, int64_t dim, double base, bool interleaved);
WF_API wf_tensor *wf_rotate(wf_tensor *x, wf_tensor *table, bool interleaved);

/* ---- attention: attention_op.c --------------------------------------------------------------- */
typedef struct wf_attention_options {
    bool causal;      /* query i sees keys j <= i + (keys - queries) */
    bool additive;    /* the mask is added to the scores; else 1 = may attend, 0 = may not */
    int64_t window;   /* and keys j > i + (keys - queries) - window; others cost nothing. 0: all */
    double scale;     /* 0: 1 / sqrt(d_k) */
    double dropout;   /* of the weights, in training plans */
    const char *site; /* dropout's name, as of wf_dropout */
} wf_attention_options;
/* q [B,H,T,d_k], k [B,G,S,d_k], v [B,G,S,d_v] -> [B,H,T,d_v]; or 3-D without heads. G = H, or G
 * divides H and heads of q in a row share one of k and v (Ainslie et al. 2023). mask broadcasts to
 * [B,H,T,S]: [T,S] or [B,1,1,S] as they are, [B,T,S] gets a head axis; may be NULL. */
WF_API wf_tensor *wf_attention(wf_tensor *q, wf_tensor *k, wf_tensor *v, wf_tensor *mask,
                               const wf_attention_options *options);
/* Only the weights softmax(scale q k^T), from primitives, before dropout: [B,H,T,S]; rows sum to 1
 * or 0. */
WF_API wf_tensor *wf_attention_weights(wf_tensor *q, wf_tensor *k, wf_tensor *mask,
                                       const wf_attention_options *options);

/* ---- signals: signal/ ------------------------------------------------------------------------ */
/* the axis goes on beyond its ends as seen in a mirror at its last elements */
WF_API wf_tensor *wf_pad_reflect(wf_tensor *x, int axis, int64_t before, int64_t after);
typedef enum { WF_WINDOW_HANN, WF_WINDOW_HAMMING, WF_WINDOW_NONE } wf_window; /* periodic */
typedef struct wf_stft_options {
    int64_t n_fft;                  /* points of the transform, at most 4096 */
    int64_t hop_length, win_length; /* 0: n_fft / 4; n_fft. A shorter window is in the middle */
    wf_window window;
    bool center; /* frame t is around x[t hop]: x is padded by reflection */
} wf_stft_options;
typedef struct wf_stft_result {
    wf_tensor *real, *imag;
} wf_stft_result;
/* x [...,L] -> [...,F,T] each, F = n_fft / 2 + 1 frequencies, T frames, as torch.stft */
WF_API wf_stft_result wf_stft(wf_tensor *x, const wf_stft_options *options);
WF_API wf_tensor *wf_power_spectrum(wf_tensor *x, const wf_stft_options *options); /* |stft|^2 */
/* Triangular filters on the mel scale, a constant [n_mels,F]: librosa.filters.mel, or with htk and plain
 * torchaudio's. A mel spectrogram is their product with a power spectrum. */
typedef struct wf_mel_options {
    double sample_rate;
    int64_t n_fft, n_mels;
    double f_min, f_max; /* Hz; f_max 0: half of the sample rate */
    bool htk;            /* HTK's scale; else Slaney's */
    bool plain;          /* triangles of height 1; else of area 1 over frequencies */
} wf_mel_options;
WF_API wf_tensor *wf_mel_filters(wf_graph *g, const wf_mel_options *options);
/* x [...,L], samples at 16 kHz -> [...,n_mels,L/160]: the features of Whisper, by signal */
WF_API wf_tensor *wf_log_mel_spectrogram(wf_tensor *x, int64_t n_mels);

/* ---- training: dropout.c, cross_entropy.c, update*.c ----------------------------------------- */
/* Inverted dropout; the identity outside training plans. Which elements are dropped depends on the
 * step (wf_random_step) and on the site: the scope and `site`, or if that is NULL a number, counted
 * in the scope. The same site in the same scope drops the same elements. */
WF_API wf_tensor *wf_dropout(wf_tensor *x, double rate, const char *site);
typedef struct wf_cross_entropy_result {
    wf_tensor *loss;  /* sum of the smoothed loss over the counted rows, shape [] */
    wf_tensor *nll;   /* sum of -log p[label], shape [] */
    wf_tensor *count; /* counted rows, real, shape [] */
} wf_cross_entropy_result;
/* logits [...,V], labels [...] i32; rows with label ignore_index are not counted. smoothing is
 * PyTorch's label_smoothing. */
WF_API wf_cross_entropy_result wf_cross_entropy(wf_tensor *logits, wf_tensor *labels,
                                                double smoothing, int32_t ignore_index);
/* the classes are on that axis: logits [B,V,...], axis 1, labels [B,...] as in PyTorch */
WF_API wf_cross_entropy_result wf_cross_entropy_over(wf_tensor *logits, wf_tensor *labels, int axis,
                                                     double smoothing, int32_t ignore_index);
/* KV cache (cache.c): the identity, or with a state all rows so far, [..., P + n, ...]. If only the
 * shape of the result is used, as by wf_key_mask, no rows are kept. */
WF_API wf_tensor *wf_cache(wf_tensor *x, int axis);
/* x; a NaN or Inf in it fails the run, with `what` in the message */
WF_API wf_tensor *wf_check_finite(wf_tensor *x, const char *what);
/* Updates. A plan performs those among its fetches, after all other readers of their leaves; a run
 * that fails performs none. They have no value. */
WF_API wf_tensor *wf_assign(wf_tensor *leaf, wf_tensor *value); /* leaf = value */
/* sums [n,...] is a stack of partial sums of tensors like value; at: real [2] = { how many are on it,
 * how many of these, from the top, the value is added to }. The sum takes their place. So values are
 * summed in any order that a tree has: nn/sum_tree.h. */
WF_API wf_tensor *wf_accumulate(wf_tensor *sums, wf_tensor *value, wf_tensor *at);
/* rates: real [n], the first is the learning rate; scale: real [], multiplies the gradient (for
 * clipping, 1/count). The buffer is for a momentum; else it may be NULL. With dampening rates[1] is
 * 0 at the first step, whose gradient is not dampened, and then 1. options NULL: all 0 */
typedef struct wf_sgd_options {
    double momentum, weight_decay, dampening;
    bool nesterov;
} wf_sgd_options;
WF_API wf_tensor *wf_sgd_step(wf_tensor *param, wf_tensor *momentum_buffer, wf_tensor *grad,
                              wf_tensor *scale, wf_tensor *rates, const wf_sgd_options *options);
/* rates: real [3] = { learning rate, 1 / (1 - beta1^t), 1 / (1 - beta2^t) }, computed in double by
 * the caller and fed. decoupled: weight decay as in AdamW; else added to the gradient as in
 * Adam. */
typedef struct wf_adam_options {
    double beta1, beta2, eps, weight_decay;
    bool decoupled;
} wf_adam_options;
WF_API wf_tensor *wf_adam_step(wf_tensor *param, wf_tensor *m, wf_tensor *v, wf_tensor *grad,
                               wf_tensor *scale, wf_tensor *rates, const wf_adam_options *options);
/* average is for `centered`, the buffer for a momentum; else they may be NULL. options NULL: alpha
 * 0.99, eps 1e-8 */
typedef struct wf_rmsprop_options {
    double alpha, eps, weight_decay, momentum;
    /* divide by the deviation of the gradients, not by their size; a negative variance, which
     * rounding can make, is 0 (PyTorch's is NaN) */
    bool centered;
    bool sum; /* Adagrad: squares += grad^2, without alpha */
} wf_rmsprop_options;
WF_API wf_tensor *wf_rmsprop_step(wf_tensor *param, wf_tensor *squares, wf_tensor *average,
                                  wf_tensor *momentum_buffer, wf_tensor *grad, wf_tensor *scale,
                                  wf_tensor *rates, const wf_rmsprop_options *options);
/* options NULL: betas 0.9 and 0.99, no decay. The decay is decoupled, as in AdamW. */
typedef struct wf_lion_options {
    double beta1, beta2, weight_decay;
} wf_lion_options;
WF_API wf_tensor *wf_lion_step(wf_tensor *param, wf_tensor *m, wf_tensor *grad, wf_tensor *scale,
                               wf_tensor *rates, const wf_lion_options *options);

/* ---- gradient check: check_gradients.c ------------------------------------------------------- */
/* Compare the gradient of `loss` (a function of parameters only, in an f64 graph) with finite
 * differences (a five-point stencil) for every element of the parameters wrt. Returns the largest
 * |a - n| / max(|a|, |n|, 1e-3), or NaN if something was not finite or failed (reason in
 * message[256]). */
WF_API double wf_check_gradients(wf_graph *g, wf_tensor *loss, wf_tensor *const *wrt, int n,
                                 char *message);

/* ---- the list -------------------------------------------------------------------------------- */
WF_API int wf_op_count(void); /* every op of this library, for tests and pictures */
WF_API const wf_op *wf_op_at(int i);
WF_API const char *wf_isa(void); /* "base" "avx2" "avx512" "neon": the kernels in use */

#ifdef __cplusplus
}
#endif
#endif
