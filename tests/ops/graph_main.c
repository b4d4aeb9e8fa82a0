/* tests/ops/graph_main.c - computes graphs from stdin with weft (graph_text.h is their form) and
 * writes their values, which random_graphs.py compares with PyTorch's.
 *
 * Binary output for each graph: the length of a message and its text; the number of runs with sizes
 * bound later; the number of arrays; each array as a count and doubles. The message is "", or says
 * what was refused or is wrong. The arrays are: each node in f64, from a plan that fetches all
 * nodes; each shown node in f64 from a plan with fused ops, and in f32. This program itself checks
 * that the values keep their bits when two threads compute them, in memory filled with another
 * byte; and when sizes are bound later. If a graph with sizes bound later broadcasts along more
 * axes, its sums have another order, and its values need only agree to 1e-9. */
#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph_text.h"

static wf_pool *pool;

static void poison_memory(int byte) {
#ifdef M_PERTURB
    mallopt(M_PERTURB, byte ^ 0xff);
#else
    (void)byte;
#endif
}

typedef struct results {
    int n;
    int64_t count[GRAPH_NODES];
    double *data[GRAPH_NODES];
} results;

static void free_results(results *v) {
    for (int k = 0; k < v->n; k++) free(v->data[k]);
    v->n = 0;
}

static bool compute(graph_record *r, const int *which, int n, wf_pool *threads, int byte,
                    results *out, char *message) {
    poison_memory(byte);
    wf_plan *p = graph_plan(r, which, n, threads);
    bool ok = wf_plan_ok(p) && wf_run(p);
    if (!ok) snprintf(message, 256, "run: %s", wf_plan_error(p));
    out->n = 0;
    for (int k = 0; ok && k < n; k++) {
        out->data[k] = graph_values(r, p, which[k], &out->count[k]);
        out->n = k + 1;
        if (!out->data[k]) ok = snprintf(message, 256, "fetch: %s", wf_plan_error(p)) < 0;
    }
    wf_plan_free(p);
    return ok;
}

static bool same(const results *a, const results *b) {
    for (int k = 0; k < a->n; k++)
        if (a->count[k] != b->count[k] ||
            memcmp(a->data[k], b->data[k], (size_t)a->count[k] * sizeof(double)) != 0)
            return false;
    return a->n == b->n;
}

static void write_all(const char *message, int32_t named, const results *all, int n) {
    int32_t length = (int32_t)strlen(message), arrays = 0;
    for (int k = 0; k < n; k++) arrays += all[k].n;
    fwrite(&length, 4, 1, stdout);
    fwrite(message, 1, (size_t)length, stdout);
    fwrite(&named, 4, 1, stdout);
    fwrite(&arrays, 4, 1, stdout);
    for (int k = 0; k < n; k++)
        for (int i = 0; i < all[k].n; i++) {
            fwrite(&all[k].count[i], 8, 1, stdout);
            fwrite(all[k].data[i], 8, (size_t)all[k].count[i], stdout);
        }
    fflush(stdout);
}

/* True if each array agrees to 1e-9 of its largest element. */
static bool near(const results *a, const results *b) {
    for (int k = 0; k < a->n; k++) {
        double largest = 0, apart = 0;
        if (a->count[k] != b->count[k]) return false;
        for (int64_t i = 0; i < a->count[k]; i++) {
            largest = fmax(largest, fabs(a->data[k][i]));
            apart = fmax(apart, fabs(a->data[k][i] - b->data[k][i]));
        }
        if (apart > 1e-9 * largest) return false;
    }
    return a->n == b->n;
}

/* True if an axis has size 1 only because of the size that was bound, such as an axis of windows.
 * Then a graph recorded with extents broadcasts along this axis, and its gradients are summed over
 * it, where the other graph has no such sum: products take their addends in another order. */
static bool broadcasts_more(const graph_record *fixed, const graph_record *named) {
    for (int k = 0; k < fixed->count && k < named->count; k++) {
        const wf_tensor *a = fixed->node[k], *b = named->node[k];
        for (int i = 0; a && b && a->ndim == b->ndim && i < a->ndim; i++)
            if (a->shape[i] == 1 && b->shape[i] != 1) return true;
    }
    return false;
}

/* Records the graph twice more, with an extent in place of axes of size 3, and of size 5. If such a
 * graph is not refused, its values must have the bits of `shown`, or agree to 1e-9 if it broadcasts
 * along more axes. Returns how many such graphs were computed. */
static int try_named(graph_program *p, const graph_record *fixed, const results *shown,
                     char *message) {
    char refused[256] = "";
    int computed = 0;
    for (int64_t size = 3; size <= 5; size += 2) {
        static graph_record r;
        results again = { 0 };
        if (graph_record_new(&r, p, WF_F64, size) && r.extents > 0) {
            if (!compute(&r, p->show, p->shown, NULL, 0x55, &again, refused))
                snprintf(message, 256, "NAMED %s", refused);
            else if (broadcasts_more(fixed, &r) ? !near(shown, &again) : !same(shown, &again))
                snprintf(message, 256, "NAMED differs");
            computed++;
        }
        free_results(&again);
        graph_record_free(&r);
    }
    return computed;
}

static void run_program(graph_program *p) {
    static graph_record r, f;
    int all[GRAPH_NODES];
    char message[300] = "";
    results v[3] = { { 0 } }, threads = { 0 };
    for (int k = 0; k < GRAPH_NODES; k++) all[k] = k;
    bool ok = graph_record_new(&r, p, WF_F64, 0);
    if (!ok) snprintf(message, sizeof message, "record: %s", r.problem);
    ok = ok && compute(&r, all, r.count, NULL, 0x55, &v[0], message) &&
         compute(&r, p->show, p->shown, NULL, 0xfe, &v[1], message) &&
         compute(&r, p->show, p->shown, pool, 0x55, &threads, message);
    if (ok && !same(&v[1], &threads)) snprintf(message, sizeof message, "THREADS or MEMORY differ");
    int named = ok ? try_named(p, &r, &v[1], message) : 0;
    if (graph_record_new(&f, p, WF_F32, 0))
        ok = ok && compute(&f, p->show, p->shown, NULL, 0xfe, &v[2], message);
    write_all(message, named, v, ok ? 3 : 0);
    for (int k = 0; k < 3; k++) free_results(&v[k]);
    free_results(&threads);
    graph_record_free(&r);
    graph_record_free(&f);
}

int main(void) {
    graph_program p;
    pool = wf_pool_new(2);
    while (graph_program_read(&p, stdin)) {
        run_program(&p);
        graph_program_free(&p);
    }
    wf_pool_free(pool);
    return 0;
}
