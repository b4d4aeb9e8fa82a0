/* tests/nn/test_conv.c - convolution layers; tests of convolution and pooling that rows of the
 * table of ops cannot express; and a convolutional network that learns. */
#include <stdio.h>

#include "nn/nn.h"
#include "nn/optimizer_internal.h"
#include "tests/suites.h"
#include "tests/support/support.h"

TESTS(conv)

static wf_tensor *noise(wf_graph *g, const char *name, int ndim, const int64_t *shape) {
    return wf_param(g, name, ndim, shape, wf_init_normal(1));
}

/* ---- layers ---------------------------------------------------------------------------------- */

static const struct {
    wf_conv_kind kind;
    int axes;
    /* for 8 channels to 12 in 2 groups, kernels of 5, stride and padding 2: the weight's shape, its
     * fan-in, and the size of y's last axes for 11 elements */
    int64_t weight[4], fan, y;
} layers[] = { { WF_CONV1D, 1, { 12, 4, 5 }, 20, 6 },
               { WF_CONV2D, 2, { 12, 4, 5, 5 }, 100, 6 },
               { WF_CONV_TRANSPOSE1D, 1, { 8, 6, 5 }, 30, 21 },
               { WF_CONV_TRANSPOSE2D, 2, { 8, 6, 5, 5 }, 150, 21 } };

TEST_ROWS(layers_have_their_weights, COUNT_OF(layers)) {
    const wf_conv_options o = { .stride = { 2, 2 }, .padding = { 2, 2 }, .groups = 2 };
    wf_graph *g = new_graph(WF_F32);
    struct wf_conv_layer l = wf_conv_new(g, "features.0", layers[_i].kind, 8, 12, 5, &o, true);
    ck_assert_ptr_eq(wf_find(g, "features.0.weight"), l.weight);
    ck_assert_ptr_eq(wf_find(g, "features.0.bias"), l.bias);
    ck_assert_mem_eq(l.weight->shape, layers[_i].weight, (size_t)l.weight->ndim * sizeof(int64_t));
    ck_assert_int_eq(l.weight->ndim, 2 + layers[_i].axes);
    double *w = leaf_values(l.weight), *b = leaf_values(l.bias), most = 0, squares = 0;
    for (int64_t i = 0; i < wf_count(l.weight); i++)
        most = fmax(most, fabs(w[i])), squares += w[i] * w[i];
    double bound = 1 / sqrt((double)layers[_i].fan), n = (double)wf_count(l.weight);
    ck_assert(most <= bound && most > 0.95 * bound);
    ck_assert_double_eq_tol(sqrt(squares / n), bound / sqrt(3), 0.1 * bound);
    for (int i = 0; i < 12; i++) ck_assert(fabs(b[i]) <= bound && b[i] != 0);
    free(w), free(b);
    wf_tensor *x = noise(g, "x", 2 + layers[_i].axes, (int64_t[]){ 3, 8, 11, 11 });
    wf_tensor *y = wf_convolve(&l, x);
    ck_assert_msg(wf_ok(g), "%s", wf_error(g));
    ck_assert_int_eq(y->shape[1], 12);
    for (int i = 0; i < layers[_i].axes; i++) ck_assert_int_eq(y->shape[2 + i], layers[_i].y);
    end_graph(g);
}

TEST(a_layer_without_bias_or_options) {
    wf_graph *g = new_graph(WF_F32);
    struct wf_conv_layer l = wf_conv_new(g, "plain", WF_CONV2D, 3, 4, 3, NULL, false);
    wf_tensor *y = wf_convolve(&l, noise(g, "x", SHAPE(1, 3, 5, 5)));
    ck_assert(!l.bias && y->shape[1] == 4 && y->shape[2] == 3 && y->shape[3] == 3);
    ck_assert_int_eq(wf_parameters(g, NULL, NULL, 0), 2);
    end_graph(g);
}

