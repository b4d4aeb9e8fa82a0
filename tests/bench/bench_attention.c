/* tests/bench/bench_attention.c - attention, softmax(q k^T / sqrt(d)) v, for sequence lengths T
 * from 16 to 4096: time, and whether memory grows linearly with T.
 *
 * The batch is one sentence, with 8 heads of width d = 64. The backward pass runs alone, on results
 * of a forward pass. Its operations are counted as five matrix products: q k^T, which it computes
 * again, dy v^T, and the gradients of q, k and v. With a causal mask only the pairs of positions
 * that the mask admits are counted. */
#include "developer_bench.h"

#include <stdlib.h>

#include "ops/ops.h"

enum { HEADS = 8, WIDTH = 64, SHORTEST = 16, LONGEST = 4096 };

/* Feeds `to` with the value that t got in the last run of `from`. */
static void hand_over(wf_plan *from, wf_plan *to, const wf_tensor *t) {
    void *values = malloc(wf_bytes(t));
    if (!values) fail(&bench_program, "out of memory");
    if (!wf_fetch(from, t, values, wf_bytes(t))) fail(&bench_program, "%s", wf_plan_error(from));
    if (!wf_feed(to, t, values, wf_bytes(t))) fail(&bench_program, "%s", wf_plan_error(to));
    free(values);
}

static void measure_plan(bench_settings *set, wf_plan *plan, const char *name, int64_t tokens) {
    line l = { .name = name, .tokens = (double)tokens };
    if (!measure(set, run_plan, plan, &l.time)) fail(&bench_program, "%s", wf_plan_error(plan));
    double bytes;
    work_of(plan, &l.flops, &bytes);
    l.limit = at_peak(&l.time, l.flops);
    l.memory = peak_memory();
    print_line(set, &l);
}

static void measure_length(bench_settings *set, int64_t t, bool causal, wf_pool *pool) {
    static const char *const leaf_names[] = { "q", "k", "v", "dy" };
    int64_t shape[] = { 1, HEADS, t, WIDTH };
    wf_tensor *leaf[4], *dx[3] = { NULL }, *made[2];
    char name[80];
    reset_peak_memory();
    wf_graph *g = wf_graph_new(NULL);
    for (int i = 0; i < 4; i++) leaf[i] = wf_param(g, leaf_names[i], 4, shape, wf_init_normal(1));
    made[0] = wf_attention(leaf[0], leaf[1], leaf[2], NULL,
                           &(wf_attention_options){ .causal = causal }); /* [1, H, T, d] */
    made[1] = made[0] + 1; /* result 1 follows result 0 in memory (op.h): the statistics of the
                            * softmax, [1, H, T, 2] */
    wf_vjp(made, &leaf[3], 1, leaf, 3, dx);
    if (!wf_ok(g)) fail(&bench_program, "%s", wf_error(g));
    wf_plan *forward = plan_of(g, (wf_plan_options){ .fetch = made, .n_fetch = 2, .pool = pool });
    snprintf(name, sizeof name, "length %lld%s forward", (long long)t, causal ? " causal" : "");
    measure_plan(set, forward, name, t);
    wf_plan *backward = plan_of(
        g, (wf_plan_options){ .fetch = dx, .n_fetch = 3, .feed = made, .n_feed = 2, .pool = pool });
    for (int i = 0; i < 2; i++) hand_over(forward, backward, made[i]);
    wf_plan_free(forward);
    snprintf(name, sizeof name, "length %lld%s backward", (long long)t, causal ? " causal" : "");
    measure_plan(set, backward, name, t);
    wf_plan_free(backward);
    wf_graph_free(g);
}

void bench_attention(bench_settings *set) {
    wf_pool *pool = wf_pool_new((int)set->threads);
    int64_t from = set->size ? set->size : SHORTEST, to = set->size ? set->size : LONGEST;
    for (int64_t t = from; t <= to; t *= 2)
        for (int causal = 0; causal < 2; causal++) measure_length(set, t, causal, pool);
    wf_pool_free(pool);
}
