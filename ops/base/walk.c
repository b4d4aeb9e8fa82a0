/* ops/base/walk.c - walks over strided views: they find rows in views with any strides, so that
 * kernels can loop over these. */
#include <assert.h>
#include <string.h>

#include "core/op_internal.h"
#include "op_base.h"
#include "shapes.h"
#include "walk.h"

/* ---- walks ----------------------------------------------------------------------------------- */

int64_t wf_broadcast_stride(const wf_view *small, const wf_view *large, int axis) {
    int own = axis - (large->ndim - small->ndim);
    return own < 0 || small->shape[own] != large->shape[axis] ? 0 : small->stride[own];
}

int64_t wf_broadcast_view(wf_call *c) {
    wf_view *y = &c->out[0];
    for (int i = 0; i < y->ndim; i++) y->stride[i] = wf_broadcast_stride(&c->in[0], y, i);
    return 0;
}

static bool mergeable(const wf_walk *w, int64_t size, const int64_t *stride) {
    for (int v = 0; v < w->n; v++)
        if (w->stride[v][w->ndim - 1] != stride[v] * size) return false;
    return true;
}

void wf_walk_start(wf_walk *w, int n, const wf_view *const *views) {
    const wf_view *first = views[0];
    assert(n >= 1 && n <= WF_WALKERS);
    memset(w, 0, sizeof *w);
    w->n = n;
    for (int i = 0; i < first->ndim; i++) {
        int64_t size = first->shape[i], stride[WF_WALKERS];
        if (size == 1) continue;
        for (int v = 0; v < n; v++) stride[v] = wf_broadcast_stride(views[v], first, i);
        if (w->ndim > 0 && mergeable(w, size, stride))
            w->shape[w->ndim - 1] *= size;
        else
            w->shape[w->ndim++] = size;
        for (int v = 0; v < n; v++) w->stride[v][w->ndim - 1] = stride[v];
    }
    w->rows = w->columns = 1;
    for (int v = 0; v < n; v++) w->step[v] = 1;
    if (w->ndim == 0) return;
    w->columns = w->shape[--w->ndim]; /* the last axis that is left is the row */
    for (int v = 0; v < n; v++) w->step[v] = w->stride[v][w->ndim];
    for (int i = 0; i < w->ndim; i++) w->rows *= w->shape[i];
}

void wf_walk_seek(wf_walk *w, int64_t row) {
    memset(w->at, 0, sizeof w->at);
    for (int i = w->ndim - 1; i >= 0; i--) {
        if (w->shape[i] == 0) return;
        w->index[i] = row % w->shape[i];
        row /= w->shape[i];
        for (int v = 0; v < w->n; v++) w->at[v] += w->index[i] * w->stride[v][i];
    }
}

void wf_walk_next(wf_walk *w) {
    for (int i = w->ndim - 1; i >= 0; i--) {
        for (int v = 0; v < w->n; v++) w->at[v] += w->stride[v][i];
        if (++w->index[i] < w->shape[i]) return;
        for (int v = 0; v < w->n; v++) w->at[v] -= w->stride[v][i] * w->shape[i];
        w->index[i] = 0;
    }
}

int64_t wf_walk_ahead(const wf_walk *w, int64_t most) {
    int64_t left = w->ndim ? w->shape[w->ndim - 1] - w->index[w->ndim - 1] : 1;
    return most < left ? most : left;
}

void wf_walk_skip(wf_walk *w, int64_t rows) {
    if (w->ndim == 0) return;
    for (int v = 0; v < w->n; v++) w->at[v] += (rows - 1) * wf_walk_row(w, v);
    w->index[w->ndim - 1] += rows - 1;
    wf_walk_next(w);
}

/* ---- copies of rows -------------------------------------------------------------------------- */

/* FEW: up to this many columns are copied one column after another, if there are more rows than
 * columns. SHORT: rows of fewer bytes are copied without memcpy, because the call would cost too
 * much. REPEATED: of a row that repeats one element, this many are written one by one; the rest is
 * copied from these. */
enum { FEW = 4, SHORT = 200, REPEATED = 1024 };

