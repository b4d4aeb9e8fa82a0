/* tools/history/album.c - outputs and attention at each validation of a training. See album.h. */
#include "album.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char album_levels[65] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int album_most(int64_t weights) {
    int most = ALBUM_MOST;
    while (most > 6 && most * weights > ALBUM_BYTES) most /= 2;
    return most;
}

/* ---- freeing --------------------------------------------------------------------------------- */

void frame_free(frame *f) {
    for (int i = 0; i < ALBUM_SAMPLES; i++) free(f->output[i]);
    free(f->weights);
    *f = (frame){ 0 };
}

static void free_all(char **texts, int64_t n) {
    for (int64_t i = 0; texts && i < n; i++) free(texts[i]);
    free(texts);
}

static void free_labels(album_labels *l) {
    free(l->title);
    free(l->row_axis);
    free(l->column_axis);
    free_all(l->row_labels, l->rows);
    free_all(l->column_labels, l->columns);
}

void album_free(album *a) {
    for (int i = 0; i < ALBUM_SAMPLES; i++) {
        free(a->source[i]);
        free(a->reference[i]);
    }
    for (int i = 0; i < a->n; i++) frame_free(&a->frames[i]);
    free(a->frames);
    free_labels(&a->map);
    *a = (album){ 0 };
}

/* ---- adding ---------------------------------------------------------------------------------- */

/* Copies a text, which may be NULL. False: out of memory. */
static bool copy(char **to, const char *from) {
    *to = from ? strdup(from) : NULL;
    return *to || !from;
}

/* Copies n texts. NULL: out of memory. */
static char **copy_all(const char *const *texts, int64_t n) {
    char **copies = calloc((size_t)n + 1, sizeof *copies);
    bool ok = copies;
    for (int64_t i = 0; ok && i < n; i++) ok = copy(&copies[i], texts[i]);
    if (ok) return copies;
    free_all(copies, n);
    return NULL;
}

static bool same_text(const char *a, const char *b) {
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Replaces a text by a copy of another one, which may be NULL. False: out of memory. */
static bool replace(char **text, const char *by) {
    char *before = *text;
    if (same_text(before, by)) return true;
    if (!copy(text, by)) {
        *text = before;
        return false;
    }
    free(before);
    return true;
}

bool album_name(album *a, const char *const source[ALBUM_SAMPLES],
                const char *const reference[ALBUM_SAMPLES]) {
    bool ok = true;
    for (int i = 0; ok && i < ALBUM_SAMPLES; i++)
        ok = replace(&a->source[i], source[i]) && replace(&a->reference[i], reference[i]);
    return ok;
}

/* True if the frames so far show the same example as the weights w. */
static bool same_example(const album_labels *l, const struct svg_heat_map *w) {
    bool same = l->title && strcmp(l->title, w->title) == 0 && l->heads == w->heads &&
                l->rows == w->rows && l->columns == w->columns;
    for (int64_t i = 0; same && i < l->rows; i++)
        same = same_text(l->row_labels[i], w->row_labels[i]);
    for (int64_t i = 0; same && i < l->columns; i++)
        same = same_text(l->column_labels[i], w->column_labels[i]);
    return same;
}

/* Sets the labels for all frames. If frames that were read from an older page show another example,
 * their weights are dropped. */
static bool set_labels(album *a, const struct svg_heat_map *w) {
    if (same_example(&a->map, w)) return true;
    album_labels made = { .heads = w->heads, .rows = w->rows, .columns = w->columns };
    made.row_labels = copy_all(w->row_labels, w->rows);
    made.column_labels = copy_all(w->column_labels, w->columns);
    bool ok = made.row_labels && made.column_labels && copy(&made.title, w->title) &&
              copy(&made.row_axis, w->row_axis) && copy(&made.column_axis, w->column_axis);
    for (int i = 0; ok && i < a->n; i++) {
        free(a->frames[i].weights);
        a->frames[i].weights = NULL;
    }
    free_labels(ok ? &a->map : &made);
    if (ok) a->map = made;
    return ok;
}

/* Weights in 64 levels, one character each: enough for a picture. NULL: out of memory. */
static char *characters(const struct svg_heat_map *w) {
    int64_t n = w->heads * w->rows * w->columns;
    char *text = malloc((size_t)n + 1);
    for (int64_t i = 0; text && i < n; i++) {
        double value = fmin(fmax(w->weights[i], 0), 1);
        text[i] = album_levels[lrint(63 * value)];
    }
    if (text) text[n] = '\0';
    return text;
}

/* Drops the frame whose neighbours are nearest to each other, but never the first or the newest. So
 * the remaining frames are spread over the whole run. */
static void drop_one(album *a) {
    int least = 1;
    for (int i = 1; i + 1 < a->n; i++) {
        const frame *f = &a->frames[i], *g = &a->frames[least];
        if (f[1].step - f[-1].step < g[1].step - g[-1].step) least = i;
    }
    frame_free(&a->frames[least]);
    a->n--;
    memmove(a->frames + least, a->frames + least + 1, (size_t)(a->n - least) * sizeof *a->frames);
}

bool album_add(album *a, int64_t step, const char *const output[ALBUM_SAMPLES],
               const struct svg_heat_map *w) {
    frame made = { .step = step };
    bool ok = !w || set_labels(a, w);
    for (int i = 0; ok && i < ALBUM_SAMPLES; i++) ok = copy(&made.output[i], output[i]);
    if (ok && w) ok = (made.weights = characters(w)) != NULL;
    if (!a->frames) a->frames = calloc(ALBUM_MOST, sizeof *a->frames);
    if (!ok || !a->frames) {
        frame_free(&made);
        return false;
    }
    while (a->n >= album_most(a->map.heads * a->map.rows * a->map.columns)) drop_one(a);
    a->frames[a->n++] = made;
    return true;
}

void album_cut(album *a, int64_t step) {
    while (a->n > 0 && a->frames[a->n - 1].step > step) frame_free(&a->frames[--a->n]);
}
