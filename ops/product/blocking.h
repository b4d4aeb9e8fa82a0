/* ops/product/blocking.h - how a product is divided into tasks, and how its factors are read. Not
 * installed. */
#ifndef WEFT_OPS_PRODUCT_BLOCKING_H
#define WEFT_OPS_PRODUCT_BLOCKING_H

#include "core/emit/emitter.h"
#include "ops/base/walk.h"
#include "ops/product/int8.h"

typedef struct wf_blocking { /* the blocks into which one product is divided */
    int64_t rows, columns;   /* sizes of a block */
    int64_t row_blocks, column_blocks;
} wf_blocking;

typedef struct wf_product {
    wf_walk batch; /* a walk over the products of the batch; its views are c, a and b */
    int64_t count; /* products */
    int64_t m, n, k, a_row, a_col, b_row, b_col;
    wf_blocking blocks;
    int64_t group; /* number of products in a task, if they are small */
    /* number of pieces of k. 1: k is not divided. Above 1: each piece is a task, and its product is
     * kept in the work memory until the products are summed */
    int64_t pieces;
    int64_t block;     /* size of blocks of k, chosen for the caches */
    bool packs_a;      /* each task packs its own rows of a transposed a */
    bool b_stays;      /* rows of b are read in place */
    bool copies_a;     /* all of a is first copied to the work memory, block by block of k */
    wf_int8_plan int8; /* used if b is in int8 */
} wf_product;

/* The view without its last two axes, of which it may have fewer. */
static inline wf_view wf_leading_axes(const wf_view *v) {
    wf_view lead = *v;
    lead.ndim = v->ndim > 2 ? v->ndim - 2 : 0;
    return lead;
}

/* Set the blocks of k and of the result, how a and b are read (in place, packed or copied), and the
 * scratch and work memory of the call. The caller has set count, pieces, and all fields from m to
 * b_col. */
void wf_block_product(wf_product *p, wf_call *c);

/* Set blocks for a right operand that is stored in panels; a block is whole panels. The number of
 * blocks depends on the bytes of the panels, because with few rows in the left operand the time is
 * that of reading them from memory. rows: rows of a panel; unit: bytes of an element. */
void wf_block_panels(wf_product *p, wf_dtype type, int64_t rows, size_t unit);

/* Writes the product as C: matmul_emit.c. */
bool wf_emit_matmul(wf_emitter *e, const wf_call *c);

#endif
