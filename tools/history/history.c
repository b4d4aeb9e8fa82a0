/* tools/history/history.c - measured values over the steps of a training. See history.h. */
#include "history.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/cli/output.h"
#include "tools/cli/refused.h"
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

#define MEASURE_ROW(constant, group, name, unit) [constant] = { group, name, unit },
const measure_row measure_rows[MEASURES] = { MEASURE_ROWS(MEASURE_ROW) };

measured measured_nothing(void) {
    measured m;
    for (int i = 0; i < MEASURES; i++) m.of[i] = NAN;
    return m;
}

void history_add(history *h, int64_t step, const measured *m) {
    for (int i = 0; i < MEASURES; i++)
        if (!isnan(m->of[i])) series_add(&h->of[i], (double)step, m->of[i]);
}

void history_free(history *h) {
    for (int i = 0; i < MEASURES; i++) series_free(&h->of[i]);
}

bool history_draw(const history *h, const char *path, const char *title, char *message) {
    output o;
    const series *train = &h->of[TRAIN_LOSS], *valid = &h->of[VALID_LOSS];
    struct svg_curve curves[] = {
        { h->train_label, train->x, train->y, train->n },
        { "held-out data", valid->x, valid->y, valid->n },
    };
    struct svg_plot plot = {
        title, "step", h->of_lines ? "loss per line, nats" : "loss per token, nats", curves, 2, true
    };
    if (train->incomplete || valid->incomplete)
        return refused(message, "%.150s: no memory for all points", path);
    if (!output_open(&o, path, message)) return false;
    if (svg_plot(o.stream, &plot) || ferror(o.stream)) return output_close(&o, message);
    output_discard(&o);
    return refused(message, "%.150s: there is nothing to draw", path);
}
