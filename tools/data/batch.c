/* tools/data/batch.c - a padded batch of sequences. See batch.h. */
#include "batch.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void batch_free(batch *b) {
    free(b->src), free(b->answer), free(b->tgt), free(b->labels);
    free(b->src_length), free(b->answer_length);
    free(b->alignment);
    *b = (batch){ 0 };
}

/* Allocates every array again, a little larger than needed. Nothing is copied, because the batch is
 * filled anew. */
static bool make_room(batch *b, int64_t rows, int64_t src_cells, int64_t tgt_cells) {
    batch_free(b);
    /* a batch of targets alone has no source cells */
    b->src = calloc((size_t)src_cells + 1, sizeof *b->src);
    b->answer = calloc((size_t)tgt_cells, sizeof *b->answer);
    b->tgt = calloc((size_t)tgt_cells, sizeof *b->tgt);
    b->labels = calloc((size_t)tgt_cells, sizeof *b->labels);
    b->src_length = calloc((size_t)rows, sizeof *b->src_length);
    b->answer_length = calloc((size_t)rows, sizeof *b->answer_length);
    if (!b->src || !b->answer || !b->tgt || !b->labels || !b->src_length || !b->answer_length) {
        batch_free(b);
        return false;
    }
    b->rows = rows;
    b->src_cells = src_cells;
    b->tgt_cells = tgt_cells;
    return true;
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

bool batch_shape(batch *b, int64_t B, int64_t S, int64_t T) {
    assert(B >= 0 && S >= 0 && T >= 0);
    bool room = B <= b->rows && B * S <= b->src_cells && B * T <= b->tgt_cells;
    if (!room &&
        !make_room(b, larger(B, b->rows), larger(B * S, b->src_cells), larger(B * T, b->tgt_cells)))
        return false;
    b->B = B;
    b->S = S;
    b->T = T;
    b->aligned = false;
    return true;
}

bool batch_align(batch *b) {
    int64_t cells = b->B * b->T * b->S;
    if (cells > b->links || !b->alignment) {
        free(b->alignment);
        b->links = 0;
        b->alignment = malloc(((size_t)cells + 1) * sizeof *b->alignment);
        if (!b->alignment) return false;
        b->links = cells;
    }
    memset(b->alignment, 0, (size_t)cells * sizeof *b->alignment);
    b->aligned = true;
    return true;
}

static void pad(int32_t *row, int64_t from, int64_t to, int32_t id) {
    for (int64_t i = from; i < to; i++) row[i] = id;
}

void batch_row(batch *b, int64_t i, batch_ids ids, int64_t n_src, const int32_t *src,
               int64_t n_answer, const int32_t *answer) {
    assert(i >= 0 && i < b->B);
    assert(n_src >= 0 && n_src <= b->S && n_answer >= 0 && n_answer < b->T);
    int32_t *tgt = b->tgt + i * b->T, *labels = b->labels + i * b->T;
    int32_t *row = b->src + i * b->S, *reference = b->answer + i * (b->T - 1);
    b->src_length[i] = (int32_t)n_src;
    b->answer_length[i] = (int32_t)n_answer;
    memmove(row, src, (size_t)n_src * sizeof *src);
    pad(row, n_src, b->S, ids.pad);
    memmove(reference, answer, (size_t)n_answer * sizeof *answer);
    pad(reference, n_answer, b->T - 1, ids.pad);
    tgt[0] = ids.start;
    memcpy(tgt + 1, answer, (size_t)n_answer * sizeof *answer);
    pad(tgt, n_answer + 1, b->T, ids.pad);
    memcpy(labels, answer, (size_t)n_answer * sizeof *answer);
    labels[n_answer] = ids.end;
    pad(labels, n_answer + 1, b->T, WF_IGNORE_LABEL);
}

bool batch_feed(const batch *b, wf_plan *p, const wf_model *m) {
    assert(b->B > 0 && b->T > 0);
    const wf_batch pairs = { b->B, b->S, b->T, b->src, b->src_length, b->tgt, b->labels };
    size_t bytes = (size_t)(b->B * b->T * b->S) * sizeof *b->alignment;
    return wf_model_feed(m, p, &pairs) &&
           (!b->aligned || !m->alignment || wf_feed(p, m->alignment, b->alignment, bytes));
}
