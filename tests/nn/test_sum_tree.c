/* tests/nn/test_sum_tree.c - micro-batches are added in the order of one binary tree, however they
 * are divided among ranks. */
#include "nn/optimizer_internal.h"
#include "nn/train/accumulation.h"
#include "ops/update/sums.h"
#include "tests/suites.h"
#include "tests/support/models.h"

TESTS(sum_tree)

/* A hash in place of a sum: its value depends on the order of additions. */
static uint64_t added(uint64_t left, uint64_t right) {
    return left * 0x9e3779b97f4a7c15u + (right ^ right >> 29) * 0xbf58476d1ce4e5b9u + 1;
}

static uint64_t leaf(int64_t i) {
    return (uint64_t)i * 0x94d049bb133111ebu + 7;
}

/* The tree of sum_tree.h: the left child has the largest power of two of micro-batches that leaves
 * some for the right child. */
static uint64_t tree_of(int64_t from, int64_t to) {
    int64_t width = 1;
    if (to - from == 1) return leaf(from);
    while (2 * width < to - from) width *= 2;
    return added(tree_of(from, from + width), tree_of(from + width, to));
}

typedef struct stack {
    wf_sum_tree tree;
    uint64_t value[WF_SUM_TREE_DEPTH];
} stack;

/* Adds gradients as wf_accumulate does. */
static void push(stack *s, int64_t from, int64_t to, uint64_t value) {
    int depth = s->tree.depth, n = wf_sum_tree_push(&s->tree, from, to);
    ck_assert_int_eq(s->tree.depth, depth - n + 1);
    for (int i = 1; i <= n; i++) value = added(s->value[depth - i], value);
    s->value[depth - n] = value;
}

TEST(the_sum_is_a_tree_over_the_numbers) {
    for (int64_t n = 1; n <= 300; n++) {
        stack s = { wf_sum_tree_of(n), { 0 } };
        for (int64_t i = 0; i < n; i++) push(&s, i, i + 1, leaf(i));
        ck_assert_int_eq(s.tree.depth, 1);
        ck_assert(s.tree.node[0].from == 0 && s.tree.node[0].to == n);
        ck_assert(s.value[0] == tree_of(0, n));
        ck_assert_int_eq(wf_sum_tree_height(0, n, n), wf_partial_sums(n));
    }
    ck_assert_int_eq(wf_partial_sums(0), 1);
    ck_assert_int_eq(wf_partial_sums(INT64_MAX), 62);
}

/* Each rank adds the micro-batches of its range; then the partial sums of all ranks are added, in
 * the order of ranks. */
TEST(ranges_give_the_tree_of_the_whole) {
    for (int64_t n = 1; n <= 70; n++)
        for (int ranks = 1; ranks <= 72; ranks++) {
            stack all = { wf_sum_tree_of(n), { 0 } };
            for (int r = 0; r < ranks; r++) {
                stack own = { wf_sum_tree_of(n), { 0 } };
                for (int64_t i = n * r / ranks; i < n * (r + 1) / ranks; i++)
                    push(&own, i, i + 1, leaf(i));
                for (int k = 0; k < own.tree.depth; k++)
                    push(&all, own.tree.node[k].from, own.tree.node[k].to, own.value[k]);
            }
            ck_assert(all.tree.depth == 1 && all.value[0] == tree_of(0, n));
        }
}

/* Adding whole nodes of the tree gives the same stack of partial sums, with the same height, as
 * adding one micro-batch after another. */
TEST(ranges_are_added_in_few_steps) {
    for (int64_t end = 1; end <= 70; end++)
        for (int64_t from = 0; from < end; from++)
            for (int64_t to = from; to <= end; to++) {
                wf_sum_tree slow = wf_sum_tree_of(end), fast = slow;
                int height = 0;
                for (int64_t i = from; i < to; i++) {
                    wf_sum_tree_push(&slow, i, i + 1);
                    if (slow.depth > height) height = slow.depth;
                }
                ck_assert_int_eq(wf_sum_tree_add(&fast, from, to), height);
                ck_assert_int_eq(fast.depth, slow.depth);
                for (int k = 0; k < slow.depth; k++)
                    ck_assert(fast.node[k].from == slow.node[k].from &&
                              fast.node[k].to == slow.node[k].to);
            }
    wf_sum_tree t = wf_sum_tree_of(INT64_MAX);
    wf_sum_tree_add(&t, 0, INT64_MAX);
    ck_assert(t.depth == 1 && t.node[0].to == INT64_MAX);
}