static inline void copy_16(char *y, const char *x) {
    memcpy(y, x, 16);
}

/* Copies rows of 16 to SHORT bytes without gaps, for which calls of memcpy cost too much. The last
 * 16 bytes may overlap those before them. Rows of 33 to 64 bytes have a loop of their own, without
 * branches in it. */
static void copy_short_rows(int64_t rows, int64_t bytes, const char *x, int64_t x_row, char *y,
                            int64_t y_row) {
    if (bytes > 32 && bytes <= 64) {
        for (int64_t r = 0; r < rows; r++, x += x_row, y += y_row) {
            copy_16(y, x);
            copy_16(y + 16, x + 16);
            copy_16(y + bytes - 32, x + bytes - 32);
            copy_16(y + bytes - 16, x + bytes - 16);
        }
        return;
    }
    for (int64_t r = 0; r < rows; r++, x += x_row, y += y_row) {
        for (int64_t i = 0; i + 16 < bytes; i += 16) copy_16(y + i, x + i);
        copy_16(y + bytes - 16, x + bytes - 16);
    }
}

typedef uint32_t __attribute__((may_alias)) word4;
typedef uint64_t __attribute__((may_alias)) word8;

/* Loops over words of one size. pick: y[c] = x[c * step]. repeat: y[c] = x[0]; y may be x.
 * copy_rows: if there are few columns, they are copied one after the other; otherwise rows are. */
#define COPY_ROWS(word)                                                                            \
    static void pick_##word(int64_t n, const word *x, int64_t step, word *y) {                     \
        int64_t c = 0;                                                                             \
        for (; c + 4 <= n; c += 4) {                                                               \
            word first = x[c * step], second = x[(c + 1) * step];                                  \
            word third = x[(c + 2) * step], last = x[(c + 3) * step];                              \
            y[c] = first;                                                                          \
            y[c + 1] = second;                                                                     \
            y[c + 2] = third;                                                                      \
            y[c + 3] = last;                                                                       \
        }                                                                                          \
        for (; c < n; c++) y[c] = x[c * step];                                                     \
    }                                                                                              \
    static void repeat_##word(int64_t n, const word *x, word *y) {                                 \
        int64_t done = n < REPEATED ? n : REPEATED;                                                \
        const word value = n > 0 ? x[0] : 0;                                                       \
        for (int64_t c = 0; c < done; c++) y[c] = value;                                           \
        for (int64_t count; done < n; done += count) {                                             \
            count = n - done < REPEATED ? n - done : REPEATED;                                     \
            memcpy(y + done, y, (size_t)count * sizeof *y);                                        \
        }                                                                                          \
    }                                                                                              \
    static void copy_rows_##word(int64_t rows, int64_t columns, const word *x, int64_t x_row,      \
                                 int64_t x_step, word *y, int64_t y_row, int64_t y_step) {         \
        if (columns <= FEW && rows > columns) {                                                    \
            for (int64_t c = 0; c < columns; c++)                                                  \
                for (int64_t r = 0; r < rows; r++)                                                 \
                    y[r * y_row + c * y_step] = x[r * x_row + c * x_step];                         \
            return;                                                                                \
        }                                                                                          \
        for (int64_t r = 0; r < rows; r++, x += x_row, y += y_row) {                               \
            if (y_step == 1 && x_step == 0)                                                        \
                repeat_##word(columns, x, y);                                                      \
            else if (y_step == 1 && x_step == -1)                                                  \
                for (int64_t c = 0; c < columns; c++) y[c] = x[-c];                                \
            else if (y_step == 1)                                                                  \
                pick_##word(columns, x, x_step, y);                                                \
            else                                                                                   \
                for (int64_t c = 0; c < columns; c++) y[c * y_step] = x[c * x_step];               \
        }                                                                                          \
    }
COPY_ROWS(word4)
COPY_ROWS(word8)

/* ---- transposes: the elements of a column of y lie side by side in x ------------------------- */

typedef uint32_t words __attribute__((vector_size(16)));
enum { SIDE = 4 };

