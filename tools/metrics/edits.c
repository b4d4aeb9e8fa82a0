/* tools/metrics/edits.c - computes the edit distance, 64 rows at a time.
 *
 * D[i][j], the distance of the first i symbols of a to the first j of b, differs by -1, 0 or +1
 * from its neighbours. Myers (1999) keeps the vertical differences of a column of 64 rows as two
 * words, and computes the next column with a dozen operations on them. Hyyro (2003) passes the
 * horizontal differences at the lower edge of a block to the block below. Here a block processes
 * all of b before the next block begins, so only one difference per symbol of b is stored. */
#include "edits.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 64 };

typedef struct column {
    uint64_t up, down; /* rows in which D[i][j] - D[i - 1][j] is +1; rows in which it is -1 */
} column;

/* Moves a block one column to the right, from column j of D to column j + 1. `equal`: the rows i of
 * the block with a[i - 1] == b[j]. `above`: D[i][j + 1] - D[i][j] in the row above the block.
 * Returns this difference in the row whose bit is `last`. */
static int advance(column *c, uint64_t equal, int above, uint64_t last) {
    uint64_t vertical = equal | c->down;
    if (above < 0) equal |= 1;
    uint64_t horizontal = (((equal & c->up) + c->up) ^ c->up) | equal;
    uint64_t up = c->down | ~(horizontal | c->up), down = c->up & horizontal;
    int below = ((up & last) != 0) - ((down & last) != 0);
    up = up << 1 | (above > 0);
    down = down << 1 | (above < 0);
    c->up = down | ~(vertical | up);
    c->down = up & vertical;
    return below;
}

/* Processes the rows a[0..rows-1], at most 64. step[j] is the difference above them, and becomes
 * that in the last row. */
static void block(const int32_t *a, int64_t rows, const int32_t *b, int64_t m, uint64_t *equal,
                  signed char *step) {
    column c = { .up = ~(uint64_t)0 };
    uint64_t last = (uint64_t)1 << (rows - 1);
    for (int64_t i = 0; i < rows; i++) equal[a[i]] |= (uint64_t)1 << i;
    for (int64_t j = 0; j < m; j++) step[j] = (signed char)advance(&c, equal[b[j]], step[j], last);
    for (int64_t i = 0; i < rows; i++) equal[a[i]] = 0;
}

int64_t edit_distance(const int32_t *a, int64_t n, const int32_t *b, int64_t m, int64_t symbols) {
    while (n > 0 && m > 0 && *a == *b) {
        a++;
        b++;
        n--;
        m--;
    }
    while (n > 0 && m > 0 && a[n - 1] == b[m - 1]) {
        n--;
        m--;
    }
    if (n == 0 || m == 0) return n + m;
    uint64_t *equal = calloc((size_t)symbols, sizeof *equal);
    signed char *step = malloc((size_t)m);
    int64_t distance = -1;
    if (equal && step) {
        memset(step, 1, (size_t)m); /* D[0][j] = j */
        for (int64_t i = 0; i < n; i += ROWS)
            block(a + i, n - i < ROWS ? n - i : ROWS, b, m, equal, step);
        distance = n; /* D[n][0], to which the differences in the last row are added */
        for (int64_t j = 0; j < m; j++) distance += step[j];
    }
    free(equal), free(step);
    return distance;
}
