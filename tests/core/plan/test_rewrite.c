/* tests/core/plan/test_rewrite.c - rewrite rules, by which a plan runs one fused node in place of
 * two recorded ones: each applies, but not where another node or the caller needs the inner node's
 * value; the values are the same. */
#include "core/run_internal.h"
#include "tests/suites.h"
#include "tests/support/support.h"

TESTS(rewrite)

typedef struct scene {
    wf_graph *g;
    wf_tensor *inner; /* what the rule takes */
    wf_tensor *outer; /* where it is taken */
} scene;

static wf_tensor *drawn(wf_graph *g, const char *name, int ndim, const int64_t *shape) {
    return wf_param(g, name, ndim, shape, wf_init_uniform(1));
}

/* Records the gradient of x from two uses, `use` and sin(x): an add of two contributions. That of
 * the use which was recorded first is its second operand, which is the inner node of the rule. */
static void two_shares(scene *s, wf_tensor *x, wf_tensor *use) {
    wf_tensor *other = wf_sin(x), *y[] = { use, other }, *dy[2], *dx;
    for (int i = 0; i < 2; i++) dy[i] = drawn(s->g, i ? "dy1" : "dy0", y[i]->ndim, y[i]->shape);
    ck_assert_msg(wf_vjp(y, dy, 2, &x, 1, &dx), "%s", wf_error(s->g));
    ck_assert_str_eq(dx->op->name, "add");
    s->outer = dx, s->inner = dx->in[1];
}

static void of_a_product(scene *s) {
    wf_tensor *x = drawn(s->g, "x", SHAPE(4, 3)), *w = drawn(s->g, "w", SHAPE(3, 5));
    two_shares(s, x, wf_matmul(x, w));
}

static void of_a_table(scene *s) {
    wf_tensor *x = drawn(s->g, "x", SHAPE(6, 3));
    wf_tensor *ids = ids_of(s->g, "ids", SHAPE(4), (int32_t[]){ 1, 5, 1, 0 });
    two_shares(s, x, wf_embedding(x, ids));
}

static void of_a_slice(scene *s) {
    wf_tensor *x = drawn(s->g, "x", SHAPE(4, 6));
    two_shares(s, x, wf_slice(x, 1, 1, 3));
}

static void of_slices(scene *s, int n) {
    wf_tensor *x = drawn(s->g, "x", SHAPE(4, 8)), *y[3], *dy[3];
    for (int i = 0; i < n; i++) {
        const char name[] = { 'd', (char)('0' + i), '\0' };
        y[i] = wf_slice(x, 1, 1 + 2 * i, 3 + 2 * i);
        dy[i] = drawn(s->g, name, y[i]->ndim, y[i]->shape);
    }
    ck_assert_msg(wf_vjp(y, dy, n, &x, 1, &s->outer), "%s", wf_error(s->g));
    s->inner = s->outer->in[1];
}

static void of_two_slices(scene *s) {
    of_slices(s, 2);
}

/* A rule can match nodes that another rule has made. */
static void of_three_slices(scene *s) {
    of_slices(s, 3);
}

static const struct {
    const char *name;
    void (*make)(scene *s);
    const char *runs; /* last, where the rule applies */
    int operands;     /* that are there */
} rules[] = {
    { "product", of_a_product, "matmul", 3 },
    { "table", of_a_table, "embedding_backward", 4 },
    { "slice", of_a_slice, "unslice", 3 },
    { "slices", of_two_slices, "unslice", 3 },
    { "three slices", of_three_slices, "unslice", 4 },
};

static scene scene_of(int i) {
    scene s = { .g = new_graph(WF_F64) };
    rules[i].make(&s);
    ck_assert_msg(wf_ok(s.g), "%s: %s", rules[i].name, wf_error(s.g));
    return s;
}

/* The step that makes t. */
static wf_step step_of(wf_plan *p, const wf_tensor *t) {
    wf_step step;
    for (int i = 0; wf_step_at(p, i, &step); i++)
        if (step.node && step.node->id == t->id) return step;
    ck_abort_msg("%s is not computed: %s", t->op->name, wf_plan_error(p));
    return step;
}

