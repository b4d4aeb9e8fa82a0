/* tests/ops/test_walks.c - ops on strided views, whose kernels compute one row after another:
 * broadcasts, copies, pads, gathers and sums over axes that are not adjacent in memory. They are
 * compared with loops of plain C over each index.
 *
 * Sizes are random: many rows of few elements, so that tasks begin anywhere in a row. */
#include <math.h>

#include "core/op.h"
#include "tests/suites.h"
#include "tests/support/support.h"

TESTS(walks)

enum { AXES = 4, MOST = 70000 };

/* A view, and how to find its elements in its leaf. */
typedef struct seen {
    wf_tensor *tensor;
    int64_t shape[AXES], stride[AXES], at;
} seen;

static uint64_t drawn;

/* A random number in [0, n). */
static int64_t below(int64_t n) {
    return (int64_t)(number(77, drawn++) * (double)n);
}

static int64_t count_of(const int64_t *shape) {
    int64_t n = 1;
    for (int i = 0; i < AXES; i++) n *= shape[i];
    return n;
}

/* Draws a shape with few elements in the last axes, and at most MOST in all. */
static void draw_shape(int64_t *shape) {
    static const int64_t most[] = { 9, 20, 150 };
    do {
        for (int i = 0; i < AXES; i++)
            shape[i] = i == 0 ? 1 + below(400) : 1 + below(most[below(3)] / (i == 1 ? 3 : 1));
    } while (count_of(shape) > MOST);
}

static void index_of(int64_t e, const int64_t *shape, int64_t *index) {
    for (int i = AXES - 1; i >= 0; e /= shape[i--]) index[i] = e % shape[i];
}

static int64_t place_of(const seen *s, const int64_t *index) {
    int64_t at = s->at;
    for (int i = 0; i < AXES; i++) at += index[i] * s->stride[i];
    return at;
}

/* A random view of a new leaf: axes are permuted, flipped, of every second element, or
 * broadcast. */
static seen draw_view(wf_graph *g, const char *name, const int64_t *shape, bool broadcasts) {
    seen s = { .at = 0 };
    int order[AXES], back[AXES];
    int64_t own[AXES], step = 1;
    bool flipped[AXES], half[AXES];
    for (int i = 0; i < AXES; i++) order[i] = i;
    for (int i = AXES - 1; i > 0 && below(3) == 0; i--) {
        int k = (int)below(i + 1), was = order[i];
        order[i] = order[k], order[k] = was;
    }
    for (int i = 0; i < AXES; i++) {
        int64_t n = s.shape[i] = broadcasts && below(3) == 0 ? 1 : shape[i];
        flipped[i] = below(5) == 0, half[i] = below(6) == 0;
        back[order[i]] = i, own[order[i]] = half[i] ? 2 * n : n;
    }
    for (int k = AXES - 1; k >= 0; step *= own[k--]) {
        int i = back[k];
        s.stride[i] = half[i] ? 2 * step : step;
        if (!flipped[i]) continue;
        s.at += (own[k] - 1) * step;
        s.stride[i] = -s.stride[i];
    }
    wf_tensor *x = wf_permute(wf_param(g, name, AXES, own, wf_init_uniform(1)), order);
    for (int i = 0; i < AXES; i++) {
        if (flipped[i]) x = wf_flip(x, WF_AXIS(i));
        if (half[i]) x = wf_slice_step(x, i, 0, WF_END, 2);
    }
    for (int i = 0; i < AXES; i++)
        if (s.shape[i] == 1) s.stride[i] = 0;
    s.tensor = x;
    return s;
}

static double *leaf_of(wf_graph *g, const char *name) {
    return leaf_values(wf_find(g, name));
}

