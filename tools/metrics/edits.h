/* tools/metrics/edits.h - the edit distance (Levenshtein): how many symbols must be inserted,
 * deleted or exchanged to turn one sequence into the other. */
#ifndef WEFT_TOOLS_METRICS_EDITS_H
#define WEFT_TOOLS_METRICS_EDITS_H

#include <stdint.h>

/* Symbols are in 0..symbols-1. It takes time n * m / 64, and a byte of memory for each symbol of b
 * and eight for each of `symbols`. Returns -1 if there is no memory. */
int64_t edit_distance(const int32_t *a, int64_t n, const int32_t *b, int64_t m, int64_t symbols);

#endif
