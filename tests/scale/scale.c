/* tests/scale/scale.c - how long graphs of some size n (graphs.h) take to be recorded,
 * differentiated, planned and run.
 *
 * usage: scale [NODES]... (10000 20000 100000)     CPU seconds, by the process's own clock
 *        scale --layers L                          a Transformer of L + L layers, to be trained
 *
 * Not a test: nothing fails here by the clock. tests/scale/test_scale.c holds the promises. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "graphs.h"
#include "models/transformer.h"

static double last;

static double lap(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    double now = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec, took = now - last;
    last = now;
    return took;
}

static long resident(void) { /* at most so far, in MB */
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss / 1024;
}

static void head(void) {
    printf("%-12s %8s %9s %9s %9s %9s %9s %9s %12s %6s\n", "graph", "nodes", "record", "gradient",
           "plan", "shapes", "run", "free", "arena", "MB");
}

static bool bind_and_run(wf_plan *p, wf_graph *g, double took[2], size_t *arena) {
    float x[64 * 4] = { 1, 2, 3 }, rates[3] = { 1e-3f, 1, 1 };
    if (wf_find(g, "x") && !(wf_bind(p, "B", 64) && wf_feed(p, wf_find(g, "x"), x, sizeof x)))
        return false;
    *arena = wf_plan_memory(p), took[0] = lap();
    wf_tensor *input = wf_find(g, "optimizer.rates");
    bool ok = *arena && (!input || wf_feed(p, input, rates, sizeof rates)) && wf_run(p);
    took[1] = lap();
    return ok;
}

static bool measure(const recipe *r, int n, bool trained) {
    scaled s;
    double took[6];
    size_t arena;
    lap();
    bool ok = record_scaled(&s, r, n);
    took[0] = lap();
    ok = ok && (!trained || differentiate(&s));
    took[1] = lap();
    wf_plan *p = plan_scaled(&s);
    ok = ok && wf_plan_ok(p);
    took[2] = lap();
    ok = ok && bind_and_run(p, s.g, took + 3, &arena);
    if (!ok) return fprintf(stderr, "%s: %s%s\n", r->name, wf_error(s.g), wf_plan_error(p)), false;
    int nodes = wf_node_count(s.g);
    lap();
    wf_plan_free(p), scaled_free(&s);
    took[5] = lap();
    printf("%-12s %8d", r->name, nodes);
    for (int i = 0; i < 6; i++) printf(" %9.4f", took[i]);
    printf(" %12zu %6ld\n", arena, resident());
    fflush(stdout);
    return true;
}

static bool measure_model(int layers) {
    char message[WF_MESSAGE] = "";
    wf_transformer_config c = wf_transformer_defaults();
    c.src_vocab = c.tgt_vocab = 100, c.max_len = 64, c.d_model = 8, c.num_heads = 2,
    c.dim_feedforward = 8;
    c.encoder_layers = c.decoder_layers = layers;
    const wf_training_config training = { .dropout = 0.1 };
    lap();
    wf_model *m = wf_transformer_new(&c, &training, WF_F32, 1, message);
    double recording = lap();
    wf_trainer *t = NULL;
    if (m)
        t = wf_trainer_new(m->graph, m->loss.loss, m->loss.count,
                           &(wf_trainer_options){ .optimizer = wf_optimizer_defaults(WF_ADAM),
                                                  .schedule = { .peak = 1e-3 } });
    wf_plan *p = wf_trainer_plan(t);
    double planning = lap();
    bool ok = wf_plan_ok(p) && wf_bind(p, "B", 2) && wf_bind(p, "S", 8) && wf_bind(p, "T", 8);
    size_t arena = ok ? wf_plan_memory(p) : 0;
    if (!arena) return fprintf(stderr, "%s%s\n", message, wf_plan_error(p)), false;
    printf("%d + %d layers: %d nodes, recorded %.4f, gradients and plan %.4f, shapes %.4f s, "
           "arena %zu\n",
           layers, layers, wf_node_count(m->graph), recording, planning, lap(), arena);
    wf_trainer_free(t), wf_model_free(m);
    return true;
}

int main(int argc, char **argv) {
    static char *usual[] = { "10000", "20000", "100000" };
    if (argc == 3 && strcmp(argv[1], "--layers") == 0) return !measure_model(atoi(argv[2]));
    int n = argc > 1 ? argc - 1 : 3;
    char **sizes = argc > 1 ? argv + 1 : usual;
    head();
    bool ok = true;
    for (int r = 0; r < n_recipes; r++)
        for (int trained = 0; trained < 2; trained++)
            for (int i = 0; i < n; i++)
                ok &= measure(&recipes[r], trained ? atoi(sizes[i]) / 3 : atoi(sizes[i]), trained);
    return !ok;
}
