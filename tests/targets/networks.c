/* tests/targets/networks.c - a convolutional network which learns to read small images of digits,
 * and an autoencoder which learns to draw them again: a program for record_plans.c.
 *
 * Each trains, and then computes outputs for 1,000 new images: logits, or pixels and codes. It
 * exits with 0 if both losses fall. */
#include <math.h>
#include <stdio.h>
#include <weft/weft.h>

#include "digits.h"

enum { ROWS = 50, SMALL = SIDE / 2, INKS = SMALL * SMALL, UPDATES = 40, LOOKS = 20 };

/* A network, and the outputs that are looked at. */
struct network {
    wf_graph *graph;
    wf_tensor *images, *labels; /* no labels: NULL */
    wf_tensor *loss;
    wf_tensor *outputs[2];
    int n_outputs;
};

/* Digits at half of their size, whose pixels are sixteenths. */
static void draw(int step, float small[ROWS][INKS], int32_t labels[ROWS]) {
    static float large[ROWS][SIDE][SIDE];
    draw_digits(ROWS, (uint64_t)step, large[0][0], labels);
    for (int b = 0; b < ROWS; b++)
        for (int i = 0; i < INKS; i++) {
            const float *at = &large[b][i / SMALL * 2][i % SMALL * 2];
            small[b][i] = roundf(4 * (at[0] + at[1] + at[SIDE] + at[SIDE + 1])) / 16;
        }
}

static bool feed_digits(wf_plan *p, const struct network *n, int step) {
    static float images[ROWS][INKS];
    static int32_t labels[ROWS];
    draw(step, images, labels);
    return wf_feed(p, n->images, images, sizeof images) &&
           (!n->labels || wf_feed(p, n->labels, labels, sizeof labels));
}

/* Returns false if an update failed, or the loss did not fall. */
static bool learn(const struct network *n) {
    const wf_trainer_options o = { .optimizer = wf_optimizer_defaults(WF_ADAM),
                                   .schedule = { .kind = WF_CONSTANT_RATE, .peak = 0.01 } };
    wf_trainer *t = wf_trainer_new(n->graph, n->loss, wf_constant(n->graph, ROWS), &o);
    double first = 0;
    wf_progress now = { 0 };
    bool ok = wf_trainer_ok(t);
    for (int step = 1; ok && step <= UPDATES; step++) {
        ok = feed_digits(wf_trainer_plan(t), n, step) && wf_trainer_begin(t, 1, NULL, NULL) &&
             wf_trainer_add(t, 0) && wf_trainer_update(t, &now);
        if (step == 1) first = now.loss;
    }
    printf("%sloss %g, at first %g\n", wf_trainer_error(t), now.loss, first);
    wf_trainer_free(t);
    return ok && now.loss < first;
}

static bool look(const struct network *n) {
    wf_plan *p = wf_plan_new(n->graph, &(wf_plan_options){ .fetch = n->outputs,
                                                           .n_fetch = n->n_outputs,
                                                           .feed = &n->images,
                                                           .n_feed = 1 });
    const struct network unlabelled = { .images = n->images };
    bool ok = wf_plan_ok(p);
    for (int i = 0; ok && i < LOOKS; i++) ok = feed_digits(p, &unlabelled, 1000 + i) && wf_run(p);
    printf("%s\n", wf_plan_error(p));
    wf_plan_free(p);
    return ok;
}

static bool learn_and_look(const struct network *n) {
    bool ok = learn(n) && look(n);
    wf_graph_free(n->graph);
    return ok;
}

static bool read_digits(void) {
    wf_graph *g = wf_graph_new(NULL);
    const int64_t shape[] = { ROWS, 1, SMALL, SMALL };
    const wf_conv_options same = { .padding = { 1, 1 } };
    const wf_pool_options two = { .kernel = { 2, 2 } };
    wf_tensor *images = wf_input(g, "images", WF_F32, 4, shape);
    wf_tensor *labels = wf_input(g, "labels", WF_I32, 1, shape);
    struct wf_conv_layer first = wf_conv_new(g, "first", WF_CONV2D, 1, 4, 3, &same, true);
    struct wf_conv_layer second = wf_conv_new(g, "second", WF_CONV2D, 4, 8, 3, &same, true);
    struct wf_linear_layer output = wf_linear_new(g, "output", 8, 10, true);
    wf_tensor *x = wf_max_pool2d(wf_relu(wf_convolve(&first, images)), &two);
    x = wf_mean(wf_relu(wf_convolve(&second, x)), WF_AXIS(2) | WF_AXIS(3), false);
    wf_tensor *logits = wf_linear(&output, x);
    wf_named(logits, "logits");
    return learn_and_look(&(struct network){ .graph = g,
                                             .images = images,
                                             .labels = labels,
                                             .loss = wf_cross_entropy(logits, labels, 0, -1).loss,
                                             .outputs = { logits },
                                             .n_outputs = 1 });
}

static bool draw_again(void) {
    wf_graph *g = wf_graph_new(NULL);
    const int64_t shape[] = { ROWS, INKS };
    wf_tensor *images = wf_input(g, "images", WF_F32, 2, shape);
    struct wf_linear_layer hidden = wf_linear_new(g, "hidden", INKS, 24, true);
    struct wf_linear_layer to_code = wf_linear_new(g, "to_code", 24, 6, true);
    struct wf_linear_layer from_code = wf_linear_new(g, "from_code", 6, 24, true);
    struct wf_linear_layer to_ink = wf_linear_new(g, "to_ink", 24, INKS, true);
    wf_tensor *code = wf_linear(&to_code, wf_silu(wf_linear(&hidden, images)));
    wf_tensor *logits = wf_linear(&to_ink, wf_gelu(wf_linear(&from_code, code)));
    wf_tensor *ink = wf_sigmoid(logits);
    wf_named(code, "code");
    wf_named(ink, "ink");
    wf_tensor *loss =
        wf_binary_cross_entropy_with_logits(logits, images, NULL, NULL, WF_REDUCE_SUM);
    return learn_and_look(&(struct network){
        .graph = g, .images = images, .loss = loss, .outputs = { ink, code }, .n_outputs = 2 });
}

int main(void) {
    bool ok = read_digits();
    return !(draw_again() && ok);
}
