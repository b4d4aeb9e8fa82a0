/* digits_cnn.c - a convolutional network learns to read digits.
 *
 * Shows layers for images [N, C, H, W]: convolutions with padding and stride, pooling, and a mean
 * over the remaining pixels. */
#include <stdio.h>
#include <weft/weft.h>

#include "digits.h"

enum { BATCH = 50, STEPS = 400, TESTS = 500 };

int main(void) {
    wf_graph *g = wf_graph_new(NULL);
    const int64_t N = wf_extent(g, "N", TESTS), shape[] = { N, 1, SIDE, SIDE };
    wf_tensor *images = wf_input(g, "images", WF_F32, 4, shape); /* [N, 1, 16, 16] */
    wf_tensor *labels = wf_input(g, "labels", WF_I32, 1, shape); /* [N] */

    const wf_conv_options same = { .padding = { 1, 1 } },
                          half = { .stride = { 2, 2 }, .padding = { 1, 1 } };
    const wf_pool_options two = { .kernel = { 2, 2 } };
    struct wf_conv_layer conv1 = wf_conv_new(g, "conv1", WF_CONV2D, 1, 8, 3, &same, true);
    struct wf_conv_layer conv2 = wf_conv_new(g, "conv2", WF_CONV2D, 8, 16, 3, &half, true);
    struct wf_conv_layer conv3 = wf_conv_new(g, "conv3", WF_CONV2D, 16, 32, 3, &same, true);
    struct wf_linear_layer output = wf_linear_new(g, "output", 32, 10, true);
    wf_tensor *x = wf_max_pool2d(wf_relu(wf_convolve(&conv1, images)), &two); /* [N, 8, 8, 8] */
    x = wf_relu(wf_convolve(&conv2, x));                                      /* [N, 16, 4, 4] */
    x = wf_relu(wf_convolve(&conv3, x));                                      /* [N, 32, 4, 4] */
    x = wf_mean(x, WF_AXIS(2) | WF_AXIS(3), false);                           /* [N, 32] */
    wf_tensor *logits = wf_linear(&output, x);                                /* [N, 10] */
    wf_cross_entropy_result loss = wf_cross_entropy(logits, labels, 0, -1);
    wf_tensor *right = wf_sum(wf_equal(wf_argmax(logits, -1), labels), WF_ALL_AXES, false);

    const wf_trainer_options options = { .optimizer = wf_optimizer_defaults(WF_ADAM),
                                         .schedule = { WF_COSINE, 0.01, 20, STEPS, 0 } };
    wf_trainer *trainer = wf_trainer_new(g, loss.loss, loss.count, &options);
    wf_plan *train = wf_trainer_plan(trainer);
    static float drawn[TESTS * PIXELS];
    static int32_t digits[TESTS];
    bool ok = wf_bind(train, "N", BATCH);
    for (int step = 1; ok && step <= STEPS; step++) {
        wf_progress now;
        draw_digits(BATCH, (uint64_t)step, drawn, digits);
        ok = wf_feed(train, images, drawn, BATCH * PIXELS * sizeof *drawn) &&
             wf_feed(train, labels, digits, BATCH * sizeof *digits) &&
             wf_trainer_begin(trainer, 1, NULL, NULL) && wf_trainer_add(trainer, 0) &&
             wf_trainer_update(trainer, &now);
        if (ok && step % 100 == 0) printf("step %d: loss %.3f\n", step, now.loss);
    }

    wf_tensor *feed[] = { images, labels };
    const wf_plan_options look = { .fetch = &right, .n_fetch = 1, .feed = feed, .n_feed = 2 };
    wf_plan *test = wf_plan_new(g, &look);
    float count = 0;
    draw_digits(TESTS, 0, drawn, digits); /* not trained on */
    ok = ok && wf_bind(test, "N", TESTS) && wf_feed(test, images, drawn, sizeof drawn) &&
         wf_feed(test, labels, digits, sizeof digits) && wf_run(test) &&
         wf_fetch(test, right, &count, sizeof count);
    if (ok)
        printf("%g of %d new digits are read rightly\n", (double)count, TESTS);
    else
        fprintf(stderr, "%s %s\n", wf_trainer_error(trainer), wf_plan_error(test));
    wf_plan_free(test), wf_trainer_free(trainer), wf_graph_free(g);
    return !(ok && count >= 0.95 * (double)TESTS);
}