static const struct {
    int64_t in, out, kernel, groups;
    const char *says;
} refused[] = { { 3, 4, 3, 2, "from 3 to 4 channels in 2 groups" },
                { 4, 3, 3, 2, "from 4 to 3" },
                { 0, 3, 3, 1, "from 0 to 3" },
                { 3, 3, 0, 1, "a kernel of 0" },
                { 3, 3, 3, -1, "-1 groups" } };

TEST_ROWS(layers_that_cannot_be, COUNT_OF(refused)) {
    wf_graph *g = wf_graph_new(NULL);
    const wf_conv_options o = { .groups = refused[_i].groups };
    struct wf_conv_layer l = wf_conv_new(g, "bad", WF_CONV2D, refused[_i].in, refused[_i].out,
                                         refused[_i].kernel, &o, true);
    wf_convolve(&l, NULL);
    assert_contains(wf_error(g), "bad");
    assert_contains(wf_error(g), refused[_i].says);
    wf_graph_free(g);
}

TEST(a_layer_says_its_name_and_what_did_not_fit) {
    wf_graph *g = wf_graph_new(NULL);
    struct wf_conv_layer l = wf_conv_new(g, "first", WF_CONV2D, 3, 4, 3, NULL, true);
    wf_convolve(&l, wf_input(g, "x", WF_F32, SHAPE(wf_extent(g, "N", 9), 1, 28, 28)));
    assert_contains(wf_error(g), "first: conv2d: a weight of [4,3,3,3] does not fit 4 and 1");
    wf_graph_free(g);
}

/* ---- what rows cannot say -------------------------------------------------------------------- */

/* An image gives the same bits alone and among others, with any sizes bound by name; and so do its
 * gradients but those of weights, which are sums over all images. */
TEST_ROWS(an_image_is_the_same_alone_and_among_others, 4) {
    const wf_conv_options o = { .stride = { 1 + _i / 2, 1 }, .padding = { 1, 2 } };
    const wf_pool_options two = { .kernel = { 2, 2 } };
    wf_dtype real = _i & 1 ? WF_F64 : WF_F32;
    wf_graph *g = new_graph(real);
    int64_t N = wf_extent(g, "N", 100), H = wf_extent(g, "H", 100), W = wf_extent(g, "W", 100);
    wf_tensor *x = wf_input(g, "x", real, SHAPE(N, 5, H, W)), *dx;
    struct wf_conv_layer l = wf_conv_new(g, "l", WF_CONV2D, 5, 19, 3, &o, true);
    wf_tensor *y =
        wf_add(wf_max_pool2d(wf_convolve(&l, x), &two), wf_avg_pool2d(wf_convolve(&l, x), &two));
    wf_grad(wf_sum(wf_square(y), WF_ALL_AXES, false), &x, 1, &dx);
    ck_assert_msg(wf_ok(g), "%s", wf_error(g));
    wf_tensor *fetch[] = { y, dx };
    wf_plan *p =
        wf_plan_new(g, &(wf_plan_options){ .fetch = fetch, .n_fetch = 2, .feed = &x, .n_feed = 1 });
    enum { IMAGE = 5 * 13 * 17, MOST = 7 };
    static double wide[MOST * IMAGE];
    static float narrow[MOST * IMAGE];
    for (int i = 0; i < MOST * IMAGE; i++) narrow[i] = (float)(wide[i] = number(7, (uint64_t)i));
    values all[2], one[2];
    for (int n = MOST; n >= 1; n -= MOST - 1) { /* all images, then the last one alone */
        size_t from = (size_t)(MOST - n) * IMAGE, count = (size_t)n * IMAGE;
        const void *data = real == WF_F64 ? (void *)(wide + from) : (void *)(narrow + from);
        wf_bind(p, "N", n), wf_bind(p, "H", 13), wf_bind(p, "W", 17);
        bool ran = wf_feed(p, x, data, count * wf_dtype_size(real)) && wf_run(p);
        ck_assert_msg(ran, "%s", wf_plan_error(p));
        for (int k = 0; k < 2; k++) {
            values *v = n == 1 ? &one[k] : &all[k];
            v->data = plan_values(p, fetch[k], &v->count);
        }
    }
    for (int k = 0; k < 2; k++) {
        ck_assert_int_eq(all[k].count, MOST * one[k].count);
        ck_assert_mem_eq(all[k].data + (MOST - 1) * one[k].count, one[k].data,
                         (size_t)one[k].count * sizeof(double));
    }
    free_values(all, 2), free_values(one, 2);
    wf_plan_free(p), end_graph(g);
}