TEST_ROWS(a_broadcast_is_that_of_each_element, 60) {
    wf_graph *g = new_graph(_i & 1 ? WF_F64 : WF_F32);
    int64_t shape[AXES], index[AXES];
    drawn = (uint64_t)_i << 20;
    draw_shape(shape);
    seen a = draw_view(g, "a", shape, false), b = draw_view(g, "b", shape, true);
    seen c = draw_view(g, "c", shape, true);
    wf_tensor *y[] = { wf_sub(a.tensor, b.tensor), wf_sub(b.tensor, a.tensor),
                       wf_where(wf_greater(b.tensor, wf_constant(g, 0)), c.tensor, a.tensor),
                       wf_reshape(a.tensor, 1, (int64_t[]){ WF_REST }) };
    values got[4];
    evaluate(y, 4, 1 + _i % 2, false, got);
    double *from[] = { leaf_of(g, "a"), leaf_of(g, "b"), leaf_of(g, "c") };
    ck_assert_int_eq(got[0].count, count_of(shape));
    for (int64_t e = 0; e < got[0].count; e++) {
        index_of(e, shape, index);
        double x = from[0][place_of(&a, index)], z = from[1][place_of(&b, index)];
        double difference = _i & 1 ? x - z : (double)((float)x - (float)z);
        ck_assert(got[0].data[e] == difference && got[1].data[e] == -difference);
        ck_assert(got[2].data[e] == (z > 0 ? from[2][place_of(&c, index)] : x));
        ck_assert(got[3].data[e] == x);
    }
    for (int i = 0; i < 3; i++) free(from[i]);
    free_values(got, 4);
    end_graph(g);
}

/* The order of a sum's terms depends on their number, not on their places in memory. */
TEST_ROWS(axes_apart_are_reduced_like_one_run, 60) {
    wf_graph *g = new_graph(_i & 1 ? WF_F64 : WF_F32);
    int64_t shape[AXES];
    drawn = (uint64_t)_i << 20;
    draw_shape(shape);
    shape[AXES - 1]++; /* an axis of size 1 is not reduced: rows would be added to rows */
    seen x = draw_view(g, "x", shape, false);
    uint32_t axes = WF_AXIS(AXES - 1);
    int order[AXES], n = 0, kept;
    int64_t dims[AXES] = { 0 };
    bool reduced[AXES] = { [AXES - 1] = true };
    for (int i = 0; i < AXES - 1; i++)
        if (below(2)) reduced[i] = true, axes |= WF_AXIS(i);
    for (int i = 0; i < AXES; i++)
        if (!reduced[i]) order[n++] = i;
    kept = n;
    for (int i = 0; i < AXES; i++)
        if (reduced[i]) order[n++] = i;
    dims[kept] = WF_REST;
    wf_tensor *run = wf_reshape(wf_permute(x.tensor, order), kept + 1, dims);
    wf_tensor *copy = wf_add(run, wf_constant(g, 0));
    wf_tensor *y[] = { wf_sum(x.tensor, axes, false), wf_sum(copy, WF_LAST_AXIS, false),
                       wf_max(x.tensor, axes, false), wf_max(copy, WF_LAST_AXIS, false) };
    values got[4];
    evaluate(y, 4, 1 + _i % 2, false, got);
    ck_assert(same_bits(got[0], got[1]) && same_bits(got[2], got[3]));
    free_values(got, 4);
    end_graph(g);
}

