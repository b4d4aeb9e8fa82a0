/* tests/core/record/test_limits.c - limits of the engine, and its messages beyond them: sizes that
 * are bound later, extents, paths, incomplete ops of a program, states of other plans. */
#include <stdio.h>
#include <string.h>

#include "core/graph_internal.h"
#include "core/op_internal.h"
#include "tests/suites.h"
#include "tests/support/support.h"

TESTS(limits)

/* ---- sizes that only a binding knows --------------------------------------------------------- */

static bool shape_even(wf_call *c) {
    if (c->in[0].shape[0] % 2 && !wf_same_shape(&c->in[0], &c->in[1]))
        return wf_fail(c, "%s is odd", wf_show(c, &c->in[0]));
    wf_set_shape(&c->out[0], c->in[0].dtype, 1, c->in[0].shape);
    return true;
}

static bool eval_copy(const wf_call *c, int phase, int64_t task, void *scratch) {
    (void)phase, (void)task, (void)scratch;
    memcpy(c->out[0].data, c->in[0].data,
           (size_t)wf_view_count(&c->in[0]) * wf_view_unit(&c->in[0]));
    return true;
}

static const wf_kernel copies = { .eval = eval_copy };
static const wf_op even = {
    .name = "even", .family = "shape", .arity = 2, .shape = shape_even, .run = &copies
};