/* A size that is bound too small for a kernel fails the plan, and says so. */
TEST(a_kernel_too_large_for_what_is_bound) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(1, 1, wf_extent(g, "H", 9), 9));
    struct wf_conv_layer l = wf_conv_new(g, "l", WF_CONV2D, 1, 1, 3, NULL, true);
    wf_tensor *y = wf_convolve(&l, x);
    wf_plan *p =
        wf_plan_new(g, &(wf_plan_options){ .fetch = &y, .n_fetch = 1, .feed = &x, .n_feed = 1 });
    float image[81] = { 0 };
    ck_assert(wf_bind(p, "H", 2));
    ck_assert(!(wf_feed(p, x, image, 18 * sizeof(float)) && wf_run(p)));
    assert_contains(wf_plan_error(p), "the kernel is 3 wide");
    ck_assert_msg(wf_bind(p, "H", 9) && wf_feed(p, x, image, sizeof image) && wf_run(p), "%s",
                  wf_plan_error(p));
    wf_plan_free(p), end_graph(g);
}

/* Max pooling with windows of 2 by 1: of equal elements the first gets the gradient; a NaN is the
 * maximum (the last of several, as in PyTorch); if all elements are -inf, the first of them that is
 * not padding gets it. */
TEST_ROWS(ties_and_infinities, 2) {
    const double inf = INFINITY, x[2][4] = { { 1, 2, -inf, NAN }, { 1, 3, -inf, 5 } },
                 y[] = { 1, 3, -inf, NAN }, dx[2][4] = { { 10, 0, 30, 40 }, { 0, 20, 0, 0 } };
    wf_graph *g = new_graph(_i ? WF_F64 : WF_F32);
    wf_tensor *a = param_of(g, "x", SHAPE(1, 1, 2, 4), &x[0][0]), *d;
    wf_tensor *w = param_of(g, "w", SHAPE(1, 1, 1, 4), (double[]){ 10, 20, 30, 40 });
    wf_tensor *top = wf_max_pool2d(a, &(wf_pool_options){ .kernel = { 2, 1 } });
    values v[2];
    wf_vjp(&top, &w, 1, &a, 1, &d);
    evaluate((wf_tensor *[]){ top, d }, 2, 1, false, v);
    ck_assert(distance(v[0], (values){ 4, (double *)y }) == 0);
    ck_assert(distance(v[1], (values){ 8, (double *)&dx[0][0] }) == 0);
    free_values(v, 2);
    wf_tensor *padded = wf_max_pool2d(
        wf_fill(a, -inf), &(wf_pool_options){ .kernel = { 2, 2 }, .padding = { 1, 1 } });
    evaluate(&padded, 1, 1, false, v);
    for (int64_t i = 0; i < v[0].count; i++) ck_assert(v[0].data[i] == -inf);
    free_values(v, 1);
    end_graph(g);
}

/* ---- a network that learns ------------------------------------------------------------------- */

enum { BATCH = 32, SIDE = 10, KINDS = 4 };

