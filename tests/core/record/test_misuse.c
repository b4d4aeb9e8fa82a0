/* tests/core/record/test_misuse.c - mistakes of a program with graphs, plans, states, tokenizers,
 * models and decoders: each gives an error message; none crashes or gives a wrong number silently.
 */
#include "core/file_internal.h"
#include "core/graph_internal.h"
#include "core/run_internal.h"
#include "models/generation.h"
#include "models/model_internal.h"
#include "models/text_formats.h"
#include "models/text_internal.h"
#include "models/transformer.h"
#include "tests/suites.h"
#include "tests/support/faults.h"
#include "tests/support/support.h"

TESTS(misuse)

static wf_plan *plan_of(wf_graph *g, wf_tensor *const *fetch, int n_fetch, wf_tensor *const *feed,
                        int n_feed, bool with_state) {
    return wf_plan_new(g, &(wf_plan_options){ .fetch = fetch,
                                              .n_fetch = n_fetch,
                                              .feed = feed,
                                              .n_feed = n_feed,
                                              .with_state = with_state });
}

/* ---- feeding --------------------------------------------------------------------------------- */

TEST(a_sibling_of_a_fed_result_is_refused) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(3, 4)),
              *labels = wf_input(g, "labels", WF_I32, SHAPE(3));
    wf_cross_entropy_result r = wf_cross_entropy(x, labels, 0, -1);
    wf_plan *p = plan_of(g, &r.count, 1, (wf_tensor *[]){ r.loss, x, labels }, 3, false);
    float zeros[12] = { 0 };
    ck_assert(!wf_feed(p, x, zeros, sizeof zeros) || !wf_run(p));
    assert_contains(wf_plan_error(p), "result 2 of a node whose result 0 is fed");
    wf_plan_free(p);
    end_graph(g);
}

TEST(a_constant_can_be_fed) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *one = wf_constant(g, 1), *y = wf_scale(one, 2);
    wf_plan *p = plan_of(g, &y, 1, &one, 1, false);
    float five = 5, result = 0;
    ck_assert(wf_feed(p, one, &five, sizeof five) && wf_run(p) &&
              wf_fetch(p, y, &result, sizeof result));
    ck_assert(result == 10);
    wf_plan_free(p);
    end_graph(g);
}

/* Result 0 of an op with several results can be fed if the plan needs none of the others. */
TEST(result_0_of_several_can_be_fed) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_param(g, "x", SHAPE(2, 3), wf_init_uniform(1)), *dx;
    wf_tensor *n = wf_layer_norm(x, WF_LAST_AXIS, NULL, NULL, 1e-5), *y = wf_scale(n, 2);
    const float in[] = { 1, 2, 3, 4, 5, 6 };
    float out[6];
    wf_plan *p = plan_of(g, &y, 1, &n, 1, false);
    ck_assert_msg(wf_feed(p, n, in, sizeof in) && wf_run(p) && wf_fetch(p, y, out, sizeof out),
                  "%s", wf_plan_error(p));
    for (int i = 0; i < 6; i++) ck_assert(out[i] == 2 * in[i]);
    wf_plan_free(p);
    ck_assert(wf_grad(wf_sum(wf_square(y), WF_ALL_AXES, false), &x, 1, &dx));
    p = plan_of(g, &dx, 1, &n, 1, false);
    ck_assert(!wf_feed(p, n, in, sizeof in) || !wf_run(p));
    assert_contains(wf_plan_error(p), "layer_norm: result 1 of a node whose result 0 is fed: "
                                      "nothing computes the one without the other");
    wf_plan_free(p);
    end_graph(g);
}

TEST(a_fetch_before_a_run_says_so) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(wf_extent(g, "B", 8), 3)),
              *y = wf_named(wf_neg(x), "y");
    wf_plan *p = plan_of(g, &y, 1, &x, 1, false);
    float data[9] = { 0 };
    for (int ran = 0; ran < 2; ran++) {
        ck_assert(!wf_fetch(p, y, data, 24));
        assert_contains(wf_plan_error(p), "'y' is fetched before a run");
        ck_assert(wf_bind(p, "B", 2) && !wf_fetch(p, y, data, 24));
        assert_contains(wf_plan_error(p), "'y' is fetched before a run");
        ck_assert(wf_feed(p, x, data, 24) && wf_run(p) && wf_fetch(p, y, data, 24));
        ck_assert(wf_bind(p, "B", 3));
    }
    wf_plan_free(p);
    end_graph(g);
}

/* In the shape of a reshape 0 means WF_KEEP, so an axis of size 0 must be given as WF_REST. */
TEST(a_reshape_to_no_elements_works_or_says_how) {
    static const struct {
        int64_t from[2], to[3];
        int ndim;
        const char *says; /* NULL: it works, and the rest is 0 */
    } rows[] = {
        { { 2, 0 }, { WF_REST, 5 }, 2, NULL },
        { { 2, 0 }, { 3, WF_REST }, 2, NULL },
        { { 0, 3 }, { 3, WF_REST, 0 }, 3, NULL },
        { { 2, 0 }, { 0, 5 }, 2, "a size of 0 is written WF_REST" },
        { { 2, 0 }, { 3, 0 }, 2, "a size of 0 is written WF_REST" },
        { { 0, 2 }, { 3, 0, 4 }, 3, "a size of 0 is written WF_REST" },
        { { 2, 3 }, { 0, 5 }, 2, "3 elements cannot be cut into 5, where a 0 keeps an axis" }
    };
    for (int i = 0; i < COUNT_OF(rows); i++) {
        wf_graph *g = wf_graph_new(NULL);
        wf_tensor *y = wf_reshape(wf_zeros(g, WF_F32, 2, rows[i].from), rows[i].ndim, rows[i].to);
        if (rows[i].says) {
            assert_contains(wf_error(g), rows[i].says);
        } else {
            wf_plan *p = plan_of(g, &y, 1, NULL, 0, false);
            ck_assert_msg(wf_ok(g) && wf_run(p), "row %d: %s", i, wf_plan_error(p));
            ck_assert_uint_eq(wf_bound_bytes(p, y), 0);
            wf_plan_free(p);
        }
        wf_graph_free(g);
    }
}

