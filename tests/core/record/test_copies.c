/* tests/core/record/test_copies.c - values copied from a leaf to another outside of a plan, as target
 * networks are: between layouts, types and graphs, and what is refused. */
#include <stdio.h>
#include <string.h>

#include "ops/ops.h"
#include "tests/suites.h"
#include "tests/support/support.h"

TESTS(copies)

enum { ROWS = 7, COLUMNS = 19, COUNT = ROWS * COLUMNS };

static const wf_layout layouts[] = { WF_ROW_MAJOR, WF_PANELS, WF_PANELS_BF16, WF_PANELS_INT8 };

static wf_tensor *matrix(wf_graph *g, const char *name, wf_layout layout) {
    wf_tensor *t = wf_param(g, name, SHAPE(ROWS, COLUMNS), wf_init_normal(1));
    ck_assert(layout == WF_ROW_MAJOR || wf_set_layout(t, layout));
    return t;
}

/* A copy reads as what was written there would; in one layout as its source. */
TEST_ROWS(any_layout_to_any, 2 * COUNT_OF(layouts) * COUNT_OF(layouts)) {
    wf_layout from = layouts[_i / 2 / COUNT_OF(layouts)], to = layouts[_i / 2 % COUNT_OF(layouts)];
    wf_graph *g = new_graph(WF_F32), *other = _i % 2 ? new_graph(WF_F32) : g;
    wf_tensor *src = matrix(g, "src", from), *dst = matrix(other, "dst", to);
    wf_tensor *written = matrix(other, "written", to);
    float given[COUNT], got[COUNT], want[COUNT];
    ck_assert(wf_copy_leaf(dst, src));
    ck_assert_int_eq(wf_layout_of(dst), to);
    ck_assert(wf_read(src, given, sizeof given) && wf_read(dst, got, sizeof got));
    ck_assert(wf_write(written, given, sizeof given) && wf_read(written, want, sizeof want));
    if (from == to) memcpy(want, given, sizeof want);
    ck_assert_mem_eq(got, want, sizeof want);
    if (other != g) end_graph(other);
    end_graph(g);
}

/* A second network follows the first one, and a copy is no tie. */
TEST(a_target_network) {
    wf_graph *g = new_graph(WF_F64);
    wf_tensor *online = wf_param(g, "online", SHAPE(3), wf_init_uniform(1));
    wf_tensor *target = wf_buffer(g, "target", WF_F64, SHAPE(3), wf_init_zeros());
    wf_tensor *y = wf_sub(online, target);
    double out[3];
    ck_assert(wf_copy_leaf(target, online) && wf_copy_leaf(online, online));
    wf_plan *p = wf_plan_new(g, &(wf_plan_options){ .fetch = &y, .n_fetch = 1 });
    ck_assert(wf_run(p) && wf_fetch(p, y, out, sizeof out));
    ck_assert(out[0] == 0 && out[1] == 0 && out[2] == 0);
    ck_assert(wf_write(online, (double[]){ 9, 9, 9 }, sizeof out));
    ck_assert(wf_run(p) && wf_fetch(p, y, out, sizeof out));
    ck_assert(out[0] > 7 && out[1] > 7 && out[2] > 7);
    ck_assert(wf_copy_leaf(target, wf_constant_array(g, WF_F64, SHAPE(3), out)));
    wf_plan_free(p);
    end_graph(g);
}

TEST(what_does_not_fit_is_refused) {
    wf_graph *g = new_graph(WF_F32), *wide = new_graph(WF_F64);
    wf_tensor *a = wf_param(g, "a", SHAPE(2, 3), wf_init_uniform(1));
    wf_tensor *bad[] = { NULL,
                         wf_param(g, "b", SHAPE(3, 2), wf_init_zeros()),
                         wf_param(g, "c", SHAPE(6), wf_init_zeros()),
                         wf_param(wide, "d", SHAPE(2, 3), wf_init_zeros()),
                         wf_buffer(g, "e", WF_I32, SHAPE(2, 3), wf_init_zeros()),
                         wf_input(g, "f", WF_F32, SHAPE(2, 3)),
                         wf_neg(a) };
    float before[6], after[6];
    ck_assert(wf_read(a, before, sizeof before));
    for (int i = 0; i < COUNT_OF(bad); i++)
        ck_assert(!wf_copy_leaf(a, bad[i]) && !wf_copy_leaf(bad[i], a));
    wf_tensor *constant = wf_constant_array(g, WF_F32, SHAPE(2, 3), before);
    ck_assert(!wf_copy_leaf(constant, a) && wf_copy_leaf(a, constant));
    ck_assert(wf_read(a, after, sizeof after));
    ck_assert_mem_eq(before, after, sizeof after);
    end_graph(wide);
    end_graph(g);
}

/* int8 holds no NaN: the copy says so, and what was there stays. */
TEST(a_layout_that_cannot_hold_the_values) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *src = matrix(g, "src", WF_ROW_MAJOR), *dst = matrix(g, "dst", WF_PANELS_INT8);
    float given[COUNT] = { 1, NAN }, before[COUNT], after[COUNT];
    ck_assert(wf_read(dst, before, sizeof before) && wf_write(src, given, sizeof given));
    ck_assert(!wf_copy_leaf(dst, src));
    ck_assert(wf_read(dst, after, sizeof after));
    ck_assert_mem_eq(before, after, sizeof after);
    end_graph(g);
}