TEST_ROWS(pads_windows_and_picks_are_those_of_each_element, 40) {
    wf_graph *g = new_graph(_i & 1 ? WF_F64 : WF_F32);
    int64_t shape[AXES], index[AXES], place[AXES];
    drawn = (uint64_t)_i << 20;
    draw_shape(shape);
    int axis = (int)below(AXES);
    int64_t before = below(3), after = below(3),
            size = 1 + below(shape[axis] < 4 ? shape[axis] : 4);
    int64_t times = 1 + below(4), n = count_of(shape), picks = 1 + below(9);
    seen x = draw_view(g, "x", shape, false);
    int64_t picked[AXES], ids_shape[AXES];
    for (int i = 0; i < AXES; i++) {
        picked[i] = i == axis ? picks : shape[i];
        ids_shape[i] = i != axis && below(3) == 0 ? 1 : picked[i];
    }
    int32_t *ids = malloc((size_t)count_of(ids_shape) * sizeof *ids);
    ck_assert_ptr_nonnull(ids);
    for (int64_t i = 0; i < count_of(ids_shape); i++) ids[i] = (int32_t)below(shape[axis]);
    wf_tensor *y[] = { wf_pad(x.tensor, axis, before, after, 7),
                       wf_repeat_interleave(x.tensor, times, axis),
                       wf_affine(wf_unfold(x.tensor, axis, size, 1, 1), 1, 0),
                       wf_gather(x.tensor, axis, ids_of(g, "ids", AXES, ids_shape, ids)),
                       wf_concat((wf_tensor *[]){ x.tensor, x.tensor }, 2, axis) };
    values got[5];
    evaluate(y, 5, 1 + _i % 2, false, got);
    double *from = leaf_of(g, "x");
    int64_t sizes[5] = { shape[axis] + before + after, shape[axis] * times, shape[axis] - size + 1,
                         picks, 2 * shape[axis] };
    for (int k = 0; k < 5; k++) {
        int64_t all[AXES], inner = k == 2 ? size : 1;
        for (int i = 0; i < AXES; i++) all[i] = i == axis ? sizes[k] : shape[i];
        ck_assert_int_eq(got[k].count, n / shape[axis] * sizes[k] * inner);
        for (int64_t e = 0; e < got[k].count; e++) {
            index_of(e / inner, all, index);
            memcpy(place, index, sizeof place);
            int64_t i = index[axis], id = 0;
            for (int a = 0; a < AXES; a++)
                id = id * ids_shape[a] + (ids_shape[a] == 1 ? 0 : index[a]);
            place[axis] = k == 0   ? i - before
                          : k == 1 ? i / times
                          : k == 2 ? i + e % inner
                          : k == 3 ? ids[id]
                                   : i % shape[axis];
            bool inside = place[axis] >= 0 && place[axis] < shape[axis];
            ck_assert(got[k].data[e] == (inside ? from[place_of(&x, place)] : 7));
        }
    }
    free(from), free(ids);
    free_values(got, 5);
    end_graph(g);
}

/* The element of x at `index`, with index i along `axis`. */
static double element_at(const double *from, const seen *x, const int64_t *index, int axis,
                         int64_t i) {
    int64_t place[AXES];
    memcpy(place, index, sizeof place);
    place[axis] = i;
    return from[place_of(x, place)];
}

/* An element i of wf_fold along an axis of size n: x times the number of windows that contain
 * it. */
static double folded(double x, int64_t i, int64_t n, int64_t size, int64_t step, int64_t apart) {
    double sum = 0;
    for (int64_t k = 0; k < size; k++) {
        int64_t first = i - k * apart;
        if (first >= 0 && first % step == 0 && first + (size - 1) * apart < n) sum += x;
    }
    return sum;
}