/* ---- tensors of the wrong kind --------------------------------------------------------------- */

TEST(only_leaves_have_parts) {
    wf_graph *g = wf_graph_new(NULL);
    float one = 1;
    wf_tensor *a = wf_param(g, "a", SHAPE(3), wf_init_zeros());
    wf_tensor *constant = wf_constant(g, 2), *failed = wf_relu(NULL);
    wf_tensor *others[] = { wf_relu(a), wf_input(g, "x", WF_F32, SHAPE(3)), wf_shape(g, SHAPE(3)),
                            failed, NULL };
    for (int i = 0; i < COUNT_OF(others); i++) {
        ck_assert(!wf_read_part(others[i], 0, 1, &one));
        ck_assert(!wf_write_part(others[i], 0, 1, &one));
    }
    ck_assert(wf_read_part(constant, 0, 1, &one) && one == 2);
    ck_assert(!wf_write_part(constant, 0, 1, &one));
    ck_assert(wf_write_part(a, 2, 1, &one) && !wf_write_part(a, 3, 1, &one));
    ck_assert(!wf_read_part(a, -1, 1, &one) && !wf_read_part(a, INT64_MAX, 5, &one));
    end_graph(g);
}

TEST(poison_is_computed_nowhere) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *y = wf_exp(wf_param(g, "a", SHAPE(3), wf_init_zeros()));
    wf_plan *p = plan_of(g, &y, 1, NULL, 0, false);
    wf_tensor *bad = wf_reshape(y, SHAPE(5));
    ck_assert(wf_computed_in(p, y) == y);
    ck_assert_ptr_null(wf_computed_in(p, bad));
    wf_plan_free(p), wf_graph_free(g);
}

TEST(a_tensor_and_its_detach_have_gradients_at_once) {
    wf_graph *g = new_graph(WF_F64);
    wf_tensor *x = wf_param(g, "x", SHAPE(1), wf_init_constant(3)), *dx[4];
    wf_tensor *wrt[] = { x, wf_detach(x), wf_sign(x), wf_floor(x) };
    wf_tensor *all = wf_mul(wf_mul(wf_square(x), wrt[1]), wf_mul(wrt[2], wrt[3]));
    ck_assert_msg(wf_grad(wf_sum(all, WF_ALL_AXES, false), wrt, 4, dx), "%s", wf_error(g));
    /* gradients of x^2 a b c at x = a = c = 3, b = 1, where a, b, c are the last three of wrt */
    const double expected[] = { 54, 27, 81, 27 };
    wf_plan *p = plan_of(g, dx, 4, NULL, 0, false);
    ck_assert(wf_run(p));
    for (int i = 0; i < 4; i++) {
        double value;
        ck_assert(wf_fetch(p, dx[i], &value, sizeof value) && value == expected[i]);
    }
    wf_plan_free(p);
    end_graph(g);
}

TEST(extents_made_one_axis_are_sorted) {
    wf_graph *g = new_graph(WF_F32);
    int64_t shape[] = { wf_extent(g, "S", 9), wf_extent(g, "T", 9), wf_extent(g, "B", 4) };
    wf_tensor *x = wf_input(g, "x", WF_F32, 3, shape);
    wf_tensor *y = wf_sort(wf_reshape(x, 1, (int64_t[]){ WF_REST }), 0, false).values;
    wf_plan *p = plan_of(g, &y, 1, &x, 1, false);
    float in[] = { 3, 1, 4, 2 }, out[4];
    ck_assert_msg(wf_bind(p, "S", 2) && wf_bind(p, "T", 2) && wf_bind(p, "B", 1) &&
                      wf_feed(p, x, in, sizeof in) && wf_run(p) && wf_fetch(p, y, out, sizeof out),
                  "%s %s", wf_error(g), wf_plan_error(p));
    for (int i = 0; i < 4; i++) ck_assert(out[i] == (float)(i + 1));
    wf_plan_free(p);
    end_graph(g);
}

TEST(one_number_is_for_both_axes_of_an_image) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(1, 3, 8, 8));
    wf_tensor *w = wf_param(g, "w", SHAPE(4, 3, 3, 3), wf_init_zeros());
    const struct {
        int64_t padding[2], stride[2], rows, columns;
    } cases[] = { { { 1 }, { 0 }, 8, 8 },
                  { { 1 }, { 2 }, 4, 4 },
                  { { 1, WF_NO_PADDING }, { 2, 1 }, 4, 6 },
                  { { 0, 1 }, { 0 }, 6, 8 } };
    for (int i = 0; i < COUNT_OF(cases); i++) {
        wf_conv_options o = { .padding = { cases[i].padding[0], cases[i].padding[1] },
                              .stride = { cases[i].stride[0], cases[i].stride[1] } };
        wf_tensor *y = wf_conv2d(x, w, NULL, &o);
        ck_assert(y->shape[2] == cases[i].rows && y->shape[3] == cases[i].columns);
    }
    wf_tensor *y = wf_max_pool2d(x, &(wf_pool_options){ .kernel = { 2 } });
    ck_assert(y->shape[2] == 4 && y->shape[3] == 4);
    end_graph(g);
}

