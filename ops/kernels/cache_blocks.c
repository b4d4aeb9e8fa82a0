/* ops/kernels/cache_blocks.c - the blocks of matrix products, from the caches. */
#include "cache_blocks.h"

#include "kernels.h"
#include "ops/base/op_base.h"

/* LEAST_K: fewest steps of k for which a panel is kept in the first-level cache, because with fewer
 * the overhead at the start and end of each tile matters. MOST_K: more steps bring no gain. */
enum { LEAST_K = 192, MOST_K = 512 };
enum { LEAST_TILES = 4, MOST_ROWS = 512 };

static int64_t at_most(int64_t n, int64_t most) {
    return n < most ? n : most;
}

static int64_t whole_units(int64_t k) {
    return k < WF_BLOCK_UNIT ? WF_BLOCK_UNIT : k / WF_BLOCK_UNIT * WF_BLOCK_UNIT;
}

/* The steps of k for which the panel and a tile of A, which replaces the one before it, fit in the
 * first-level cache. One way is left for C. */
static int64_t in_first_level(const wf_caches *c, int64_t tile_rows, int64_t tile_columns,
                              int64_t unit) {
    int64_t ways = c->l1.ways > 1 ? c->l1.ways - 1 : 1;
    return c->l1.bytes / c->l1.ways * ways / ((tile_columns + tile_rows) * unit);
}

/* A tile may be so wide that its panel would be too short in the first-level cache (AVX-512). Then
 * the panel gets a quarter of the second-level cache, because such a tile loads less for each
 * multiply-add. The block of A gets half of the second-level cache; the rest is for B and C, which
 * pass through. */
wf_blocks wf_blocks_of(const wf_caches *c, int64_t tile_rows, int64_t tile_columns, size_t unit) {
    int64_t size = (int64_t)unit, k = in_first_level(c, tile_rows, tile_columns, size);
    wf_blocks b = { .streams_a = k >= LEAST_K };
    if (!b.streams_a) k = c->l2.bytes / c->l2.threads / 4 / (tile_columns * size);
    b.k = whole_units(at_most(k, MOST_K));
    int64_t tiles = at_most(c->l2.bytes / c->l2.threads / 2 / (b.k * size), MOST_ROWS) / tile_rows;
    b.rows = (tiles > LEAST_TILES ? tiles : LEAST_TILES) * tile_rows;
    return b;
}

static int64_t common_divisor(int64_t a, int64_t b) {
    return b ? common_divisor(b, a % b) : a;
}

/* `way` is the size of one way of the cache, for one thread. Modulo `way`, rows begin at multiples
 * of `unit` bytes, the greatest common divisor of stride and way. Each row covers some of these
 * places, and all rows together cover them evenly. */
bool wf_cache_holds(const wf_cache_level *c, int64_t rows, int64_t row_bytes, int64_t stride) {
    int64_t way = c->bytes / c->threads / c->ways, unit;
    if (way < 1 || stride < 1) return false;
    unit = common_divisor(stride, way);
    int64_t covered = (row_bytes + unit - 1) / unit, places = way / unit;
    return (rows * covered + places - 1) / places < c->ways;
}

wf_blocks wf_blocks_here(wf_dtype type) {
    return wf_blocks_of(wf_caches_here(), WF_KERNEL(type, gemm_rows), WF_KERNEL(type, gemm_columns),
                        wf_dtype_size(type));
}

int64_t wf_even_block(int64_t k, int64_t most) {
    int64_t pieces = k > 0 ? (k + most - 1) / most : 1, piece = (k + pieces - 1) / pieces;
    int64_t units = (piece + WF_BLOCK_UNIT - 1) / WF_BLOCK_UNIT;
    return (units > 0 ? units : 1) * WF_BLOCK_UNIT;
}

size_t wf_gemm_scratch(wf_dtype type, int64_t block, int64_t rows) {
    int64_t elements = block * WF_KERNEL(type, gemm_columns) + rows * wf_packed_row(block);
    return (size_t)elements * wf_dtype_size(type);
}
