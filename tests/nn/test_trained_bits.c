/* tests/nn/test_trained_bits.c - whole trainings have the same bits everywhere: after 20 steps the
 * parameters of convolutional and recurrent networks have the hashes recorded here, with every set
 * of kernels, on one thread and on two. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"
#include "nn/nn.h"
#include "nn/trainer.h"
#include "tests/suites.h"
#include "tests/support/support.h"

TESTS(trained_bits)

enum { STEPS = 20, BATCH = 8, IMAGE_SIDE = 12, LENGTH = 9, WIDTH = 20, CLASSES = 5 };

/* A network with strides, groups, padding, both poolings, and upsampling by a transposed
 * convolution. */
static wf_tensor *convolving(wf_graph *g, wf_tensor *x) {
    const wf_conv_options wide = { .padding = { 1, 1 } },
                          apart = { .stride = { 2, 2 }, .groups = 2 };
    const wf_pool_options two = { .kernel = { 2, 2 } };
    struct wf_conv_layer first = wf_conv_new(g, "first", WF_CONV2D, 1, 10, 3, &wide, true);
    struct wf_conv_layer second = wf_conv_new(g, "second", WF_CONV2D, 10, 12, 3, &apart, true);
    struct wf_conv_layer up = wf_conv_new(g, "up", WF_CONV_TRANSPOSE2D, 12, 6, 3, NULL, true);
    struct wf_linear_layer last = wf_linear_new(g, "last", 6, CLASSES, true);
    x = wf_reshape(x, 4, (int64_t[]){ BATCH, 1, IMAGE_SIDE, IMAGE_SIDE });
    x = wf_max_pool2d(wf_gelu(wf_convolve(&first, x)), &two);
    x = wf_avg_pool2d(wf_convolve(&up, wf_silu(wf_convolve(&second, x))), &two);
    return wf_linear(&last, wf_mean(wf_dropout(x, 0.1, NULL), WF_AXIS(2) | WF_AXIS(3), false));
}

/* h[i] = a[i] h[i-1] + b[i] with learned gates; the mean of the tanh of its cumulative sums from
 * the end. */
static wf_tensor *scanning(wf_graph *g, wf_tensor *x) {
    struct wf_linear_layer gate = wf_linear_new(g, "gate", 16, WIDTH, true);
    struct wf_linear_layer in = wf_linear_new(g, "in", 16, WIDTH, true);
    struct wf_linear_layer last = wf_linear_new(g, "last", WIDTH, CLASSES, true);
    x = wf_reshape(x, 3, (int64_t[]){ BATCH, LENGTH, 16 });
    wf_tensor *h =
        wf_linear_scan(wf_sigmoid(wf_linear(&gate, x)), wf_tanh(wf_linear(&in, x)), 1, false);
    return wf_linear(&last, wf_mean(wf_tanh(wf_cumsum(h, 1, true)), WF_AXIS(1), false));
}

/* h = tanh(W x[i] + U h), step by step. */
static wf_tensor *recurring(wf_graph *g, wf_tensor *x) {
    struct wf_linear_layer in = wf_linear_new(g, "in", 16, WIDTH, true);
    struct wf_linear_layer back = wf_linear_new(g, "back", WIDTH, WIDTH, false);
    struct wf_linear_layer last = wf_linear_new(g, "last", WIDTH, CLASSES, true);
    x = wf_linear(&in, wf_reshape(x, 3, (int64_t[]){ BATCH, LENGTH, 16 }));
    wf_tensor *h = NULL;
    for (int64_t i = 0; i < LENGTH; i++) {
        wf_tensor *now = wf_reshape(wf_slice(x, 1, i, i + 1), 2, (int64_t[]){ BATCH, WIDTH });
        h = wf_tanh(h ? wf_add(now, wf_linear(&back, h)) : now);
    }
    return wf_linear(&last, h);
}

static const struct {
    const char *name;
    wf_tensor *(*network)(wf_graph *, wf_tensor *);
    wf_dtype real;
    uint64_t bits;
} trained[] = { { "convolving", convolving, WF_F32, 0x80fd24314133b440 },
                { "convolving", convolving, WF_F64, 0xc02231f92473f308 },
                { "scanning", scanning, WF_F32, 0x3fbec975918c1e2e },
                { "scanning", scanning, WF_F64, 0x9f87bdb03e9d2db5 },
                { "recurring", recurring, WF_F32, 0x1125c884429f9b58 },
                { "recurring", recurring, WF_F64, 0x122dc684dbd9cb40 } };