/* ---- errors name the function that was called ------------------------------------------------ */

TEST(a_run_that_fails_names_the_function) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_param(g, "x", SHAPE(2, 3), wf_init_zeros());
    wf_tensor *ids = wf_input(g, "ids", WF_I32, SHAPE(2)), *y = wf_index_select(x, 0, ids);
    wf_plan *p = plan_of(g, &y, 1, &ids, 1, false);
    int32_t outside[] = { 0, 7 };
    ck_assert(wf_feed(p, ids, outside, sizeof outside) && !wf_run(p));
    assert_contains(wf_plan_error(p), "index_select: gather: id 7");
    wf_plan_free(p);
    end_graph(g);
}

TEST(only_the_outermost_function_is_named) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_param(g, "x", SHAPE(2, 3), wf_init_zeros());
    ck_assert_str_eq(wf_std(x, WF_AXIS(0), 1, false)->function, "std");
    ck_assert_ptr_null(wf_relu(x)->function);
    wf_vector_norm(x, 2, WF_AXIS(2), false);
    ck_assert_str_eq(wf_error(g), "vector_norm: sum: [2,3] has no axis 2");
    wf_graph_free(g);
}

/* ---- extents --------------------------------------------------------------------------------- */

TEST(a_parameter_has_no_extent) {
    wf_graph *g = wf_graph_new(NULL);
    int64_t B = wf_extent(g, "B", 64);
    wf_param(g, "w", 1, &B, wf_init_zeros());
    assert_contains(wf_error(g), "'w': axis 0 is the extent 'B'");
    wf_graph_free(g);
}

/* While recording, a large number stands for an extent. A fixed size may be the same number. */
TEST(no_fixed_size_is_taken_for_an_extent) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *b = wf_input(g, "b", WF_F32, 1, (int64_t[]){ wf_extent(g, "B", 64) });
    int64_t n = b->shape[0];
    wf_tensor *x = wf_input(g, "x", WF_F32, 1, &n), *y = wf_sum(x, WF_ALL_AXES, false);
    wf_plan *p = plan_of(g, &y, 1, &x, 1, false);
    float *ones = calloc((size_t)n, sizeof *ones), total = 0;
    for (int64_t i = 0; i < n; i++) ones[i] = 1;
    ck_assert_msg(wf_feed(p, x, ones, wf_bound_bytes(p, x)) && wf_run(p) &&
                      wf_fetch(p, y, &total, wf_bound_bytes(p, y)),
                  "%s", wf_plan_error(p));
    ck_assert(total == (float)n);
    free(ones);
    wf_plan_free(p);
    end_graph(g);
}

TEST(four_extents_fit_while_recording) {
    wf_graph *g = new_graph(WF_F64);
    int64_t shape[] = { wf_extent(g, "A", 4), wf_extent(g, "B", 4), wf_extent(g, "C", 4),
                        wf_extent(g, "D", 4), 8 };
    wf_input(g, "x", WF_F64, 5, shape);
    end_graph(g);
}

TEST(parts_of_extents_are_no_other_extent) {
    wf_graph *g = wf_graph_new(NULL);
    wf_tensor *x[15];
    for (int i = 0; i < 15; i++) {
        char name[2] = { (char)('a' + i), 0 };
        x[i] = wf_input(g, name, WF_F32, 1, (int64_t[]){ wf_extent(g, name, 64) });
    }
    for (int i = 0; i < 15; i++)
        for (int j = 0; j < i; j++) ck_assert_int_gt(x[i]->shape[0] - x[j]->shape[0], 100);
    wf_add(wf_slice(x[1], 0, 8, WF_END), x[0]);
    ck_assert(!wf_ok(g));
    wf_graph_free(g);
}

TEST(the_position_is_declared_once) {
    wf_graph *g = wf_graph_new(NULL);
    wf_extent(g, "P", 4), wf_extent(g, "P", 4);
    ck_assert(wf_ok(g));
    wf_extent(g, "P", 9);
    assert_contains(wf_error(g), "'P' was declared with maximum 4, now 9");
    wf_graph_free(g);
}

TEST(huge_extents_are_refused_when_bound) {
    wf_graph *g = new_graph(WF_F32);
    int64_t shape[] = { wf_extent(g, "A", INT32_MAX), wf_extent(g, "B", INT32_MAX),
                        wf_extent(g, "C", INT32_MAX) };
    wf_tensor *x = wf_input(g, "x", WF_F32, 3, shape), *y = wf_sum(x, WF_ALL_AXES, false);
    wf_plan *p = plan_of(g, &y, 1, &x, 1, false);
    ck_assert(wf_bind(p, "A", INT32_MAX) && wf_bind(p, "B", INT32_MAX) &&
              wf_bind(p, "C", INT32_MAX));
    ck_assert(!wf_feed(p, x, &x, wf_bound_bytes(p, x)));
    assert_contains(wf_plan_error(p), "'x' is too large as bound");
    ck_assert(wf_bind(p, "A", 1) && wf_bind(p, "B", 1) && wf_bind(p, "C", 1));
    ck_assert(wf_feed(p, x, &(float){ 3 }, sizeof(float)) && wf_run(p));
    wf_plan_free(p);
    end_graph(g);
}

/* ---- states ---------------------------------------------------------------------------------- */

