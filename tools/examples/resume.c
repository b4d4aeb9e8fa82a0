/* resume.c - a model of one's own is saved in the middle of its training; another process, here
 * another graph, loads it, goes on, and ends with the same weights to the bit.
 *
 * Shows wf_save and wf_load, which take any graph: parameters, the optimizer's moments, and in the
 * metadata what else the program wants back, here the step. Dropout and batches are functions of the
 * step, so that of them nothing needs saving.
 *
 * usage: resume [FILE]      the file is left there: Python opens it with safetensors.torch.load_file */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/weft.h>

#include "digits.h"

enum { BATCH = 50, HIDDEN = 32, HALF = 60, PARAMS = 4 };

struct session {
    wf_graph *graph;
    wf_plan *train;
    wf_tensor *images, *labels, *loss;
    wf_optimizer_options options;
    wf_optimizer optimizer;
    int step;
};

/* The same graph at every start of the program, with initial values that depend on its seed. */
static void start(struct session *s) {
    const int64_t shape[] = { BATCH, PIXELS };
    wf_tensor *params[PARAMS], *fetch[1 + PARAMS];
    wf_graph *g = s->graph = wf_graph_new(NULL);
    s->images = wf_input(g, "images", WF_F32, 2, shape);
    s->labels = wf_input(g, "labels", WF_I32, 1, shape);
    struct wf_linear_layer hidden = wf_linear_new(g, "hidden", PIXELS, HIDDEN, true);
    struct wf_linear_layer output = wf_linear_new(g, "output", HIDDEN, 10, true);
    wf_tensor *h = wf_dropout(wf_relu(wf_linear(&hidden, s->images)), 0.2, NULL);
    wf_cross_entropy_result r = wf_cross_entropy(wf_linear(&output, h), s->labels, 0, -1);
    s->options = wf_optimizer_defaults(WF_ADAM);
    s->optimizer =
        wf_optimizer_new(g, r.loss, r.count, params, wf_parameters(g, params, PARAMS), &s->options);
    s->loss = fetch[0] = r.loss, s->step = 0;
    memcpy(fetch + 1, s->optimizer.updates, PARAMS * sizeof *fetch);
    wf_tensor *feed[] = { s->images, s->labels, s->optimizer.rates };
    wf_plan_options p = {
        .fetch = fetch, .n_fetch = 1 + PARAMS, .feed = feed, .n_feed = 3, .training = true
    };
    s->train = wf_plan_new(g, &p);
}

static bool train_until(struct session *s, int last) {
    static float drawn[BATCH * PIXELS];
    static int32_t digits[BATCH];
    double rates[3];
    float sum;
    bool ok = true;
    wf_random_step(s->train, (uint64_t)s->step, 0); /* counts on from here */
    while (ok && s->step < last) {
        uint64_t random = (uint64_t)s->step++;
        draw_digits(BATCH, &random, drawn, digits);
        wf_optimizer_rates(&s->options, 0.005, s->step, rates);
        ok = wf_feed(s->train, s->images, drawn, sizeof drawn) &&
             wf_feed(s->train, s->labels, digits, sizeof digits) &&
             wf_feed_reals(s->train, s->optimizer.rates, rates, 3) && wf_run(s->train) &&
             wf_fetch(s->train, s->loss, &sum, sizeof sum);
    }
    if (ok)
        printf("step %d: loss %.6f\n", s->step, (double)sum / (double)BATCH);
    else
        fprintf(stderr, "%s%s\n", wf_error(s->graph), wf_plan_error(s->train));
    return ok;
}

static bool save(const struct session *s, const char *path) {
    char step[16], message[256];
    snprintf(step, sizeof step, "%d", s->step);
    const wf_meta meta = { "step", step };
    bool ok = wf_save(s->graph, path, NULL, &meta, 1, message);
    if (!ok) fprintf(stderr, "%s\n", message);
    return ok;
}

static bool load(struct session *s, const char *path) {
    wf_file *f = wf_file_open(path);
    wf_load_report report;
    bool ok = wf_load(s->graph, f, NULL, &report); /* all that the graph has, and nothing else */
    if (ok)
        s->step = atoi(wf_file_meta(f, "step"));
    else
        fprintf(stderr, "%s\n", report.message);
    wf_file_free(f);
    return ok;
}

/* Do both have the same parameters, to the bit? */
static bool same_weights(const struct session *a, const struct session *b) {
    static float x[HIDDEN * PIXELS], y[HIDDEN * PIXELS];
    wf_tensor *of_a[PARAMS], *of_b[PARAMS];
    wf_parameters(a->graph, of_a, PARAMS), wf_parameters(b->graph, of_b, PARAMS);
    bool same = true;
    for (int i = 0; i < PARAMS; i++) {
        size_t bytes = wf_bytes(of_a[i]);
        same = same && wf_read(of_a[i], x, bytes) && wf_read(of_b[i], y, bytes) &&
               memcmp(x, y, bytes) == 0;
    }
    return same;
}

static void end(struct session *s) {
    wf_plan_free(s->train), wf_optimizer_free(&s->optimizer), wf_graph_free(s->graph);
}

int main(int argc, char **argv) {
    const char *path = argc > 1 ? argv[1] : "resume.safetensors";
    struct session first, second;
    start(&first), start(&second);
    bool ok = train_until(&first, HALF) && save(&first, path) && train_until(&first, 2 * HALF);
    puts("from the file:");
    ok = ok && load(&second, path) && train_until(&second, 2 * HALF);
    bool same = ok && same_weights(&first, &second);
    if (ok) printf("the weights are %s\n", same ? "the same, to the bit" : "not the same");
    end(&first), end(&second);
    return !same;
}
