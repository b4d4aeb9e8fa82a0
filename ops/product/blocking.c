/* ops/product/blocking.c - how a product is divided into tasks, by its shape and the caches alone,
 * and how its factors are read. Bits do not depend on it. */
#include "blocking.h"

#include "ops/base/op_base.h"
#include "ops/kernels/cache_blocks.h"

/* LEAST_TASK: about the fewest multiply-adds of a task. SMALL_B: the largest size, in elements, of
 * a matrix b that is cheap to pack again for every block of rows of a. */
#define LEAST_TASK (1 << 18)
#define SMALL_B (1 << 14)
/* MOST_TASKS: tasks of a large product. If its columns give ENOUGH_TASKS, rows are divided only for
 * the cache; otherwise blocks have at least LEAST_ROWS rows. LEAST_STRIPE: about the fewest columns
 * of a block. */
enum { MOST_TASKS = 64, ENOUGH_TASKS = 8, LEAST_ROWS = 80, LEAST_STRIPE = 32 };
/* PACKING_COLUMNS: fewest columns of b with which a transposed a is packed (packs_a), or rows of a
 * are copied (copies_rows). FEW_COLUMNS: fewest with which a transposed a is packed if each of its
 * columns begins in another page. */
enum { PACKING_COLUMNS = 256, FEW_COLUMNS = 64 };
/* MOST_ROWS_OF_B: rows of b that may be read without packing. Each may lie in a page (PAGE bytes)
 * of its own, and the processor keeps few translations of pages. */
enum { MOST_ROWS_OF_B = 256, PAGE = 4096 };
/* Sizes of a block with packed a: most columns; fewest columns, if these are divided to get more
 * tasks; fewest rows. */
enum { MOST_COLUMNS = 1024, LEAST_COLUMNS = 512, LEAST_PACKED_ROWS = 60 };
#define LEAST_STREAM (1 << 17) /* fewest bytes of panels in a task */

/* Divide `size` into about `pieces` blocks of *block, a multiple of the tile; only the last is
 * smaller. Returns their number. */
static int64_t blocks_of(int64_t size, int64_t pieces, int64_t tile, int64_t *block) {
    *block = (size + pieces - 1) / pieces;
    *block = (*block + tile - 1) / tile * tile;
    return (size + *block - 1) / *block;
}

/* Divides [m, n] into blocks if a is transposed, and gemm packs it block by block. Rows are
 * divided. Columns are divided only so that a block of b stays in the cache, or to get enough
 * tasks. */
static wf_blocking block_packed_a(int64_t m, int64_t n, int64_t most_rows, wf_dtype type) {
    int64_t r = (m + most_rows - 1) / most_rows;
    int64_t s = (n + MOST_COLUMNS - 1) / MOST_COLUMNS;
    while (r * s < ENOUGH_TASKS && n / (2 * s) >= LEAST_COLUMNS) s *= 2;
    if (r * s < ENOUGH_TASKS) r = (ENOUGH_TASKS + s - 1) / s;
    if (r > 1 && m / r < LEAST_PACKED_ROWS)
        r = m / LEAST_PACKED_ROWS > 1 ? m / LEAST_PACKED_ROWS : 1;
    wf_blocking all;
    all.row_blocks = blocks_of(m, r, WF_KERNEL(type, gemm_rows), &all.rows);
    all.column_blocks = blocks_of(n, s, WF_KERNEL(type, gemm_columns), &all.columns);
    return all;
}

/* If b is cheap to pack again (SMALL_B), or lies in memory as one panel needs it, the rows of a are
 * divided by 2, 4, 8...: then the same processor tends to compute the same rows in one op after
 * another.
 *
 * Otherwise, or if there are too few rows for that, columns are divided first, because each block
 * packs its columns of b once. Rows are divided, too, if a block of a would not stay in the cache,
 * or if the columns give fewer than ENOUGH_TASKS tasks. Each block of rows packs the columns
 * again. */