/* Images with noise and a bar at a random place: horizontal, vertical, or along either diagonal. */
static void draw_bars(uint64_t key, float *images, int32_t *labels) {
    static const int step[KINDS][2] = { { 0, 1 }, { 1, 0 }, { 1, 1 }, { 1, -1 } };
    for (int n = 0; n < BATCH; n++) {
        uint64_t at = (uint64_t)n * 1000;
        int kind = labels[n] = (int)(number(key, at) * KINDS);
        int row = 1 + (int)(number(key, at + 1) * (SIDE - 6)),
            column = 1 + (int)(number(key, at + 2) * (SIDE - 6)) + 4 * (step[kind][1] < 0);
        float *image = images + n * SIDE * SIDE;
        for (int i = 0; i < SIDE * SIDE; i++)
            image[i] = (float)(0.4 * number(key, at + 3 + (uint64_t)i));
        for (int i = 0; i < 5; i++)
            image[(row + i * step[kind][0]) * SIDE + column + i * step[kind][1]] += 1;
    }
}

static wf_tensor *network(wf_graph *g, wf_tensor *x) {
    const wf_conv_options same = { .padding = { 1, 1 } };
    struct wf_conv_layer first = wf_conv_new(g, "conv1", WF_CONV2D, 1, 8, 3, &same, true),
                         second = wf_conv_new(g, "conv2", WF_CONV2D, 8, 16, 3, &same, true);
    struct wf_linear_layer last = wf_linear_new(g, "fc", 16, KINDS, true);
    x = wf_max_pool2d(wf_relu(wf_convolve(&first, x)), &(wf_pool_options){ .kernel = { 2, 2 } });
    x = wf_relu(wf_convolve(&second, x));                               /* [N,16,5,5] */
    return wf_linear(&last, wf_max(x, WF_AXIS(2) | WF_AXIS(3), false)); /* [N,KINDS] */
}

TEST(a_small_network_learns) {
    static float images[BATCH * SIDE * SIDE];
    static int32_t labels[BATCH], guess[BATCH];
    wf_graph *g = new_graph(WF_F32);
    int64_t N = wf_extent(g, "N", BATCH);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(N, 1, SIDE, SIDE)),
              *t = wf_input(g, "labels", WF_I32, SHAPE(N)), *params[16];
    wf_tensor *logits = network(g, x), *best = wf_argmax(logits, -1);
    wf_cross_entropy_result loss = wf_cross_entropy(logits, t, 0, -1);
    wf_optimizer_options adam = wf_optimizer_defaults(WF_ADAM);
    wf_optimizer o = wf_optimizer_new(g, loss.loss, loss.count, params,
                                      wf_parameters(g, NULL, params, 16), &adam);
    wf_plan *train = wf_plan_new(g, &(wf_plan_options){ .fetch = o.updates,
                                                        .n_fetch = o.n,
                                                        .feed = (wf_tensor *[]){ x, t, o.rates },
                                                        .n_feed = 3,
                                                        .training = true }),
            *eval = wf_plan_new(
                g, &(wf_plan_options){ .fetch = &best, .n_fetch = 1, .feed = &x, .n_feed = 1 });
    wf_bind(train, "N", BATCH), wf_bind(eval, "N", BATCH);
    for (int step = 1; step <= 150; step++) {
        double rates[3];
        draw_bars((uint64_t)step, images, labels);
        wf_optimizer_rates(&adam, 0.01, step, rates);
        bool ran = wf_feed(train, x, images, sizeof images) &&
                   wf_feed(train, t, labels, sizeof labels) &&
                   wf_feed_reals(train, o.rates, rates, 3) && wf_run(train);
        ck_assert_msg(ran, "%s", wf_plan_error(train));
    }
    int right = 0;
    for (uint64_t batch = 0; batch < 4; batch++) {
        draw_bars(10000 + batch, images, labels);
        bool ran = wf_feed(eval, x, images, sizeof images) && wf_run(eval) &&
                   wf_fetch(eval, best, guess, sizeof guess);
        ck_assert_msg(ran, "%s", wf_plan_error(eval));
        for (int i = 0; i < BATCH; i++) right += guess[i] == labels[i];
    }
    ck_assert_msg(right >= 120, "%d of 128", right);
    wf_plan_free(train), wf_plan_free(eval), wf_optimizer_free(&o);
    end_graph(g);
}
