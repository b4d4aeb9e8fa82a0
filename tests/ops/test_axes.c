/* tests/ops/test_axes.c - an axis is a number, and a set of axes (WF_AXIS) carries a mark. A
 * function that takes an axis refuses a set, and the other way round. tests/house.sh finds a
 * function without a row. */
#include <stdio.h>

#include "nn/attention.h"
#include "nn/loss.h"
#include "ops/ops_internal.h"
#include "tests/suites.h"
#include "tests/support/support.h"

TESTS(axes)

typedef struct env {
    wf_graph *g;
    wf_tensor *x, *one, *ids, *labels; /* [2,3,4] [1,3,4], i32 [2,3,4] and [2,3] */
} env;

static env open_env(void) {
    env e = { .g = wf_graph_new(NULL) };
    e.x = wf_input(e.g, "x", WF_F32, SHAPE(2, 3, 4));
    e.one = wf_input(e.g, "one", WF_F32, SHAPE(1, 3, 4));
    e.ids = wf_input(e.g, "ids", WF_I32, SHAPE(2, 3, 4));
    e.labels = wf_input(e.g, "labels", WF_I32, SHAPE(2, 3));
    return e;
}

/* ---- sets ------------------------------------------------------------------------------------ */

typedef struct set_row {
    const char *name;
    wf_tensor *(*call)(env *e, uint32_t axes);
} set_row;

static wf_tensor *no_weight(wf_tensor *x, uint32_t axes) {
    return wf_layer_norm(x, axes, NULL, NULL, 1e-5);
}

#define SETS                                                                                       \
    SET(sum, wf_sum(e->x, axes, false))                                                            \
    SET(mean, wf_mean(e->x, axes, true))                                                           \
    SET(max, wf_max(e->x, axes, false))                                                            \
    SET(min, wf_min(e->x, axes, true))                                                             \
    SET(prod, wf_prod(e->x, axes, false))                                                          \
    SET(var, wf_var(e->x, axes, 1, false))                                                         \
    SET(std, wf_std(e->x, axes, 1, true))                                                          \
    SET(norm_1, wf_vector_norm(e->x, 1, axes, false))                                              \
    SET(norm_2, wf_vector_norm(e->x, 2, axes, true))                                               \
    SET(logsumexp, wf_logsumexp(e->x, axes, false))                                                \
    SET(any, wf_any(e->x, axes, false))                                                            \
    SET(all, wf_all(e->x, axes, true))                                                             \
    SET(inverse_count, wf_inverse_count(e->x, axes, 0))                                            \
    SET(count_of, wf_count_of(e->x, axes))                                                         \
    SET(squeeze, wf_squeeze(e->one, axes))                                                         \
    SET(unsqueeze, wf_unsqueeze(e->x, axes))                                                       \
    SET(flip, wf_flip(e->x, axes))                                                                 \
    SET(layer_norm, no_weight(e->x, axes))

#define SET(NAME, CALL)                                                                            \
    static wf_tensor *s_##NAME(env *e, uint32_t axes) {                                            \
        return CALL;                                                                               \
    }
SETS
#undef SET
    static const set_row of_sets[] = {
#define SET(NAME, CALL) { #NAME, s_##NAME },
        SETS
#undef SET
    };

TEST_ROWS(a_set_is_not_an_axis, COUNT_OF(of_sets)) {
    static const int axes[] = { 0, 1, 2, 3, 8, -1, -2, -3, -8 };
    for (int i = 0; i < COUNT_OF(axes); i++) {
        env e = open_env();
        char expected[64];
        of_sets[_i].call(&e, (uint32_t)axes[i]);
        snprintf(expected, sizeof expected, "%d is an axis, not a set of axes: WF_AXIS(%d)",
                 axes[i], axes[i]);
        ck_assert_msg(!wf_ok(e.g), "%s takes %d", of_sets[_i].name, axes[i]);
        assert_contains(wf_error(e.g), expected);
        wf_graph_free(e.g);
    }
    env e = open_env();
    of_sets[_i].call(&e, WF_AXIS(0));
    end_graph(e.g);
}

TEST(the_empty_set_reduces_nothing) {
    wf_graph *g = wf_graph_new(NULL);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(2, 3));
    ck_assert_int_eq(wf_sum(x, WF_NO_AXES, false)->ndim, 2);
    ck_assert_int_eq(wf_sum(x, WF_NO_AXES | WF_LAST_AXIS, false)->ndim, 1);
    ck_assert(wf_ok(g) && !wf_ok(wf_sum(x, 0, false)->graph));
    assert_contains(wf_error(g), "the empty set is WF_NO_AXES");
    wf_graph_free(g);
}

/* ---- axes ------------------------------------------------------------------------------------ */

typedef struct axis_row {
    const char *name;
    void (*call)(env *e, int axis);
} axis_row;

