/* ops/reduce/sort.c - sort and topk: values along an axis in order, with their indices.
 *
 * Sorting is always stable: equal values keep their order, in either direction, so that results are
 * the same everywhere. NaN is larger than all numbers, and -0 equals 0, as in PyTorch.
 *
 * An element is sorted as an item, a 64-bit word: a key, which as an unsigned number has the order
 * of the values, and below it the index. Items are sorted by their keys, digit by digit from the
 * lowest (LSD radix sort; Knuth, TAOCP 3, 5.2.5), which is stable. An f64 is sorted twice, by the
 * lower and then by the upper half of its key. For topk with a small k, the best values are kept in
 * a sorted list, into which better ones are inserted. For a larger k, up to half of the axis,
 * candidates are selected by their first digit and then sorted. */
#include <math.h>
#include <string.h>

#include "core/compose.h"
#include "core/op_internal.h"
#include "ops/base/op_base.h"
#include "ops/base/shapes.h"
#include "ops/emit/loops.h"
#include "ops/shape/index.h"

enum { VALUES, INDICES };

typedef struct sort_attrs {
    int axis;
    int64_t k; /* number of values to return; ALL for a sort */
    bool descending;
} sort_attrs;

enum { ALL = -1 };

/* ---- items ----------------------------------------------------------------------------------- */

/* The n elements of a row. */
typedef struct row {
    const void *x;
    int64_t n;
    wf_dtype type;
    bool descending;
} row;

/* Maps floats to unsigned numbers in the same order: the sign bit is flipped, and the other bits,
 * too, if it was set. */
static uint32_t key_f32(float x) {
    uint32_t bits, sign = UINT32_C(1) << 31;
    x += 0; /* -0 to 0 */
    memcpy(&bits, &x, sizeof bits);
    return isnan(x) ? UINT32_MAX : bits ^ (sign | -(bits >> 31));
}

static uint64_t key_f64(double x) {
    uint64_t bits, sign = UINT64_C(1) << 63;
    x += 0;
    memcpy(&bits, &x, sizeof bits);
    return isnan(x) ? UINT64_MAX : bits ^ (sign | -(bits >> 63));
}

static int64_t index_of(uint64_t item) {
    return (int64_t)(uint32_t)item;
}

/* The key in 64 bits. The element that comes first has the smaller key. */
static uint64_t key_at(const row *r, int64_t i) {
    uint64_t key = r->type == WF_F64 ? key_f64(((const double *)r->x)[i])
                                     : (uint64_t)key_f32(((const float *)r->x)[i]) << 32;
    return r->descending ? ~key : key;
}

/* Sets the key of each item from the value at its index: the upper or lower half of an f64's key,
 * or the whole key of an f32. */
static void set_keys(const row *r, uint64_t *item, int64_t n, bool upper) {
    const float *narrow = r->x;
    const double *wide = r->x;
    uint32_t turned = r->descending ? UINT32_MAX : 0;
    int shift = upper ? 32 : 0;
    if (r->type == WF_F64)
        for (int64_t i = 0; i < n; i++) {
            uint32_t half = (uint32_t)(key_f64(wide[index_of(item[i])]) >> shift);
            item[i] = (uint64_t)(half ^ turned) << 32 | (uint32_t)item[i];
        }
    else
        for (int64_t i = 0; i < n; i++) {
            uint32_t key = key_f32(narrow[index_of(item[i])]);
            item[i] = (uint64_t)(key ^ turned) << 32 | (uint32_t)item[i];
        }
}

static void number_items(uint64_t *item, int64_t n) {
    for (int64_t i = 0; i < n; i++) item[i] = (uint64_t)i;
}

/* ---- sorting by the upper 32 bits ------------------------------------------------------------ */

enum { FEW = 32, MANY = 4096, MOST_DIGITS = 4, MOST_VALUES = 1 << 11 };

