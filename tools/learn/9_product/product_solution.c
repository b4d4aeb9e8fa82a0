/* The solution of exercise 9: tiles in registers, with operands packed in the order in which a tile
 * reads them. */
#include "product_task.h"

#include <stdlib.h>
#include <string.h>

/* A vector has W numbers. A tile of ROWS rows and two vectors of columns fits in the registers. */
#if defined(__AVX512F__)
enum { W = 16, ROWS = 12 };
#elif defined(__AVX__)
enum { W = 8, ROWS = 6 };
#elif defined(__aarch64__)
enum { W = 4, ROWS = 8 };
#else
enum { W = 4, ROWS = 4 };
#endif
enum { COLUMNS = 2 * W, DEPTH = 256 };
typedef float vector __attribute__((vector_size(sizeof(float) * W), aligned(4)));

/* Packs column p of ROWS rows of a, for one p after the other, which is the order in which a tile
 * reads. */
static void pack_rows(const float *a, int lda, int rows, int depth, float *to) {
    for (int p = 0; p < depth; p++)
        for (int i = 0; i < ROWS; i++) to[p * ROWS + i] = i < rows ? a[i * lda + p] : 0;
}

static void pack_columns(const float *b, int n, int columns, int depth, float *to) {
    for (int p = 0; p < depth; p++)
        for (int j = 0; j < COLUMNS; j++) to[p * COLUMNS + j] = j < columns ? b[p * n + j] : 0;
}

static void tile(const float *restrict a, const float *restrict b, int depth, float *restrict out) {
    vector sum[ROWS][2] = { { { 0 } } };
    for (int p = 0; p < depth; p++) {
        vector left = *(const vector *)(b + p * COLUMNS),
               right = *(const vector *)(b + p * COLUMNS + W);
#pragma GCC unroll 16
        for (int i = 0; i < ROWS; i++) {
            sum[i][0] += a[p * ROWS + i] * left;
            sum[i][1] += a[p * ROWS + i] * right;
        }
    }
    memcpy(out, sum, sizeof sum);
}

static void add_tile(const float *out, int rows, int columns, int n, float *c) {
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) c[i * n + j] += out[i * COLUMNS + j];
}

void product(const float *a, const float *b, float *c, int m, int k, int n) {
    int panels = (n + COLUMNS - 1) / COLUMNS;
    float *b_packed = malloc(sizeof(float) * (size_t)panels * COLUMNS * DEPTH);
    float a_packed[ROWS * DEPTH], out[ROWS * COLUMNS];
    for (int i = 0; i < m * n; i++) c[i] = 0;
    for (int from = 0; from < k; from += DEPTH) {
        int depth = k - from < DEPTH ? k - from : DEPTH;
        for (int j = 0; j < n; j += COLUMNS)
            pack_columns(b + from * n + j, n, n - j < COLUMNS ? n - j : COLUMNS, depth,
                         b_packed + j * depth);
        for (int i = 0; i < m; i += ROWS) {
            int rows = m - i < ROWS ? m - i : ROWS;
            pack_rows(a + i * k + from, k, rows, depth, a_packed);
            for (int j = 0; j < n; j += COLUMNS) {
                tile(a_packed, b_packed + j * depth, depth, out);
                add_tile(out, rows, n - j < COLUMNS ? n - j : COLUMNS, n, c + i * n + j);
            }
        }
    }
    free(b_packed);
}
