/* data_parallel.c - data-parallel training of a program's own graph on several processes of this
 * machine, with the optimizer's state sharded among them (ZeRO-1). The saved file has the same
 * bytes for any number of processes.
 *
 * Shows wf_trainer_options.transport, the only option that training on several ranks needs, and
 * wf_processes_run. A program under MPI passes its own wf_transport instead.
 *
 * usage: data_parallel [PROCESSES [FILE]]     try 1, 2 and 4, and compare the files */
#include <stdio.h>
#include <stdlib.h>
#include <weft/weft.h>

#include "digits.h"

enum { BATCH = 25, HIDDEN = 32, STEPS = 100, MICRO_BATCHES = 4 };

static bool train(wf_trainer *t, const wf_tensor *images, const wf_tensor *labels,
                  wf_progress *now) {
    float drawn[BATCH * PIXELS];
    int32_t digits[BATCH];
    wf_plan *p = wf_trainer_plan(t);
    int64_t step = wf_trainer_steps(t), i, to;
    /* this rank's micro-batches among those of all ranks */
    bool ok = wf_trainer_begin(t, MICRO_BATCHES, &i, &to);
    for (; ok && i < to; i++) {
        draw_digits(BATCH, (uint64_t)(step * MICRO_BATCHES + i), drawn, digits);
        ok = wf_feed(p, images, drawn, sizeof drawn) && wf_feed(p, labels, digits, sizeof digits) &&
             wf_trainer_add(t, i);
    }
    return ok && wf_trainer_update(t, now);
}

/* Every rank runs this function. Returns the rank's exit code. */
static int run(wf_transport *ranks, void *path) {
    const int64_t shape[] = { BATCH, PIXELS };
    wf_graph *g = wf_graph_new(NULL);
    wf_tensor *images = wf_input(g, "images", WF_F32, 2, shape);
    wf_tensor *labels = wf_input(g, "labels", WF_I32, 1, shape);
    struct wf_linear_layer hidden = wf_linear_new(g, "hidden", PIXELS, HIDDEN, true);
    struct wf_linear_layer output = wf_linear_new(g, "output", HIDDEN, 10, true);
    wf_tensor *h = wf_dropout(wf_relu(wf_linear(&hidden, images)), 0.2, NULL);
    wf_cross_entropy_result r = wf_cross_entropy(wf_linear(&output, h), labels, 0, -1);
    wf_trainer_options options = { .optimizer = wf_optimizer_defaults(WF_ADAM),
                                   .schedule = { WF_CONSTANT_RATE, 0.01, 0, 0, 0 } };
    options.micro_batches = MICRO_BATCHES;
    options.transport = ranks;
    wf_trainer *t = wf_trainer_new(g, r.loss, r.count, &options);
    wf_progress now;
    bool ok = wf_trainer_ok(t);
    while (ok && wf_trainer_steps(t) < STEPS) ok = train(t, images, labels, &now);
    ok = ok && wf_trainer_save(t, (const char *)path, NULL, 0);
    if (!ok) fprintf(stderr, "%s\n", wf_trainer_error(t));
    if (ok && wf_transport_rank(ranks) == 0) printf("step %d: loss %.9f\n", STEPS, now.loss);
    wf_trainer_free(t), wf_graph_free(g);
    return !ok;
}

int main(int argc, char **argv) {
    int processes = argc > 1 ? atoi(argv[1]) : 2;
    wf_processes_result cause;
    char usual[] = "data_parallel.safetensors", *path = argc > 2 ? argv[2] : usual;
    int code = wf_processes_run(processes, run, path, exit, &cause);
    if (code) fprintf(stderr, "%s\n", cause.why);
    return code;
}