TEST(caches_of_different_batches_are_refused) {
    wf_graph *g = new_graph(WF_F32);
    int64_t B = wf_extent(g, "B", 64), C = wf_extent(g, "C", 64), T = wf_extent(g, "T", 4);
    wf_extent(g, "P", 10);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(B, T, 4)),
              *y = wf_input(g, "y", WF_F32, SHAPE(C, T, 4));
    wf_tensor *fetch[] = { wf_cache(x, 1), wf_cache(y, 1) }, *feed[] = { x, y };
    wf_plan *p = plan_of(g, fetch, 2, feed, 2, true);
    ck_assert(wf_bind(p, "B", 64) && wf_bind(p, "C", 1) && wf_bind(p, "T", 1));
    ck_assert(wf_state_new(p) == NULL);
    assert_contains(wf_plan_error(p), "caches of 64 and of 1 rows");
    wf_plan_free(p);
    end_graph(g);
}

static bool step(wf_plan *p, wf_tensor *x, wf_tensor *y, wf_state *s, int position, float *result) {
    float data[4] = { 1, 2, 3, 4 };
    return wf_bind(p, "P", position) && wf_feed(p, x, data, sizeof data) && wf_run_state(p, s) &&
           wf_fetch(p, y, result, wf_bound_bytes(p, y));
}

/* An allocation fails while a plan computes its memory layout for another position P: the run
 * fails, and a later run gives the right numbers. The sums are views at one position and computed
 * at the next, so the layout does change. */
TEST(a_failed_layout_leaves_the_plan_usable) {
    wf_graph *g = new_graph(WF_F32);
    int64_t B = wf_extent(g, "B", 4), T = wf_extent(g, "T", 2);
    wf_extent(g, "P", 6);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(B, T, 4)), *c = wf_cache(x, 1);
    wf_tensor *rows = wf_sum(wf_exp(c), WF_AXIS(1), true),
              *more = wf_sum_to(wf_exp(wf_square(c)), rows);
    wf_tensor *y =
        wf_sum(wf_add(wf_add(more, rows), wf_sum_to(wf_sqrt(c), rows)), WF_ALL_AXES, false);
    wf_plan *p = plan_of(g, &y, 1, &x, 1, true);
    ck_assert(wf_bind(p, "B", 1) && wf_bind(p, "T", 1));
    wf_state *s = wf_state_new(p);
    float first, second, again = 0;
    ck_assert(s && step(p, x, y, s, 0, &first) && step(p, x, y, s, 1, &second));
    for (int persistent = 0; persistent < 2; persistent++)
        for (long at = 1; at < 16; at++) {
            faults_begin(at, persistent);
            bool ok = step(p, x, y, s, 0, &again);
            faults_end(&(long){ 0 });
            ck_assert(!ok || again == first);
            ck_assert_msg(step(p, x, y, s, 0, &again) && again == first, "request %ld: %g, not %g",
                          at, again, first);
            ck_assert_msg(step(p, x, y, s, 1, &again) && again == second, "request %ld: %g, not %g",
                          at, again, second);
        }
    wf_state_free(s);
    wf_plan_free(p);
    end_graph(g);
}

/* ---- NULL ------------------------------------------------------------------------------------ */

/* A plan refuses tensors that were recorded after the plan was made, or in another graph, and
 * poison tensors. */
TEST(strangers_have_no_place_in_a_plan) {
    wf_graph *g = new_graph(WF_F32), *h = new_graph(WF_F32);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(2)), *y = wf_exp(wf_neg(x));
    wf_plan *p = plan_of(g, &y, 1, &x, 1, false);
    wf_tensor *late = wf_neg(x), *other = wf_input(h, "x", WF_F32, SHAPE(2)),
              *strangers[] = { late, other, wf_relu(NULL), NULL };
    float data[2] = { 0, 0 };
    char text[64];
    for (int ran = 0; ran < 2; ran++) {
        for (int i = 0; i < COUNT_OF(strangers); i++) {
            ck_assert(!wf_feed(p, strangers[i], data, sizeof data));
            assert_contains(wf_plan_error(p), "is not among the feeds");
            ck_assert(!wf_fetch(p, strangers[i], data, sizeof data));
            assert_contains(wf_plan_error(p), "is not among the fetches");
            ck_assert_int_eq(wf_bound_shape(p, strangers[i], (int64_t[WF_MAX_DIMS]){ 0 }), -1);
            ck_assert_int_eq(wf_print(p, strangers[i], text, sizeof text), -1);
        }
        if (!ran) ck_assert_int_eq(wf_print(p, y, text, sizeof text), -1); /* nothing yet */
        ck_assert(wf_feed(p, x, data, sizeof data) && wf_run(p) &&
                  wf_fetch(p, y, data, sizeof data) && data[0] == 1);
        data[0] = 0;
    }
    ck_assert_int_eq(wf_print(p, y, text, sizeof text), (int)strlen(text));
    wf_plan_free(p);
    end_graph(g), wf_graph_free(h);
}