enum { INPUTS = BATCH * IMAGE_SIDE * IMAGE_SIDE };

/* One update. A label depends on the sum of the first nine inputs of its row. */
static bool step(wf_trainer *t, const wf_tensor *x, const wf_tensor *labels, int64_t at) {
    double wide[INPUTS];
    float narrow[INPUTS];
    int32_t of[BATCH];
    for (int i = 0; i < INPUTS; i++) {
        wide[i] = number(17, (uint64_t)(at * INPUTS + i)) - 0.5;
        narrow[i] = (float)wide[i];
    }
    for (int r = 0; r < BATCH; r++) {
        double sum = 2.5;
        for (int i = 0; i < 9; i++) sum += wide[r * INPUTS / BATCH + i];
        of[r] = (int32_t)fmin(fmax(sum, 0), CLASSES - 1);
    }
    const void *data = x->dtype == WF_F64 ? (void *)wide : (void *)narrow;
    return wf_trainer_begin(t, 1, NULL, NULL) &&
           wf_feed(wf_trainer_plan(t), x, data, INPUTS * wf_dtype_size(x->dtype)) &&
           wf_feed(wf_trainer_plan(t), labels, of, sizeof of) && wf_trainer_add(t, 0) &&
           wf_trainer_update(t, NULL);
}

static uint64_t bits_of_parameters(wf_graph *g) {
    uint64_t hash = 0;
    for (int id = 0; id < wf_node_count(g); id++) {
        const wf_tensor *p = wf_node(g, id);
        if (p->kind != WF_PARAM) continue;
        double *learned = leaf_values(p);
        for (int64_t i = 0; i < wf_count(p); i++) {
            uint64_t word;
            ck_assert(isfinite(learned[i]));
            memcpy(&word, &learned[i], sizeof word);
            hash = wf_mix64(hash ^ word);
        }
        free(learned);
    }
    return hash;
}

static uint64_t bits_after_training(int row, int threads) {
    wf_graph *g = new_graph(trained[row].real);
    wf_pool *pool = wf_pool_new(threads);
    wf_tensor *x = wf_input(g, "x", trained[row].real, 2, (int64_t[]){ BATCH, INPUTS / BATCH });
    wf_tensor *labels = wf_input(g, "labels", WF_I32, 1, (int64_t[]){ BATCH });
    wf_tensor *logits = trained[row].network(g, x);
    wf_tensor *loss = wf_cross_entropy(logits, labels, 0.1, -1).loss;
    wf_trainer_options o = { .optimizer = wf_optimizer_defaults(WF_ADAMW), .pool = pool };
    o.schedule = (wf_schedule){ .kind = WF_COSINE, .peak = 0.01, .warmup = 4, .steps = STEPS };
    o.optimizer.clip_norm = 0.7;
    wf_trainer *t = wf_trainer_new(g, loss, wf_constant(g, BATCH), &o);
    ck_assert_msg(wf_trainer_ok(t), "%s", wf_trainer_error(t));
    for (int64_t i = 0; i < STEPS; i++)
        ck_assert_msg(step(t, x, labels, i), "%s", wf_trainer_error(t));
    uint64_t bits = bits_of_parameters(g);
    wf_trainer_free(t);
    end_graph(g);
    wf_pool_free(pool);
    return bits;
}

/* WEFT_SHOW_BITS=1 prints the numbers. */
TEST_ROWS(twenty_steps_have_the_recorded_bits, COUNT_OF(trained)) {
    uint64_t one = bits_after_training(_i, 1), two = bits_after_training(_i, 2);
    if (getenv("WEFT_SHOW_BITS"))
        printf("%s f%d 0x%016llx\n", trained[_i].name, trained[_i].real == WF_F32 ? 32 : 64,
               (unsigned long long)one);
    ck_assert(one == two);
    ck_assert_msg(one == trained[_i].bits, "%s: 0x%016llx", trained[_i].name,
                  (unsigned long long)one);
}
