/* ops/kernels/cache_blocks.h - the blocks of matrix products, from the caches.
 *
 * `k` rows of one panel of B are multiplied at a time with at most `rows` rows of A, tile by tile
 * (gemm.inc). The panel is read again for every tile of rows and belongs in the first-level cache,
 * with the tiles of A that pass by it; the block of A is read again for every panel and belongs in
 * the second-level cache (Goto & van de Geijn 2008, "Anatomy of high-performance matrix
 * multiplication"; Low et al. 2016, "Analytical modeling is enough for high-performance BLIS").
 * Blocks affect only the time: no bit of a result depends on them. */
#ifndef WEFT_OPS_KERNELS_CACHE_BLOCKS_H
#define WEFT_OPS_KERNELS_CACHE_BLOCKS_H

#include "core/base/caches.h"
#include "core/basis.h"

/* Blocks of k are multiples of this, unless all of k is one block. */
enum { WF_BLOCK_UNIT = 16 };

typedef struct wf_blocks {
    int64_t k, rows; /* the most steps of k, and rows of A, in a block */
    /* the panel is small enough to stay in the first-level cache, so only A is loaded from further
     * away */
    bool streams_a;
} wf_blocks;

/* The blocks for tiles of tile_rows x tile_columns elements of `unit` bytes. */
wf_blocks wf_blocks_of(const wf_caches *caches, int64_t tile_rows, int64_t tile_columns,
                       size_t unit);

/* True if a cache holds `rows` rows of row_bytes bytes, `stride` bytes apart, with one way to
 * spare. Rows that are a large power of 2 apart share only a few of the cache's sets. */
bool wf_cache_holds(const wf_cache_level *c, int64_t rows, int64_t row_bytes, int64_t stride);

/* The blocks for the kernels in use, on this processor. */
wf_blocks wf_blocks_here(wf_dtype type);

/* The size of k's blocks: nearly equal ones of at most `most`, a multiple of WF_BLOCK_UNIT. */
int64_t wf_even_block(int64_t k, int64_t most);

/* The bytes of scratch for one panel of B and, if A is packed, `rows` rows of A. */
size_t wf_gemm_scratch(wf_dtype type, int64_t block, int64_t rows);

/* Elements from a row of packed A to the next. Without the extra unit, rows of a block of 512
 * doubles would be a page apart, and would share cache sets. */
static inline int64_t wf_packed_row(int64_t block) {
    return block + WF_BLOCK_UNIT;
}

#endif
