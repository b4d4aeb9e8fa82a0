/* nn/train/slices.h - who owns which elements of the parameters, where an optimizer is divided among
 * ranks.
 *
 * All elements of all parameters are one sequence of blocks, those of wf_square_sums: a parameter
 * begins with a block of its own. They travel in rounds, from the last block to the first: as the
 * gradients of what is used last are known first, a round's are, while those of the next are still
 * computed. Of N blocks of a round rank q of R owns [ceil(q N / R), ceil((q + 1) N / R)); all that it
 * owns is its slice. Not installed. */
#ifndef WEFT_NN_TRAIN_SLICES_H
#define WEFT_NN_TRAIN_SLICES_H

#include "nn/optimizer.h"

typedef struct wf_slices {
    int n; /* parameters */
    wf_tensor *const *params;
    int64_t *first_block; /* [n + 1]: of each parameter; the last is the number of all */
    int ranks, rounds;
    int64_t in_round; /* blocks of each round but the last, a multiple of ranks */
} wf_slices;

/* The part of a parameter within some blocks. */
typedef struct wf_piece {
    int param;
    int64_t first, n; /* elements of it */
} wf_piece;

typedef struct wf_blocks {
    int64_t from, to;
} wf_blocks;

/* At most `most` blocks in a round, or one of each rank. False: out of memory. */
bool wf_slices_new(wf_slices *s, wf_tensor *const *params, int n, int ranks, int64_t most);
void wf_slices_free(wf_slices *s);
wf_blocks wf_round_of(const wf_slices *s, int round); /* all ranks' */
wf_blocks wf_slice_in_round(const wf_slices *s, int rank, int round);
/* The first piece of the blocks, which are then those after it; false: there are none left. */
bool wf_next_piece(const wf_slices *s, wf_blocks *blocks, wf_piece *piece);
/* All that a rank owns. */
typedef struct wf_slice_sizes {
    int64_t blocks, elements;
} wf_slice_sizes;
wf_slice_sizes wf_slice_size(const wf_slices *s, int rank);
/* Elements of the blocks. */
int64_t wf_slice_elements(const wf_slices *s, wf_blocks blocks);

#endif