static void insertion_sort(uint64_t *item, int64_t n) {
    for (int64_t i = 1; i < n; i++) {
        uint64_t one = item[i];
        int64_t at = i;
        for (; at > 0 && item[at - 1] >> 32 > one >> 32; at--) item[at] = item[at - 1];
        item[at] = one;
    }
}

/* Move the items to `to`, in the order of one digit. start[v]: how many items have the digit v; it
 * becomes the place of the next one. */
static void move_by_digit(const uint64_t *item, int64_t n, int shift, uint32_t mask,
                          uint32_t *start, uint64_t *to) {
    uint32_t sum = 0;
    for (uint32_t v = 0; v <= mask; v++) {
        uint32_t count = start[v];
        start[v] = sum;
        sum += count;
    }
    for (int64_t i = 0; i < n; i++) to[start[item[i] >> shift & mask]++] = item[i];
}

/* Sorts n items, and returns which of the two arrays holds the result. All digits are counted in
 * one pass; a digit that is the same everywhere needs no move. */
static uint64_t *sort_items(uint64_t *item, uint64_t *other, int64_t n) {
    uint32_t count[MOST_DIGITS][MOST_VALUES];
    int bits = n < MANY ? 8 : 11, digits = n < MANY ? 4 : 3;
    uint32_t mask = (1u << bits) - 1;
    if (n <= FEW) {
        insertion_sort(item, n);
        return item;
    }
    for (int d = 0; d < digits; d++) memset(count[d], 0, (mask + 1) * sizeof count[d][0]);
    for (int64_t i = 0; i < n; i++)
        for (int d = 0; d < digits; d++) count[d][item[i] >> (32 + d * bits) & mask]++;
    for (int d = 0; d < digits; d++) {
        int shift = 32 + d * bits;
        if (count[d][item[0] >> shift & mask] == n) continue;
        move_by_digit(item, n, shift, mask, count[d], other);
        uint64_t *sorted = other;
        other = item;
        item = sorted;
    }
    return item;
}

/* Sorts items by the values at their indices; their keys need not be set. */
static uint64_t *sort_indices(const row *r, uint64_t *item, uint64_t *other, int64_t n) {
    uint64_t *sorted = item;
    if (r->type == WF_F64) {
        set_keys(r, item, n, false);
        sorted = sort_items(item, other, n);
    }
    set_keys(r, sorted, n, true);
    return sort_items(sorted, sorted == item ? other : item, n);
}

/* ---- the k best ------------------------------------------------------------------------------ */

/* The index of the first element from i on that is better than element `worst`, the last of the k
 * best so far; n if there is none. Of equal elements the earlier is better. */
#define NEXT_BETTER(real)                                                                          \
    static int64_t next_better_##real(const row *r, int64_t i, int64_t worst) {                    \
        const real *x = r->x, t = x[worst];                                                        \
        if (r->descending)                                                                         \
            while (i < r->n && (x[i] <= t || isnan(t))) i++;                                       \
        else if (isnan(t))                                                                         \
            while (i < r->n && isnan(x[i])) i++;                                                   \
        else                                                                                       \
            while (i < r->n && !(x[i] < t)) i++;                                                   \
        return i;                                                                                  \
    }
NEXT_BETTER(float)
NEXT_BETTER(double)

static int64_t next_better(const row *r, int64_t i, int64_t worst) {
    return r->type == WF_F64 ? next_better_double(r, i, worst) : next_better_float(r, i, worst);
}

/* LISTED: k up to which a list is used, if it is also small compared with n. SHORT: n up to which a
 * list is used for any k up to half of the row, because counting digits costs as much for few items
 * as for thousands. For more than half the whole row is sorted. */
enum { LISTED = 128, SHORT = 64 };

static bool uses_list(int64_t k, int64_t n) {
    return k <= LISTED && (k <= n / 16 || (n <= SHORT && k <= n / 2));
}

/* Inserts element i into a list of n, after elements equal to it. */
static void insert(const row *r, int64_t i, uint64_t *item, uint64_t *key, int64_t n) {
    uint64_t own = key_at(r, i);
    for (; n > 0 && key[n - 1] > own; n--) {
        key[n] = key[n - 1];
        item[n] = item[n - 1];
    }
    key[n] = own;
    item[n] = (uint64_t)i;
}

