/* tools/train/history.h - the losses of a training, to be drawn as curves. */
#ifndef WEFT_TOOLS_TRAIN_HISTORY_H
#define WEFT_TOOLS_TRAIN_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct series {
    double *x, *y;
    int64_t n, capacity;
    bool incomplete;
} series;

/* A point is left out if there is no memory for it: a curve is not worth a training. It is not
 * drawn then. */
void series_add(series *s, double x, double y);
void series_free(series *s);

typedef struct history {
    series train, valid; /* loss per token over steps */
    /* Names the first curve, whose loss may be that of a harder problem: dropout, label smoothing. */
    const char *train_label;
} history;

/* Write the curves; false with message[256]: nothing is written. */
bool history_draw(const history *h, const char *path, const char *title, char *message);

#endif
