/* digits_mlp.c - a perceptron with one hidden layer learns to read digits.
 *
 * Shows the whole way once: a graph, its layers, a loss, an optimizer; one plan that trains and one
 * that tests, over the same weights; a batch size that each plan chooses for itself. */
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

    wf_tensor *params[4];
    wf_optimizer_options adam = wf_optimizer_defaults(WF_ADAM);
    wf_optimizer o =
        wf_optimizer_new(g, loss.loss, loss.count, params, wf_parameters(g, params, 4), &adam);

    /* What is fetched is computed, or performed; what is not costs nothing. */
    wf_tensor *feed[] = { images, labels, o.rates };
    wf_tensor *fetch[] = { loss.loss, o.updates[0], o.updates[1], o.updates[2], o.updates[3] };
    wf_plan_options what = { .fetch = fetch, .n_fetch = 5, .feed = feed, .n_feed = 3 };
    wf_plan_options look = { .fetch = &right, .n_fetch = 1, .feed = feed, .n_feed = 2 };
    wf_plan *train = wf_plan_new(g, &what), *test = wf_plan_new(g, &look);

    static float drawn[TESTS * PIXELS];
    static int32_t digits[TESTS];
    uint64_t random = 1;
    bool ok = wf_bind(train, "B", BATCH) && wf_bind(test, "B", TESTS);
    for (int step = 1; ok && step <= STEPS; step++) {
        float sum;
        double rates[3];
        draw_digits(BATCH, &random, drawn, digits);
        wf_optimizer_rates(&adam, 0.005, step, rates);
        ok = wf_feed(train, images, drawn, BATCH * PIXELS * sizeof *drawn) &&
             wf_feed(train, labels, digits, BATCH * sizeof *digits) &&
             wf_feed_reals(train, o.rates, rates, 3) && wf_run(train) &&
             wf_fetch(train, loss.loss, &sum, sizeof sum);
        if (ok && step % 200 == 0)
            printf("step %d: loss %.3f\n", step, (double)sum / (double)BATCH);
    }

    float count = 0;
    draw_digits(TESTS, &random, drawn, digits); /* new ones */
    ok = ok && wf_feed(test, images, drawn, sizeof drawn) &&
         wf_feed(test, labels, digits, sizeof digits) && wf_run(test) &&
         wf_fetch(test, right, &count, sizeof count);
    if (ok)
        printf("%g of %d new digits are read rightly\n", (double)count, TESTS);
    else
        fprintf(stderr, "%s%s%s\n", wf_error(g), wf_plan_error(train), wf_plan_error(test));
    wf_plan_free(train), wf_plan_free(test), wf_optimizer_free(&o), wf_graph_free(g);
    return !(ok && count >= 950);
}
