/* tools/learn/lesson_sample.c - makes the inputs of a case, and the right results with weft. See
 * lesson.h. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"
#include "lesson.h"

/* ---- sizes ----------------------------------------------------------------------------------- */

/* Reads sizes from "T3 S5 causal": a letter at the start of a word, followed by a number. */
static void read_sizes(sample *s, const char *text) {
    for (const char *at = text; *at; at++) {
        bool begins = at == text || at[-1] == ' ';
        if (begins && isalpha((unsigned char)*at) && isdigit((unsigned char)at[1]))
            s->size[(unsigned char)*at] = atoi(at + 1);
    }
    for (int digit = '0'; digit <= '9'; digit++) s->size[digit] = digit - '0';
}

bool sample_has(const sample *s, const char *word) {
    size_t n = strlen(word);
    for (const char *at = s->text; (at = strstr(at, word)) != NULL; at++)
        if ((at == s->text || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0')) return true;
    return false;
}

int64_t array_count(const sample *s, const char *shape) {
    int64_t n = 1;
    for (; *shape; shape++) n *= s->size[(unsigned char)*shape];
    return n;
}

/* ---- values ---------------------------------------------------------------------------------- */

double lesson_number(const char *name, int64_t i) {
    wf_philox bits = wf_philox4x32(wf_hash_bytes(0, name, strlen(name)), (uint64_t)i, 0);
    return wf_unit_double(bits.v[0], bits.v[1]);
}

static float value_of(const sample *s, const lesson_array *a, int64_t i, int64_t row) {
    double x = lesson_number(a->name, i);
    switch (a->kind) {
    case ARRAY_VALUES:
        return (float)(3 * x - 1.5);
    case ARRAY_WEIGHTS:
        return (float)((3 * x - 1.5) / sqrt((double)row));
    case ARRAY_NEAR_1:
        return (float)(x + 0.5);
    case ARRAY_CHOICES:
        if (sample_has(s, "empty") && i < row) return 0;
        return x < 0.6 || i % row == i / row % row;
    case ARRAY_PREFIX:
        return i < row - row / 3;
    case ARRAY_IDS:
        return (float)floor(x * s->size[(unsigned char)a->below]);
    }
    return 0;
}

/* The factor of a case's values: 1/500 if it is "small", where eps matters; 100 if it is "large",
 * where exp overflows. "low" ones are around -200, where exp of a float is 0. */
static float factor(const sample *s, const lesson_array *a) {
    if (a->kind != ARRAY_VALUES) return 1;
    if (sample_has(s, "small")) return 0.002F;
    if (sample_has(s, "low")) return 10;
    return sample_has(s, "large") ? 100 : 1;
}

static bool fill(sample *s, int k, const lesson_array *a) {
    int64_t n = array_count(s, a->shape);
    int row = *a->shape ? s->size[(unsigned char)a->shape[strlen(a->shape) - 1]] : 1;
    bool is_low = a->kind == ARRAY_VALUES && sample_has(s, "low");
    s->count[k] = n;
    s->in[k] = malloc((size_t)n * sizeof *s->in[k]);
    if (!s->in[k]) return false;
    for (int64_t i = 0; i < n; i++)
        s->in[k][i] = factor(s, a) * value_of(s, a, i, row) - (is_low ? 200 : 0);
    if (a->kind != ARRAY_IDS) return true;
    s->ids[k] = malloc((size_t)n * sizeof *s->ids[k]);
    if (!s->ids[k]) return false;
    for (int64_t i = 0; i < n; i++) s->ids[k][i] = (int)s->in[k][i];
    return true;
}

bool sample_make(sample *s, const lesson_task *t, const char *text) {
    *s = (sample){ .text = text };
    read_sizes(s, text);
    while (s->n_in < LESSON_ARRAYS && t->in[s->n_in].name) {
        s->n_in++;
        if (!fill(s, s->n_in - 1, &t->in[s->n_in - 1])) return false;
    }
    return true;
}

void sample_free(sample *s) {
    for (int k = 0; k < s->n_in; k++) {
        free(s->in[k]);
        free(s->ids[k]);
    }
    s->n_in = 0;
}

/* ---- weft ------------------------------------------------------------------------------------ */

static double *as_doubles(const float *x, int64_t n) {
    double *d = malloc((size_t)n * sizeof *d + 1);
    for (int64_t i = 0; d && i < n; i++) d[i] = x[i];
    return d;
}

bool leaf_write(wf_tensor *leaf, const float *values) {
    double *d = leaf ? as_doubles(values, wf_count(leaf)) : NULL;
    bool ok = d && wf_write(leaf, d, wf_bytes(leaf));
    free(d);
    return ok;
}

static wf_tensor *constant_of(const sample *s, wf_graph *g, int k, const char *letters) {
    int64_t shape[WF_MAX_DIMS];
    int ndim = 0;
    for (; letters[ndim]; ndim++) shape[ndim] = s->size[(unsigned char)letters[ndim]];
    if (s->ids[k]) return wf_constant_array(g, WF_I32, ndim, shape, s->ids[k]);
    double *values = as_doubles(s->in[k], s->count[k]);
    wf_tensor *c =
        values ? wf_constant_array(g, WF_F64, ndim, shape, values) : wf_poison(g, "out of memory");
    free(values);
    return c;
}

static bool compute(wf_graph *g, wf_tensor *const *out, int n, double *const *to, char *message) {
    wf_plan_options what = { .fetch = out, .n_fetch = n };
    if (!wf_ok(g)) {
        snprintf(message, RESULT_MESSAGE, "%s", wf_error(g));
        return false;
    }
    wf_plan *p = wf_plan_new(g, &what);
    bool ok = wf_run(p);
    for (int i = 0; ok && i < n; i++) ok = wf_fetch(p, out[i], to[i], wf_bytes(out[i]));
    if (!ok) snprintf(message, RESULT_MESSAGE, "%s", wf_plan_error(p));
    wf_plan_free(p);
    return ok;
}

bool sample_right(const sample *s, const lesson_task *t, double *const *out, char *message) {
    wf_tensor *in[LESSON_ARRAYS], *right[LESSON_OUTPUTS];
    int n = 0;
    if (!t->weft) {
        t->model(s, 0, out);
        return true;
    }
    wf_graph *g = wf_graph_new(&(wf_graph_options){ .real = WF_F64 });
    for (int k = 0; k < s->n_in; k++) in[k] = constant_of(s, g, k, t->in[k].shape);
    t->weft(s, g, in, right);
    while (n < LESSON_OUTPUTS && t->out[n].name) n++;
    bool ok = compute(g, right, n, out, message);
    wf_graph_free(g);
    return ok;
}
