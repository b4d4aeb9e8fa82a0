/* digits_mlp.c - a perceptron with one hidden layer learns to read digits.
 *
 * Shows all steps once: a graph, its layers, a loss, a trainer. One plan trains and another tests,
 * with the same weights. Each plan chooses its own batch size. */
#include <stdio.h>
#include <weft/weft.h>

#include "digits.h"

enum { BATCH = 100, STEPS = 600, TESTS = 1000, HIDDEN = 64 };

int main(void) {
    wf_graph *g = wf_graph_new(NULL);
    const int64_t B = wf_extent(g, "B", TESTS); /* an axis whose size is bound later */
    const int64_t shape[] = { B, PIXELS };
    wf_tensor *images = wf_input(g, "images", WF_F32, 2, shape); /* [B, PIXELS] */
    wf_tensor *labels = wf_input(g, "labels", WF_I32, 1, shape); /* [B] */

    struct wf_linear_layer hidden = wf_linear_new(g, "hidden", PIXELS, HIDDEN, true);
    struct wf_linear_layer output = wf_linear_new(g, "output", HIDDEN, 10, true);
    wf_tensor *logits = wf_linear(&output, wf_relu(wf_linear(&hidden, images))); /* [B, 10] */
    wf_cross_entropy_result loss = wf_cross_entropy(logits, labels, 0, -1);
    wf_tensor *right = wf_sum(wf_equal(wf_argmax(logits, -1), labels), WF_ALL_AXES, false);

    /* The trainer has a plan, which runs the loss, its gradients and Adam's updates. */
    wf_trainer_options options = { .optimizer = wf_optimizer_defaults(WF_ADAM),
                                   .schedule = { .kind = WF_CONSTANT_RATE, .peak = 0.005 } };
    wf_trainer *trainer = wf_trainer_new(g, loss.loss, loss.count, &options);
    wf_plan *train = wf_trainer_plan(trainer);
    static float drawn[TESTS * PIXELS];
    static int32_t digits[TESTS];
    bool ok = wf_bind(train, "B", BATCH);
    for (int step = 1; ok && step <= STEPS; step++) {
        wf_progress now;
        draw_digits(BATCH, (uint64_t)step, drawn, digits);
        ok = wf_feed(train, images, drawn, BATCH * PIXELS * sizeof *drawn) &&
             wf_feed(train, labels, digits, BATCH * sizeof *digits) &&
             wf_trainer_begin(trainer, 1, NULL, NULL) && wf_trainer_add(trainer, 0) &&
             wf_trainer_update(trainer, &now);
        if (ok && step % 200 == 0) printf("step %d: loss %.3f\n", step, now.loss);
    }

    /* This is another plan of the same graph. It computes only what it fetches. */
    wf_tensor *feed[] = { images, labels };
    wf_plan_options look = { .fetch = &right, .n_fetch = 1, .feed = feed, .n_feed = 2 };
    wf_plan *test = wf_plan_new(g, &look);
    float count = 0;
    draw_digits(TESTS, 0, drawn, digits); /* not trained on */
    ok = ok && wf_bind(test, "B", TESTS) && wf_feed(test, images, drawn, sizeof drawn) &&
         wf_feed(test, labels, digits, sizeof digits) && wf_run(test) &&
         wf_fetch(test, right, &count, sizeof count);
    if (ok)
        printf("%g of %d new digits are read rightly\n", (double)count, TESTS);
    else
        fprintf(stderr, "%s %s\n", wf_trainer_error(trainer), wf_plan_error(test));
    wf_plan_free(test), wf_trainer_free(trainer), wf_graph_free(g);
    return !(ok && count >= 950);
}
