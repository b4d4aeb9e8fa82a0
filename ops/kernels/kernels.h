/* ops/kernels/kernels.h - the inner loops: one table per instruction set and element type.
 *
 * kernels.inc is the single source. It is compiled for every instruction set, for f32 and for f64
 * (`real`). The table is chosen once: the best that the processor supports, or the one that
 * WEFT_ISA=base|avx2|avx512|neon names. Kernels work on rows and strides in elements, without
 * tensors or threads. All tables give the same bits, as README.md explains. Tails use the same
 * vector code, so that trailing zeros (padding) and neighbouring rows never change the bits of a
 * result. NaN and infinities propagate as in IEEE 754. */
#ifndef WEFT_OPS_KERNELS_KERNELS_H
#define WEFT_OPS_KERNELS_KERNELS_H

#include "kernel_calls.h"

/* clang-format off */
#define WF_KERNELS(real, name)                                                                     \
    typedef struct name {                                                                          \
        /* y[i] = f(x[i]); y may be x */                                                           \
        void (*unary[WF_UNARY_COUNT])(int64_t n, const real *x, real *y);                          \
        /* y[i] = f(a[i * sa], b[i * sb]); steps are 0 or 1; y may be a or b */                    \
        void (*binary[WF_BINARY_COUNT])(int64_t n, const real *a, int64_t sa,                      \
                                        const real *b, int64_t sb, real *y);                       \
        /* y = scale * x + shift */                                                                \
        void (*affine)(int64_t n, const real *x, double scale, double shift, real *y);             \
        void (*clamp)(int64_t n, const real *x, double low, double high, real *y);                 \
        /* y = x > 0 ? x : slope * x */                                                            \
        void (*leaky_relu)(int64_t n, const real *x, double slope, real *y);                       \
        /* Convert to i32: rounded towards 0, limited to its range, 0 for NaN; and back */         \
        void (*to_ids)(int64_t n, const real *x, int32_t *y);                                      \
        void (*from_ids)(int64_t n, const int32_t *x, real *y);                                    \
        /* Only for f32 (else NULL): y[i] = f(a[i * sa], b[i * sb]) of i32; steps are 0 or 1 */    \
        void (*bits[WF_BITS_COUNT])(int64_t n, const int32_t *a, int64_t sa,                       \
                                    const int32_t *b, int64_t sb, int32_t *y);                     \
        /* y[i] = mask[i * sm] != 0 ? a[i * sa] : b[i * sb] */                                     \
        void (*where)(int64_t n, const real *mask, int64_t sm, const real *a, int64_t sa,          \
                      const real *b, int64_t sb, real *y);                                         \
        /* accumulate: y += x. maximum_rows: y = max(y, x). minimum_rows: y = min(y, x). A NaN     \
         * stays. finite: true if all x are finite */                                              \
        void (*accumulate)(int64_t n, const real *x, real *y);                                     \
        void (*maximum_rows)(int64_t n, const real *x, real *y);                                   \
        void (*minimum_rows)(int64_t n, const real *x, real *y);                                   \
        /* y += (row 0 of x + row 1 + ...), for n columns; rows begin `step` apart */              \
        void (*accumulate_rows)(int64_t rows, int64_t n, const real *x, int64_t step, real *y);    \
        bool (*finite)(int64_t n, const real *x);                                                  \
        /* Sums have the order of README.md. max and min are NaN if there is a NaN; for n = 0      \
         * they are -inf and inf */                                                                \
        double (*sum)(int64_t n, const real *x);                                                   \
        double (*square_sum)(int64_t n, const real *x);                                            \
        real (*max)(int64_t n, const real *x);                                                     \
        real (*min)(int64_t n, const real *x);                                                     \
        /* y[r] = sum, max or min of the n elements in row r of x; rows begin `row` apart */       \
        void (*sum_rows)(int64_t rows, int64_t n, const real *x, int64_t row, real *y);            \
        void (*max_rows)(int64_t rows, int64_t n, const real *x, int64_t row, real *y);            \
        void (*min_rows)(int64_t rows, int64_t n, const real *x, int64_t row, real *y);            \
        /* y[i] = a[i] y[i - 1] + b[i] of chains side by side, whose elements i are `step` apart.  \
         * y[-1] is `first`, or 0 if it is NULL. Every y[i] is rounded. y may be a or b */         \
        void (*scan_from)(int64_t n, int64_t chains, int64_t step, const real *first,              \
                          const real *a, const real *b, real *y);                                  \
        /* Element i of chain j is at i * step + j * chain in a, b (unless unused) and y. y[i]     \
         * is rounded; the value used for y[i + 1] is not. y may be a or b */                      \
        void (*scan)(wf_scan kind, int64_t n, int64_t chains, int64_t chain, int64_t step,         \
                     const real *a, const real *b, real *y);                                       \
        /* y = softmax of scale * x over the first `open` of n columns where mask != 0 (NULL:      \
         * all). The rest is 0, whatever x holds there. additive: the mask is added instead,       \
         * and -inf excludes. If no column is open, y is zeros and the result false. y may be x */ \
        bool (*softmax_row)(int64_t n, int64_t open, const real *x, double scale,                \
                            const real *mask, int64_t mask_step, bool additive, real *y);          \
        /* For consecutive rows: y = softmax of x, as softmax_row computes it; y may be x */       \
        void (*softmax_rows)(int64_t rows, int64_t n, const real *x, real *y);                     \
        /* For consecutive rows: dx = y * (dy - sum(dy * y)); dx may be y or dy */                 \
        void (*softmax_backward_rows)(int64_t rows, int64_t n, const real *y, const real *dy,      \
                                      real *dx);                                                   \
        /* For consecutive rows: y = x - log(sum exp(x)); y may be x */                            \
        void (*log_softmax_rows)(int64_t rows, int64_t n, const real *x, real *y);                 \
        /* dx = dy - exp(y) * sum(dy) */                                                           \
        void (*log_softmax_backward_row)(int64_t n, const real *y, const real *dy, real *dx);      \
        /* For consecutive rows: y = (x - mean) * rstd * weight + bias (either may be NULL), with  \
         * the biased variance, in two passes */                                                   \
        void (*layer_norm_rows)(int64_t rows, int64_t n, const real *x, const real *weight,        \
                                const real *bias, double eps, real *y, real *mean, real *rstd);    \
        /* dx for these rows; w NULL: ones */                                                      \
        void (*layer_norm_backward_rows)(int64_t rows, int64_t n, const real *x, const real *w,    \
                                         const real *mean, const real *rstd, const real *dy,       \
                                         real *dx);                                                \
        /* dw += sum(dy * (x - mean) * rstd);  db += sum(dy), row by row */                        \
        void (*layer_norm_weight_rows)(int64_t rows, int64_t n, const real *x, const real *mean,   \
                                       const real *rstd, const real *dy, real *dw, real *db);      \
        /* For consecutive rows: y = x * rstd * weight (NULL: ones), with                          \
         * rstd = 1 / sqrt(mean(x^2) + eps) */                                                     \
        void (*rms_norm_rows)(int64_t rows, int64_t n, const real *x, const real *weight,          \
                              double eps, real *y, real *rstd);                                    \
        /* dx for these rows, which may be x or dy; and dw += sum(dy * x * rstd), row by row */    \
        void (*rms_norm_backward_rows)(int64_t rows, int64_t n, const real *x, const real *w,      \
                                       const real *rstd, const real *dy, real *dx, real *dw);      \
        /* y = the pairs of x (elements i and i + n/2, or if interleaved 2i and 2i + 1) rotated    \
         * by the angles of table, n cosines and n sines. back: by the transpose. y may be x */    \
        void (*rotate)(int64_t n, const real *x, const real *table, bool interleaved, bool back,   \
                       real *y);                                                                   \
        /* y[i] = half i0 + i of the Philox stream < threshold ? x[i] * scale : 0. Half e is 16    \
         * bits, the low ones if e is even, of word e / 2 % 4 of wf_philox4x32(key, e / 8, stream);\
         * threshold 2^16 * (1 - rate), at least 1. y may be x */                                  \
        void (*dropout)(int64_t n, const real *x, double scale, uint32_t threshold, uint64_t key,  \
                        uint64_t stream, uint64_t i0, real *y);                                    \
        /* Counters first, first + 1, ... of wf_philox4x32(key, ., stream): u = word 0 << 32 |     \
         * word 1, v = word 2 << 32 | word 3 */                                                    \
        void (*draw)(uint64_t key, uint64_t stream, uint64_t first, uint64_t u[WF_DRAWN],          \
                     uint64_t v[WF_DRAWN]);                                                        \
        /* Only for f64 (else NULL). From n such u and v, a multiple of WF_DRAWN_UNIT, it makes    \
         * y = std * sqrt(-2 log(1 - a)) * cos(2 pi b); a, b are their highest 53 bits * 2^-53 */  \
        void (*draw_normal)(int64_t n, const uint64_t *u, const uint64_t *v, double std,           \
                            double *y);                                                            \
        /* log(sum exp(x)) of each row = top[r] + log_total[r]; top is the largest x */            \
        void (*log_sum_exp_rows)(int64_t rows, int64_t n, const real *x, double *top,              \
                                 double *log_total);                                               \
        /* sum(x - from) */                                                                        \
        double (*difference_sum)(int64_t n, const real *x, real from);                             \
        /* dx[j] = dy * (exp(x[j] - top - log_total) - smoothing / n                               \
         *               - (j == label) * (1 - smoothing)) */                                      \
        void (*cross_entropy_backward_row)(int64_t n, const real *x, real top, real log_total,     \
                                           int64_t label, double smoothing, double dy, real *dx);  \
        /* Formulas: update.inc. momentum_buffer NULL: no momentum; average NULL: not centered */  \
        void (*sgd)(int64_t n, real *p, real *momentum_buffer, const real *grad,                   \
                    const wf_sgd_rule *rule);                                                      \
        void (*adam)(int64_t n, real *p, real *m, real *v, const real *grad,                       \
                     const wf_adam_rule *rule);                                                    \
        void (*rmsprop)(int64_t n, real *p, real *squares, real *average, real *momentum_buffer,   \
                        const real *grad, const wf_rmsprop_rule *rule);                            \
        void (*lion)(int64_t n, real *p, real *m, const real *grad, const wf_lion_rule *rule);     \
        /* scratch: wf_gemm_scratch (cache_blocks.h) bytes, aligned to 64 */                       \
        void (*gemm)(const wf_matrix_product *p, void *scratch);                                   \
        int64_t gemm_rows, gemm_columns; /* gemm's tile: cut work into multiples of these */       \
        /* Panels of this table are panel_rows wide. scratch: panel_scratch bytes, aligned to 64 */\
        int64_t panel_rows;                                                                        \
        void (*gemm_panels)(const wf_panel_product *p, void *scratch);                             \
        size_t panel_scratch;                                                                      \
        /* Pack `width` rows of k elements into the panel that holds them; and unpack */           \
        void (*pack_panel)(int64_t width, int64_t k, const real *rows, void *panel, bool bf16);    \
        void (*unpack_panel)(int64_t width, int64_t k, const void *panel, bool bf16, real *rows);  \
        /* unpack only row r of those */                                                           \
        void (*unpack_row)(int64_t width, int64_t k, const void *panel, bool bf16, int64_t r,      \
                           real *row);                                                             \
        /* Products with weights in int8, only for f32 (else NULL): int8.inc. has_dot: true if     \
         * the processor has VNNI, which multiplies 4 bytes in an instruction. int8_row rounds a   \
         * row of k to `out`; int8_row_by does so by a given factor, with the scale 1.             \
         * int8_panels is the product. with_dot: use VNNI, which gives the same bits */            \
        bool (*has_dot)(void);                                                                     \
        void (*int8_row)(int64_t k, const real *x, bool with_dot, void *out);                      \
        void (*int8_row_by)(int64_t k, const real *x, real by, bool with_dot, void *out);          \
        void (*int8_panels)(const wf_int8_product *p);                                             \
        /* attention computes y and stats of queries [from, to), at most WF_ATTENTION_ROWS;        \
         * attention_backward computes dq, dk and dv of a head. scratch is aligned to 64. It has   \
         * attention_scratch bytes, and attention_column more for each column of k and of v, both  \
         * numbers of columns rounded up to WF_WIDEST */                                           \
        void (*attention)(const wf_attention_head *h, int64_t from, int64_t to, void *scratch);    \
        void (*attention_backward)(const wf_attention_head *h, void *scratch);                     \
        size_t attention_scratch, attention_column;                                                \
        /* Convolution: conv.inc. Each result is one chain of multiply-adds in the order of k */   \
        void (*conv_planes)(const wf_planes *p, const real *image, real *y);                       \
        void (*conv_tile)(const wf_conv_tile *t);                                                  \
        void (*conv_weight_rows)(const wf_conv_weights *t);                                        \
        /* y[r * y_row + c * step] = x[r * x_row + c] for rows of n */                             \
        void (*conv_results)(int64_t rows, int64_t n, const real *x, int64_t x_row, real *y,       \
                             int64_t y_row, int64_t step);                                         \
        /* Pooling: pool.inc. pool_max: the maximum of each window. pool_scatter: x += y, each     \
         * element of y at the place of its window's maximum. pool_gather: y = x at those places */\
        void (*pool_max)(const wf_pool_tile *t);                                                   \
        void (*pool_scatter)(const wf_pool_plane *p, const real *y, const real *tap, real *x);     \
        void (*pool_gather)(const wf_pool_plane *p, const real *x, const real *tap, real *y);      \
        int64_t conv_rows, vector;  /* rows of a tile; elements of a vector */                     \
        /* y [columns, rows] = the transpose of x [rows, columns] */                               \
        void (*transpose)(int64_t rows, int64_t columns, const real *x, int64_t x_row, real *y,    \
                          int64_t y_row);                                                          \
        const char *isa;                                                                           \
    } name
/* clang-format on */

WF_KERNELS(float, wf_kernels_f32);
WF_KERNELS(double, wf_kernels_f64);

const wf_kernels_f32 *wf_f32(void); /* the table in use */
const wf_kernels_f64 *wf_f64(void);

bool wf_has_dot(void); /* the table in use has VNNI for int8 products */

/* All tables that this processor can run, beginning with the specification. NULL after the last. */
const wf_kernels_f32 *wf_f32_at(int i);
const wf_kernels_f64 *wf_f64_at(int i);

#endif
