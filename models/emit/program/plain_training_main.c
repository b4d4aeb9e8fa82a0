/* models/emit/program/plain_training_main.c - the program in the C file of a training: makes
 * updates, up to the number that is its argument, and writes the saved file to stdout. embed.sh
 * makes text of this file. */

#ifdef MODEL_MAIN
#include <stdio.h>
#include <stdlib.h>

#if SAVED_TENSORS
static int write_bytes(void *context, const void *bytes, int n) {
    return fwrite(bytes, 1, (size_t)n, context) != (size_t)n;
}
#endif

/* Make updates up to this number. Returns the program's status. */
static int train(model *m, int64_t last) {
    static model_batch batches[MOST_BATCHES];
    model_progress now = { 0 };
    int n = 0;
    while (model_steps(m) < last) {
        n = next_update(batches, model_steps(m) + 1);
        if (n < 1) break;
        if (model_step(m, batches, n, &now)) break;
        n = 0;
        if (now.step % 100 == 0)
            fprintf(stderr, "%lld: loss %.4g, norm %.3g, rate %.3g\n", (long long)now.step,
                    now.loss, now.norm, now.rate);
    }
    if (n) {
        fprintf(stderr,
                n < 0 ? "update %lld: no batches of such sizes\n"
                      : "update %lld: an id is out of range, or the gradient not finite\n",
                (long long)model_steps(m) + 1);
        return 1;
    }
#if SAVED_TENSORS
    if (model_save(m, write_bytes, stdout)) return 1;
#endif
    return fflush(stdout) ? 1 : 0;
}

static int64_t last_update(int argc, char **argv) {
    return argc > 1 ? strtoll(argv[1], 0, 10) : INT64_MAX;
}
