/* tools/history/run_page.c - writes the page of a training. See run_page.h; page/report.js draws
 * it. */
#include "run_page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena_json.h"
#include "tools/cli/output.h"
#include "tools/cli/profile.h"
#include "tools/cli/refused.h"
#include "tools/page/page.h"

enum { MOST_POINTS = 2000 }; /* most points of a curve in the page */

static void put_texts(jsonl *out, const char *key, char *const *texts, int64_t n) {
    json_open(out, key, '[');
    for (int64_t i = 0; i < n; i++) json_text(out, NULL, texts[i]);
    json_close(out, ']');
}

/* Writes every `every`-th value, and the last one. */
static void put_values(jsonl *out, const char *key, const double *values, int64_t n,
                       int64_t every) {
    json_open(out, key, '[');
    for (int64_t i = (n - 1) % every; i < n; i += every) json_digits(out, NULL, values[i], 7);
    json_close(out, ']');
}

static void put_curves(jsonl *out, const history *h) {
    json_open(out, "curves", '[');
    for (int i = 0; i < MEASURES; i++) {
        const series *s = &h->of[i];
        int64_t every = s->n / MOST_POINTS + 1;
        if (!s->n) continue;
        json_open(out, NULL, '{');
        json_text(out, "group", measure_rows[i].group);
        json_text(out, "name", measure_rows[i].name);
        json_text(out, "unit", measure_rows[i].unit);
        put_values(out, "x", s->x, s->n, every);
        put_values(out, "y", s->y, s->n, every);
        json_close(out, '}');
    }
    json_close(out, ']');
}

static void put_attention(jsonl *out, const album *a) {
    if (!a->title) return;
    json_open(out, "attention", '{');
    json_text(out, "title", a->title);
    json_text(out, "row_axis", a->row_axis);
    json_text(out, "column_axis", a->column_axis);
    json_int(out, "heads", a->heads);
    put_texts(out, "rows", a->row_labels, a->rows);
    put_texts(out, "columns", a->column_labels, a->columns);
    json_close(out, '}');
}

static void put_frames(jsonl *out, const album *a) {
    put_texts(out, "sources", a->source, ALBUM_SAMPLES);
    put_texts(out, "references", a->reference, ALBUM_SAMPLES);
    json_open(out, "frames", '[');
    for (int i = 0; i < a->n; i++) {
        const frame *f = &a->frames[i];
        json_open(out, NULL, '{');
        json_int(out, "step", f->step);
        put_texts(out, "outputs", f->output, ALBUM_SAMPLES);
        if (f->weights) json_text(out, "weights", f->weights);
        json_close(out, '}');
    }
    json_close(out, ']');
}

/* Writes the time by op, or nothing if there is no memory for it. */
static void put_ops(jsonl *out, wf_plan *plan) {
    int n;
    profile_row *rows = profile_rows(plan, &n);
    json_open(out, "ops", '[');
    for (int i = 0; rows && i < n; i++) {
        json_open(out, NULL, '{');
        json_text(out, "op", rows[i].op);
        json_int(out, "calls", rows[i].calls);
        json_real(out, "seconds", rows[i].seconds);
        json_real(out, "flops", rows[i].flops);
        json_real(out, "bytes", rows[i].bytes);
        json_close(out, '}');
    }
    json_close(out, ']');
    free(rows);
}

static void put_run(jsonl *out, const run_page *p) {
    json_text(out, "run", p->run);
    json_int(out, "step", p->step);
    json_int(out, "total", p->total);
    json_real(out, "elapsed", p->elapsed);
    json_bool(out, "ended", p->ended);
    json_open(out, "facts", '[');
    for (int i = 0; i < p->n_facts; i++) {
        json_open(out, NULL, '[');
        json_text(out, NULL, p->facts[i].name);
        json_text(out, NULL, p->facts[i].text);
        json_close(out, ']');
    }
    json_close(out, ']');
}

bool run_page_write(const run_page *p, const char *path, char *message) {
    output o;
    page whole;
    if (!output_open(&o, path, message)) return false;
    jsonl *out = page_begin(&whole, o.stream, p->title, page_report_css, page_report_js);
    put_run(out, p);
    put_curves(out, p->history);
    put_attention(out, p->album);
    put_frames(out, p->album);
    put_ops(out, p->plan);
    arena_put(out, p->plan);
    bool composed = page_end(&whole) || ferror(o.stream);
    if (composed) return output_close(&o, message);
    output_discard(&o);
    return refused(message, "%.150s could not be written: out of memory", path);
}