#define AXES                                                                                       \
    AXIS(argmax, wf_argmax(e->x, axis))                                                            \
    AXIS(argmin, wf_argmin(e->x, axis))                                                            \
    AXIS(size_of, wf_size_of(e->x, axis))                                                          \
    AXIS(cumsum, wf_cumsum(e->x, axis, false))                                                     \
    AXIS(cumprod, wf_cumprod(e->x, axis, true))                                                    \
    AXIS(linear_scan, wf_linear_scan(e->x, e->x, axis, false))                                     \
    AXIS(sort, wf_sort(e->x, axis, false))                                                         \
    AXIS(argsort, wf_argsort(e->x, axis, true))                                                    \
    AXIS(topk, wf_topk(e->x, 1, axis, true))                                                       \
    AXIS(permute, wf_permute(e->x, (int[]){ axis, 0, 2 }))                                         \
    AXIS(transpose_a, wf_transpose(e->x, axis, 0))                                                 \
    AXIS(transpose_b, wf_transpose(e->x, 0, axis))                                                 \
    AXIS(slice, wf_slice(e->x, axis, 0, 1))                                                        \
    AXIS(slice_step, wf_slice_step(e->x, axis, 0, 1, 1))                                           \
    AXIS(diagonal_a, wf_diagonal(e->x, 0, axis, 0))                                                \
    AXIS(diagonal_b, wf_diagonal(e->x, 0, 2, axis))                                                \
    AXIS(pad, wf_pad(e->x, axis, 1, 1, 0))                                                         \
    AXIS(concat, wf_concat((wf_tensor *[]){ e->x, e->x }, 2, axis))                                \
    AXIS(stack, wf_stack((wf_tensor *[]){ e->x, e->x }, 2, axis))                                  \
    AXIS(split, wf_tensor *t[1]; wf_split(e->x, axis, (int64_t[]){ 1 }, 1, t))                     \
    AXIS(chunk, wf_tensor *t[1]; wf_chunk(e->x, axis, 1, t))                                       \
    AXIS(flatten_from, wf_flatten(e->x, axis, 2))                                                  \
    AXIS(flatten_to, wf_flatten(e->x, 0, axis))                                                    \
    AXIS(repeat_interleave, wf_repeat_interleave(e->x, 2, axis))                                   \
    AXIS(roll, wf_roll(e->x, 1, axis))                                                             \
    AXIS(gather, wf_gather(e->x, axis, e->ids))                                                    \
    AXIS(scatter_add, wf_scatter_add(e->x, axis, e->ids, e->x))                                    \
    AXIS(scatter_max, wf_scatter_reduce(e->x, axis, e->ids, e->x, WF_SCATTER_MAX))                 \
    AXIS(scatter_min, wf_scatter_reduce(e->x, axis, e->ids, e->x, WF_SCATTER_MIN))                 \
    AXIS(scatter_mul, wf_scatter_reduce(e->x, axis, e->ids, e->x, WF_SCATTER_MUL))                 \
    AXIS(scatter, wf_scatter(e->x, axis, e->ids, e->x))                                            \
    AXIS(index_copy, wf_index_copy(e->x, axis, wf_arange(e->x, 1), e->x))                          \
    AXIS(resize, wf_resize(e->x, axis, &(wf_resize_options){ .size = 5 }))                         \
    AXIS(resize_like, wf_resize(e->x, axis, &(wf_resize_options){ .like = e->x }))                 \
    AXIS(resize_by, wf_resize(e->x, axis, &(wf_resize_options){ .scale = 2 }))                     \
    AXIS(pad_reflect, wf_pad_reflect(e->x, axis, 1, 0))                                            \
    AXIS(index_select, wf_index_select(e->x, axis, wf_arange(e->x, 0)))                            \
    AXIS(index_add, wf_index_add(e->x, axis, wf_arange(e->x, 1), e->x))                            \
    AXIS(arange, wf_arange(e->x, axis))                                                            \
    AXIS(position_ids, wf_position_ids(e->x, axis))                                                \
    AXIS(unfold, wf_unfold(e->x, axis, 1, 1, 1))                                                   \
    AXIS(fold, wf_fold(wf_unfold(e->x, 1, 1, 1, 1), e->x, axis, 1, 1, 1))                          \
    AXIS(softmax, wf_softmax(e->x, axis))                                                          \
    AXIS(log_softmax, wf_log_softmax(e->x, axis))                                                  \
    AXIS(cross_entropy_over,                                                                       \
         wf_cross_entropy_over(wf_transpose(e->x, 1, 2), e->labels, axis, 0, 0))                   \
    AXIS(cache, wf_cache(e->x, axis))                                                              \
    AXIS(key_mask, wf_key_mask(wf_arange(e->x, 0), e->x, axis))                                    \
    AXIS(cosine_similarity, wf_cosine_similarity(e->x, e->x, axis, 1e-8))

#define AXIS(NAME, ...)                                                                            \
    static void a_##NAME(env *e, int axis) {                                                       \
        __VA_ARGS__;                                                                               \
    }
AXES
#undef AXIS
    static const axis_row of_axes[] = {
#define AXIS(NAME, ...) { #NAME, a_##NAME },
        AXES
#undef AXIS
    };

TEST_ROWS(an_axis_is_not_a_set, COUNT_OF(of_axes)) {
    static const uint32_t sets[] = { WF_AXIS(0),  WF_AXIS(1),  WF_AXIS(2),
                                     WF_AXIS(-1), WF_AXIS(-2), WF_LAST_AXIS,
                                     WF_ALL_AXES, WF_NO_AXES,  WF_AXIS(0) | WF_AXIS(1) };
    for (int i = 0; i < COUNT_OF(sets); i++) {
        env e = open_env();
        of_axes[_i].call(&e, (int)sets[i]);
        ck_assert_msg(!wf_ok(e.g), "%s takes 0x%x", of_axes[_i].name, (unsigned)sets[i]);
        assert_contains(wf_error(e.g), "which is a set of axes");
        wf_graph_free(e.g);
    }
    env e = open_env();
    of_axes[_i].call(&e, 1);
    ck_assert_msg(wf_ok(e.g), "%s: %s", of_axes[_i].name, wf_error(e.g));
    end_graph(e.g);
}

TEST(a_set_of_one_says_what_to_write) {
    env e = open_env();
    wf_softmax(e.x, WF_AXIS(1));
    assert_contains(wf_error(e.g), "no axis WF_AXIS(1), which is a set of axes: write 1");
    wf_graph_free(e.g);
}
