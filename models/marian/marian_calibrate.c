/* models/marian/marian_calibrate.c - scales of activations for products in int8, found by running
 * pairs of lines through a model in f32.
 *
 * The rule is that of extract_stats.py, with which Firefox's students were made: every call of a
 * product has a largest |x|, and the scale is 127 divided by (their mean + 1.1 of their standard
 * deviation). So rare large values are clamped. In the encoder, and for keys and values of its
 * output, a batch is one call; elsewhere each step of a batch is one. Padding does not count. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/lend.h"
#include "core/product_hook.h"
#include "marian_file.h"
#include "models/kind.h"
#include "models/message.h"

/* A product of x [B,N,in] with the transpose of some parts of a weight. */
typedef struct product {
    wf_tensor *x;
    const wf_tensor *weight;
    int first, parts; /* of a packed projection: queries, keys, values */
    bool whole;       /* true: a batch is one call; false: each position of a batch is a call */
    double calls, sum, squares;
} product;

struct wf_marian_scales {
    wf_model *m;
    wf_plan *plan;
    product *products;
    size_t n, most;
};

void wf_marian_scales_free(wf_marian_scales *s) {
    if (!s) return;
    wf_plan_free(s->plan);
    free(s->products);
    free(s);
}

/* ---- the products of a model ----------------------------------------------------------------- */

/* Adds a part of a packed projection to the product of a neighbouring part with the same x. False:
 * there is no such product. */
static bool join(wf_marian_scales *s, const wf_tensor *x, const wf_tensor *weight, int part) {
    for (size_t i = 0; i < s->n; i++) {
        product *p = &s->products[i];
        bool before = part == p->first - 1, behind = part == p->first + p->parts;
        if (p->x != x || p->weight != weight || !(before || behind)) continue;
        if (before) p->first = part;
        p->parts++;
        return true;
    }
    return false;
}

/* The hook of products: notes each product with a weight that Marian has, and returns y
 * unchanged. */
static wf_tensor *note(void *user, wf_tensor *y, wf_tensor *x, wf_tensor *weight, int64_t first) {
    wf_marian_scales *s = user;
    char name[MARIAN_NAME];
    int parts;
    if (wf_marian_name(&wf_transformer_of(s->m)->config, weight->name, 0, &parts, name) ==
        MARIAN_UNKNOWN)
        return y;
    int part = (int)(first / (weight->shape[0] / parts));
    if (join(s, x, weight, part)) return y;
    if (!wf_grow(&s->products, &s->most, s->n + 1, sizeof *s->products))
        return wf_poison(y->graph, "out of memory");
    bool cross = strstr(name, "context") && part > 0;
    s->products[s->n++] = (product){ .x = x,
                                     .weight = weight,
                                     .first = part,
                                     .parts = 1,
                                     .whole = strncmp(name, "encoder", 7) == 0 || cross };
    return y;
}

/* Finds the products by recording the model once more, which needs no data. Its nodes have the same
 * ids as those of m. */
static bool find_products(wf_marian_scales *s, char *message) {
    wf_model *m = s->m;
    wf_product_hook hook = { .call = note, .user = s };
    wf_training_config training = m->training;
    training.on_param = wf_set_product_hook;
    training.user = &hook;
    wf_model *again = m->kind->record(m->config, &training, WF_F32, 0, message);
    if (!again) return false;
    bool ok = wf_ok(again->graph) || fail(message, "%s", wf_error(again->graph));
    if (ok && again->own_nodes != m->own_nodes)
        ok = fail(message, "its products are not those of a model in f32");
    for (size_t i = 0; ok && i < s->n; i++) {
        s->products[i].x = wf_node(m->graph, s->products[i].x->id);
        s->products[i].weight = wf_node(m->graph, s->products[i].weight->id);
    }
    wf_model_free(again);
    return ok;
}

