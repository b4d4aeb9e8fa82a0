/* core/record/print.c - a tensor's values as text for people: nested brackets as NumPy prints them.
 *
 * Not a format to be read back (file.h has one). Reals have at most five significant digits, and
 * numbers are aligned; an axis longer than ten shows its first and last three elements. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/file_internal.h"
#include "record.h"

enum { LONG_AXIS = 10, EDGE = 3, NUMBER = WF_REAL_TEXT };

typedef struct printer {
    char *buffer;
    size_t size;
    int64_t n; /* characters so far, including those that did not fit */
    wf_dtype dtype;
    int ndim;
    int64_t shape[WF_MAX_DIMS];
    const char *data;
    int width; /* characters of the widest number */
} printer;

static void put(printer *p, const char *text) {
    for (; *text; text++, p->n++)
        if ((uint64_t)p->n + 1 < p->size) p->buffer[p->n] = *text;
}

/* A NaN is printed without a sign. */
static int number(const printer *p, int64_t i, char text[NUMBER]) {
    double x;
    if (p->dtype == WF_I32)
        return snprintf(text, NUMBER, "%d", ((const int32_t *)(const void *)p->data)[i]);
    x = p->dtype == WF_F64 ? ((const double *)(const void *)p->data)[i]
                           : ((const float *)(const void *)p->data)[i];
    return (int)strlen(isnan(x) ? strcpy(text, "nan") : wf_format_real(x, 5, text));
}

/* Print an axis and those after it. With `measure`, only set p->width to that of the widest number.
 * at: the row-major index formed by the indices along the axes before it. */
static void walk(printer *p, int axis, int64_t at, bool measure) {
    char text[NUMBER];
    if (axis == p->ndim) {
        int n = number(p, at, text);
        if (measure && n > p->width) p->width = n;
        for (int pad = n; !measure && pad < p->width; pad++) put(p, " ");
        if (!measure) put(p, text);
        return;
    }
    if (!measure) put(p, "[");
    for (int64_t i = 0; i < p->shape[axis]; i++) {
        if (i > 0 && !measure) {
            put(p, axis == p->ndim - 1 ? " " : "\n");
            for (int line = axis + 2; line < p->ndim; line++) put(p, "\n");
            for (int pad = 0; pad <= axis && axis < p->ndim - 1; pad++) put(p, " ");
        }
        if (i == EDGE && p->shape[axis] > LONG_AXIS) {
            if (!measure) put(p, "...");
            i = p->shape[axis] - EDGE - 1;
            continue;
        }
        walk(p, axis + 1, at * p->shape[axis] + i, measure);
    }
    if (!measure) put(p, "]");
}

int wf_print(wf_plan *plan, const wf_tensor *t, char *buffer, size_t size) {
    if (!buffer) size = 0;
    if (size) buffer[0] = '\0';
    if (!t || wf_is_poison(t)) return -1;
    if (!plan && t->kind == WF_CONSTANT && !wf_has_values(t)) {
        char shape[WF_MESSAGE];
        wf_shape_text(t->graph, t->ndim, t->shape, shape, sizeof shape);
        if (size) snprintf(buffer, size, "%s", shape);
        return (int)strlen(shape);
    }
    printer p = { .buffer = buffer, .size = size, .dtype = t->dtype, .ndim = t->ndim };
    memcpy(p.shape, t->shape, sizeof p.shape);
    if (plan && (p.ndim = wf_bound_shape(plan, t, p.shape)) < 0) return -1;
    size_t bytes = plan ? wf_bound_bytes(plan, t) : wf_bytes(t);
    void *data = malloc(bytes ? bytes : 1);
    bool got = data && (plan ? wf_fetch(plan, t, data, bytes) : wf_read(t, data, bytes));
    if (!got) return free(data), -1;
    p.data = data;
    walk(&p, 0, 0, true);
    walk(&p, 0, 0, false);
    free(data);
    if (size) buffer[(uint64_t)p.n < size ? (size_t)p.n : size - 1] = '\0';
    return p.n <= INT32_MAX ? (int)p.n : -1;
}

char *wf_print_new(wf_plan *plan, const wf_tensor *t) {
    int n = wf_print(plan, t, NULL, 0);
    char *text = n < 0 ? NULL : malloc((size_t)n + 1);
    if (text && wf_print(plan, t, text, (size_t)n + 1) == n) return text;
    free(text);
    return NULL;
}
