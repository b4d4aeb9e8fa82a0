/* tools/bench_attention.c - softmax(q k^T / sqrt(d)) v over the length: time, and whether memory
 * stays linear.
 *
 * One sentence, 8 heads of 64. Backward is counted as five products, for it computes the weights
 * again: q k^T, dy v^T, and the three gradients. Causal counts the pairs that are open. */
#include "bench.h"

#include "../ops/ops.h"

enum { HEADS = 8, WIDTH = 64, SHORTEST = 16, LONGEST = 4096 };

static bool run_plan(void *plan) {
    return wf_run(plan);
}

static double flops_of(int64_t t, bool causal, bool backward) {
    double pairs = causal ? (double)t * (double)(t + 1) / 2 : (double)t * (double)t;
    return 2 * (backward ? 5 : 2) * HEADS * WIDTH * pairs;
}

static void measure_length(int64_t t, bool causal, bool backward, wf_pool *pool) {
    static const char *const leaf_names[] = { "q", "k", "v", "dy" };
    int64_t shape[] = { 1, HEADS, t, WIDTH };
    wf_tensor *leaf[4], *dx[3] = { NULL }, *y;
    reset_peak_memory();
    wf_graph *g = wf_graph_new(NULL);
    for (int i = 0; i < 4; i++) leaf[i] = wf_param(g, leaf_names[i], 4, shape, wf_init_normal(1));
    y = wf_attention(leaf[0], leaf[1], leaf[2], NULL,
                     &(wf_attention_options){ .causal = causal }); /* [1, H, T, d] */
    if (backward) wf_vjp(&y, &leaf[3], 1, leaf, 3, dx);
    if (!wf_ok(g)) fail(&bench_program, "%s", wf_error(g));
    wf_plan *plan = wf_plan_new(g, &(wf_plan_options){ .fetch = backward ? dx : &y,
                                                       .n_fetch = backward ? 3 : 1,
                                                       .pool = pool });
    line l = { 0 };
    if (!measure(run_plan, plan, &l.time)) fail(&bench_program, "%s", wf_plan_error(plan));
    char name[80];
    snprintf(name, sizeof name, "length %lld%s %s", (long long)t, causal ? " causal" : "",
             backward ? "backward" : "forward");
    l.name = name, l.tokens = (double)t;
    l.flops = flops_of(t, causal, backward), l.limit = at_peak(&l.time, l.flops),
    l.memory = peak_memory();
    print_line(&l);
    wf_plan_free(plan);
    wf_graph_free(g);
}

void bench_attention(void) {
    wf_pool *pool = wf_pool_new((int)set.threads);
    int64_t from = set.size ? set.size : SHORTEST, to = set.size ? set.size : LONGEST;
    for (int64_t t = from; t <= to; t *= 2)
        for (int causal = 0; causal < 2; causal++)
            for (int backward = 0; backward < 2; backward++)
                measure_length(t, causal, backward, pool);
    wf_pool_free(pool);
}