TEST_ROWS(rolls_tiles_and_folds_are_those_of_each_element, 40) {
    wf_graph *g = new_graph(_i & 1 ? WF_F64 : WF_F32);
    int64_t shape[AXES], all[AXES], index[AXES], times[AXES] = { 1, 1, 1, 1 };
    drawn = (uint64_t)_i << 20;
    draw_shape(shape);
    int axis = (int)below(AXES);
    int64_t n = shape[axis], shift = below(3 * n) - n, size = 1 + below(n < 4 ? n : 4);
    int64_t step = 1 + below(2), apart = size > 1 && (size - 1) * 2 < n ? 1 + below(2) : 1;
    seen x = draw_view(g, "x", shape, false);
    times[axis] = 1 + below(3);
    wf_tensor *windows = wf_affine(wf_unfold(x.tensor, axis, size, step, apart), 1, 0);
    wf_tensor *y[] = { wf_roll(x.tensor, shift, axis), wf_tile(x.tensor, times),
                       wf_fold(windows, x.tensor, axis, size, step, apart) };
    values got[3];
    evaluate(y, 3, 1 + _i % 2, false, got);
    double *from = leaf_of(g, "x");
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < AXES; i++) all[i] = k == 1 ? shape[i] * times[i] : shape[i];
        ck_assert_int_eq(got[k].count, count_of(all));
        for (int64_t e = 0; e < got[k].count; e++) {
            index_of(e, all, index);
            int64_t i = k ? index[axis] % n : (index[axis] + 3 * n - shift) % n;
            double want = element_at(from, &x, index, axis, i);
            if (k == 2) want = folded(want, i, n, size, step, apart);
            ck_assert(got[k].data[e] == (_i & 1 ? want : (double)(float)want));
        }
    }
    free(from);
    free_values(got, 3);
    end_graph(g);
}

/* A whole number, among them both zeros, or NaN. */
static double drawn_number(void) {
    double x = (double)(below(9) - 4);
    if (below(50) == 0) return NAN;
    return x != 0 || below(2) ? x : -0.0;
}

static bool is_same(double a, double b) {
    return isnan(a) ? isnan(b) : memcmp(&a, &b, sizeof a) == 0;
}

/* Several elements may be scattered to one id. A maximum or minimum of elements with a NaN is NaN,
 * and of zeros with different signs the later one is taken. */
TEST_ROWS(scattered_elements_are_those_of_a_loop, 40) {
    enum { LAST, MOST_OF, LEAST_OF, PRODUCT, WAYS };
    wf_graph *g = new_graph(_i & 1 ? WF_F64 : WF_F32);
    int64_t shape[AXES], many[AXES], index[AXES];
    drawn = (uint64_t)_i << 20;
    draw_shape(shape);
    int axis = (int)below(AXES);
    memcpy(many, shape, sizeof many);
    many[axis] = 1 + below(20);
    int64_t n = count_of(shape), picks = count_of(many);
    int32_t *ids = malloc((size_t)picks * sizeof *ids);
    double *want = malloc((size_t)(WAYS * n + picks) * sizeof *want), *src = want + WAYS * n;
    ck_assert(ids && want);
    for (int64_t i = 0; i < picks; i++) ids[i] = (int32_t)below(shape[axis]);
    for (int64_t i = 0; i < n; i++) want[i] = drawn_number();
    for (int way = 1; way < WAYS; way++) memcpy(want + way * n, want, (size_t)n * sizeof *want);
    for (int64_t i = 0; i < picks; i++) src[i] = drawn_number();
    wf_tensor *onto = param_of(g, "x", AXES, shape, want),
              *from = param_of(g, "src", AXES, many, src);
    wf_tensor *where = ids_of(g, "ids", AXES, many, ids);
    wf_tensor *y[WAYS] = { wf_scatter(onto, axis, where, from),
                           wf_scatter_reduce(onto, axis, where, from, WF_SCATTER_MAX),
                           wf_scatter_reduce(onto, axis, where, from, WF_SCATTER_MIN),
                           wf_scatter_reduce(onto, axis, where, from, WF_SCATTER_MUL) };
    values got[WAYS];
    evaluate(y, WAYS, 1 + _i % 2, false, got);
    for (int64_t e = 0; e < picks; e++) {
        int64_t at = 0;
        index_of(e, many, index);
        index[axis] = ids[e];
        for (int a = 0; a < AXES; a++) at = at * shape[a] + index[a];
        double *last = &want[at], *most = last + MOST_OF * n, *least = last + LEAST_OF * n,
               *product = last + PRODUCT * n;
        *last = src[e];
        if (!isnan(*most) && !(*most > src[e])) *most = src[e];
        if (!isnan(*least) && !(*least < src[e])) *least = src[e];
        *product *= src[e];
        if (!(_i & 1)) *product = (double)(float)*product;
    }
    for (int way = 0; way < WAYS; way++)
        for (int64_t i = 0; i < n; i++)
            ck_assert_msg(is_same(want[way * n + i], got[way].data[i]), "way %d, %lld: %g, not %g",
                          way, (long long)i, got[way].data[i], want[way * n + i]);
    free(ids), free(want);
    free_values(got, WAYS);
    end_graph(g);
}

