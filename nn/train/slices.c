/* nn/train/slices.c - see slices.h. */
#include "slices.h"
#include "core/transport_internal.h"

#include <assert.h>
#include <stdlib.h>

#include "core/transport.h"
#include "ops/update/sums.h"

static int64_t at_least(int64_t a, int64_t b) {
    return a > b ? a : b;
}

bool wf_slices_new(wf_slices *s, wf_tensor *const *params, int n, int ranks, int64_t most) {
    int64_t blocks = 0;
    assert(n >= 0 && ranks >= 1);
    *s = (wf_slices){ .n = n, .params = params, .ranks = ranks };
    s->first_block = calloc((size_t)n + 1, sizeof *s->first_block);
    if (!s->first_block) return false;
    for (int i = 0; i < n; i++) {
        s->first_block[i] = blocks;
        blocks += (wf_count(params[i]) + WF_SQUARE_BLOCK - 1) / WF_SQUARE_BLOCK;
    }
    s->first_block[n] = blocks;
    s->in_round = at_least(1, most / ranks) * ranks;
    s->rounds = (int)((blocks + s->in_round - 1) / s->in_round);
    return true;
}

void wf_slices_free(wf_slices *s) {
    free(s->first_block);
    *s = (wf_slices){ 0 };
}

wf_blocks wf_round_of(const wf_slices *s, int round) {
    assert(round >= 0 && round < s->rounds);
    int64_t to = s->first_block[s->n] - s->in_round * round;
    return (wf_blocks){ at_least(0, to - s->in_round), to };
}

/* The blocks that a rank owns in a round. wf_rank_range makes the last share the largest, so ranks
 * are counted from the end: if there is only one block, rank 0 has it. */
wf_blocks wf_slice_in_round(const wf_slices *s, int rank, int round) {
    assert(rank >= 0 && rank < s->ranks);
    wf_blocks all = wf_round_of(s, round);
    wf_range from_end = wf_rank_range(all.to - all.from, s->ranks - 1 - rank, s->ranks);
    return (wf_blocks){ all.to - from_end.to, all.to - from_end.from };
}

bool wf_next_piece(const wf_slices *s, wf_blocks *b, wf_piece *piece) {
    int low = 0, high = s->n;
    if (b->from >= b->to) return false;
    while (high - low > 1) { /* the last parameter that begins at or before the block */
        int middle = low + (high - low) / 2;
        if (s->first_block[middle] <= b->from)
            low = middle;
        else
            high = middle;
    }
    int64_t begin = s->first_block[low], end = s->first_block[low + 1];
    if (end > b->to) end = b->to;
    int64_t last = (end - begin) * WF_SQUARE_BLOCK, count = wf_count(s->params[low]);
    *piece = (wf_piece){ .param = low, .first = (b->from - begin) * WF_SQUARE_BLOCK };
    piece->n = (last < count ? last : count) - piece->first;
    assert(piece->first >= 0 && piece->n > 0 && piece->first + piece->n <= count);
    b->from = end;
    return true;
}

int64_t wf_slice_elements(const wf_slices *s, wf_blocks b) {
    wf_piece piece;
    int64_t n = 0;
    while (wf_next_piece(s, &b, &piece)) n += piece.n;
    return n;
}

wf_slice_sizes wf_slice_size(const wf_slices *s, int rank) {
    wf_slice_sizes all = { 0 };
    for (int round = 0; round < s->rounds; round++) {
        wf_blocks b = wf_slice_in_round(s, rank, round);
        all.blocks += b.to - b.from;
        all.elements += wf_slice_elements(s, b);
    }
    return all;
}