static void list_best(const row *r, int64_t k, uint64_t *item, uint64_t *key) {
    if (k == 0) return;
    for (int64_t i = 0; i < k; i++) insert(r, i, item, key, i);
    for (int64_t i = k; (i = next_better(r, i, index_of(item[k - 1]))) < r->n; i++)
        insert(r, i, item, key, k - 1);
}

/* Copies the items whose first digit is at most that of the k-th best to `other`. Returns their
 * number. */
static int64_t select_best(const uint64_t *item, int64_t n, int64_t k, uint64_t *other) {
    uint32_t count[MOST_VALUES] = { 0 };
    uint64_t last = 0;
    int64_t found = 0, kept = 0;
    int shift = 64 - 11;
    for (int64_t i = 0; i < n; i++) count[item[i] >> shift]++;
    while ((found += count[last]) < k) last++;
    for (int64_t i = 0; i < n; i++) {
        other[kept] = item[i];
        kept += item[i] >> shift <= last;
    }
    return kept;
}

/* Returns one of the two arrays, whose first k items are the k best, in order. */
static uint64_t *best_items(const row *r, int64_t k, uint64_t *item, uint64_t *other) {
    if (uses_list(k, r->n)) {
        list_best(r, k, item, other);
        return item;
    }
    number_items(item, r->n);
    if (k > r->n / 2) return sort_indices(r, item, other, r->n);
    set_keys(r, item, r->n, true);
    return sort_indices(r, other, item, select_best(item, r->n, k, other));
}

/* ---- sort and topk: x [..., n, ...] -> values, indices [..., k, ...] ------------------------- */

static bool shape_sort(wf_call *c) {
    const sort_attrs *s = c->attrs;
    const wf_view *x = &c->in[0];
    if (!wf_want_real(c, 0) || !wf_want_axis(c, s->axis, x->ndim)) return false;
    int64_t n = x->shape[s->axis];
    if (s->k != ALL && (s->k < 0 || s->k > n))
        return wf_fail(c, "the %lld first of axis %d, where %s has %lld", (long long)s->k, s->axis,
                       wf_show(c, x), (long long)n);
    for (int i = VALUES; i <= INDICES; i++) {
        wf_set_shape(&c->out[i], i == VALUES ? x->dtype : WF_I32, x->ndim, x->shape);
        if (s->k != ALL) c->out[i].shape[s->axis] = s->k;
    }
    return true;
}

/* The operand is row-major: [outer, n, inner]. If the axis is not the last one, LANES neighbouring
 * rows along the axis are sorted together, because they share cache lines. They are first copied,
 * so that each is contiguous. */
enum { LANES = 16 };

typedef struct sort_plan {
    int64_t outer, n, inner, k;
    int64_t lanes, groups; /* rows in a group; groups in a slab [n, inner] */
    int64_t grain;         /* groups of a task */
    int64_t items;         /* number of items in each of the two arrays */
} sort_plan;

/* Scratch memory: the two arrays of items, the copied lanes, their sorted indices. */
static bool plan_sort(wf_call *c, void *plan) {
    const sort_attrs *s = c->attrs;
    const wf_view *x = &c->in[0];
    sort_plan *p = plan;
    /* checked when sizes are bound: while recording, extents have nominal sizes, which may be
     * larger */
    if (x->shape[s->axis] > INT32_MAX)
        return wf_fail(c, "axis %d of %s is too long", s->axis, wf_show(c, x));
    *p = (sort_plan){ .outer = 1, .n = x->shape[s->axis], .inner = 1 };
    p->k = c->out[0].shape[s->axis];
    for (int i = 0; i < s->axis; i++) p->outer *= x->shape[i];
    for (int i = s->axis + 1; i < x->ndim; i++) p->inner *= x->shape[i];
    p->lanes = p->inner < LANES ? p->inner : LANES;
    p->groups = p->lanes ? (p->inner + p->lanes - 1) / p->lanes : 0;
    p->grain = WF_GRAIN / (p->n * p->lanes + WF_ROW_COST) + 1;
    p->items = uses_list(p->k, p->n) ? p->k : p->n;
    int64_t words = 2 * p->items + (p->inner > 1 ? p->lanes * (p->n + p->k) : p->k);
    return wf_shape_bytes(WF_F64, 1, &words, &c->scratch_bytes) ||
           wf_fail(c, "%s is too large", wf_show(c, x));
}

