/* tools/bench/bench_gemm.c - matrix products as a model computes them: y = x w^T, and its two
 * gradients.
 *
 * Products are planned and run like any others, so the times are those of a model. Hot: one product
 * is repeated. Cold: there are so many products, each with its own operands, that no private cache
 * holds them. Cold products are also compared with the memory's bandwidth, which limits products
 * with a small m. */
#include "bench.h"

#include <math.h>
#include <string.h>

#include "ops/ops.h"

enum { FORWARD, DX, DW, FORMS };
enum { MOST_COPIES = 64 };

static const double cold_bytes = 64e6;
static const char *const form_names[] = { "y", "dx", "dw" };

/* y [m, n] = x [m, k] w [n, k]^T */
typedef struct shape {
    const char *name;
    int64_t m, n, k;
} shape;

static const shape shapes[] = {
    { "square", 256, 256, 256 },        { "square", 512, 512, 512 },
    { "square", 1024, 1024, 1024 },     { "square", 2048, 2048, 2048 },
    { "base q,k,v", 200, 1536, 512 },   { "base out", 240, 512, 512 },
    { "base linear1", 240, 2048, 512 }, { "base linear2", 240, 512, 2048 },
    { "base logits", 240, 12000, 512 }, { "copy q,k,v", 320, 192, 64 },
    { "copy linear2", 352, 64, 128 },   { "copy logits", 352, 20, 64 },
    { "decode linear1", 2, 2048, 512 }, { "decode linear2", 2, 512, 2048 },
    { "decode logits", 2, 12000, 512 },
};

/* Records one product of this form with its operands. */
static wf_tensor *product(wf_graph *g, const shape *s, int form, int copy) {
    char name[24];
    snprintf(name, sizeof name, "product%d", copy);
    const char *outer = wf_scope_push(g, name);
    wf_init any = wf_init_uniform(1);
    wf_tensor *x = wf_param(g, "x", 2, (int64_t[]){ s->m, s->k }, any);
    wf_tensor *w = wf_param(g, "w", 2, (int64_t[]){ s->n, s->k }, any);
    wf_tensor *y = wf_matmul(x, wf_transpose(w, 0, 1)), *dx = NULL; /* [m, n] */
    if (form != FORWARD) {
        wf_tensor *dy = wf_param(g, "dy", 2, (int64_t[]){ s->m, s->n }, any);
        wf_vjp(&y, &dy, 1, form == DX ? &x : &w, 1, &dx);
    }
    wf_scope(g, outer);
    return form == FORWARD ? y : dx;
}

/* The bytes that a product reads and writes. */
static double bytes_of(const shape *s) {
    return 4.0 * (double)(s->m * s->k + s->n * s->k + s->m * s->n);
}

static int copies_of(const shape *s, bool cold) {
    double wanted = cold ? cold_bytes / bytes_of(s) + 1 : 1;
    return wanted < MOST_COPIES ? (int)wanted : MOST_COPIES;
}

static void measure_form(bench_settings *set, const shape *s, int form, bool cold, wf_pool *pool) {
    wf_tensor *fetch[MOST_COPIES];
    int copies = copies_of(s, cold);
    reset_peak_memory();
    wf_graph *g = wf_graph_new(NULL);
    for (int i = 0; i < copies; i++) fetch[i] = product(g, s, form, i);
    if (!wf_ok(g)) fail(&bench_program, "%s", wf_error(g));
    wf_plan *plan =
        wf_plan_new(g, &(wf_plan_options){ .fetch = fetch, .n_fetch = copies, .pool = pool });
    line l = { 0 };
    if (!measure(set, run_plan, plan, &l.time)) fail(&bench_program, "%s", wf_plan_error(plan));
    char name[80];
    snprintf(name, sizeof name, "%s %lldx%lldx%lld %s %s", s->name, (long long)s->m,
             (long long)s->n, (long long)s->k, form_names[form], cold ? "cold" : "hot");
    l.name = name;
    l.time.median /= copies;
    l.time.min /= copies;
    l.time.capacity /= copies;
    l.flops = 2 * (double)s->m * (double)s->n * (double)s->k;
    l.bytes = bytes_of(s);
    l.limit = fmax(at_peak(&l.time, l.flops), cold ? l.bytes / set->bandwidth : 0);
    l.memory = peak_memory();
    print_line(set, &l);
    wf_plan_free(plan);
    wf_graph_free(g);
}

static bool is_wanted(const bench_settings *set, const shape *s) {
    return !set->name_prefix || strncmp(s->name, set->name_prefix, strlen(set->name_prefix)) == 0;
}

static void measure_shape(bench_settings *set, const shape *s, wf_pool *pool) {
    for (int form = 0; form < FORMS; form++)
        for (int cold = set->operands == OPERANDS_COLD; cold <= (set->operands != OPERANDS_HOT);
             cold++)
            measure_form(set, s, form, cold, pool);
}

void bench_gemm(bench_settings *set) {
    wf_pool *pool = wf_pool_new((int)set->threads);
    shape one = { "square", set->size, set->size, set->size };
    const shape *first = set->size ? &one : shapes;
    int n = set->size ? 1 : (int)(sizeof shapes / sizeof *shapes), measured = 0;
    for (const shape *s = first; s < first + n; s++)
        if (is_wanted(set, s)) {
            measure_shape(set, s, pool);
            measured++;
        }
    wf_pool_free(pool);
    if (!measured) fail(&bench_program, "no product's name begins with '%.60s'", set->name_prefix);
}