/* Resizing along rows, with tasks that begin anywhere in a row, gives the bits of resizing along
 * columns, whose elements are computed side by side. */
TEST_ROWS(resized_rows_are_resized_columns, 10) {
    static const wf_resize_mode modes[] = { WF_RESIZE_NEAREST, WF_RESIZE_NEAREST_EXACT,
                                            WF_RESIZE_LINEAR, WF_RESIZE_LINEAR, WF_RESIZE_CUBIC };
    enum { ROWS = 9001, COLUMNS = 5, SIZE = 7 };
    const wf_resize_options o = { .size = SIZE,
                                  .mode = modes[_i / 2],
                                  .align_corners = _i / 2 == 3 };
    wf_graph *g = new_graph(_i & 1 ? WF_F64 : WF_F32);
    wf_tensor *x = wf_param(g, "x", SHAPE(ROWS, COLUMNS), wf_init_normal(1));
    wf_tensor *columns = wf_affine(wf_permute(x, (int[]){ 1, 0 }), 1, 0);
    wf_tensor *y[] = {
        wf_resize(x, 1, &o),
        wf_affine(wf_permute(wf_resize(columns, 0, &o), (int[]){ 1, 0 }), 1, 0),
    };
    values got[2];
    evaluate(y, 2, 1 + _i % 3, false, got);
    ck_assert_int_eq(got[0].count, ROWS * SIZE);
    ck_assert(same_bits(got[0], got[1]));
    free_values(got, 2);
    end_graph(g);
}

/* Maxima of two neighbours along a row or a column, with rows of whole vectors and of others. The
 * gradient of their sum of squares is twice the maximum, at its place. */
TEST_ROWS(maxima_of_pairs_and_their_places, 16) {
    enum { IMAGES = 3, ROWS = 6 };
    static const int64_t widths[] = { 22, 32, 64, 70 };
    wf_graph *g = new_graph(_i & 1 ? WF_F64 : WF_F32);
    int64_t width = widths[_i / 4], down = _i / 2 % 2, apart = down ? width : 1;
    wf_tensor *x = wf_param(g, "x", SHAPE(1, IMAGES, ROWS, width), wf_init_normal(1));
    wf_pool_options pairs = { .kernel = { down ? 2 : 1, down ? 1 : 2 } };
    wf_tensor *y[] = { wf_max_pool2d(x, &pairs), NULL };
    ck_assert_msg(wf_grad(wf_square_sum(y[0]), &x, 1, &y[1]), "%s", wf_error(g));
    values got[2];
    evaluate(y, 2, 1 + _i % 2, false, got);
    double *from = leaf_of(g, "x");
    ck_assert_int_eq(got[0].count, IMAGES * ROWS * width / 2);
    for (int64_t i = 0; i < got[0].count; i++) {
        int64_t first = down ? i / width * 2 * width + i % width : 2 * i;
        bool second = from[first + apart] > from[first];
        double most = from[first + second * apart];
        ck_assert(got[0].data[i] == most);
        ck_assert(got[1].data[first + second * apart] == 2 * most);
        ck_assert(got[1].data[first + !second * apart] == 0);
    }
    free(from);
    free_values(got, 2);
    end_graph(g);
}

