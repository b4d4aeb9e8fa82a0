/* tools/embed/embed_search.c - finds the lines whose vectors have the largest cosines with a
 * query's vector; see embed.h. All lines are compared. B queries, N lines, E width of a vector. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/op.h"
#include "embed.h"
#include "ops/ops.h"
#include "tools/cli/refused.h"

enum { MOST_QUERIES = 1 << 20 };

/* Writes the vector divided by its length, but not by less than 1e-12. */
static void to_unit(float *to, const float *from, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)from[i] * from[i];
    double length = sqrt(sum) > 1e-12 ? sqrt(sum) : 1e-12;
    for (int64_t i = 0; i < n; i++) to[i] = (float)(from[i] / length);
}

bool collection_add(collection *c, int64_t n, const float *vectors, char *const *text) {
    size_t need = (size_t)(c->n + n), row = (size_t)c->width * sizeof *c->vectors;
    if (!wf_grow(&c->vectors, &c->room_vectors, need, row) ||
        !wf_grow(&c->text, &c->room_text, need, sizeof *c->text))
        return false;
    for (int64_t i = 0; i < n; i++) {
        to_unit(c->vectors + c->n * c->width, vectors + i * c->width, c->width);
        c->text[c->n] = strdup(text[i]);
        if (!c->text[c->n]) return false;
        c->n++;
    }
    return true;
}

bool collection_open(collection *c, wf_pool *pool, char *message) {
    const int64_t shape[] = { c->n, c->width };
    wf_graph *g = c->graph = wf_graph_new(&(wf_graph_options){ .real = WF_F32 });
    int64_t B = wf_extent(g, "B", MOST_QUERIES);
    wf_tensor *rows = wf_param(g, "lines", 2, shape, wf_init_zeros());
    c->query = wf_input(g, "query", WF_F32, 2, (int64_t[]){ B, c->width });
    c->cosines = wf_gemm(c->query, rows, NULL, WF_TRANSPOSE_B); /* [B,N] */
    bool ok = wf_ok(g) && wf_pack_weights(g, WF_PANELS, message);
    ok = ok && wf_write(rows, c->vectors, (size_t)(c->n * c->width) * sizeof *c->vectors);
    if (!ok) return refused(message, "%s", *wf_error(g) ? wf_error(g) : "out of memory");
    const wf_plan_options o = {
        .fetch = &c->cosines, .n_fetch = 1, .feed = &c->query, .n_feed = 1, .pool = pool
    };
    free(c->vectors);
    c->vectors = NULL;
    c->plan = wf_plan_new(g, &o);
    return wf_plan_ok(c->plan) || refused(message, "%s", wf_plan_error(c->plan));
}

void collection_close(collection *c) {
    for (int64_t i = 0; i < c->n; i++) free(c->text[i]);
    free(c->text), free(c->vectors);
    wf_plan_free(c->plan);
    wf_graph_free(c->graph);
}

/* Inserts line i into the best so far, of which there are n; returns how many there are now. */
static int64_t insert(int64_t i, float cosine, int64_t n, int64_t top, int64_t *nearest,
                      float *cosines) {
    if (n == top && !(cosine > cosines[n - 1])) return n;
    int64_t at = n < top ? n++ : n - 1;
    for (; at > 0 && cosine > cosines[at - 1]; at--) {
        cosines[at] = cosines[at - 1];
        nearest[at] = nearest[at - 1];
    }
    cosines[at] = cosine;
    nearest[at] = i;
    return n;
}

/* Compares one of the n vectors at a time with those of all lines, so that memory does not grow
 * with n. */
int64_t collection_search(collection *c, int64_t n, const float *vectors, int64_t top,
                          int64_t *nearest, float *cosines, char *message) {
    const size_t bytes = (size_t)c->width * sizeof *vectors;
    float *unit = malloc(bytes + 1), *all = malloc((size_t)c->n * sizeof *all + 1);
    bool ok = unit && all;
    int64_t found = 0;
    if (!ok) refused(message, "out of memory");
    for (int64_t i = 0; ok && i < n; i++) {
        to_unit(unit, vectors + i * c->width, c->width);
        ok = wf_bind(c->plan, "B", 1) && wf_feed(c->plan, c->query, unit, bytes) &&
             wf_run(c->plan) && wf_fetch(c->plan, c->cosines, all, (size_t)c->n * sizeof *all);
        if (!ok) refused(message, "%s", wf_plan_error(c->plan));
        found = 0;
        for (int64_t k = 0; ok && k < c->n; k++)
            found = insert(k, all[k], found, top, nearest + i * top, cosines + i * top);
    }
    free(unit), free(all);
    return ok ? found : -1;
}
