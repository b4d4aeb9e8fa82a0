/* models/marian/marian_calibrate.c - scales of activations for products in int8, found by running
 * pairs of lines through a model in f32.
 *
 * The rule is that of extract_stats.py, with which Firefox's students were made: every call of a
 * product has a largest |x|, and the scale is 127 by (their mean + 1.1 of their standard
 * deviation). So rare large values are cut. A call is a batch in the encoder and in the keys and
 * values made of its output, and else a step of a batch. Padding does not count. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/lend.h"
#include "marian_file.h"
#include "models/message.h"

/* A product of x [B,N,in] with the transpose of some parts of a weight. */
typedef struct product {
    wf_tensor *x;
    const wf_tensor *weight;
    int first, parts; /* of a packed projection: queries, keys, values */
    bool whole;       /* one call for all positions, not one for each */
    double calls, sum, squares;
} product;

struct wf_marian_scales {
    wf_model *m;
    wf_plan *plan;
    product *products;
    int n;
};

void wf_marian_scales_free(wf_marian_scales *s) {
    if (!s) return;
    wf_plan_free(s->plan);
    free(s->products);
    free(s);
}

/* ---- the products of a model ----------------------------------------------------------------- */

/* The parameter of which t is the whole, or some rows. NULL: it is neither. */
static const wf_tensor *parameter_of(const wf_tensor *t) {
    const wf_tensor *of = t->kind == WF_COMPUTED && t->n_in == 1 ? t->in[0] : t;
    return of && of->kind == WF_PARAM && of->ndim == 2 && t->ndim == 2 ? of : NULL;
}

/* Is the node a product with a weight that Marian has? A slice of a packed projection has the rows
 * of queries, or those of keys and values behind them. */
static bool find_product(const wf_model *m, const wf_tensor *t, product *p) {
    char name[MARIAN_NAME];
    int parts;
    if (t->kind != WF_COMPUTED || strcmp(t->op->name, "matmul") != 0 || t->in[0]->ndim != 3)
        return false;
    const wf_tensor *weight = parameter_of(t->in[1]);
    if (!weight || wf_marian_name(&wf_transformer_of(m)->config, weight->name, 0, &parts, name) ==
                       MARIAN_UNKNOWN)
        return false;
    int64_t rows = weight->shape[0] / parts, taken = t->in[1]->shape[0];
    *p = (product){ .x = t->in[0], .weight = weight, .parts = (int)(taken / rows) };
    p->first = p->parts == 2 ? 1 : 0;
    bool cross = strstr(name, "context") && p->first;
    p->whole = strncmp(name, "encoder", 7) == 0 || cross;
    return true;
}

wf_marian_scales *wf_marian_scales_new(wf_model *m, wf_pool *pool, char *message) {
    char *settings = wf_marian_is_plain(m, message)
                         ? wf_marian_write_settings(&wf_transformer_of(m)->config, message)
                         : NULL;
    if (!settings) return NULL;
    free(settings); /* it was written only to see that Marian has such a model */
    size_t most = (size_t)m->own_nodes + 1;
    wf_marian_scales *s = calloc(1, sizeof *s);
    wf_tensor **fetched = calloc(most, sizeof(wf_tensor *));
    if (s) s->products = calloc(most, sizeof *s->products);
    bool ok = fetched && s && s->products;
    if (!ok) fail(message, "out of memory");
    for (int id = 0; ok && id < m->own_nodes; id++)
        if (find_product(m, wf_node(m->graph, id), &s->products[s->n])) {
            fetched[s->n] = s->products[s->n].x;
            s->n++;
        }
    if (ok) {
        s->m = m;
        wf_tensor *const fed[] = { m->src, m->src_length, m->tgt };
        wf_plan_options o = { .fetch = fetched, .n_fetch = s->n, .feed = fed, .n_feed = 3 };
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
    for (int i = 0; ok && i < s->n; i++) {
        product *p = &s->products[i];
        int64_t shape[WF_MAX_DIMS];
        size_t bytes = wf_bound_bytes(s->plan, p->x);
        float *x = malloc(bytes + 1);
        ok = x && wf_bound_shape(s->plan, p->x, shape) == 3 && wf_fetch(s->plan, p->x, x, bytes);
        if (ok) count_calls(p, x, shape, p->whole ? pairs->src_length : tgt_length);
        free(x);
    }
    const char *why = wf_plan_error(s->plan);
    for (int i = 0; ok && i < s->n; i++)
        if (!isfinite(s->products[i].squares))
            return fail(message, "what is multiplied by '%.120s' is not finite",
                        s->products[i].weight->name);
    return ok || fail(message, "%s", why[0] ? why : "out of memory");
}

float wf_marian_scale(const wf_marian_scales *s, const wf_tensor *weight, int part) {
    for (int i = 0; i < s->n; i++) {
        const product *p = &s->products[i];
        if (p->weight != weight || part < p->first || part >= p->first + p->parts) continue;
        if (!(p->calls > 0)) return 0;
        double mean = p->sum / p->calls, variance = fmax(p->squares / p->calls - mean * mean, 0);
        double largest = mean + 1.1 * sqrt(variance);
        return (float)(127 / fmax(largest, 1e-30)); /* finite, if all are zeros */
    }
    return 0;
}
