/* ops/convolution/layout.c - the planes of a convolution: a padded copy of some rows of an image in
 * which every tap finds the elements of neighbouring results side by side. kernels/conv.inc says
 * why.
 *
 * An image is cut into chunks of rows, so that the planes of a chunk stay in the second-level
 * cache. Chunks do not change a bit of the results, because each result is a sum of its own. */
#include <assert.h>

#include "convolution.h"

#define MOST_ELEMENTS 0x1p40 /* limit for elements of planes, beyond any memory */
enum { PLANES = 1 << 18, LEAST_ROWS = 4, ENOUGH_TASKS = 8 }; /* PLANES: bytes of a chunk's planes */

static int64_t ceil_div(int64_t a, int64_t b) {
    return a >= 0 ? (a + b - 1) / b : -(-a / b);
}

static int64_t least_of(int64_t a, int64_t b) {
    return a < b ? a : b;
}

bool wf_conv_tap(const conv_side *side, int64_t r, int64_t k, int64_t *e) {
    int64_t at = k * side->dilation - side->padding;
    /* source element e adds to target element stride e + at; for target element r, e must be
     * whole */
    if (side->transposed) {
        if ((r - at) % side->stride != 0) return false;
        at = (r - at) / side->stride;
    }
    *e = at - side->first;
    assert(*e >= 0 && *e <= side->reach);
    return true;
}

int64_t wf_conv_phases(const conv_side *side) {
    return least_of(side->scatter, side->target);
}

int64_t wf_conv_taps(const conv_side *side, int64_t r) {
    int64_t n = 0, e;
    for (int64_t k = 0; k < side->kernel; k++) n += wf_conv_tap(side, r, k, &e);
    return n;
}

static conv_side side_of(const conv *a, int axis, bool transposed, const wf_view *x,
                         const wf_view *y, const wf_view *w) {
    conv_side s = { .source = x->shape[2 + axis],
                    .target = y->shape[2 + axis],
                    .kernel = w->shape[2 + axis],
                    .stride = a->stride[axis],
                    .padding = a->padding[axis],
                    .dilation = a->dilation[axis],
                    .transposed = transposed };
    int64_t last = (s.kernel - 1) * s.dilation - s.padding; /* place that the last tap reads */
    s.gather = transposed ? 1 : s.stride;
    s.scatter = transposed ? s.stride : 1;
    s.first = transposed ? ceil_div(-last, s.stride) : -s.padding;
    s.reach = (transposed ? ceil_div(s.padding, s.stride) : last) - s.first;
    s.count = ceil_div(s.target, s.scatter);
    return s;
}

/* Rounds the distance between two rows or planes up to whole vectors, but not to a multiple of 4096
 * bytes: at such a distance, equal places of all rows would share cache sets. */
static int64_t skewed(int64_t n, wf_dtype type) {
    n = (n + WF_WIDEST - 1) / WF_WIDEST * WF_WIDEST;
    return n * (int64_t)wf_dtype_size(type) % 4096 == 0 ? n + WF_WIDEST : n;
}

static void cut_rows(conv_layout *l, int64_t phases) {
    const conv_side *v = &l->side[0];
    int64_t row = l->sources * phases * l->planes.columns * (int64_t)wf_dtype_size(l->type);
    int64_t rows = row ? PLANES / row - v->reach / v->gather : v->count;
    if (rows < LEAST_ROWS) rows = LEAST_ROWS;
    int64_t chunks = ceil_div(v->count, rows), units = l->images * l->groups;
    int64_t wanted = least_of(units ? ceil_div(ENOUGH_TASKS, units) : 1, v->count / LEAST_ROWS);
    if (chunks < wanted) chunks = wanted;
    l->chunk = chunks ? ceil_div(v->count, chunks) : 1;
    l->chunks = ceil_div(v->count, l->chunk);
}

/* True if even a chunk of a few rows is too large: it needs all the rows that a kernel covers. */
static bool is_too_large(const conv_layout *l) {
    const wf_planes *p = &l->planes;
    double rows = LEAST_ROWS + (double)l->side[0].reach / (double)l->side[0].gather;
    double phases = (double)p->row_phases * (double)p->column_phases;
    return rows * (double)p->columns * phases * (double)l->sources > MOST_ELEMENTS;
}

bool wf_conv_lay_out(wf_call *c, conv_layout *l, const conv *a, bool transposed, const wf_view *x,
                     const wf_view *y, const wf_view *w) {
    *l = (conv_layout){ .images = x->shape[0], .groups = a->groups, .type = x->dtype };
    l->sources = x->shape[1] / a->groups;
    l->targets = y->shape[1] / a->groups;
    for (int i = 0; i < 2; i++) l->side[i] = side_of(a, i, transposed, x, y, w);
    const conv_side *v = &l->side[0], *h = &l->side[1];
    wf_planes *p = &l->planes;
    *p = (wf_planes){ .height = v->source, .width = h->source };
    p->row_step = v->gather;
    p->column_step = h->gather;
    p->row_phases = least_of(v->gather, v->reach + 1);
    p->column_phases = least_of(h->gather, h->reach + 1);
    p->left = h->first;
    p->columns = h->count + h->reach / h->gather;
    if (is_too_large(l)) return wf_fail(c, "%s, padded, is too large", wf_show(c, x));
    l->taps = l->sources * v->kernel * h->kernel;
    cut_rows(l, p->row_phases * p->column_phases);
    p->plane = skewed((l->chunk + v->reach / v->gather) * p->columns, l->type);
    l->channel = p->row_phases * p->column_phases * p->plane;
    return true;
}

/* The place of an element in the planes. row and column are e along each axis, minus the
 * smallest. */
static int64_t place(const conv_layout *l, int64_t row, int64_t column) {
    const wf_planes *p = &l->planes;
    int64_t part = row % p->row_step * p->column_phases + column % p->column_step;
    return part * p->plane + row / p->row_step * p->columns + column / p->column_step;
}

void wf_conv_offsets(const conv_layout *l, int64_t *offset) {
    const conv_side *v = &l->side[0], *h = &l->side[1];
    int64_t row, column;
    for (int64_t ry = 0; ry < wf_conv_phases(v); ry++)
        for (int64_t rx = 0; rx < wf_conv_phases(h); rx++)
            for (int64_t c = 0; c < l->sources; c++)
                for (int64_t ky = 0; ky < v->kernel; ky++) {
                    if (!wf_conv_tap(v, ry, ky, &row)) continue;
                    for (int64_t kx = 0; kx < h->kernel; kx++)
                        if (wf_conv_tap(h, rx, kx, &column))
                            *offset++ = c * l->channel + place(l, row, column);
                }
}

int64_t wf_conv_chunk(const conv_layout *l, int64_t chunk, int64_t *from) {
    *from = chunk * l->chunk;
    return least_of(l->chunk, l->side[0].count - *from);
}

void wf_conv_fill(const conv_layout *l, const wf_view *x, int64_t image, int64_t channel, int64_t n,
                  int64_t chunk, void *planes) {
    const conv_side *v = &l->side[0];
    wf_view to = { .data = planes, .dtype = l->type };
    wf_planes p = l->planes;
    int64_t from, rows = wf_conv_chunk(l, chunk, &from), size = p.height * p.width;
    p.top = v->first + from * v->gather;
    p.rows = rows + v->reach / v->gather;
    for (int64_t i = 0; i < n; i++) {
        const void *at = wf_at(x, (image * x->shape[1] + channel + i) * size);
        WF_KERNEL(l->type, conv_planes(&p, at, wf_at(&to, i * l->channel)));
    }
}