static inline words load_words(const word4 *x) {
    words v;
    memcpy(&v, x, sizeof v);
    return v;
}

/* y [SIDE, SIDE] = the transpose of x; x_step and y_row are the distances between their rows. */
static inline void transpose_square(const word4 *x, int64_t x_step, word4 *y, int64_t y_row) {
    words a = load_words(x), b = load_words(x + x_step), c = load_words(x + 2 * x_step),
          d = load_words(x + 3 * x_step);
    words ab = __builtin_shufflevector(a, b, 0, 4, 1, 5),
          cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    words ef = __builtin_shufflevector(a, b, 2, 6, 3, 7),
          gh = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    words row[SIDE] = { __builtin_shufflevector(ab, cd, 0, 1, 4, 5),
                        __builtin_shufflevector(ab, cd, 2, 3, 6, 7),
                        __builtin_shufflevector(ef, gh, 0, 1, 4, 5),
                        __builtin_shufflevector(ef, gh, 2, 3, 6, 7) };
    for (int r = 0; r < SIDE; r++) memcpy(y + r * y_row, &row[r], sizeof *row);
}

/* Row r of y has the elements x[r + c * x_step], for c < columns. */
static void transpose_words(int64_t rows, int64_t columns, const word4 *x, int64_t x_step, word4 *y,
                            int64_t y_row) {
    int64_t whole_rows = rows / SIDE * SIDE, whole = columns / SIDE * SIDE;
    for (int64_t c = 0; c < whole; c += SIDE)
        for (int64_t r = 0; r < whole_rows; r += SIDE)
            transpose_square(x + r + c * x_step, x_step, y + r * y_row + c, y_row);
    for (int64_t r = 0; r < rows; r++) {
        int64_t done = r < whole_rows ? whole : 0;
        pick_word4(columns - done, x + r + done * x_step, x_step, y + r * y_row + done);
    }
}

/* Does the work of wf_copy_rows. The strides are arguments of their own: a struct of them would be
 * written and read again for each call, which takes as long as copying a short row. */
static void copy_rows(wf_dtype type, int64_t rows, int64_t columns, const void *x, int64_t x_row,
                      int64_t x_step, void *y, int64_t y_row, int64_t y_step) {
    int64_t size = type == WF_F64 ? (int64_t)sizeof(double) : (int64_t)sizeof(float);
    int64_t bytes = columns * size;
    bool plain = x_step == 1 && y_step == 1;
    if (plain && bytes >= SHORT)
        for (int64_t r = 0; r < rows; r++)
            memcpy((char *)y + r * y_row * size, (const char *)x + r * x_row * size, (size_t)bytes);
    else if (plain && columns > FEW) /* 20 bytes or more */
        copy_short_rows(rows, bytes, x, x_row * size, y, y_row * size);
    else if (size == 8)
        copy_rows_word8(rows, columns, x, x_row, x_step, y, y_row, y_step);
    else if (x_row == 1 && y_step == 1 && rows >= SIDE && columns >= SIDE)
        transpose_words(rows, columns, x, x_step, y, y_row);
    else
        copy_rows_word4(rows, columns, x, x_row, x_step, y, y_row, y_step);
}

