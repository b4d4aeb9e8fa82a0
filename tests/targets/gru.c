/* tests/targets/gru.c - a bidirectional GRU of two layers which learns the sum of the numbers of a
 * row, up to the row's length: a program for record_plans.c. It exits with 0 if the loss falls. */
#include <stdio.h>
#include <weft/weft.h>

enum { ROWS = 50, STEPS = 6, UNITS = 12, UPDATES = 40, LOOKS = 20 };

static void draw(int step, float *x, int32_t *lengths, float *sums) {
    for (int b = 0; b < ROWS; b++) {
        lengths[b] = 1 + (step + 3 * b) % STEPS;
        sums[b] = 0;
        for (int t = 0; t < STEPS; t++) {
            x[b * STEPS + t] =
                (float)wf_random_uniform((uint64_t)step, (uint64_t)(b * STEPS + t)) - 0.5f;
            if (t < lengths[b]) sums[b] += x[b * STEPS + t];
        }
    }
}

int main(void) {
    wf_graph *g = wf_graph_new(NULL);
    const int64_t rows[] = { ROWS, STEPS, 1 };
    wf_tensor *x = wf_input(g, "x", WF_F32, 3, rows);
    wf_tensor *lengths = wf_input(g, "lengths", WF_I32, 1, rows);
    wf_tensor *sums = wf_input(g, "sums", WF_F32, 1, rows);
    const wf_recurrent_options o = { .kind = WF_GRU,
                                     .input_size = 1,
                                     .hidden_size = UNITS,
                                     .num_layers = 2,
                                     .bias = true,
                                     .bidirectional = true };
    struct wf_recurrent_layer gru = wf_recurrent_new(g, "gru", &o);
    struct wf_linear_layer output = wf_linear_new(g, "output", 2 * UNITS, 1, true);
    wf_tensor *read =
        wf_recurrent(&gru, x, lengths, NULL, NULL).output; /* [ROWS, STEPS, 2 UNITS] */
    wf_tensor *mean = wf_mean(read, WF_AXIS(2), false);
    wf_tensor *told = wf_sum(wf_linear(&output, read), WF_AXIS(1), false); /* [ROWS, 1] */
    wf_named(mean, "mean_of_units");
    wf_named(told, "told");
    wf_tensor *loss = wf_square_sum(wf_sub(wf_reshape(told, 1, rows), sums));
    const wf_trainer_options trained = { .optimizer = wf_optimizer_defaults(WF_ADAM),
                                         .schedule = { .kind = WF_CONSTANT_RATE, .peak = 0.01 } };
    wf_trainer *t = wf_trainer_new(g, loss, wf_constant(g, ROWS), &trained);
    float values[ROWS * STEPS], right[ROWS];
    int32_t ends[ROWS];
    double first = 0;
    wf_progress now = { 0 };
    wf_plan *p = wf_trainer_plan(t);
    bool ok = wf_trainer_ok(t);
    for (int step = 0; ok && step < UPDATES; step++) {
        draw(step, values, ends, right);
        ok = wf_feed(p, x, values, sizeof values) && wf_feed(p, lengths, ends, sizeof ends) &&
             wf_feed(p, sums, right, sizeof right) && wf_trainer_begin(t, 1, NULL, NULL) &&
             wf_trainer_add(t, 0) && wf_trainer_update(t, &now);
        if (step == 0) first = now.loss;
    }
    wf_tensor *fetch[] = { told, mean }, *feed[] = { x, lengths };
    wf_plan *look = wf_plan_new(
        g, &(wf_plan_options){ .fetch = fetch, .n_fetch = 2, .feed = feed, .n_feed = 2 });
    for (int step = 0; ok && step < LOOKS; step++) {
        draw(100 + step, values, ends, right);
        ok = wf_feed(look, x, values, sizeof values) && wf_feed(look, lengths, ends, sizeof ends) &&
             wf_run(look);
    }
    printf("%s%sloss %g, at first %g\n", wf_trainer_error(t), wf_plan_error(look), now.loss, first);
    wf_plan_free(look);
    wf_trainer_free(t);
    wf_graph_free(g);
    return !(ok && now.loss < first);
}