TEST(a_shape_rule_may_refuse_a_binding) {
    wf_graph *g = new_graph(WF_F32);
    int64_t B = wf_extent(g, "B", 8), C = wf_extent(g, "C", 8);
    wf_tensor *x = wf_input(g, "x", WF_F32, 1, &B), *y = wf_input(g, "y", WF_F32, 1, &C);
    wf_tensor *w =
        wf_record(&even, 2, (wf_tensor *[]){ wf_concat((wf_tensor *[]){ x, y }, 2, 0), y }, NULL);
    /* It is recorded, because the nominal sizes are odd, and their sum is even. */
    ck_assert_msg(wf_ok(g), "%s", wf_error(g));
    wf_plan *p = wf_plan_new(
        g, &(wf_plan_options){
               .fetch = &w, .n_fetch = 1, .feed = (wf_tensor *[]){ x, y }, .n_feed = 2 });
    float some[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, out[8];
    ck_assert(wf_bind(p, "B", 2) && wf_bind(p, "C", 3));
    ck_assert(!wf_feed(p, x, some, sizeof some) && wf_plan_memory(p) == 0 &&
              wf_bound_bytes(p, w) == 0);
    assert_contains(wf_plan_error(p), "even: [5] is odd");
    ck_assert(wf_bind(p, "C", 4)); /* and the plan goes on */
    ck_assert_msg(wf_feed(p, x, some, wf_bound_bytes(p, x)) &&
                      wf_feed(p, y, some, wf_bound_bytes(p, y)) && wf_run(p) &&
                      wf_fetch(p, w, out, wf_bound_bytes(p, w)),
                  "%s", wf_plan_error(p));
    ck_assert(out[1] == 2 && out[2] == 1 && out[5] == 4);
    wf_plan_free(p);
    end_graph(g);
}

/* An extent may be bound to 2^31 - 1, but a tensor of that size squared is too large. */
TEST(a_binding_may_be_too_large) {
    wf_graph *g = new_graph(WF_F32);
    int64_t B = wf_extent(g, "B", INT32_MAX);
    wf_tensor *x = wf_input(g, "x", WF_F32, 2, (int64_t[]){ B, B });
    wf_tensor *row = wf_input(g, "row", WF_F32, 1, &B);
    wf_tensor *y = wf_mul(wf_unsqueeze(row, WF_AXIS(0)), wf_unsqueeze(row, WF_AXIS(1)));
    wf_tensor *fetch[] = { wf_sum(x, WF_ALL_AXES, false), wf_sum(y, WF_ALL_AXES, false) };
    wf_tensor *feed[] = { x, row };
    ck_assert_msg(wf_ok(g), "%s", wf_error(g));
    for (int i = 0; i < 2; i++) {
        wf_plan *p = wf_plan_new(
            g,
            &(wf_plan_options){ .fetch = &fetch[i], .n_fetch = 1, .feed = &feed[i], .n_feed = 1 });
        float one[4] = { 1, 1, 1, 1 }, out = 0;
        ck_assert(wf_bind(p, "B", INT32_MAX) && !wf_feed(p, feed[i], one, sizeof one));
        assert_contains(wf_plan_error(p), "too large");
        ck_assert(wf_bind(p, "B", 2) && wf_feed(p, feed[i], one, wf_bound_bytes(p, feed[i])) &&
                  wf_run(p));
        ck_assert(wf_fetch(p, fetch[i], &out, wf_bound_bytes(p, fetch[i])) && out == 4);
        wf_plan_free(p);
    }
    end_graph(g);
}

/* ---- names ----------------------------------------------------------------------------------- */

TEST(extents_are_few_and_have_names) {
    char name[8], text[32];
    wf_graph *g = new_graph(WF_F32);
    for (int i = 0; i < 15; i++) {
        snprintf(name, sizeof name, "E%d", i);
        wf_extent(g, name, 4);
        ck_assert_msg(wf_ok(g), "%s", wf_error(g));
    }
    wf_extent(g, "E15", 4);
    assert_contains(wf_error(g), "at most 15");
    wf_graph_free(g);
    for (int i = 0; i < 2; i++) {
        g = new_graph(WF_F32);
        wf_extent(g, i ? "" : NULL, 4);
        assert_contains(wf_error(g), "needs a name");
        wf_graph_free(g);
    }
    int64_t shape[] = { 3, 4 };
    ck_assert_str_eq(wf_shape_text(NULL, 2, shape, text, sizeof text), "[3,4]");
    ck_assert_ptr_null(wf_shape_text(NULL, 2, shape, NULL, 0));
    wf_shape_text(NULL, 2, shape, text, 0);
    wf_shape_text(NULL, 2, shape, text, 4); /* cut off, and ended */
    ck_assert_int_lt(strlen(text), 4);
}

/* The value of wf_extent is not a size, and using it as one gives an error that says so. */
TEST_ROWS(an_extent_is_for_inputs_alone, 9) {
    static const char *const says[] = {
        "reshape: a size of B, which is bound later: WF_KEEP keeps an axis",
        "slice: 0 to B-1 of axis 0: a size that is bound later; WF_END is the end",
        "pad: B before and 1 after: a size that is bound later cannot be a pad",
        "expand: axis 0 of [B,6] to a size of B, which is bound later",
        "one_hot: B classes: a size that is bound later",
        "'k': axis 0 is B+1; only an extent itself can be an axis",
        "'k': axis 0 is 2*B; only an extent itself can be an axis",
        "'k': axis 0 is the extent 'B'; only inputs have axes that are bound later",
        "'k': axis 1 has size -3",
    };
    wf_graph *g = wf_graph_new(NULL);
    int64_t B = wf_extent(g, "B", 64), more = B + 1, twice = 2 * B;
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(B, 6)), *ids = wf_input(g, "i", WF_I32, 1, &B);
    switch (_i) {
    case 0:
        wf_reshape(x, SHAPE(B, 3));
        break;
    case 1:
        wf_slice(x, 0, 0, B - 1);
        break;
    case 2:
        wf_pad(x, 0, B, 1, 0);
        break;
    case 3:
        wf_expand(x, SHAPE(B, 6));
        break;
    case 4:
        wf_one_hot(ids, B);
        break;
    case 5:
    case 6:
        wf_input(g, "k", WF_F32, 1, _i == 5 ? &more : &twice);
        break;
    case 7:
        wf_buffer(g, "k", WF_F32, 1, &B, wf_init_zeros());
        break;
    default:
        wf_input(g, "k", WF_F32, SHAPE(2, -3));
    }
    assert_contains(wf_error(g), says[_i]);
    wf_graph_free(g);
}

static const wf_op greedy = { .name = "greedy", .arity = -1, .shape = shape_even, .run = &copies };

