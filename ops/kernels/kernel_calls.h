/* ops/kernels/kernel_calls.h - structs with the arguments of kernels: numbers, rows, strides. */
#ifndef WEFT_OPS_KERNELS_KERNEL_CALLS_H
#define WEFT_OPS_KERNELS_KERNEL_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Rows of unary.inc, binary.inc and bits.inc become enumerators here, loops in elementwise.inc, ops
 * in unary.c, binary.c and bits.c. */
#define UNARY(name, text, value, derivative) WF_UNARY_##name,
enum wf_unary {
#include "ops/elementwise/unary.inc"
    WF_UNARY_COUNT
};
#define BINARY(name, text, value, da, db) WF_BINARY_##name,
#define COMPARE(name, value) WF_BINARY_##name,
enum wf_binary {
#include "ops/elementwise/binary.inc"
    WF_BINARY_COUNT
};
#define BITS(name, text, value) WF_BITS_##name,
enum wf_bits {
#include "ops/elementwise/bits.inc"
    WF_BITS_COUNT
};

/* The matrix product. C[m,n] = A[m,k] B[k,n] + D[m,n]: element (i,j) of X lies at x[i * x_row + j *
 * x_col]; c_col and d_col are 1. D may be C; d_row 0: one row for all; d NULL: zeros. Each element
 * is one chain of fused multiply-adds over k, in order, which starts with D's element. So it does
 * not depend on m, n, strides and block.
 * block: the rows of B that are multiplied at once (cache_blocks.h), a multiple of WF_BLOCK_UNIT.
 * a_blocks: if not 0, A is `a_blocks` rows stored by such blocks of its columns, one after another,
 * each row-major without gaps; `a` is the first of these blocks, of which m rows from a_first on
 * are multiplied, and a_row, a_col are not used.
 * a_packs: a transposed A is first copied to scratch, which wf_gemm_scratch sizes for m rows.
 * b_stays: rows of B that are contiguous are read where they are, and not packed. */
typedef struct wf_matrix_product {
    int64_t m, n, k;
    const void *a, *b, *d;
    void *c;
    int64_t a_row, a_col, b_row, b_col, c_row, d_row;
    int64_t block, a_blocks, a_first;
    bool a_packs, b_stays;
} wf_matrix_product;

/* C[m,n] = A[m,k] W^T + D[m,n], where W is packed in panels of panel_rows rows (wf_layout), in
 * bf16 (only in f32 tables) or in the table's type. n ends at the end of a panel. Each element
 * is the same chain as in gemm. */
typedef struct wf_panel_product {
    int64_t m, n, k;
    const void *a, *panels, *d;
    void *c;
    int64_t a_row, a_col, c_row, d_row;
    bool bf16;
} wf_panel_product;

/* A product with weights in int8: int8.inc. int8_row has written the rows of A,
 * wf_int8_row_bytes(k) apart. c = (sum + shift) * scale of A's row * scale of W's row + d, with
 * exact sums, so that all tables give the same bits. shift has a number for each row of W; shift
 * and d may be NULL. with_dot must be the one that int8_row had. */
typedef struct wf_int8_product {
    int64_t m, n, k;
    const void *a, *panels;
    const float *d;
    const int32_t *shift;
    float *c;
    int64_t c_row, d_row;
    bool with_dot;
} wf_int8_product;

/* wf_int8_row_bytes: bytes of a rounded row of A, a head and then twice WF_INT8_HALF(k).
 * wf_int8_weight_bytes: bytes of a row of W. */
enum { WF_INT8_HEAD = 64 };
#define WF_INT8_HALF(k) (((k) + 63) / 64 * 64)
static inline size_t wf_int8_row_bytes(int64_t k) {
    return WF_INT8_HEAD + 2 * (size_t)WF_INT8_HALF(k);
}
static inline size_t wf_int8_weight_bytes(int64_t k) {
    return (size_t)(k + 3) / 4 * 4 + sizeof(float);
}

/* Element (i, j) lies at data[i * row + j * col]. */
typedef struct wf_matrix {
    void *data;
    int64_t row, col;
} wf_matrix;