static int64_t tasks_sort(const wf_call *c, int phase) {
    const sort_plan *p = c->plan;
    return phase == 0 ? wf_task_count(p->outer * p->groups, p->grain) : 0;
}

#define LANES_OF(real)                                                                             \
    /* lane[l][i] = x[i][l] */                                                                     \
    static void read_lanes_##real(const sort_plan *p, int64_t m, const real *x, real *lane) {      \
        for (int64_t i = 0; i < p->n; i++)                                                         \
            for (int64_t l = 0; l < m; l++) lane[l * p->n + i] = x[i * p->inner + l];              \
    }                                                                                              \
    /* y[i][l] = lane[l][index[l][i]] */                                                           \
    static void write_lanes_##real(const sort_plan *p, int64_t m, const real *lane,                \
                                   const int32_t *index, real *y, int32_t *out) {                  \
        for (int64_t i = 0; i < p->k; i++)                                                         \
            for (int64_t l = 0; l < m; l++) {                                                      \
                int32_t from = index[l * p->k + i];                                                \
                out[i * p->inner + l] = from;                                                      \
                y[i * p->inner + l] = lane[l * p->n + from];                                       \
            }                                                                                      \
    }
LANES_OF(float)
LANES_OF(double)

/* Sorts m rows, which begin at x[at]. Their results begin at y[to]. */
static void sort_lanes(const wf_call *c, int64_t m, int64_t at, int64_t to, void *scratch) {
    const sort_plan *p = c->plan;
    const wf_view *x = &c->in[0];
    uint64_t *item = scratch, *other = item + p->items;
    void *lane = p->inner > 1 ? (void *)(other + p->items) : wf_at(x, at);
    int32_t *index = (int32_t *)(other + p->items + (p->inner > 1 ? p->lanes * p->n : 0));
    bool wide = x->dtype == WF_F64;
    row r = { .n = p->n, .type = x->dtype };
    r.descending = ((const sort_attrs *)c->attrs)->descending;
    if (p->inner > 1 && wide) read_lanes_double(p, m, wf_at(x, at), lane);
    if (p->inner > 1 && !wide) read_lanes_float(p, m, wf_at(x, at), lane);
    for (int64_t l = 0; l < m; l++) {
        r.x = (const char *)lane + (size_t)(l * p->n) * wf_dtype_size(x->dtype);
        const uint64_t *best = best_items(&r, p->k, item, other);
        for (int64_t i = 0; i < p->k; i++) index[l * p->k + i] = (int32_t)index_of(best[i]);
    }
    void *y = wf_at(&c->out[VALUES], to), *out = wf_at(&c->out[INDICES], to);
    if (wide)
        write_lanes_double(p, m, lane, index, y, out);
    else
        write_lanes_float(p, m, lane, index, y, out);
}

static bool eval_sort(const wf_call *c, int phase, int64_t task, void *scratch) {
    const sort_plan *p = c->plan;
    int64_t from, to;
    (void)phase;
    wf_task_range(p->outer * p->groups, p->grain, task, &from, &to);
    for (int64_t i = from; i < to; i++) {
        int64_t slab = i / p->groups, column = i % p->groups * p->lanes;
        int64_t m = p->inner - column < p->lanes ? p->inner - column : p->lanes;
        sort_lanes(c, m, slab * p->n * p->inner + column, slab * p->k * p->inner + column, scratch);
    }
    return true;
}