TEST_ROWS(more_than_the_most_is_refused, 4) {
    static const char *const says[] = { "'x': 9 axes, not 0 to 8",
                                        "greedy: 33 operands, at most 32",
                                        "unsqueeze: 9 axes, at most 8",
                                        "extent 'P': a maximum of -1 is out of range" };
    wf_graph *g = wf_graph_new(NULL);
    wf_tensor *in[WF_MAX_OPERANDS + 1];
    if (_i == 0) wf_input(g, "x", WF_F32, SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1));
    if (_i == 1) {
        for (int i = 0; i <= WF_MAX_OPERANDS; i++) in[i] = wf_constant(g, i);
        wf_record(&greedy, WF_MAX_OPERANDS + 1, in, NULL);
    }
    if (_i == 2) wf_unsqueeze(wf_input(g, "x", WF_F32, SHAPE(1, 1, 1, 1, 1, 1, 1, 1)), WF_AXIS(0));
    if (_i == 3) wf_extent(g, "P", -1);
    assert_contains(wf_error(g), says[_i]);
    wf_graph_free(g);
}

/* A plan keeps the layouts of eight sets of sizes; a ninth replaces the least recently used.
 * Results are the same in any order of sets. */
TEST(any_number_of_bindings_works) {
    wf_graph *g = new_graph(WF_F32);
    int64_t B = wf_extent(g, "B", 64);
    wf_tensor *x = wf_input(g, "x", WF_F32, 1, &B), *y = wf_sum(x, WF_ALL_AXES, false);
    wf_plan *p =
        wf_plan_new(g, &(wf_plan_options){ .fetch = &y, .n_fetch = 1, .feed = &x, .n_feed = 1 });
    float ones[20], out;
    for (int i = 0; i < 20; i++) ones[i] = 1;
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 20; i++) {
            int n = 1 + (7 * i + round) % 20;
            ck_assert(wf_bind(p, "B", n) && wf_feed(p, x, ones, (size_t)n * sizeof *ones) &&
                      wf_run(p) && wf_fetch(p, y, &out, sizeof out));
            ck_assert(out == (float)n);
        }
    wf_plan_free(p), end_graph(g);
}

TEST(paths_are_not_endless) {
    char path[300];
    memset(path, 'a', sizeof path - 1), path[sizeof path - 1] = '\0';
    wf_graph *g = new_graph(WF_F32);
    wf_scope(g, path);
    assert_contains(wf_error(g), "255");
    wf_graph_free(g);
    g = new_graph(WF_F32);
    for (int i = 0; i < 30 && wf_ok(g); i++) wf_scope_push(g, "tenletters");
    assert_contains(wf_error(g), "255");
    wf_graph_free(g);
}

/* ---- ops of a program that are not whole ----------------------------------------------------- */

static bool shape_silent(wf_call *c) {
    (void)c;
    return false;
}

static bool shape_endless(wf_call *c) {
    wf_set_shape(&c->out[0], WF_F32, 2, (int64_t[]){ INT64_C(1) << 40, INT64_C(1) << 40 });
    return true;
}

TEST(ops_are_looked_at) {
    static const struct {
        wf_op op;
        const char *says;
    } bad[] = {
        { { .shape = shape_even, .run = &copies, .arity = 2 }, "needs a name" },
        { { .name = "x", .run = &copies, .arity = 2 }, "shape rule" },
        { { .name = "x", .shape = shape_even, .arity = 2 }, "an eval or a view" },
        { { .name = "x", .shape = shape_even, .run = &copies, .arity = 40 }, "40 operands" },
        { { .name = "x", .shape = shape_even, .run = &copies, .arity = 2, .results = 5 },
          "5 results" },
        { { .name = "x", .shape = shape_even, .run = &copies, .arity = 2, .results = -1 },
          "-1 results" },
        { { .name = "x", .shape = shape_even, .run = &copies, .arity = 2, .attr_bytes = 4 },
          "attributes are missing" },
        { { .name = "x", .shape = shape_silent, .run = &copies, .arity = 2 }, "does not fit" },
        { { .name = "x", .shape = shape_endless, .run = &copies, .arity = 2 }, "too large" },
        { { .name = "x", .shape = shape_even, .run = &copies, .arity = 3 }, "x" },
    };
    for (int i = 0; i < COUNT_OF(bad); i++) {
        wf_graph *g = new_graph(WF_F32);
        wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(4));
        wf_record(&bad[i].op, 2, (wf_tensor *[]){ x, x }, NULL);
        ck_assert_msg(!wf_ok(g), "row %d was accepted", i);
        assert_contains(wf_error(g), bad[i].says);
        wf_graph_free(g);
    }
}

/* ---- memory of the caller's, states of other plans ------------------------------------------- */

