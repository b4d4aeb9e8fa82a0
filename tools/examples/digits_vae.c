/* digits_vae.c - a variational autoencoder learns to draw digits: it turns a few numbers, the code,
 * into an image (Kingma and Welling 2014).
 *
 * Shows random noise in the graph, through which gradients flow, and a plan that begins in the
 * middle of the graph. To draw, it is fed the code, which the encoder computes in training; then
 * the encoder does not run. */
#include <stdio.h>
#include <weft/weft.h>

#include "digits.h"

enum { BATCH = 64, STEPS = 600, HIDDEN = 96, CODE = 6, DRAWN = 4 };

int main(void) {
    wf_graph *g = wf_graph_new(NULL);
    const int64_t B = wf_extent(g, "B", BATCH), shape[] = { B, PIXELS };
    wf_tensor *images = wf_input(g, "images", WF_F32, 2, shape); /* [B, PIXELS] */

    /* The encoder gives the mean of the code, and how far the code may deviate from it. */
    struct wf_linear_layer encoder = wf_linear_new(g, "encoder", PIXELS, HIDDEN, true);
    struct wf_linear_layer to_mean = wf_linear_new(g, "to_mean", HIDDEN, CODE, true);
    struct wf_linear_layer to_log_var = wf_linear_new(g, "to_log_var", HIDDEN, CODE, true);
    wf_tensor *h = wf_silu(wf_linear(&encoder, images));
    wf_tensor *mean = wf_linear(&to_mean, h), *log_var = wf_linear(&to_log_var, h); /* [B, CODE] */
    wf_tensor *noise = wf_randn(mean, "noise"), *std = wf_exp(wf_scale(log_var, 0.5));
    wf_tensor *code = wf_add(mean, wf_mul(std, noise));

    struct wf_linear_layer decoder = wf_linear_new(g, "decoder", CODE, HIDDEN, true);
    struct wf_linear_layer to_ink = wf_linear_new(g, "to_ink", HIDDEN, PIXELS, true);
    wf_tensor *logits = wf_linear(&to_ink, wf_silu(wf_linear(&decoder, code)));
    wf_tensor *ink = wf_sigmoid(logits);

    /* -log p(image | code), and the KL divergence of the codes from the normal distribution. */
    wf_tensor *drawn_badly =
        wf_binary_cross_entropy_with_logits(logits, images, NULL, NULL, WF_REDUCE_SUM);
    wf_tensor *spread = wf_sub(wf_add(wf_square(mean), wf_exp(log_var)), wf_affine(log_var, 1, 1));
    wf_tensor *loss = wf_add(drawn_badly, wf_scale(wf_sum(spread, WF_ALL_AXES, false), 0.5));

    const wf_trainer_options options = { .optimizer = wf_optimizer_defaults(WF_ADAM),
                                         .schedule = { WF_COSINE, 0.005, 20, STEPS, 0 } };
    wf_trainer *trainer = wf_trainer_new(g, loss, wf_constant(g, BATCH), &options);
    wf_plan *train = wf_trainer_plan(trainer);
    static float pixels[BATCH * PIXELS];
    static int32_t digits[BATCH];
    double first = 0, last = 0;
    bool ok = wf_bind(train, "B", BATCH);
    for (int step = 1; ok && step <= STEPS; step++) {
        wf_progress now;
        draw_digits(BATCH, (uint64_t)step, pixels, digits);
        ok = wf_feed(train, images, pixels, sizeof pixels) &&
             wf_trainer_begin(trainer, 1, NULL, NULL) && wf_trainer_add(trainer, 0) &&
             wf_trainer_update(trainer, &now);
        if (ok && step == 1) first = now.loss;
        if (ok && step % 200 == 0) printf("step %d: -ELBO %.2f nats an image\n", step, now.loss);
        if (ok) last = now.loss;
    }

    const wf_plan_options dream = { .fetch = &ink, .n_fetch = 1, .feed = &code, .n_feed = 1 };
    wf_plan *draw = wf_plan_new(g, &dream);
    float codes[DRAWN * CODE], made[DRAWN * PIXELS];
    for (int i = 0; i < DRAWN * CODE; i++) codes[i] = (float)wf_random_normal(7, (uint64_t)i);
    ok = ok && wf_bind(draw, "B", DRAWN) && wf_feed(draw, code, codes, sizeof codes) &&
         wf_run(draw) && wf_fetch(draw, ink, made, sizeof made);
    if (ok)
        print_images(made, DRAWN);
    else
        fprintf(stderr, "%s %s\n", wf_trainer_error(trainer), wf_plan_error(draw));
    wf_plan_free(draw), wf_trainer_free(trainer), wf_graph_free(g);
    return !(ok && last < first / 2);
}