static bool is_computed(wf_plan *p, const wf_tensor *t) {
    wf_step step;
    for (int i = 0; wf_step_at(p, i, &step); i++)
        if (step.node && step.node->id == t->id) return true;
    return false;
}

/* Each node that the plan without rewriting computes is computed in some step of p: by itself, or
 * as the node that a rule put in its place. */
static void assert_all_are_computed(wf_plan *p, wf_plan *recorded) {
    wf_step step;
    for (int i = 0; wf_step_at(recorded, i, &step); i++) {
        const wf_tensor *in = step.node ? wf_computed_in(p, step.node) : NULL;
        ck_assert_msg(!step.node || in, "%s is computed nowhere", step.op->name);
        ck_assert(!step.node || is_computed(p, in));
    }
}

TEST_ROWS(a_rule_applies, COUNT_OF(rules)) {
    scene s = scene_of(_i);
    wf_plan *p = wf_plan_new(s.g, &(wf_plan_options){ .fetch = &s.outer, .n_fetch = 1 });
    wf_step step = step_of(p, s.outer);
    int operands = 0;
    for (int i = 0; i < step.node->n_in; i++) operands += step.node->in[i] != NULL;
    ck_assert_str_eq(step.op->name, rules[_i].runs);
    ck_assert_int_eq(operands, rules[_i].operands);
    ck_assert(!is_computed(p, s.inner));
    ck_assert(wf_computed_in(p, s.inner) == s.outer && wf_computed_in(p, s.outer) == s.outer);
    wf_plan_options as_recorded = { .fetch = &s.outer, .n_fetch = 1, .as_recorded = true };
    wf_plan *other = wf_plan_new(s.g, &as_recorded);
    assert_all_are_computed(p, other);
    wf_plan_free(other);
    wf_plan_free(p);
    values v[2]; /* as recorded: the same */
    wf_plan_options recorded = { .fetch = &s.outer, .n_fetch = 1, .as_recorded = true };
    evaluate(&s.outer, 1, 1, false, &v[0]), evaluate_as(recorded, 1, &v[1]);
    ck_assert_double_lt(distance(v[0], v[1]), 1e-13);
    free_values(v, 2);
    end_graph(s.g);
}

/* A rule does not apply if the inner node is fetched, fed or read by another node, or if the plan
 * is made as recorded. */
TEST_ROWS(a_rule_leaves_what_others_want, COUNT_OF(rules)) {
    for (int how = 0; how < 4; how++) {
        scene s = scene_of(_i);
        wf_tensor *fetch[] = { s.outer, how == 0 ? s.inner : wf_neg(s.inner) };
        wf_plan_options o = { .fetch = fetch, .n_fetch = how < 2 ? 2 : 1 };
        if (how == 2) o.feed = &s.inner, o.n_feed = 1;
        o.as_recorded = how == 3;
        wf_plan *p = wf_plan_new(s.g, &o);
        ck_assert_str_eq(step_of(p, s.outer).op->name, s.outer->op->name);
        ck_assert_int_eq(is_computed(p, s.inner), how != 2);
        ck_assert(wf_computed_in(p, s.inner) == s.inner);
        wf_plan_free(p);
        end_graph(s.g);
    }
}

/* Additions that a program records keep their order. */
TEST(sums_of_the_program_stay) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *a = drawn(g, "a", SHAPE(4, 3)), *b = drawn(g, "b", SHAPE(3, 5));
    wf_tensor *y = wf_add(drawn(g, "c", SHAPE(4, 5)), wf_matmul(a, b));
    wf_plan *p = wf_plan_new(g, &(wf_plan_options){ .fetch = &y, .n_fetch = 1 });
    ck_assert_str_eq(step_of(p, y).op->name, "add");
    wf_plan_free(p);
    end_graph(g);
}