static bool emit_sort(wf_emitter *e, const wf_call *c) {
    const sort_plan *p = c->plan;
    const sort_attrs *s = c->attrs;
    if (wf_view_count(&c->out[VALUES]) == 0) return true;
    wf_emit_result(e, 1, "places");
    wf_emit_scratch(e, 2 * p->n);
    wf_emit_text(e, "int32_t *index = (int32_t *)(void *)scratch;\n");
    wf_emit_text(e, "for (int i = 0; i < %n; i++) {\n", p->outer * p->inner);
    wf_emit_text(e, "int slab = i / %n, column = i %% %n;\n", p->inner, p->inner);
    wf_emit_text(e, "const float *row = x + slab * %n + column;\n", p->n * p->inner);
    wf_emit_text(e, "const int32_t *sorted = sort_indices(%n, row, %n, %d, index, index + %n);\n",
                 p->n, p->inner, (int)s->descending, p->n);
    wf_emit_text(e, "for (int k = 0; k < %n; k++) {\n", p->k);
    wf_emit_text(e, "int at = (slab * %n + k) * %n + column;\n", p->k, p->inner);
    wf_emit_text(e, "out[at] = row[sorted[k] * %n];\nplaces[at] = sorted[k];\n}\n}\n", p->inner);
    return true;
}

/* y is a selection of x, so dy goes back to where each value was. The indices are piecewise
 * constant. They are detached, so that a second derivative is 0 and not an error. */
static void grad_sort(wf_tensor *y, wf_tensor *const *dy, wf_tensor **dx, uint32_t need) {
    const sort_attrs *s = y->attrs;
    (void)need;
    if (dy[VALUES]) dx[0] = wf_scatter_like(y->in[0], s->axis, wf_detach(y + INDICES), dy[VALUES]);
}

static double flops_sort(const wf_call *c) {
    return 4.0 * (double)wf_view_count(&c->in[0]);
}

/* Shapes: x real -> values as x, indices i32, both with k elements along the axis; for sort k is
 * its size.
 * Limits: Stable. NaN is the largest, and -0 equals 0. k is 0 to the size of the axis. */
#define SORT(NAME, text)                                                                           \
    const wf_op wf_op_##NAME = {                                                                   \
        .name = #NAME,                                                                             \
        .family = "reduce",                                                                        \
        .formula = #NAME "(x): " text,                                                             \
        .arity = 1,                                                                                \
        .results = 2,                                                                              \
        .attr_bytes = sizeof(sort_attrs),                                                          \
        .attributes = "int axis, int64_t k, bool descending",                                      \
        .shape = shape_sort,                                                                       \
        .grad = grad_sort,                                                                         \
        .run = &(const wf_kernel){ .plan_bytes = sizeof(sort_plan),                                \
                                   .plan = plan_sort,                                              \
                                   .tasks = tasks_sort,                                            \
                                   .eval = eval_sort,                                              \
                                   .flops = flops_sort,                                            \
                                   .emit = emit_sort },                                            \
    };
SORT(sort, "x in order along the axis, and the indices")
SORT(topk, "the k best of x along the axis, and their indices")

static wf_sorted record_sort(const wf_op *op, wf_tensor *x, int64_t k, int axis, bool descending) {
    sort_attrs s = { wf_pick_axis(axis, wf_rank(x)), k, descending };
    wf_tensor *y = wf_record(op, 1, &x, &s);
    return (wf_sorted){ y, wf_result(y, INDICES) };
}

wf_sorted wf_sort(wf_tensor *x, int axis, bool descending) {
    return record_sort(&wf_op_sort, x, ALL, axis, descending);
}

wf_tensor *wf_argsort(wf_tensor *x, int axis, bool descending) {
    WF_COMPOSE("argsort", x);
    return wf_composed(wf_sort(x, axis, descending).indices);
}

/* A negative k is rejected, because it would mean ALL. */
wf_sorted wf_topk(wf_tensor *x, int64_t k, int axis, bool largest) {
    return record_sort(&wf_op_topk, x, k < 0 ? INT64_MIN : k, axis, largest);
}