/* The message names the index of the wrong id in the whole tensor, whichever task has found it. */
TEST_ROWS(an_id_out_of_range_is_named_by_its_place, 2) {
    enum { ROWS = 40000, COLUMNS = 2 };
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *ids = wf_input(g, "ids", WF_I32, SHAPE(ROWS, COLUMNS)),
              *x = wf_zeros(g, WF_F32, SHAPE(ROWS, 4)), *src = wf_ones(g, WF_F32, SHAPE(ROWS, 2)),
              *y = _i ? wf_gather(x, 1, ids) : wf_scatter_add(x, 1, ids, src);
    wf_plan *p =
        wf_plan_new(g, &(wf_plan_options){ .fetch = &y, .n_fetch = 1, .feed = &ids, .n_feed = 1 });
    int32_t *id = calloc(ROWS * COLUMNS, sizeof *id);
    ck_assert_ptr_nonnull(id);
    id[35000 * COLUMNS + 1] = 9;
    ck_assert(wf_feed(p, ids, id, ROWS * COLUMNS * sizeof *id) && !wf_run(p));
    assert_contains(wf_plan_error(p), "id 9 at [35000,1] is outside 0..3");
    free(id);
    wf_plan_free(p);
    end_graph(g);
}

/* An empty slice of a flipped axis must not compute an address before the first element. */
TEST(a_part_of_a_flipped_axis_may_be_empty) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *empty = wf_param(g, "empty", SHAPE(5, 4, 0), wf_init_zeros()),
              *full = wf_param(g, "full", SHAPE(5, 4, 2), wf_init_uniform(1));
    wf_tensor *y[] = { wf_slice(wf_flip(empty, WF_AXIS(1)), 1, 1, -1),
                       wf_diagonal(wf_flip(empty, WF_AXIS(1)), -1, 0, 1),
                       wf_slice(wf_flip(full, WF_ALL_AXES), 1, 2, 2),
                       wf_sum(wf_slice(wf_flip(full, WF_ALL_AXES), 0, 5, WF_END), WF_ALL_AXES,
                              false) };
    values got[4];
    evaluate(y, 4, 1, false, got);
    for (int i = 0; i < 3; i++) ck_assert_int_eq(got[i].count, 0);
    ck_assert_int_eq(got[3].count, 1);
    ck_assert(got[3].data[0] == 0);
    free_values(got, 4);
    end_graph(g);
}

/* Slices of one tensor, each recorded twice, by indices from the start and from the end: their
 * gradients are added in place. Each slice has more elements than a task. The sliced axis is not
 * the last one. */
TEST_ROWS(gradients_of_slices_add_up, 2) {
    enum { STEPS = 3, ROWS = 9, COLUMNS = 5000 };
    wf_graph *g = new_graph(WF_F64);
    wf_tensor *x = wf_param(g, "x", SHAPE(ROWS, STEPS, COLUMNS), wf_init_uniform(1)), *dx;
    wf_tensor *total = wf_constant(g, 0);
    for (int i = 0; i < 2 * STEPS; i++) {
        int64_t from = i % STEPS;
        int64_t begin = i < STEPS ? from : from - STEPS, end = i == 5 ? WF_END : from + 1;
        wf_tensor *part = wf_slice(x, 1, begin, end);
        total = wf_add(total, wf_scale(wf_square_sum(part), i + 1));
    }
    ck_assert_msg(wf_grad(total, &x, 1, &dx), "%s", wf_error(g));
    values got;
    evaluate(&dx, 1, 1 + _i, false, &got);
    double *from = leaf_of(g, "x");
    ck_assert_int_eq(got.count, ROWS * STEPS * COLUMNS);
    for (int64_t e = 0; e < got.count; e++) {
        double scale = 2 * (double)(2 * (e / COLUMNS % STEPS) + STEPS + 2);
        ck_assert(fabs(got.data[e] - scale * from[e]) <= 1e-14 * scale);
    }
    free(from);
    free_values(&got, 1);
    end_graph(g);
}