/* A state fits plans whose caches have the same width and grow along the same axis. */
TEST(a_state_of_other_caches_is_refused) {
    static const struct {
        int64_t shape[4]; /* 0 for the batch and for the axis that grows */
        int axis;
    } caches[] = {
        { { 0, 0, 2, 4 }, 1 }, { { 0, 0, 2, 5 }, 1 }, { { 0, 2, 0, 4 }, 2 }, { { 0, 3, 0, 4 }, 2 }
    };
    wf_plan *p[COUNT_OF(caches)];
    wf_graph *g = new_graph(WF_F32);
    int64_t B = wf_extent(g, "B", 4), T = wf_extent(g, "T", 2);
    wf_extent(g, "P", 6);
    for (int i = 0; i < COUNT_OF(caches); i++) {
        char name[2] = { (char)('a' + i), 0 };
        int64_t shape[4];
        memcpy(shape, caches[i].shape, sizeof shape);
        shape[0] = B, shape[caches[i].axis] = T;
        wf_tensor *x = wf_input(g, name, WF_F32, 4, shape), *c = wf_cache(x, caches[i].axis);
        float data[30] = { 0 };
        p[i] = plan_of(g, &c, 1, &x, 1, true);
        ck_assert(wf_bind(p[i], "B", 1) && wf_bind(p[i], "T", 1) && wf_bind(p[i], "P", 0));
        ck_assert_msg(wf_feed(p[i], x, data, wf_bound_bytes(p[i], x)), "%s", wf_plan_error(p[i]));
    }
    for (int i = 0; i < COUNT_OF(caches); i++) {
        wf_state *s = wf_state_new(p[i]);
        for (int k = 0; k < COUNT_OF(caches); k++) {
            ck_assert_msg(wf_run_state(p[k], s) == (i == k), "%d with %d", k, i);
            if (i != k) assert_contains(wf_plan_error(p[k]), "the state was made for another plan");
        }
        wf_state_free(s);
    }
    for (int i = 0; i < COUNT_OF(caches); i++) wf_plan_free(p[i]);
    end_graph(g);
}

static bool stays(wf_call *c) {
    wf_set_shape(&c->out[0], WF_F32, c->in[0].ndim, c->in[0].shape);
    return true;
}

static bool grows_in_batch(wf_call *c) {
    stays(c), c->out[0].shape[0] += c->position;
    return true;
}

static bool begins_late(wf_call *c) {
    return c->position == 0 ? wf_fail(c, "it begins at 1") : stays(c);
}

static bool stops_early(wf_call *c) {
    return c->position == 1 ? wf_fail(c, "it stops at 0") : stays(c);
}

static bool never_run(const wf_call *c, int phase, int64_t task, void *scratch) {
    (void)c, (void)phase, (void)task, (void)scratch;
    return false;
}

/* Requirements for a program's own cache: it grows with the position, along an axis after the
 * batch. */
TEST(caches_that_do_not_grow_are_refused) {
    static const struct {
        bool (*shape)(wf_call *);
        const char *says;
    } rows[] = { { stays, "mine: its result does not grow with the position" },
                 { grows_in_batch, "a cache cannot grow along the batch" },
                 { begins_late, "mine: it begins at 1" },
                 { stops_early, "mine: it stops at 0" } };
    for (int i = 0; i < COUNT_OF(rows); i++) {
        wf_graph *g = new_graph(WF_F32);
        wf_kernel run = { .eval = never_run };
        wf_op mine = { .name = "mine", .arity = 1, .shape = stays, .run = &run };
        wf_extent(g, "P", 6);
        wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(2, 3));
        wf_tensor *y = wf_record(&mine, 1, &x, NULL);
        mine.shape = rows[i].shape, run.cached = true;
        wf_plan *p = plan_of(g, &y, 1, &x, 1, true);
        ck_assert(wf_bind(p, "P", 3));
        ck_assert_ptr_null(wf_state_new(p));
        assert_contains(wf_plan_error(p), rows[i].says);
        wf_plan_free(p);
        end_graph(g);
    }
}

/* A state has room for all positions, not only those in use: it may be too large where the run's
 * tensors are not. */
TEST(a_state_too_large_for_any_memory_is_refused) {
    static const struct {
        int64_t width; /* the cache has (2^31 - 1) * 7 * width floats: below 2^63 bytes, or above */
        const char *says;
    } rows[] = { { 147639500, "out of memory for a state" },
                 { 536870912, "cache: the result [2147483647,7,536870912] is too large" } };
    for (int i = 0; i < COUNT_OF(rows); i++) {
        wf_graph *g = new_graph(WF_F32);
        int64_t B = wf_extent(g, "B", INT32_MAX), T = wf_extent(g, "T", 2);
        wf_extent(g, "P", 6);
        wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(B, T, rows[i].width));
        wf_tensor *y = wf_slice(wf_slice(wf_cache(x, 1), 0, 0, 1), 2, 0, 1);
        wf_plan *p = plan_of(g, &y, 1, &x, 1, true);
        ck_assert_msg(wf_bind(p, "B", INT32_MAX) && wf_bind(p, "T", 1) && wf_bind(p, "P", 0), "%s",
                      wf_plan_error(p));
        ck_assert_ptr_null(wf_state_new(p));
        assert_contains(wf_plan_error(p), rows[i].says);
        wf_plan_free(p);
        end_graph(g);
    }
}

TEST(lists_that_are_null_are_refused) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(2)), *y = wf_neg(x), *grads[1];
    wf_plan *p = plan_of(g, NULL, 1, NULL, 0, false), *q = plan_of(g, &y, 1, NULL, 1, false);
    assert_contains(wf_plan_error(p), "is NULL");
    assert_contains(wf_plan_error(q), "is NULL");
    wf_plan_free(p), wf_plan_free(q);
    ck_assert(!wf_vjp(NULL, NULL, 1, &x, 1, grads) && !wf_vjp(&y, NULL, 1, &x, 1, grads));
    char text[8];
    ck_assert_str_eq(wf_shape_text(g, 2, NULL, text, sizeof text), "[]");
    ck_assert_int_gt(wf_print(NULL, wf_param(g, "w", SHAPE(2), wf_init_zeros()), NULL, 0), 0);
    wf_plan *r = plan_of(g, &y, 1, &x, 1, false);
    ck_assert(wf_bound_shape(r, y, NULL) == -1 && !wf_step_at(r, 0, NULL));
    wf_plan_free(r);
    end_graph(g);
}

/* Functions of text.h without a tokenizer (NULL) return a failure or nothing, and a message if
 * there is room for one. */