/* The op wf_accumulate adds numbers, whose sum depends on the order, in the order of the tree. */
TEST_ROWS(accumulation_follows_the_tree, 9) {
    int n = _i + 1;
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_input(g, "x", WF_F32, 0, NULL),
              *w = wf_param(g, "w", 0, NULL, wf_init_zeros());
    wf_optimizer_options options = wf_optimizer_defaults(WF_SGD);
    wf_tensor *one = wf_constant(g, 1);
    wf_optimizer o = wf_optimizer_new(g, wf_mul(w, x), one, &w, 1, &options);
    wf_accumulation a;
    ck_assert_msg(wf_accumulation_new(&a, &o, one, &options, wf_partial_sums(n)), "%s",
                  wf_error(g));
    wf_tensor *feed[] = { x, a.at };
    wf_plan *p = wf_plan_new(
        g, &(wf_plan_options){ .fetch = a.adds, .n_fetch = 2, .feed = feed, .n_feed = 2 });
    wf_plan *sum = wf_plan_new(g, &(wf_plan_options){ .fetch = a.grads, .n_fetch = 1 });
    float part[9], have;
    for (int i = 0; i < n; i++) {
        part[i] = (float)(1 + 1e-4 * i * i * i) * (i % 2 ? 1e-3f : 1e3f);
        assert_plan(p, wf_feed_reals(p, x, &(double){ part[i] }, 1) &&
                           wf_feed_micro_batch(p, &a, i, n) && wf_run(p));
    }
    ck_assert(!wf_feed_micro_batch(p, &a, n, n) && !wf_feed_micro_batch(p, &a, -1, n));
    assert_plan(sum, wf_run(sum) && wf_fetch(sum, a.grads[0], &have, sizeof have));
    for (int width = 1; width < n; width *= 2)
        for (int i = 0; i + width < n; i += 2 * width) part[i] += part[i + width];
    ck_assert(have == part[0]);
    wf_plan_free(p), wf_plan_free(sum), wf_accumulation_free(&a), wf_optimizer_free(&o);
    end_graph(g);
}

/* A task may have up to WF_TASK_MORE elements more than its grain, and needs memory for their sums,
 * too. */
TEST_ROWS(sums_of_any_size_are_added, 2) {
    int64_t n = 8191, shape[] = { 3, n };
    double at[] = { 3, 2 };
    wf_graph *g = new_graph(_i ? WF_F64 : WF_F32);
    wf_tensor *sums = wf_buffer(g, "sums", WF_F32 + _i, 2, shape, wf_init_constant(0.5));
    wf_tensor *numbers = wf_input(g, "at", WF_F32 + _i, 1, (int64_t[]){ 2 });
    wf_tensor *sum = wf_accumulate(sums, wf_expand(wf_constant(g, 0.25), 1, &n), numbers);
    wf_plan *add = wf_plan_new(
        g, &(wf_plan_options){ .fetch = &sum, .n_fetch = 1, .feed = &numbers, .n_feed = 1 });
    assert_plan(add, wf_feed_reals(add, numbers, at, 2) && wf_run(add));
    double total = evaluate_scalar(wf_sum(sums, WF_ALL_AXES, false));
    ck_assert_double_eq(total, (0.5 + 1.25 + 0.5) * (double)n);
    wf_plan_free(add);
    end_graph(g);
}

/* A run fails if the partial sums need more room than the stack has. */
TEST(a_stack_has_its_room) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_constant(g, 1), *w = wf_param(g, "w", 0, NULL, wf_init_zeros());
    wf_optimizer_options options = wf_optimizer_defaults(WF_SGD);
    wf_optimizer o = wf_optimizer_new(g, wf_mul(w, x), x, &w, 1, &options);
    wf_accumulation a;
    ck_assert(wf_accumulation_new(&a, &o, x, &options, 1));
    wf_plan *p = wf_plan_new(
        g, &(wf_plan_options){ .fetch = a.adds, .n_fetch = 2, .feed = &a.at, .n_feed = 1 });
    for (int i = 0; i < 2; i++) assert_plan(p, wf_feed_micro_batch(p, &a, i, 2) && wf_run(p));
    assert_plan(p, wf_feed_micro_batch(p, &a, 0, 4) && wf_run(p));
    assert_plan(p, wf_feed_micro_batch(p, &a, 1, 4) && wf_run(p));
    ck_assert(wf_feed_micro_batch(p, &a, 2, 4) && !wf_run(p));
    assert_contains(wf_plan_error(p), "0 of 1 sums, where there is room for 1");
    wf_plan_free(p), wf_accumulation_free(&a), wf_optimizer_free(&o);
    end_graph(g);
}
