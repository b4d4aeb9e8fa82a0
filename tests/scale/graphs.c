/* tests/scale/graphs.c - see graphs.h. */
#include "graphs.h"
#include "nn/optimizer_internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/base/random.h"

enum { WIDTH = 4 };

static wf_tensor *param(wf_graph *g, const char *kind, int i, int64_t width) {
    char name[32];
    snprintf(name, sizeof name, "%s%d", kind, i);
    return wf_param(g, name, width > 0, &width, wf_init_constant(0.5));
}

/* A pseudo-random number below n, which depends on i and `which` alone. */
static int any(int n, int i, int which) {
    return (int)(wf_philox4x32(7, (uint64_t)i, (uint64_t)which).v[0] % (uint32_t)n);
}

/* One after the other. */
static void chain(scaled *s, int n) {
    wf_tensor *x = param(s->g, "w", 0, WIDTH);
    for (int i = 0; i < n; i++) x = wf_tanh(x);
    s->loss = wf_sum(x, WF_ALL_AXES, false);
}

/* A sum of n / 3 nodes side by side, each of a parameter of its own. */
static void wide(scaled *s, int n) {
    wf_tensor *sum = wf_constant(s->g, 0);
    for (int i = 0; i < n / 3; i++)
        sum = wf_add(sum, wf_sum(param(s->g, "w", i, 1 + i % 5), WF_ALL_AXES, false));
    s->loss = sum;
}

/* Each node is the mean of the last node and of one up to 1,000 before it, so that some arrays live
 * long. Arrays have many sizes. Means keep values and gradients small. */
static void woven(scaled *s, int n) {
    wf_tensor **x = calloc((size_t)n + 8, sizeof *x);
    if (!x) return;
    for (int i = 0; i < 8; i++) x[i] = param(s->g, "w", i, 64);
    for (int i = 8; i < n + 8; i++) {
        int first = i > 1000 ? i - 1000 : 0;
        wf_tensor *a = x[i - 1], *b = x[first + any(i - first, i, 0)];
        int64_t size = a->shape[0] < b->shape[0] ? a->shape[0] : b->shape[0];
        if (i % 7 == 0 && size > 1) size--;
        x[i] = wf_scale(wf_add(wf_slice(a, 0, 0, size), wf_slice(b, 0, 0, size)), 0.5);
        if (i % 50 == 0) /* as wide as at first */
            x[i] = wf_mul(x[any(8, i, 1)], wf_mean(x[i], WF_ALL_AXES, false));
    }
    s->loss = wf_mean(x[n + 7], WF_ALL_AXES, false);
    free(x);
}

/* Numbers, each of two others. */
static void numbers(scaled *s, int n) {
    wf_tensor **x = calloc((size_t)n + 8, sizeof *x);
    if (!x) return;
    for (int i = 0; i < 8; i++) x[i] = param(s->g, "w", i, 0);
    for (int i = 8; i < n + 8; i++) {
        wf_tensor *a = x[i - 1], *b = x[any(i, i, 0)];
        x[i] = i % 2 ? wf_scale(wf_add(a, b), 0.5) : wf_tanh(wf_mul(a, b));
    }
    s->loss = x[n + 7];
    free(x);
}

/* Layers of a norm, a product and a residual connection. */
static void layers(scaled *s, int n) {
    wf_graph *g = s->g;
    int64_t B = wf_extent(g, "B", 64);
    wf_tensor *x = wf_input(g, "x", wf_real(g), 2, (int64_t[]){ B, WIDTH });
    char name[32];
    for (int i = 0; i < n / 8; i++) {
        snprintf(name, sizeof name, "layers.%d", i);
        const char *outer = wf_scope_push(g, name);
        struct wf_linear_layer l = wf_linear_new(g, "linear", WIDTH, WIDTH, true);
        struct wf_norm_layer norm = wf_norm_new(g, "norm", WF_LAYER_NORM, WIDTH, 1, true);
        x = wf_scale(wf_add(x, wf_gelu(wf_linear(&l, wf_norm(&norm, x)))), 0.5);
        wf_scope(g, outer);
    }
    s->loss = wf_sum(x, WF_ALL_AXES, false);
}

const recipe recipes[] = {
    { "chain", chain },     { "wide", wide },     { "woven", woven },
    { "numbers", numbers }, { "layers", layers },
};
const int n_recipes = sizeof recipes / sizeof *recipes;

bool record_scaled(scaled *s, const recipe *r, int n) {
    *s = (scaled){ .g = wf_graph_new(NULL) };
    r->record(s, n);
    s->n_params = wf_parameters(s->g, NULL, NULL, 0);
    s->params = calloc((size_t)s->n_params + 1, sizeof *s->params);
    s->wanted = calloc((size_t)s->n_params + 2, sizeof *s->wanted);
    if (!s->params || !s->wanted || !wf_ok(s->g) || !s->loss) return false;
    wf_parameters(s->g, NULL, s->params, s->n_params);
    s->wanted[s->n_wanted++] = s->loss;
    return true;
}

/* Adds the gradients and Adam's update: moments, a norm of all gradients, and an update of each
 * parameter. */
bool differentiate(scaled *s) {
    wf_optimizer_options adam = wf_optimizer_defaults(WF_ADAM);
    adam.clip_norm = 1;
    wf_optimizer o =
        wf_optimizer_new(s->g, s->loss, wf_constant(s->g, 1), s->params, s->n_params, &adam);
    for (int i = 0; i < o.n && wf_ok(s->g); i++) s->wanted[s->n_wanted++] = o.updates[i];
    wf_optimizer_free(&o);
    return wf_ok(s->g);
}

wf_plan *plan_scaled(const scaled *s) {
    wf_tensor *feed[] = { wf_find(s->g, "x"), wf_find(s->g, "optimizer.rates") };
    int from = !feed[0], n = (feed[0] != NULL) + (feed[1] != NULL);
    return wf_plan_new(
        s->g, &(wf_plan_options){
                  .fetch = s->wanted, .n_fetch = s->n_wanted, .feed = feed + from, .n_feed = n });
}

void scaled_free(scaled *s) {
    wf_graph_free(s->g);
    free(s->params), free(s->wanted);
}
