/* tools/history.c - the losses of a training. See history.h. */
#include "history.h"

#include <stdio.h>
#include <stdlib.h>

#include "svg.h"

static bool grow(series *s) {
    int64_t capacity = s->capacity ? 2 * s->capacity : 64;
    double *x = realloc(s->x, (size_t)capacity * sizeof *x);
    if (x) s->x = x;
    double *y = realloc(s->y, (size_t)capacity * sizeof *y);
    if (y) s->y = y;
    if (x && y) s->capacity = capacity;
    return x && y;
}

void series_add(series *s, double x, double y) {
    if (s->n == s->capacity && !grow(s)) return;
    s->x[s->n] = x;
    s->y[s->n++] = y;
}

void series_free(series *s) {
    free(s->x);
    free(s->y);
    *s = (series){ 0 };
}

bool history_draw(const history *h, const char *path, const char *title) {
    struct svg_curve curves[] = {
        { "training", h->train.x, h->train.y, h->train.n },
        { "unseen sequences", h->valid.x, h->valid.y, h->valid.n },
    };
    struct svg_plot plot = { title, "step", "loss per token (nats)", curves, 2, true };
    FILE *out = fopen(path, "w");
    if (!out) return false;
    bool drawn = svg_plot(out, &plot);
    return fclose(out) == 0 && drawn;
}