TEST(no_tokenizer_answers) {
    char text[8] = "before", why[WF_MESSAGE] = "";
    int32_t ids[4] = { 0 };
    wf_meta pairs[WF_TOKENIZER_META];
    wf_tokenizer_free(NULL);
    ck_assert_int_eq(wf_tokenizer_kind(NULL), WF_WORDS);
    ck_assert(!wf_tokenizer_size(NULL) && !wf_tokenizer_merges(NULL));
    ck_assert(!wf_tokenizer_piece(NULL, 0) && !wf_tokenizer_learn(NULL, NULL, NULL, why));
    ck_assert(wf_tokenizer_encode(NULL, "a", 1, ids, 4, why) == -1);
    ck_assert_str_eq(why, "there is no tokenizer");
    ck_assert(wf_tokenizer_decode(NULL, ids, 1, text, sizeof text) == -1);
    ck_assert(!wf_tokenizer_vocabulary(NULL, text, sizeof text) && !*text);
    ck_assert(!wf_tokenizer_codes(NULL, text, sizeof text) && !*text);
    int n_pairs = 0;
    ck_assert(!wf_tokenizer_to_meta(NULL, "tokenizer", pairs, &n_pairs, why));
    ck_assert(!wf_tokenizer_in_file(NULL, "tokenizer") && !wf_tokenizer_in_file(NULL, NULL));
    ck_assert(!wf_tokenizer_from_meta(NULL, "tokenizer", why));
    ck_assert(!wf_tokenizer_read(WF_WORDS, NULL, 4, NULL, 0, why));
    ck_assert(!wf_tokenizer_from_sentencepiece(NULL, why));
    ck_assert(!wf_sentencepiece_defaults(NULL, 4, NULL, why));
    ck_assert_str_eq(why, "there is no SentencePiece model");
    ck_assert(!wf_tokenizer_sentencepiece(NULL, NULL));
    ck_assert(!wf_tokenizer_from_byte_level(NULL, why));
    ck_assert(!wf_tokenizer_byte_level(NULL, NULL));
    ck_assert(!wf_text_check(NULL, 1, why) && wf_text_check(NULL, 0, NULL));
    ck_assert_str_eq(why, "there is no line");
}

TEST(a_tokenizer_accepts_null_and_kinds_that_are_none) {
    char why[WF_MESSAGE] = "";
    for (int kind = -1; kind < WF_JSON_TEXT + 2; kind++) {
        wf_tokenizer *t = wf_tokenizer_read(
            (wf_token_kind)kind, "a\nb\n", 4,
            kind == WF_BPE || kind == WF_BYTE_BPE ? "#version: 0.2\n" : NULL, 14, why);
        ck_assert((t != NULL) == (kind >= WF_WORDS && kind <= WF_BYTE_BPE));
        if (kind == WF_SENTENCEPIECE)
            assert_contains(why, "it is read from a .spm file");
        else if (kind == WF_BYTE_LEVEL)
            assert_contains(why, "it is read from a vocab.json and a merges.txt");
        else if (kind == WF_JSON_TEXT)
            assert_contains(why, "it is read from a tokenizer.json");
        else if (!t)
            assert_contains(why, "is not one of word|char|bpe|");
        wf_tokenizer_free(t);
    }
    wf_tokenizer *t = wf_tokenizer_read(WF_WORDS, "a\nb\n", 4, NULL, 0, why);
    wf_file *f = wf_file_parse("\2\0\0\0\0\0\0\0{}", 10);
    ck_assert_int_eq(wf_tokenizer_encode(t, "a b a", 5, NULL, 4, why), 3);
    ck_assert(wf_tokenizer_encode(t, NULL, 5, NULL, 0, why) == -1);
    ck_assert(wf_tokenizer_decode(t, NULL, 3, NULL, 8) == -1);
    ck_assert_int_eq(wf_tokenizer_decode(t, (int32_t[]){ WF_SPECIAL_IDS }, 1, NULL, 8), 1);
    ck_assert_uint_eq(wf_tokenizer_vocabulary(t, NULL, 99),
                      strlen("<pad>\n<unk>\n<s>\n</s>\na\nb\n"));
    ck_assert_uint_eq(wf_tokenizer_codes(t, NULL, 99), strlen("#version: 0.2\n"));
    wf_meta pairs[WF_TOKENIZER_META];
    int n_pairs = 0;
    ck_assert(!wf_tokenizer_to_meta(t, NULL, pairs, &n_pairs, why));
    ck_assert(!wf_tokenizer_to_meta(t, "tokenizer", NULL, &n_pairs, why));
    ck_assert(!wf_tokenizer_to_meta(t, "tokenizer", pairs, NULL, why) && n_pairs == 0);
    ck_assert(wf_file_ok(f) && !wf_tokenizer_in_file(f, NULL));
    ck_assert(!wf_tokenizer_from_meta(f, NULL, why));
    wf_file_free(f), wf_tokenizer_free(t);
}

/* Functions of model.h and decode.h without a model or a decoder (NULL) return a failure, and a
 * message if there is room for one. */
