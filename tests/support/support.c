/* tests/support/support.c - see support.h. */
#include "support.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/random.h"

/* ---- the tally: a part for each suite, in memory that all processes share ----------------- */

typedef struct tally_row {
    int64_t count;
    double worst;
} tally_row;
typedef tally_row tally_rows[TALLY_KINDS];
static tally_rows *tallies, *tally_here;
static int tally_parts;

bool tally_open(int parts) {
    size_t bytes = (size_t)parts * sizeof(tally_rows);
    FILE *file = tmpfile();
    if (!file || ftruncate(fileno(file), (off_t)bytes) != 0) return false;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    fclose(file);
    if (memory == MAP_FAILED) return false;
    tallies = tally_here = memory;
    tally_parts = parts;
    return true;
}

void tally_part(int part) {
    tally_here = &tallies[part];
}

void tally_note(tally kind, double error) {
    if (!tally_here) return;
    tally_row *row = &(*tally_here)[kind];
    row->count++;
    if (!(error <= row->worst)) row->worst = error;
}

static tally_row tally_sum(tally kind) {
    tally_row sum = { 0 };
    for (int i = 0; i < tally_parts; i++) {
        tally_row part = tallies[i][kind];
        sum.count += part.count;
        if (!(part.worst <= sum.worst)) sum.worst = part.worst;
    }
    return sum;
}

void tally_print(void) {
    static const struct {
        const char *what;
        double bound;
    } line[TALLY_KINDS] = {
        [TALLY_ROWS] = { "rows in the table of ops", 0 },
        [TALLY_OPS] = { "ops, each with a row", 0 },
        [TALLY_FIRST_ORDER] = { "gradient checks, first order", 1e-8 },
        [TALLY_SECOND_ORDER] = { "gradient checks, second order", 1e-7 },
        [TALLY_TORCH_F32] = { "PyTorch comparisons, f32", 1e-5 },
        [TALLY_TORCH_F64] = { "PyTorch comparisons, f64", 1e-10 },
        [TALLY_F32_F64] = { "f32 against f64", 1e-5 },
        [TALLY_DECOMPOSED] = { "fused against decomposed", 1e-11 },
        [TALLY_EXTENTS] = { "rows with a size by name", 0 },
        [TALLY_EMPTY] = { "runs of rows with a size of 0", 0 },
        [TALLY_FAULTS] = { "injected failures survived", 0 },
    };
    for (int i = 0; i < TALLY_KINDS; i++) {
        tally_row sum = tally_sum((tally)i);
        if (sum.count == 0) continue;
        printf("%6lld %s", (long long)sum.count, line[i].what);
        if (line[i].bound > 0)
            printf(": largest error %.2g (bound %.0e)", sum.worst, line[i].bound);
        printf("\n");
    }
}

/* ---- graphs and leaves ----------------------------------------------------------------------- */

wf_graph *new_graph(wf_dtype real) {
    wf_graph *g = wf_graph_new(&(wf_graph_options){ .real = real, .seed = 7 });
    ck_assert_msg(wf_ok(g), "%s", wf_error(g));
    return g;
}

void end_graph(wf_graph *g) {
    ck_assert_msg(wf_ok(g), "%s", wf_error(g));
    wf_graph_free(g);
}

bool write_doubles(wf_tensor *leaf, const double *data) {
    int64_t n = wf_count(leaf);
    if (leaf->dtype == WF_F64) return wf_write(leaf, data, wf_bytes(leaf));
    float *narrow = malloc((size_t)n * 4 + 1);
    ck_assert_ptr_nonnull(narrow);
    for (int64_t i = 0; i < n; i++) {
        if (leaf->dtype == WF_F32)
            narrow[i] = (float)data[i];
        else
            ((int32_t *)(void *)narrow)[i] = (int32_t)data[i];
    }
    bool ok = wf_write(leaf, narrow, wf_bytes(leaf));
    free(narrow);
    return ok;
}

wf_tensor *param_of(wf_graph *g, const char *name, int ndim, const int64_t *shape,
                    const double *data) {
    wf_tensor *t = wf_param(g, name, ndim, shape, wf_init_zeros());
    ck_assert_msg(wf_ok(g), "%s", wf_error(g));
    ck_assert_msg(write_doubles(t, data), "cannot write %s", name);
    return t;
}

wf_tensor *ids_of(wf_graph *g, const char *name, int ndim, const int64_t *shape,
                  const int32_t *data) {
    wf_tensor *t = wf_buffer(g, name, WF_I32, ndim, shape, wf_init_zeros());
    ck_assert_msg(wf_ok(g), "%s", wf_error(g));
    ck_assert_msg(wf_write(t, data, wf_bytes(t)), "cannot write %s", name);
    return t;
}