static void block_product(wf_product *p, int64_t most_rows, wf_dtype type) {
    int64_t row_tile = WF_KERNEL(type, gemm_rows), column_tile = WF_KERNEL(type, gemm_columns);
    double cost = (double)p->m * (double)p->n * (double)(p->k ? p->k : 1);
    int64_t wanted = (MOST_TASKS + p->count - 1) / p->count, r = 1, s = 1;
    if ((double)wanted > cost / LEAST_TASK) wanted = (int64_t)(cost / LEAST_TASK);
    if (wanted < 1) wanted = 1;
    bool one_panel = p->b_row == p->n && p->n <= column_tile;
    if (p->k * p->n <= SMALL_B || one_panel) {
        int64_t least_rows = one_panel ? 4 * row_tile : LEAST_ROWS;
        while (2 * r <= wanted && p->m / (2 * r) >= least_rows) r *= 2;
        wanted /= r;
    }
    if (r == 1) {
        int64_t stripe = column_tile > LEAST_STRIPE ? column_tile : LEAST_STRIPE;
        int64_t for_cache = one_panel ? 1 : (p->m + most_rows - 1) / most_rows;
        s = (p->n + stripe - 1) / stripe;
        if (s > wanted / for_cache) s = wanted > for_cache ? wanted / for_cache : 1;
        if (s * p->count < ENOUGH_TASKS) r = (wanted < ENOUGH_TASKS ? wanted : ENOUGH_TASKS) / s;
        if (r > p->m / LEAST_ROWS) r = p->m / LEAST_ROWS;
        if (r < for_cache) r = for_cache;
    }
    p->blocks.row_blocks = blocks_of(p->m, r > 1 ? r : 1, row_tile, &p->blocks.rows);
    p->blocks.column_blocks = blocks_of(p->n, s, column_tile, &p->blocks.columns);
    p->group = cost < LEAST_TASK ? (int64_t)(LEAST_TASK / cost) : 1;
}

void wf_block_panels(wf_product *p, wf_dtype type, int64_t rows, size_t unit) {
    double bytes = (double)p->n * (double)p->k * (double)unit;
    int64_t panels = (p->n + rows - 1) / rows;
    int64_t wanted = (int64_t)(bytes / LEAST_STREAM) + 1;
    if (wanted > MOST_TASKS) wanted = MOST_TASKS;
    if (wanted > panels) wanted = panels;
    block_product(p, p->m, type);
    p->blocks.column_blocks = blocks_of(p->n, wanted, rows, &p->blocks.columns);
}

/* True if the rows of a are copied first, block of k by block. This pays only if they would evict
 * each other from the cache where they are, and if many columns read the copy. */
static bool copies_rows(const wf_product *p, const wf_blocks *most, size_t unit) {
    int64_t rows = p->m < most->rows ? p->m : most->rows, size = (int64_t)unit;
    if (p->count > 1 || p->pieces > 1 || p->a_col != 1 || p->k <= p->block) return false;
    return p->n >= PACKING_COLUMNS && most->streams_a &&
           !wf_cache_holds(&wf_caches_here()->l2, rows, p->block * size, p->a_row * size);
}

/* True if the rows of a panel of b stay in the cache without being packed. */
static bool b_stays(const wf_product *p, const wf_blocks *most, wf_dtype type) {
    const wf_caches *caches = wf_caches_here();
    int64_t size = (int64_t)wf_dtype_size(type), stride = p->b_row * size;
    return p->block <= MOST_ROWS_OF_B && stride % PAGE != 0 &&
           wf_cache_holds(most->streams_a ? &caches->l1 : &caches->l2, p->block,
                          WF_KERNEL(type, gemm_columns) * size, stride);
}

/* True if a transposed a is packed. This pays with many columns of b, and already with fewer if
 * each column of a would be read from another page. */
static bool packs_a(const wf_product *p, size_t unit) {
    if (p->a_row != 1 || p->a_col <= 1 || p->k < WF_BLOCK_UNIT) return false;
    return p->n >= (p->a_col * (int64_t)unit < PAGE ? PACKING_COLUMNS : FEW_COLUMNS);
}

void wf_block_product(wf_product *p, wf_call *c) {
    wf_dtype type = c->out[0].dtype;
    size_t unit = wf_dtype_size(type);
    wf_blocks most = wf_blocks_here(type);
    p->block = wf_even_block(p->k, most.k);
    bool packs = packs_a(p, unit);
    if (packs && p->count == 1)
        p->blocks = block_packed_a(p->m, p->n, most.rows, type);
    else
        block_product(p, most.rows, type);
    int64_t rows = p->pieces > 1 ? p->m : p->blocks.rows;
    p->packs_a = packs && rows <= 2 * most.rows;
    p->copies_a = copies_rows(p, &most, unit);
    p->b_stays = b_stays(p, &most, type);
    c->scratch_bytes = wf_gemm_scratch(type, p->block, p->packs_a ? rows : 0);
    int64_t work = p->pieces > 1 ? p->pieces * p->m * p->n : p->copies_a ? p->m * p->k : 0;
    c->work_bytes = (size_t)work * unit;
}