TEST(no_model_and_no_decoder_answer) {
    typedef wf_plan *(*plan_of_model)(wf_model *, wf_pool *);
    static const plan_of_model plans[] = {
        wf_model_encode_plan,
        wf_model_step_plan,
        wf_model_prompt_plan,
    };
    char why[WF_MESSAGE] = "";
    wf_transformer_config c = wf_transformer_defaults();
    const wf_decode_options o = wf_decode_defaults();
    wf_decoded results[1];
    int32_t one[1] = { 1 };
    double total[1];
    for (int i = 0; i < COUNT_OF(plans) + 4; i++) {
        wf_plan *p = i < 4 ? wf_model_plan(NULL, (wf_model_use)i, NULL) : plans[i - 4](NULL, NULL);
        ck_assert(!wf_plan_ok(p) && *wf_plan_error(p));
        wf_plan_free(p);
    }
    wf_model_free(NULL), wf_decoder_free(NULL), wf_decoded_free(NULL, 3);
    ck_assert(!wf_transformer_check(NULL, why) && !wf_transformer_new(NULL, NULL, WF_F32, 0, why));
    ck_assert(!wf_transformer_of(NULL) && !*wf_model_kind_name(NULL));
    ck_assert(!wf_model_bind(NULL, NULL, 1, 1, 1) && !wf_model_feed(NULL, NULL, NULL));
    ck_assert(!wf_model_longest_source(NULL) && !*wf_model_kind_title(NULL));
    ck_assert(!wf_model_read_block(NULL, NULL, why));
    ck_assert(wf_model_begin(NULL, 3) == 0 && wf_model_room(NULL, 3) < 0);
    ck_assert(!wf_model_record(NULL, NULL, WF_F32, 0, why) && !wf_model_describe(NULL, NULL, why));
    ck_assert(!wf_model_parameter_count(NULL) && !wf_decoder_new(NULL, NULL, why));
    assert_contains(wf_decoder_error(NULL), "no decoder");
    ck_assert_uint_eq(wf_decoder_memory(NULL, 1, 1, 1), 0);
    ck_assert(!wf_decode(NULL, 1, 1, one, one, NULL, &o, results));
    ck_assert(!wf_decode_greedy(NULL, 1, 1, one, one, 1, one, one));
    ck_assert(!wf_score(NULL, 1, 1, one, one, 1, one, one, NULL, total));
    ck_assert(!wf_model_save(NULL, "x", NULL, NULL, 0, why));
    ck_assert(!wf_transformer_save_state_dict(NULL, "x", false, why));
    ck_assert(!wf_model_load(NULL, NULL, WF_F32, 0, why));
    ck_assert(!wf_model_load_weights(NULL, NULL, why));
    ck_assert(!wf_transformer_from_state_dict(NULL, &c, WF_F32, why));
}

TEST(a_model_and_a_decoder_accept_null) {
    char why[WF_MESSAGE] = "", path[512];
    source_path("tests/data/model_plain.safetensors", path, sizeof path);
    wf_file *f = wf_file_open(path);
    wf_model *m = wf_model_load(f, NULL, WF_F32, 0, why);
    ck_assert_msg(m != NULL, "%s", why);
    ck_assert(!wf_transformer_from_state_dict(f, NULL, WF_F32, why));
    ck_assert(!wf_model_load_weights(m, NULL, why));
    ck_assert(!wf_model_save(m, NULL, NULL, NULL, 0, why));
    ck_assert(!wf_model_save(m, "/tmp", NULL, &(wf_meta){ NULL, NULL }, 1, why));
    ck_assert(!wf_transformer_save_state_dict(m, NULL, false, why));
    wf_decoder *d = wf_decoder_new(m, NULL, why);
    const wf_decode_options o = wf_decode_defaults();
    wf_decoded results[1];
    int32_t one[1] = { 1 };
    ck_assert_msg(d != NULL, "%s", why);
    ck_assert(!wf_decode(d, 1, 1, NULL, one, NULL, &o, results) && !results[0].best);
    ck_assert(!wf_decode(d, 1, 1, one, NULL, NULL, &o, results));
    ck_assert(!wf_decode(d, 1, 1, one, one, NULL, NULL, results));
    ck_assert(!wf_decode(d, 1, 1, one, one, NULL, &o, NULL));
    ck_assert(!wf_decode(d, -1, 1, one, one, NULL, &o, results));
    ck_assert(!wf_decode_greedy(d, 1, 1, one, one, 1, NULL, one));
    ck_assert(!wf_decode_greedy(d, 1, 1, one, one, 1, one, NULL));
    ck_assert(!wf_decode_greedy(d, -1, 1, one, one, 1, one, one));
    ck_assert(!wf_score(d, 1, 1, NULL, one, 1, one, one, NULL, NULL));
    ck_assert(!wf_score(d, 1, 1, one, one, 1, NULL, one, NULL, NULL));
    ck_assert(!wf_score(d, 1, 1, one, one, 1, one, NULL, NULL, NULL));
    ck_assert(wf_score(d, 1, 1, one, one, 0, NULL, (int32_t[]){ 0 }, NULL, NULL));
    wf_decoder_free(d), wf_model_free(m), wf_file_free(f);
}

TEST(a_models_text_needs_a_model_and_a_place) {
    char text[WF_MESSAGE] = "before", why[WF_MESSAGE] = "", path[512];
    wf_model_text(NULL, NULL);
    wf_model_text(NULL, text);
    ck_assert_str_eq(text, "");
    source_path("tests/data/model_plain.safetensors", path, sizeof path);
    wf_file *f = wf_file_open(path);
    wf_model *m = wf_model_load(f, NULL, WF_F32, 0, why);
    ck_assert_msg(m != NULL, "%s", why);
    wf_model_text(m, NULL);
    wf_model_text(m, text);
    assert_contains(text, "a Transformer of width 8");
    ck_assert(!wf_model_describe(f, NULL, why));
    ck_assert_str_eq(why, "there is no place for the description");
    ck_assert(!wf_model_read_block(f, NULL, why));
    ck_assert_str_eq(why, "there is no place for the options of a layer");
    wf_model_free(m);
    wf_file_free(f);
}

