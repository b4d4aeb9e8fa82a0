/* nn/train/slices.h - which rank owns which elements of the parameters in a sharded optimizer.
 *
 * All elements of all parameters form one sequence of blocks, those of wf_square_sums; each
 * parameter begins a new block. Blocks are sent in rounds, from the last block to the first. The
 * backward pass finishes the last parameters first, so one round can be sent while the gradients of
 * the next are still being computed. If a round has N blocks, rank q of R owns those from ceil(q N
 * / R) up to ceil((q + 1) N / R). All blocks of a rank together are its slice. Not installed. */
#ifndef WEFT_NN_TRAIN_SLICES_H
#define WEFT_NN_TRAIN_SLICES_H

#include "nn/optimizer.h"

typedef struct wf_slices {
    int n; /* parameters */
    wf_tensor *const *params;
    /* [n + 1]: index of the first block of each parameter; the last entry is the number of
     * blocks */
    int64_t *first_block;
    int ranks, rounds;
    int64_t in_round; /* number of blocks in each round but the last; a multiple of ranks */
} wf_slices;

/* The part of a parameter within some blocks. */
typedef struct wf_piece {
    int param;
    int64_t first, n; /* its elements [first, first + n) */
} wf_piece;

typedef struct wf_blocks {
    int64_t from, to;
} wf_blocks;

/* Divide the blocks of n parameters into rounds of at most `most` blocks, but at least one for each
 * rank. False: out of memory. */
bool wf_slices_new(wf_slices *s, wf_tensor *const *params, int n, int ranks, int64_t most);
void wf_slices_free(wf_slices *s);
wf_blocks wf_round_of(const wf_slices *s, int round); /* the blocks of all ranks */
wf_blocks wf_slice_in_round(const wf_slices *s, int rank, int round);
/* Writes the first piece in a range of blocks, and removes it from the range. False: none is
 * left. */
bool wf_next_piece(const wf_slices *s, wf_blocks *blocks, wf_piece *piece);
/* The sizes of everything that a rank owns. */
typedef struct wf_slice_sizes {
    int64_t blocks, elements;
} wf_slice_sizes;
wf_slice_sizes wf_slice_size(const wf_slices *s, int rank);
/* Elements of the blocks. */
int64_t wf_slice_elements(const wf_slices *s, wf_blocks blocks);

#endif