/* Converts n elements of 4 bytes to doubles in the same buffer, from the last to the first. */
static void widen(double *data, int64_t n, wf_dtype dtype) {
    const char *bytes = (const char *)data;
    for (int64_t i = n - 1; i >= 0 && dtype != WF_F64; i--) {
        float real;
        int32_t id;
        memcpy(&real, bytes + 4 * i, 4), memcpy(&id, bytes + 4 * i, 4);
        data[i] = dtype == WF_F32 ? (double)real : (double)id;
    }
}

double *leaf_values(const wf_tensor *leaf) {
    double *data = malloc((size_t)wf_count(leaf) * sizeof *data + 1);
    ck_assert_ptr_nonnull(data);
    ck_assert_msg(wf_read(leaf, data, wf_bytes(leaf)), "cannot read %s", leaf->name);
    widen(data, wf_count(leaf), leaf->dtype);
    return data;
}

/* ---- plans ----------------------------------------------------------------------------------- */

double *plan_values(wf_plan *p, const wf_tensor *t, int64_t *count) {
    int64_t shape[WF_MAX_DIMS], n = 1;
    int ndim = wf_bound_shape(p, t, shape);
    ck_assert_msg(ndim >= 0, "%s", wf_plan_error(p));
    for (int i = 0; i < ndim; i++) n *= shape[i];
    ck_assert_uint_eq(wf_bound_bytes(p, t), (size_t)n * wf_dtype_size(t->dtype));
    double *data = malloc((size_t)n * sizeof *data + 1);
    ck_assert_ptr_nonnull(data);
    ck_assert_msg(wf_fetch(p, t, data, wf_bound_bytes(p, t)), "%s", wf_plan_error(p));
    widen(data, n, t->dtype);
    if (count) *count = n;
    return data;
}

void evaluate_as(wf_plan_options o, int threads, values *out) {
    wf_graph *g = o.fetch[0]->graph;
    ck_assert_msg(wf_ok(g), "%s", wf_error(g));
    o.pool = threads > 1 ? wf_pool_new(threads) : NULL;
    wf_plan *p = wf_plan_new(g, &o);
    ck_assert_msg(wf_plan_ok(p), "%s", wf_plan_error(p));
    ck_assert_msg(wf_run(p), "%s", wf_plan_error(p));
    for (int i = 0; i < o.n_fetch; i++) out[i].data = plan_values(p, o.fetch[i], &out[i].count);
    wf_plan_free(p), wf_pool_free(o.pool);
}

void evaluate(wf_tensor *const *fetch, int n, int threads, bool training, values *out) {
    wf_plan_options o = { .fetch = fetch, .n_fetch = n, .training = training };
    evaluate_as(o, threads, out);
}

void free_values(values *v, int n) {
    for (int i = 0; i < n; i++) free(v[i].data);
}

double evaluate_scalar(wf_tensor *t) {
    values v;
    evaluate(&t, 1, 1, false, &v);
    ck_assert_int_eq(v.count, 1);
    double x = v.data[0];
    free_values(&v, 1);
    return x;
}

double distance(values a, values b) {
    double gap = 0, size = 0;
    if (a.count != b.count) return NAN;
    for (int64_t i = 0; i < a.count; i++) {
        double x = a.data[i], y = b.data[i];
        if (x == y || (isnan(x) && isnan(y))) continue;
        if (!isfinite(x) || !isfinite(y)) return NAN;
        gap = fmax(gap, fabs(x - y));
    }
    for (int64_t i = 0; i < b.count; i++)
        if (isfinite(b.data[i])) size = fmax(size, fabs(b.data[i]));
    return gap == 0 ? 0 : gap / fmax(size, 1e-30);
}

bool same_bits(values a, values b) {
    return a.count == b.count && memcmp(a.data, b.data, (size_t)a.count * sizeof *a.data) == 0;
}

/* ---- numbers and names ----------------------------------------------------------------------- */

double number(uint64_t key, uint64_t i) {
    wf_philox r = wf_philox4x32(key, i, 0);
    return wf_unit_double(r.v[0], r.v[1]);
}

uint64_t key_of(const char *name, uint64_t salt) {
    return wf_hash_bytes(salt, name, strlen(name));
}

#ifndef WEFT_TEST_DATA
#define WEFT_TEST_DATA "tests/data"
#endif

char *source_path(const char *relative, char *buffer, size_t size) {
    snprintf(buffer, size, "%s/../../%s", WEFT_TEST_DATA, relative);
    return buffer;
}