TEST(options_of_a_generation_have_its_lists) {
    const wf_decode_options usual = wf_decode_defaults(), none = wf_generation_options(NULL);
    ck_assert(none.beam == usual.beam && none.max_len_b == usual.max_len_b && none.n_banned == 0);
    ck_assert(!none.banned && !none.forced && !none.begin_banned);
    wf_generation g = { .options = usual,
                        .banned = { 3, 4 },
                        .n_banned = 2,
                        .forced = { 5 },
                        .n_forced = 1,
                        .begin_banned = { 6 },
                        .n_begin_banned = 1 };
    g.options.beam = 7;
    const wf_decode_options o = wf_generation_options(&g);
    ck_assert(o.beam == 7 && o.banned == g.banned && o.n_banned == 2 && o.forced == g.forced);
    ck_assert(o.n_forced == 1 && o.begin_banned == g.begin_banned && o.n_begin_banned == 1);
}

/* Every size of a configuration is set to extreme values: the check refuses it, except for 0
 * layers. */
TEST(a_configuration_of_extremes_is_refused) {
    static const int64_t ends[] = { INT64_MIN, INT64_MIN + 1, -1, 0, INT64_MAX - 1, INT64_MAX };
    char why[WF_MESSAGE];
    for (int field = 0; field < 8; field++)
        for (int i = 0; i < COUNT_OF(ends); i++) {
            wf_transformer_config c = wf_transformer_defaults();
            c.src_vocab = c.tgt_vocab = 10;
            int64_t *const fields[] = { &c.src_vocab,      &c.tgt_vocab,     &c.max_len,
                                        &c.d_model,        &c.num_heads,     &c.dim_feedforward,
                                        &c.encoder_layers, &c.decoder_layers };
            *fields[field] = ends[i];
            bool none = field >= 6 && ends[i] == 0; /* a stack of 0 layers is allowed */
            ck_assert_msg(wf_transformer_check(&c, why) == none, "field %d, %lld", field,
                          (long long)ends[i]);
            c.pad_id = c.start_id = c.end_id = i % 2 ? INT32_MAX : INT32_MIN;
            ck_assert(!wf_transformer_check(&c, why));
        }
}

TEST(a_gradient_of_null_is_refused) {
    wf_graph *g = wf_graph_new(NULL);
    wf_tensor *w = wf_param(g, "w", SHAPE(2), wf_init_zeros()), *grad;
    ck_assert(!wf_grad(NULL, &w, 1, &grad) && !wf_ok(g));
    assert_contains(wf_error(g), "the loss is NULL");
    wf_graph_free(g);
}

/* ---- a program's own ops --------------------------------------------------------------------- */

static bool told_twice(wf_call *c) {
    wf_fail(c, "%s is missing", wf_show(c, &c->in[1]));
    return wf_fail(c, "and more");
}

static bool told_nothing(wf_call *c) {
    (void)c;
    return false;
}

TEST(a_rule_is_believed_the_first_time) {
    bool (*const rules[])(wf_call *) = { told_twice, told_nothing };
    static const char *const says[] = { "mine: none is missing", "mine: does not fit" };
    for (int i = 0; i < COUNT_OF(rules); i++) {
        wf_graph *g = wf_graph_new(NULL);
        wf_op mine = wf_op_copy;
        mine.name = "mine", mine.arity = 2, mine.optional = 2, mine.shape = rules[i];
        wf_record(&mine, 2, (wf_tensor *[]){ wf_constant(g, 1), NULL }, NULL);
        ck_assert_str_eq(wf_error(g), says[i]);
        wf_graph_free(g);
    }
}

static bool scalar_shape(wf_call *c) {
    wf_set_shape(&c->out[0], WF_F32, 0, NULL);
    return true;
}

TEST(ops_are_checked_before_they_are_recorded) {
    static const wf_op wrong[] = {
        { .name = "without_eval", .arity = 1, .shape = scalar_shape },
        { .name = "many_results",
          .arity = 1,
          .results = 40,
          .shape = scalar_shape,
          .run = NULL,
          .view = NULL },
    };
    wf_op many = wf_op_copy, attrs = wf_op_copy;
    many.results = 40, attrs.attr_bytes = 8;
    const wf_op *ops[] = { &wrong[0], &wrong[1], &many, &attrs };
    const char *says[] = { "an eval or a view", "an eval or a view", "40 results",
                           "attributes are missing" };
    for (int i = 0; i < COUNT_OF(ops); i++) {
        wf_graph *g = wf_graph_new(NULL);
        wf_tensor *x = wf_constant(g, 1);
        wf_record(ops[i], 1, &x, NULL);
        assert_contains(wf_error(g), says[i]);
        wf_graph_free(g);
    }
}

/* ---- gradients are not computed twice -------------------------------------------------------- */

static int products(wf_plan *p) {
    int n = 0;
    wf_step s;
    for (int i = 0; wf_step_at(p, i, &s); i++) n += strcmp(s.op->name, "matmul") == 0;
    return n;
}

TEST(a_share_that_was_passed_on_is_not_computed_again) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_param(g, "x", SHAPE(3, 4), wf_init_uniform(1)),
              *w = wf_param(g, "w", SHAPE(4, 5), wf_init_uniform(1));
    wf_tensor *h = wf_tanh(x), *y = wf_add(h, wf_layer_norm(h, WF_LAST_AXIS, NULL, NULL, 1e-5)),
              *wrt[] = { x, w }, *grads[2];
    ck_assert(wf_grad(wf_sum(wf_square(wf_matmul(y, w)), WF_ALL_AXES, false), wrt, 2, grads));
    wf_plan *p = plan_of(g, grads, 2, NULL, 0, false);
    ck_assert_int_eq(products(p), 3); /* forward, dX, dW */
    wf_plan_free(p);
    end_graph(g);
}