wf_marian_scales *wf_marian_scales_new(wf_model *m, wf_pool *pool, char *message) {
    char *settings = wf_marian_is_plain(m, message)
                         ? wf_marian_write_settings(&wf_transformer_of(m)->config, message)
                         : NULL;
    if (!settings) return NULL;
    free(settings); /* written only to see that Marian has such a model */
    wf_marian_scales *s = calloc(1, sizeof *s);
    if (s) s->m = m;
    bool ok = s ? find_products(s, message) : fail(message, "out of memory");
    wf_tensor **fetched = ok ? calloc(s->n + 1, sizeof(wf_tensor *)) : NULL;
    if (ok) ok = fetched || fail(message, "out of memory");
    for (size_t i = 0; ok && i < s->n; i++) fetched[i] = s->products[i].x;
    if (ok) {
        wf_tensor *const fed[] = { m->src, m->src_length, m->tgt };
        wf_plan_options o = { .fetch = fetched, .n_fetch = (int)s->n, .feed = fed, .n_feed = 3 };
        o.pool = pool;
        s->plan = wf_plan_new(m->graph, &o);
        ok = wf_plan_ok(s->plan) || fail(message, "%s", wf_plan_error(s->plan));
    }
    free(fetched);
    if (ok) return s;
    wf_marian_scales_free(s);
    return NULL;
}

/* ---- a batch --------------------------------------------------------------------------------- */

static void count_call(product *p, double largest) {
    p->calls++;
    p->sum += largest;
    p->squares += largest * largest;
}

static double larger(double largest, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        largest = fmax(largest, isfinite(x[i]) ? fabs((double)x[i]) : INFINITY);
    return largest;
}

/* Counts the calls of a product in x [B,N,width], whose lines have these lengths. */
static void count_calls(product *p, const float *x, const int64_t shape[3], const int32_t *length) {
    int64_t B = shape[0], N = shape[1], width = shape[2];
    double largest = 0;
    for (int64_t i = 0; i < N; i++) {
        int64_t lines = 0;
        for (int64_t b = 0; b < B; b++) {
            if (i >= length[b]) continue;
            largest = larger(largest, x + (b * N + i) * width, width);
            lines++;
        }
        if (p->whole || !lines) continue;
        count_call(p, largest);
        largest = 0;
    }
    if (p->whole) count_call(p, largest);
}

bool wf_marian_scales_add(wf_marian_scales *s, const wf_batch *pairs, const int32_t *tgt_length,
                          char *message) {
    bool ok = wf_model_feed(s->m, s->plan, pairs) && wf_run(s->plan);
    for (size_t i = 0; ok && i < s->n; i++) {
        product *p = &s->products[i];
        int64_t shape[WF_MAX_DIMS];
        size_t bytes = wf_bound_bytes(s->plan, p->x);
        float *x = malloc(bytes + 1);
        ok = x && wf_bound_shape(s->plan, p->x, shape) == 3 && wf_fetch(s->plan, p->x, x, bytes);
        if (ok) count_calls(p, x, shape, p->whole ? pairs->src_length : tgt_length);
        free(x);
    }
    const char *why = wf_plan_error(s->plan);
    for (size_t i = 0; ok && i < s->n; i++)
        if (!isfinite(s->products[i].squares))
            return fail(message, "what is multiplied by '%.120s' is not finite",
                        s->products[i].weight->name);
    return ok || fail(message, "%s", why[0] ? why : "out of memory");
}

float wf_marian_scale(const wf_marian_scales *s, const wf_tensor *weight, int part) {
    for (size_t i = 0; i < s->n; i++) {
        const product *p = &s->products[i];
        if (p->weight != weight || part < p->first || part >= p->first + p->parts) continue;
        if (!(p->calls > 0)) return 0;
        double mean = p->sum / p->calls, variance = fmax(p->squares / p->calls - mean * mean, 0);
        double largest = mean + 1.1 * sqrt(variance);
        return (float)(127 / fmax(largest, 1e-30)); /* finite, if all are zeros */
    }
    return 0;
}
