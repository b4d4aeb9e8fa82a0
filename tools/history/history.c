/* tools/history/history.c - measured values over the steps of a training: kept, and read
 * from logs and pages of reports. See history.h. */
#include "history.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/file.h"
#include "core/file/json.h"
#include "core/file_internal.h"
#include "run_page.h"
#include "tools/cli/output.h"
#include "tools/cli/refused.h"
#include "tools/draw/svg.h"

void series_add(series *s, double x, double y) {
    size_t need = (size_t)s->n + 1;
    if (!wf_grow(&s->x, &s->room_x, need, sizeof x) ||
        !wf_grow(&s->y, &s->room_y, need, sizeof y)) {
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

/* ---- reading --------------------------------------------------------------------------------- */

/* The number of bytes of a page that are read; a page whose data end after them is rejected. Real
 * pages have at most 2 MB. */
enum { MOST_BYTES = 16 << 20 };

/* ---- values ---------------------------------------------------------------------------------- */

/* Reads a number, or null for one that is not finite. */
static bool read_real(struct wf_json *j, double *value) {
    char text[40];
    while (j->at < j->end && strchr(" \t\r\n", *j->at)) j->at++;
    const char *from = j->at;
    if (!wf_json_skip(j)) return false;
    size_t n = (size_t)(j->at - from);
    *value = NAN;
    if (n >= sizeof text) return false;
    memcpy(text, from, n);
    text[n] = '\0';
    return strcmp(text, "null") == 0 || wf_parse_real(text, value);
}

/* Reads an array of numbers, the x or the y of a curve, into the y of `to`. Memory grows as numbers
 * are read, so no size in the file can make it large. */
static bool read_reals(struct wf_json *j, series *to) {
    double value;
    for (bool first = true; wf_json_item(j, &first);) {
        if (!read_real(j, &value)) return false;
        series_add(to, 0, value);
    }
    return !*j->error && !to->incomplete;
}

/* Reads a string into new memory, or null. False: out of memory, or it is neither of the two. */
static bool read_text(struct wf_json *j, char **to) {
    char *text;
    bool none = j->at < j->end && *j->at == 'n';
    if (none ? !wf_json_skip(j) : !wf_json_string(j, &text)) return false;
    free(*to);
    *to = none ? NULL : strdup(text);
    return none || *to;
}

/* Reads an array of at most `most` strings, *n of them. False: there are more, one is no string, or
 * out of memory. */
static bool read_texts(struct wf_json *j, char **to, int64_t most, int64_t *n) {
    *n = 0;
    for (bool first = true; wf_json_item(j, &first);)
        if (*n == most || !read_text(j, &to[(*n)++])) return false;
    return !*j->error;
}

/* ---- curves ---------------------------------------------------------------------------------- */

static series *series_named(history *h, const char *group, const char *name) {
    for (int i = 0; group && name && i < MEASURES; i++)
        if (!strcmp(measure_rows[i].group, group) && !strcmp(measure_rows[i].name, name))
            return &h->of[i];
    return NULL;
}

/* Adds the points up to the step from which the training resumes. False: the steps do not rise, or
 * x and y have different lengths. */
static bool take_points(series *to, const series *x, const series *y, int64_t step) {
    double before = 0;
    if (x->n != y->n) return false;
    for (int64_t i = 0; i < x->n; i++) {
        if (!(x->y[i] > before)) return false;
        before = x->y[i];
        if (to && before <= (double)step && isfinite(y->y[i])) series_add(to, before, y->y[i]);
    }
    return true;
}

static bool read_curve(struct wf_json *j, history *h, int64_t step) {
    char *key, *group = NULL, *name = NULL;
    series x = { 0 }, y = { 0 };
    bool ok = true;
    for (bool first = true; ok && wf_json_key(j, &first, &key);) {
        if (strcmp(key, "group") == 0)
            ok = wf_json_string(j, &group);
        else if (strcmp(key, "name") == 0)
            ok = wf_json_string(j, &name);
        else if (strcmp(key, "x") == 0)
            ok = read_reals(j, &x);
        else if (strcmp(key, "y") == 0)
            ok = read_reals(j, &y);
        else
            ok = wf_json_skip(j);
    }
    ok = ok && !*j->error && take_points(series_named(h, group, name), &x, &y, step);
    series_free(&x);
    series_free(&y);
    return ok;
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* Reads at most `most` labels of an axis. False: there are more, the axis has labels already, or
 * out of memory. */
static bool read_labels(struct wf_json *j, char ***to, int64_t most, int64_t *n) {
    if (*to) return false;
    *to = calloc((size_t)most, sizeof **to);
    return *to && read_texts(j, *to, most, n);
}

static bool read_attention(struct wf_json *j, album_labels *l) {
    char *key;
    bool ok = !l->title;
    for (bool first = true; ok && wf_json_key(j, &first, &key);) {
        if (strcmp(key, "title") == 0)
            ok = read_text(j, &l->title);
        else if (strcmp(key, "row_axis") == 0)
            ok = read_text(j, &l->row_axis);
        else if (strcmp(key, "column_axis") == 0)
            ok = read_text(j, &l->column_axis);
        else if (strcmp(key, "heads") == 0)
            ok = wf_json_size(j, &l->heads);
        else if (strcmp(key, "rows") == 0)
            ok = read_labels(j, &l->row_labels, ALBUM_SIDE + 1, &l->rows);
        else if (strcmp(key, "columns") == 0)
            ok = read_labels(j, &l->column_labels, 2 * ALBUM_SIDE + 2, &l->columns);
        else
            ok = wf_json_skip(j);
    }
    return ok && !*j->error && l->title && l->row_axis && l->column_axis && l->heads <= 1 << 16;
}

static bool is_weights(const album *a, const char *text) {
    int64_t n = a->map.heads * a->map.rows * a->map.columns;
    return n > 0 && (int64_t)strlen(text) == n && (int64_t)strspn(text, album_levels) == n;
}

static bool read_frame(struct wf_json *j, album *a, frame *f) {
    char *key;
    int64_t n;
    bool ok = true;
    for (bool first = true; ok && wf_json_key(j, &first, &key);) {
        if (strcmp(key, "step") == 0)
            ok = wf_json_size(j, &f->step);
        else if (strcmp(key, "outputs") == 0)
            ok = read_texts(j, f->output, ALBUM_SAMPLES, &n);
        else if (strcmp(key, "weights") == 0)
            ok = read_text(j, &f->weights);
        else
            ok = wf_json_skip(j);
    }
    return ok && !*j->error && (!f->weights || is_weights(a, f->weights)) &&
           (!a->n || f->step > a->frames[a->n - 1].step);
}

static bool read_frames(struct wf_json *j, album *a) {
    if (!a->frames) a->frames = calloc(ALBUM_MOST, sizeof *a->frames);
    if (!a->frames) return false;
    for (bool first = true; wf_json_item(j, &first);) {
        frame f = { 0 };
        if (a->n == ALBUM_MOST || !read_frame(j, a, &f)) {
            frame_free(&f);
            return false;
        }
        a->frames[a->n++] = f;
    }
    return !*j->error;
}

/* ---- the page -------------------------------------------------------------------------------- */

static bool read_curves(struct wf_json *j, history *h, int64_t step) {
    for (bool first = true; wf_json_item(j, &first);)
        if (!read_curve(j, h, step)) return false;
    return !*j->error;
}

static bool read_data(struct wf_json *j, history *h, album *a, const char *run, int64_t step,
                      bool *own) {
    char *key, *text;
    int64_t n;
    bool ok = wf_json_expect(j, '{');
    *own = false;
    j->at = j->start;
    for (bool first = true; ok && wf_json_key(j, &first, &key);) {
        if (!strcmp(key, "run")) {
            ok = wf_json_string(j, &text);
            *own = ok && strcmp(text, run) == 0;
            if (ok && !*own) return true;
        } else {
            if (strcmp(key, "curves") == 0)
                ok = read_curves(j, h, step);
            else if (strcmp(key, "attention") == 0)
                ok = read_attention(j, &a->map);
            else if (strcmp(key, "sources") == 0)
                ok = read_texts(j, a->source, ALBUM_SAMPLES, &n);
            else if (strcmp(key, "references") == 0)
                ok = read_texts(j, a->reference, ALBUM_SAMPLES, &n);
            else if (strcmp(key, "frames") == 0)
                ok = read_frames(j, a);
            else
                ok = wf_json_skip(j);
        }
    }
    return ok && wf_json_finish(j);
}

/* Finds the data of a page, which are between these texts. */
static bool find_data(char *text, char **begin, char **end) {
    static const char opening[] = "<script type=\"application/json\" id=\"data\">";
    *begin = strstr(text, opening);
    *end = *begin ? strstr(*begin, "</script>") : NULL;
    if (*begin) *begin += sizeof opening - 1;
    return *end;
}

/* The text of a file, which the caller frees. NULL: see message; *missing is true if there is no
 * file. */
static char *read_file(const char *path, bool *missing, char *message) {
    FILE *f = fopen(path, "rb");
    *missing = !f && errno == ENOENT;
    char *text = f ? malloc(MOST_BYTES + 1) : NULL;
    size_t n = text ? fread(text, 1, MOST_BYTES, f) : 0;
    bool ok = text && !ferror(f);
    if (!ok) snprintf(message, 256, "%.150s can't be read: %s", path, strerror(errno));
    if (f) fclose(f);
    if (ok) {
        text[n] = '\0';
        return text;
    }
    free(text);
    return NULL;
}

run_page_found run_page_read(const char *path, const char *run, int64_t step, history *h, album *a,
                             char *message) {
    bool missing, own = false;
    struct wf_json j;
    char *begin, *end, *text = read_file(path, &missing, message);
    if (missing) return RUN_PAGE_NONE;
    if (!text) return RUN_PAGE_BAD;
    bool ok = find_data(text, &begin, &end) && wf_json_begin(&j, begin, (size_t)(end - begin)) &&
              read_data(&j, h, a, run, step, &own);
    free(text);
    if (ok && own) {
        album_cut(a, step);
        return RUN_PAGE_OWN;
    }
    snprintf(
        message, 256,
        ok ? "%.150s is the report of another training: move it, or give this one another name"
           : "%.150s is no report of a training, or it is damaged: move it, or give the report "
             "another name",
        path);
    return RUN_PAGE_BAD;
}