/* An array whose size does not fit the tensor is refused, not read or written beyond its end. */
TEST(an_array_of_another_size_is_refused) {
    wf_graph *g = new_graph(WF_F32);
    int64_t B = wf_extent(g, "B", 8);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(B, 2)), *z = wf_neg(x);
    wf_plan *p =
        wf_plan_new(g, &(wf_plan_options){ .fetch = &z, .n_fetch = 1, .feed = &x, .n_feed = 1 });
    float six[6] = { 1, 2, 3, 4, 5, 6 };
    ck_assert(wf_bind(p, "B", 4) && !wf_feed(p, x, six, sizeof six));
    assert_contains(wf_plan_error(p),
                    "'x' is bound as f32 [4,2], which takes 32 bytes: 24 were given");
    ck_assert(!wf_run(p)); /* nothing was fed */
    ck_assert(wf_bind(p, "B", 3) && wf_feed(p, x, six, sizeof six) && wf_run(p));
    double wide[6];
    ck_assert(!wf_fetch(p, z, wide, sizeof wide) && !wf_fetch(p, z, six, sizeof six - 1));
    assert_contains(wf_plan_error(p),
                    "'neg' is bound as f32 [3,2], which takes 24 bytes: 23 were given");
    ck_assert(wf_fetch(p, z, six, sizeof six) && six[5] == -6);
    wf_plan_free(p);
    end_graph(g);
}

TEST(nothing_is_read_or_written_at_null) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(2)), *y = wf_neg(x), *z = wf_neg(y);
    wf_plan *p =
        wf_plan_new(g, &(wf_plan_options){ .fetch = &z, .n_fetch = 1, .feed = &x, .n_feed = 1 });
    float two[2] = { 1, 2 };
    ck_assert(!wf_feed(p, x, NULL, 0));
    assert_contains(wf_plan_error(p), "the array for 'x' is NULL");
    ck_assert(wf_feed(p, x, two, wf_bound_bytes(p, x)) && wf_run(p) && !wf_fetch(p, z, NULL, 0));
    assert_contains(wf_plan_error(p), "the array for 'neg' is NULL");
    ck_assert(!wf_fetch(p, y, two, wf_bound_bytes(p, y))); /* computed, but not asked for */
    assert_contains(wf_plan_error(p), "neg");
    ck_assert_int_eq(wf_bound_shape(p, NULL, (int64_t[WF_MAX_DIMS]){ 0 }), -1);
    wf_plan_free(p);
    end_graph(g);
}

static wf_plan *plan_of_caches(wf_graph *g, wf_tensor *x, int n, int64_t width) {
    wf_tensor *y = wf_slice(x, -1, 0, width);
    for (int i = 0; i < n; i++) y = wf_cache(y, 1);
    return wf_plan_new(
        g, &(wf_plan_options){
               .fetch = &y, .n_fetch = 1, .feed = &x, .n_feed = 1, .with_state = true });
}

TEST(a_state_is_of_its_plan) {
    wf_graph *g = new_graph(WF_F32);
    wf_extent(g, "P", 8);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(1, 2, 3));
    wf_plan *one = plan_of_caches(g, x, 1, 3), *narrow = plan_of_caches(g, x, 1, 2);
    float some[6] = { 1, 2, 3, 4, 5, 6 };
    ck_assert_msg(wf_plan_ok(one) && wf_plan_ok(narrow), "%s", wf_plan_error(one));
    wf_state *s = wf_state_new(one);
    ck_assert_msg(s && wf_feed(one, x, some, sizeof some) && wf_run_state(one, s), "%s",
                  wf_plan_error(one));
    ck_assert(wf_feed(narrow, x, some, sizeof some) && !wf_run_state(narrow, s));
    assert_contains(wf_plan_error(narrow), "another plan");
    wf_tensor *both = wf_add(wf_cache(x, 1), wf_cache(wf_neg(x), 1));
    wf_plan *two = wf_plan_new(
        g, &(wf_plan_options){
               .fetch = &both, .n_fetch = 1, .feed = &x, .n_feed = 1, .with_state = true });
    ck_assert(wf_feed(two, x, some, sizeof some) && !wf_run_state(two, s));
    assert_contains(wf_plan_error(two), "another plan");
    wf_state_free(s), wf_plan_free(one), wf_plan_free(narrow), wf_plan_free(two);
    end_graph(g);
}
