/* tools/learn/8_copy/copy_trial.c - the training of exercise 8, with the learner's functions. See
 * copy_model.h. */
#include <string.h>

#include "copy_model.h"
#include "core/base/clock.h"

enum { STEPS = 700, UNSEEN = 200, ENOUGH = 190 };

static int copied(struct copier *c) {
    int sources[24 * 6], out[9], right = 0;
    for (int i = 0; i < UNSEEN; i++) {
        const int *source = sources + i % c->batch * c->length;
        if (i % c->batch == 0) draw_sources(c, sources);
        int n = greedy(c, source, c->length + 2, out);
        right += n == c->length && memcmp(out, source, (size_t)n * sizeof *out) == 0;
    }
    return right;
}

static struct copier *trained(FILE *report) {
    char message[256] = "out of memory";
    struct copier *c;
    double first, last, from = wf_seconds_now();
    if (!copy_model_new(&c, message)) {
        if (report) fprintf(report, "  the model can't be made: %s\n", message);
        return NULL;
    }
    train(c, STEPS);
    copy_model_losses(c, &first, &last);
    if (report)
        fprintf(report, "  training       %d steps in %.1f s: the loss went from %.2f to %.4f\n",
                STEPS, wf_seconds_now() - from, first, last);
    return c;
}

bool copy_trial(FILE *report) {
    struct copier *c = trained(report);
    if (!c) return false;
    int right = copied(c);
    fprintf(report, "  copying        %d of %d unseen sequences; %d are enough\n", right, UNSEEN,
            ENOUGH);
    copy_model_free(c);
    return right >= ENOUGH;
}

bool copy_draw(picture *p) {
    struct copier *c = trained(NULL);
    int source[] = { 3, 1, 4, 1, 5, 9 }, heads = 0, rows = 0, columns = 0;
    *p = (picture){ .heads = 0 };
    if (!c) return false;
    p->weights = copy_model_attention(c, source, &heads, &rows, &columns);
    p->heads = heads;
    p->rows = rows;
    p->columns = columns;
    snprintf(p->title, sizeof p->title, "The cross-attention of your model, copying 3 1 4 1 5 9");
    copy_model_free(c);
    return true;
}
