/* resume.c - a training is saved in the middle. Another process (here, another graph) continues
 * from the file, and ends with exactly the same weights.
 *
 * Shows wf_trainer_save and wf_trainer_load, which take any graph: parameters, the optimizer's
 * moments, the step. Dropout needs no saved state, because it is a function of the step; so are the
 * batches here.
 *
 * usage: resume [FILE]      the file is kept: Python opens it with safetensors.torch.load_file */
#include <stdio.h>
#include <string.h>
#include <weft/weft.h>

#include "digits.h"

enum { BATCH = 50, HIDDEN = 32, HALF = 60, PARAMS = 4 };

struct session {
    wf_graph *graph;
    wf_tensor *images, *labels;
    wf_trainer *trainer;
};

/* Records the same graph at every start of the program. */
static void start(struct session *s) {
    const int64_t shape[] = { BATCH, PIXELS };
    wf_graph *g = s->graph = wf_graph_new(NULL);
    s->images = wf_input(g, "images", WF_F32, 2, shape);
    s->labels = wf_input(g, "labels", WF_I32, 1, shape);
    struct wf_linear_layer hidden = wf_linear_new(g, "hidden", PIXELS, HIDDEN, true);
    struct wf_linear_layer output = wf_linear_new(g, "output", HIDDEN, 10, true);
    wf_tensor *h = wf_dropout(wf_relu(wf_linear(&hidden, s->images)), 0.2, NULL);
    wf_cross_entropy_result r = wf_cross_entropy(wf_linear(&output, h), s->labels, 0, -1);
    const wf_trainer_options options = { .optimizer = wf_optimizer_defaults(WF_ADAM),
                                         .schedule = { WF_COSINE, 0.01, 10, 2 * HALF, 0 } };
    s->trainer = wf_trainer_new(g, r.loss, r.count, &options);
}

static bool train_until(struct session *s, int64_t last) {
    static float drawn[BATCH * PIXELS];
    static int32_t digits[BATCH];
    wf_plan *p = wf_trainer_plan(s->trainer);
    wf_progress now;
    bool ok = true;
    while (ok && wf_trainer_steps(s->trainer) < last) {
        draw_digits(BATCH, (uint64_t)wf_trainer_steps(s->trainer), drawn, digits);
        ok = wf_feed(p, s->images, drawn, sizeof drawn) &&
             wf_feed(p, s->labels, digits, sizeof digits) &&
             wf_trainer_begin(s->trainer, 1, NULL, NULL) && wf_trainer_add(s->trainer, 0) &&
             wf_trainer_update(s->trainer, &now);
    }
    if (ok) printf("step %d: loss %.9f\n", (int)last, now.loss);
    return ok;
}

/* True if both have the same parameters, bit by bit. */
static bool same_weights(const struct session *a, const struct session *b) {
    static float x[HIDDEN * PIXELS], y[HIDDEN * PIXELS];
    wf_tensor *of_a[PARAMS], *of_b[PARAMS];
    wf_parameters(a->graph, NULL, of_a, PARAMS);
    wf_parameters(b->graph, NULL, of_b, PARAMS);
    bool same = true;
    for (int i = 0; i < PARAMS; i++) {
        size_t bytes = wf_bytes(of_a[i]);
        same = same && wf_read(of_a[i], x, bytes) && wf_read(of_b[i], y, bytes) &&
               memcmp(x, y, bytes) == 0;
    }
    return same;
}

static void end(struct session *s) {
    if (!wf_trainer_ok(s->trainer)) fprintf(stderr, "%s\n", wf_trainer_error(s->trainer));
    wf_trainer_free(s->trainer), wf_graph_free(s->graph);
}

int main(int argc, char **argv) {
    const char *path = argc > 1 ? argv[1] : "resume.safetensors";
    struct session first, second;
    start(&first);
    start(&second);
    bool ok = train_until(&first, HALF) && wf_trainer_save(first.trainer, path, NULL, 0) &&
              train_until(&first, 2 * HALF);
    puts("from the file:");
    ok = ok && wf_trainer_load(second.trainer, path, NULL) && train_until(&second, 2 * HALF);
    bool same = ok && same_weights(&first, &second);
    if (ok) printf("the weights are %s\n", same ? "the same, to the bit" : "not the same");
    end(&first);
    end(&second);
    return !same;
}