void wf_copy_rows(wf_dtype type, int64_t rows, int64_t columns, wf_matrix x, wf_matrix y) {
    copy_rows(type, rows, columns, x.data, x.row, x.col, y.data, y.row, y.col);
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* How a run over several rows reads an operand. IN_PLACE: it has the layout of the result.
 * ONE_ELEMENT: the same element again and again. REPEATED_ROW: the same row again and again, copied
 * once. COPIED_ROWS: its rows are copied for every run. */
enum { IN_PLACE, ONE_ELEMENT, REPEATED_ROW, COPIED_ROWS };

int64_t wf_elementwise_tasks(const wf_call *c, int phase) {
    return phase == 0 ? wf_task_count(wf_view_count(&c->out[0]), WF_GRAIN) : 0;
}

static int way_of(const wf_walk *w, int v, bool repeat) {
    bool like_result = w->step[v] == w->step[0], still = true;
    for (int k = 0; k < w->ndim; k++) {
        like_result &= w->stride[v][k] == w->stride[0][k];
        still &= w->stride[v][k] == 0;
    }
    if (like_result) return IN_PLACE;
    if (still && w->step[v] == 0 && repeat) return ONE_ELEMENT;
    return still ? REPEATED_ROW : COPIED_ROWS;
}

/* The number of elements in the whole rows that fit into a buffer. */
static int64_t span_of(const wf_walk *w) {
    return WF_GATHERED / w->columns * w->columns;
}

static void start_span(wf_runs *r) {
    const wf_walk *w = &r->walk;
    for (int i = 0; i < r->call->n_in; i++) {
        const wf_view *x = &r->call->in[i];
        r->way[i] = (uint8_t)way_of(w, i + 1, r->repeat);
        r->step[i] = r->way[i] != ONE_ELEMENT;
        r->gathers |= r->way[i] == COPIED_ROWS;
        if (r->way[i] == REPEATED_ROW)
            wf_copy_rows(x->dtype, WF_GATHERED / w->columns, w->columns,
                         (wf_matrix){ x->data, 0, w->step[i + 1] },
                         (wf_matrix){ r->gathered[i], w->columns, 1 });
    }
}

void wf_runs_start(wf_runs *r, const wf_call *c, int64_t task, bool repeat) {
    const wf_view *views[WF_WALKERS] = { &c->out[0] };
    wf_walk *w = &r->walk;
    int64_t from, to;
    assert(c->n_in < WF_WALKERS);
    for (int i = 0; i < c->n_in; i++) views[i + 1] = &c->in[i];
    r->call = c;
    r->repeat = repeat;
    r->n = 0;
    wf_walk_start(w, c->n_in + 1, views);
    wf_task_range(wf_view_count(&c->out[0]), WF_GRAIN, task, &from, &to);
    r->left = to - from;
    r->column = w->columns ? from % w->columns : 0;
    if (r->left > 0) wf_walk_seek(w, from / w->columns);
    r->gathers = false;
    r->spans =
        w->ndim > 0 && w->columns > 0 && 2 * w->columns <= WF_GATHERED && wf_view_dense(&c->out[0]);
    if (r->spans) {
        start_span(r);
        return;
    }
    for (int i = 0; i < c->n_in; i++) {
        r->step[i] = w->step[i + 1] == 0 && repeat ? 0 : 1;
        r->gathers |= w->step[i + 1] != r->step[i];
    }
}

/* Copies the rest of a row, or several whole rows along the axis before it, to the buffers from
 * element `done` on. At most n elements are copied; returns how many. */
static int64_t gather_rows(wf_runs *r, int64_t done, int64_t n) {
    wf_walk *w = &r->walk;
    int64_t rows = 1, columns = w->columns - r->column;
    if (columns > n) columns = n;
    if (columns == w->columns) rows = wf_walk_ahead(w, n / columns);
    for (int i = 0; i < r->call->n_in; i++) {
        const wf_view *x = &r->call->in[i];
        int64_t step = w->step[i + 1];
        if (r->way[i] != COPIED_ROWS) continue;
        copy_rows(x->dtype, rows, columns, wf_at(x, w->at[i + 1] + r->column * step),
                  wf_walk_row(w, i + 1), step,
                  (char *)r->gathered[i] + done * (int64_t)wf_dtype_size(x->dtype), columns, 1);
    }
    r->column += columns;
    if (r->column < w->columns) return columns;
    r->column = 0;
    wf_walk_skip(w, rows);
    return rows * columns;
}

/* Makes the next run from several rows. */
static bool next_span(wf_runs *r) {
    const wf_call *c = r->call;
    int64_t room = span_of(&r->walk) - r->column, first = r->walk.at[0] + r->column;
    r->left -= r->n;
    if (r->left <= 0) return false;
    r->n = room < r->left ? room : r->left;
    r->out = wf_at(&c->out[0], first);
    for (int i = 0; i < c->n_in; i++) {
        r->in[i] = r->way[i] == IN_PLACE      ? wf_at(&c->in[i], first)
                   : r->way[i] == ONE_ELEMENT ? c->in[i].data
                                              : r->gathered[i];
        if (r->way[i] == REPEATED_ROW)
            r->in[i] = (char *)r->gathered[i] + r->column * (int64_t)wf_dtype_size(c->in[i].dtype);
    }
    if (!r->gathers) {
        int64_t end = first + r->n;
        r->column = end % r->walk.columns;
        r->walk.at[0] = end - r->column;
        return true;
    }
    for (int64_t done = 0; done < r->n;) done += gather_rows(r, done, r->n - done);
    return true;
}

bool wf_runs_next(wf_runs *r) {
    wf_walk *w = &r->walk;
    const wf_call *c = r->call;
    if (r->spans) return next_span(r);
    r->left -= r->n;
    r->column += r->n;
    if (r->left <= 0) return false;
    if (r->column == w->columns) {
        r->column = 0;
        wf_walk_next(w);
    }
    r->n = w->columns - r->column < r->left ? w->columns - r->column : r->left;
    if (r->gathers && r->n > WF_GATHERED) r->n = WF_GATHERED;
    r->out = wf_at(&c->out[0], w->at[0] + r->column * w->step[0]);
    for (int i = 0; i < c->n_in; i++) {
        void *x = wf_at(&c->in[i], w->at[i + 1] + r->column * w->step[i + 1]);
        r->in[i] = x;
        if (w->step[i + 1] == r->step[i]) continue;
        wf_copy_rows(c->in[i].dtype, 1, r->n, (wf_matrix){ x, 0, w->step[i + 1] },
                     (wf_matrix){ r->gathered[i], 0, 1 });
        r->in[i] = r->gathered[i];
    }
    return true;
}

double wf_flops_of_operand(const wf_call *c) {
    return (double)wf_view_count(&c->in[0]);
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* Every part except the last ends at the end of a row, so the next part begins at column 0. Only
 * the first part needs divisions: with short rows they would take as long as the copies. */
bool wf_walk_part(wf_walk *w, int64_t *from, int64_t to, wf_part *part) {
    if (*from >= to) return false;
    int64_t left = to - *from;
    if (part->rows == 0) {
        wf_walk_seek(w, *from / w->columns);
        part->column = *from % w->columns;
    } else {
        wf_walk_skip(w, part->rows);
        part->column = 0;
    }
    part->columns = w->columns - part->column < left ? w->columns - part->column : left;
    part->rows = part->columns == w->columns ? wf_walk_ahead(w, w->rows) : 1;
    if (part->rows * part->columns > left) part->rows = left / part->columns;
    *from += part->rows * part->columns;
    return true;
}

wf_matrix wf_part_of(const wf_walk *w, const wf_part *part, int v, const wf_view *x) {
    return (wf_matrix){ wf_at(x, w->at[v] + part->column * w->step[v]), wf_walk_row(w, v),
                        w->step[v] };
}

void wf_copy_walked(wf_walk *w, int64_t from, int64_t to, const wf_view *x, const wf_view *y) {
    wf_part part = { 0 };
    while (wf_walk_part(w, &from, to, &part)) {
        wf_matrix a = wf_part_of(w, &part, 1, x), b = wf_part_of(w, &part, 0, y);
        copy_rows(x->dtype, part.rows, part.columns, a.data, a.row, a.col, b.data, b.row, b.col);
    }
}

bool wf_copy_eval(const wf_call *c, int phase, int64_t task, void *scratch) {
    wf_view to = c->in[0];
    wf_walk w;
    int64_t from, end;
    (void)phase;
    (void)scratch;
    /* `to` is a view of the result's memory: row-major, in the operand's shape */
    to.data = c->out[0].data;
    wf_dense_strides(to.ndim, to.shape, to.stride);
    wf_walk_start(&w, 2, (const wf_view *[]){ &to, &c->in[0] });
    wf_task_range(wf_view_count(&to), WF_GRAIN, task, &from, &end);
    wf_copy_walked(&w, from, end, &c->in[0], &to);
    return true;
}
