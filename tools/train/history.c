/* tools/train/history.c - the losses of a training. See history.h. */
#include "history.h"

#include <stdio.h>
#include <stdlib.h>

#include "tools/cli/output.h"
#include "tools/draw/svg.h"

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
    if (s->n == s->capacity && !grow(s)) {
        s->incomplete = true;
        return;
    }
    s->x[s->n] = x;
    s->y[s->n++] = y;
}

void series_free(series *s) {
    free(s->x);
    free(s->y);
    *s = (series){ 0 };
}

bool history_draw(const history *h, const char *path, const char *title, char *message) {
    output o;
    struct svg_curve curves[] = {
        { h->train_label, h->train.x, h->train.y, h->train.n },
        { "held-out data", h->valid.x, h->valid.y, h->valid.n },
    };
    struct svg_plot plot = { title, "step", "loss per token, nats", curves, 2, true };
    if (h->train.incomplete || h->valid.incomplete)
        return snprintf(message, 256, "%.150s: no memory for all points", path), false;
    if (!output_open(&o, path, message)) return false;
    if (svg_plot(o.stream, &plot) || ferror(o.stream)) return output_close(&o, message);
    output_discard(&o);
    return snprintf(message, 256, "%.150s: there is nothing to draw", path), false;
}