/* One head of attention: q [queries, k_width], k [keys, k_width], v [keys, v_width], y as q but
 * v_width wide. Results have col 1. stats [2, queries]: largest score and 1 / sum of exponentials,
 * written by attention and read by attention_backward. mask [queries, keys], data NULL for none:
 * compared with 0, or added if additive; its col is 0 or 1. Causal as wf_attention. Weight (t, s)
 * is kept where half-word element + t * keys + s of the stream is below the threshold, as in
 * dropout. adds: dk and dv are added to what is there, else written. */
typedef struct wf_attention_head {
    int64_t queries, keys, k_width, v_width;
    double scale, keep_scale;
    int64_t window; /* query t sees keys from t + keys - queries - window + 1 on; 0: all */
    bool causal, additive, drops, adds;
    uint32_t threshold;
    uint64_t key, stream, element;
    wf_matrix q, k, v, mask, y, stats, dy, dq, dk, dv;
    const struct wf_attention_head *next; /* the next head, whose rows are prefetched; or NULL */
} wf_attention_head;

/* A step of a scan computes y[i] from y = y[i - 1]: y + b[i] (sum), y * a[i] (product), or a[i] * y
 * + b[i] (linear). y[-1] is 0, for products 1. `scan` has at most WF_SCANNED chains side by side.
 * `scan_from` is linear, begins with `first`, and has any number of chains. */
typedef enum wf_scan { WF_SCAN_SUM, WF_SCAN_PRODUCT, WF_SCAN_LINEAR } wf_scan;
enum { WF_SCANNED = 1024 };

/* How an image [height, width] is copied to row_phases x column_phases planes [rows, columns],
 * which are `plane` elements apart. Element (r, c) of plane (i, j) is the image's element at row
 * top + i + r * row_step, column left + j + c * column_step, or `pad` outside of the image. */
typedef struct wf_planes {
    int64_t height, width, top, left, row_step, column_step, row_phases, column_phases;
    int64_t rows, columns, plane;
    double pad;
} wf_planes;

/* y[r, p] = start[r] + the sum over k of weights[k, r] x[offset[k] + p], for r < rows <= conv_rows
 * and p < positions. start NULL: zeros. x and y must have room for positions rounded up to whole
 * vectors, because the kernel computes all of these. */
typedef struct wf_conv_tile {
    int64_t rows, positions, terms, y_row;
    const int64_t *offset;
    const void *x, *weights, *start;
    void *y;
} wf_conv_tile;

/* dw[k, o] += the sum over (r, c) < (rows, columns) of x[offset[k] + r * x_row + c] dy[r, c, o],
 * for k < terms, o < lanes, whole vectors. */
typedef struct wf_conv_weights {
    int64_t terms, lanes, rows, columns, x_row;
    const int64_t *offset;
    const void *x, *dy;
    void *dw;
} wf_conv_weights;

/* y[p] = the maximum over k < taps of x[offset[k] + p], and tap[p] is the k of that maximum, or -1
 * if nothing is above -inf. x, y and tap must have room for positions in whole vectors. */
typedef struct wf_pool_tile {
    int64_t positions, taps;
    const int64_t *offset;
    const void *x;
    void *y, *tap;
} wf_pool_tile;

/* The windows [rows, columns] of an image. The first begins at row `top` and column `left`, neither
 * above 0. offset[k]: elements from the first tap of a window to tap k. */
typedef struct wf_pool_plane {
    int64_t height, width, taps, rows, columns, top, left;
    int64_t row_step, column_step, row_dilation, column_dilation;
    const int64_t *offset;
} wf_pool_plane;

/* The numbers of one step of an optimizer: the formulas are in update.inc. */
typedef struct wf_sgd_rule {
    double scale, rate, momentum, decay, fresh;
    bool nesterov;
} wf_sgd_rule;
typedef struct wf_adam_rule {
    double scale, rate, c1, c2, beta1, beta2, eps, decay;
    bool decoupled;
} wf_adam_rule;
typedef struct wf_rmsprop_rule {
    double scale, rate, keep, fresh, eps, momentum, decay;
} wf_rmsprop_rule;
typedef struct wf_lion_rule {
    double scale, rate, beta1, beta2, decay;
} wf_lion_rule;

/* The most queries of a head in one call of `attention`; the most elements of a vector. */
enum { WF_ATTENTION_ROWS = 480, WF_WIDEST = 16 };

/* The number of counters in one call of `draw`. draw_normal makes a multiple of WF_DRAWN_UNIT
 * numbers. */
enum { WF_DRAWN = 256, WF_DRAWN_UNIT = 8 };

#endif
