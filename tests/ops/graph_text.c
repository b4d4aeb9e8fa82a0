/* tests/ops/graph_text.c - reads programs and records them. */
#include "graph_text.h"

#include "ops/ops_internal.h"
#include "ops/update/sums.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers --------------------------------------------------------------------------------- */

double graph_hash(uint32_t key, uint32_t element) {
    uint32_t h = key * 2654435761u ^ (element + 1) * 2246822519u;
    h = (h ^ h >> 15) * 2654435761u;
    h = (h ^ h >> 13) * 3266489917u;
    return (double)((h ^ h >> 16) >> 20) / 4096;
}

/* Values of leaves of kind e: extreme numbers of f32, and kinks and zeros of functions. */
static const double ends[] = {
    0.0,   -0.0,   1,     -1,     0.5,  -0.5,  2,        1e-3,      -1e-3, 1e-7,
    1e-20, -1e-20, 1e-30, -1e-30, 20,   -20,   80,       -80,       90,    -90,
    700,   -700,   1e4,   -1e4,   1e7,  -1e7,  1e10,     -1e10,     1e19,  -1e19,
    1e30,  -1e30,  1e38,  -1e38,  3e38, -3e38, INFINITY, -INFINITY, NAN,   9.25,
};
enum { ENDS = sizeof ends / sizeof *ends };

/* Element k of a leaf. For kind e: every key-th number of `ends`, each repeated `low` times. */
static double element(char kind, int64_t k, double low, double high, uint32_t key) {
    if (kind == 'e') return (float)ends[k / (int64_t)low * key % ENDS];
    return low + (high - low) * graph_hash(key, (uint32_t)k);
}

static void fill(void *data, char kind, int64_t n, wf_dtype dtype, double low, double high,
                 uint32_t key) {
    for (int64_t k = 0; k < n; k++) {
        double value = element(kind, k, low, high, key);
        if (dtype == WF_F32) ((float *)data)[k] = (float)value;
        if (dtype == WF_F64) ((double *)data)[k] = (double)(float)value;
        if (dtype == WF_I32) ((int32_t *)data)[k] = (int32_t)floor(value);
    }
}

/* ---- the table ------------------------------------------------------------------------------- */

/* graph_torch.py has the same list. */
static const char *const formulas[] = {
    "ij,jk->ik", "ij,kj->ik",    "bij,bjk->bik",   "ij->ji",  "ij->i",       "i,j->ij",
    "ii->i",     "bij,bkj->bik", "...i,...i->...", "ij,ij->", "abc,cd->abd", "ij,ik,il->jkl",
};

static uint32_t axes(int64_t bits) {
    uint32_t set = WF_NO_AXES;
    for (int k = 0; k < WF_MAX_DIMS; k++)
        if (bits >> k & 1) set |= WF_AXIS(k);
    return set;
}

static int rank(const wf_tensor *x) {
    return x->ndim;
}

static const int *orders(const int64_t *i, int n) {
    static _Thread_local int order[WF_MAX_DIMS];
    for (int k = 0; k < n && k < WF_MAX_DIMS; k++) order[k] = (int)i[k];
    return order;
}

static wf_tensor *chunk(wf_tensor *x, int axis, int n, int which) {
    wf_tensor *parts[8];
    if (n > 8) return wf_poison(x->graph, "chunk: more than 8 parts");
    wf_chunk(x, axis, n, parts);
    return parts[which];
}

#define CONVOLUTION(transposed)                                                                    \
    (&(wf_conv_options){ .stride = { i[0], i[1] },                                                 \
                         .padding = { i[2], i[3] ? i[3] : WF_NO_PADDING },                         \
                         .dilation = { i[4], i[5] },                                               \
                         .groups = i[6],                                                           \
                         .output_padding = { (transposed) ? i[7] : 0, (transposed) ? i[8] : 0 } })
#define POOLING                                                                                    \
    (&(wf_pool_options){ .kernel = { i[0], i[1] },                                                 \
                         .stride = { i[2], i[3] },                                                 \
                         .padding = { i[4], i[5] ? i[5] : WF_NO_PADDING },                         \
                         .exclude_pad = i[6] })
#define SPECTRUM                                                                                   \
    (&(wf_stft_options){ .n_fft = i[0],                                                            \
                         .hop_length = i[1],                                                       \
                         .win_length = i[2],                                                       \
                         .window = (wf_window)i[3],                                                \
                         .center = i[4] })
#define ATTENTION (&(wf_attention_options){ .causal = i[0], .window = i[1], .scale = r[0] })

typedef wf_tensor *build(wf_tensor *const *x, int n, const int64_t *i, const double *r);

#define OP(name, expression)                                                                       \
    static wf_tensor *build_##name(wf_tensor *const *x, int n, const int64_t *i,                   \
                                   const double *r) {                                              \
        (void)n, (void)i, (void)r;                                                                 \
        return expression;                                                                         \
    }
#include "graph_ops.inc"
#undef OP

#define OP(name, expression) { #name, build_##name },
static const struct {
    const char *name;
    build *build;
} constructors[] = {
#include "graph_ops.inc"
};
#undef OP

/* ---- programs -------------------------------------------------------------------------------- */

bool graph_program_read(graph_program *p, FILE *file) {
    char line[GRAPH_LINE];
    size_t used = 0, size = 0;
    *p = (graph_program){ 0 };
    while (fgets(line, sizeof line, file)) {
        size_t n = strcspn(line, "\n");
        line[n] = '\0';
        if (strcmp(line, "end") == 0) return true;
        if (used + n + 1 > size) {
            size = 2 * size + n + 4096;
            char *larger = realloc(p->text, size);
            if (!larger) break;
            p->text = larger;
        }
        memcpy(p->text + used, line, n + 1);
        used += n + 1;
        p->lines++;
    }
    graph_program_free(p);
    return false;
}

void graph_program_free(graph_program *p) {
    free(p->text);
    *p = (graph_program){ 0 };
}

/* ---- recording ------------------------------------------------------------------------------- */

static bool problem(graph_record *r, const char *what, const char *name) {
    snprintf(r->problem, sizeof r->problem, "%.40s: %.200s", what, name);
    return false;
}

static void add(graph_record *r, wf_tensor *t) {
    if (r->count < GRAPH_NODES) r->node[r->count++] = t;
}

/* Reads at most `most` numbers, up to '|' or the end of the line. Returns their count; -1 if a word
 * is no number. */
static int reals(char **at, double *out, int most) {
    int n = 0;
    while (**at == ' ') (*at)++;
    while (**at && **at != '|' && n < most) {
        char *end;
        out[n++] = strtod(*at, &end);
        if (end == *at) return -1;
        *at = end;
        while (**at == ' ') (*at)++;
    }
    if (**at == '|') (*at)++;
    return n;
}

static int integers(char **at, int64_t *out, int most) {
    double read[32];
    int n = reals(at, read, most < 32 ? most : 32);
    for (int k = 0; k < n; k++) out[k] = (int64_t)read[k];
    return n;
}

static int nodes(graph_record *r, char **at, wf_tensor **out) {
    int64_t read[32];
    int n = integers(at, read, 32);
    for (int k = 0; k < n; k++) {
        if (read[k] < 0 || read[k] >= r->count) return -1;
        out[k] = r->node[read[k]];
    }
    return n;
}

static bool leaf(graph_record *r, char *at, wf_dtype real) {
    char kind = *at++, name[16];
    double low_high_key[3];
    int64_t shape[WF_MAX_DIMS], given[WF_MAX_DIMS], count = 1, named = 0;
    if (*at == ' ') at++;
    for (int k = 0; k < 3; k++) low_high_key[k] = strtod(at, &at);
    int ndim = integers(&at, shape, WF_MAX_DIMS), i = r->leaves++;
    if (ndim < 0) return problem(r, "leaf", "shape");
    for (int k = 0; k < ndim; k++) {
        count *= shape[k];
        given[k] = shape[k];
        if (r->named == 0 || shape[k] != r->named) continue;
        given[k] = wf_extent(r->g, "N", 64);
        named++;
    }
    r->extents += (int)named;
    wf_dtype dtype = kind == 'n' ? WF_I32 : real;
    snprintf(name, sizeof name, "x%d", i);
    r->bytes[i] = (size_t)count * wf_dtype_size(dtype);
    r->data[i] = malloc(r->bytes[i] + 1);
    if (!r->data[i]) return problem(r, "leaf", "memory");
    fill(r->data[i], kind, count, dtype, low_high_key[0], low_high_key[1],
         (uint32_t)low_high_key[2]);
    if (named || kind == 'i')
        r->leaf[i] = wf_input(r->g, name, dtype, ndim, given);
    else if (kind == 'p' || kind == 'e')
        r->leaf[i] = wf_param(r->g, name, ndim, shape, wf_init_zeros());
    else
        r->leaf[i] = wf_buffer(r->g, name, dtype, ndim, shape, wf_init_zeros());
    if (r->leaf[i]->kind != WF_INPUT) wf_write(r->leaf[i], r->data[i], r->bytes[i]);
    add(r, r->leaf[i]);
    return true;
}

static bool gradients(graph_record *r, char *at) {
    wf_tensor *of[32], *grads[32];
    int n = nodes(r, &at, of);
    if (n < 2) return problem(r, "grad", "operands");
    if (!wf_grad(of[0], of + 1, n - 1, grads)) return problem(r, "grad", wf_error(r->g));
    for (int k = 0; k < n - 1; k++) add(r, grads[k]);
    return true;
}

static bool operation(graph_record *r, const char *name, char *at) {
    wf_tensor *x[32];
    int64_t i[32] = { 0 };
    double real[32] = { 0 };
    int n = nodes(r, &at, x);
    if (n < 1 || integers(&at, i, 32) < 0 || reals(&at, real, 32) < 0)
        return problem(r, name, "operands");
    for (size_t k = 0; k < sizeof constructors / sizeof *constructors; k++) {
        if (strcmp(constructors[k].name, name) != 0) continue;
        add(r, constructors[k].build(x, n, i, real));
        return wf_ok(r->g) || problem(r, name, wf_error(r->g));
    }
    return problem(r, name, "no such op");
}

static bool want(graph_program *p, char *at) {
    double v[5];
    if (reals(&at, v, 5) != 5 || p->wants == GRAPH_NODES) return false;
    p->want[p->wants++] = (graph_want){ (int)v[0], (int64_t)v[1], v[2], v[3], v[4] };
    return true;
}

static bool line(graph_record *r, graph_program *p, char *text, wf_dtype real) {
    char *at = text + strcspn(text, " ");
    if (*at) *at++ = '\0';
    if (strcmp(text, "leaf") == 0) return leaf(r, at, real);
    if (strcmp(text, "grad") == 0) return gradients(r, at);
    if (strncmp(text, "exact", 5) == 0) return true;
    if (strcmp(text, "want") == 0) return want(p, at) || problem(r, "want", at);
    if (strcmp(text, "show") != 0) return operation(r, text, at);
    int64_t shown[GRAPH_NODES];
    p->shown = integers(&at, shown, 32);
    for (int k = 0; k < p->shown; k++) p->show[k] = (int)shown[k];
    return p->shown > 0;
}

bool graph_record_new(graph_record *r, graph_program *p, wf_dtype real, int64_t named) {
    char *text = p->text, copy[GRAPH_LINE];
    memset(r, 0, sizeof *r);
    r->named = named;
    r->g = wf_graph_new(&(wf_graph_options){ .real = real, .seed = 5 });
    p->wants = 0;
    p->shown = 0;
    for (int k = 0; k < p->lines; k++, text += strlen(text) + 1) {
        snprintf(copy, sizeof copy, "%s", text);
        if (!line(r, p, copy, real)) return false;
    }
    return wf_ok(r->g);
}

void graph_record_free(graph_record *r) {
    for (int k = 0; k < r->leaves; k++) free(r->data[k]);
    wf_graph_free(r->g);
}

/* ---- plans ----------------------------------------------------------------------------------- */

wf_plan *graph_plan(graph_record *r, const int *which, int n, wf_pool *pool) {
    wf_tensor *fetch[GRAPH_NODES], *feed[GRAPH_NODES];
    int feeds = 0;
    for (int k = 0; k < n; k++) fetch[k] = r->node[which[k]];
    for (int k = 0; k < r->leaves; k++)
        if (r->leaf[k]->kind == WF_INPUT) feed[feeds++] = r->leaf[k];
    wf_plan *p = wf_plan_new(
        r->g, &(wf_plan_options){
                  .fetch = fetch, .n_fetch = n, .feed = feed, .n_feed = feeds, .pool = pool });
    if (r->named && wf_plan_ok(p)) wf_bind(p, "N", r->named);
    for (int k = 0; k < r->leaves && wf_plan_ok(p); k++)
        if (r->leaf[k]->kind == WF_INPUT) wf_feed(p, r->leaf[k], r->data[k], r->bytes[k]);
    return p;
}

double *graph_values(graph_record *r, wf_plan *plan, int node, int64_t *count) {
    const wf_tensor *t = r->node[node];
    size_t bytes = wf_bound_bytes(plan, t);
    int64_t n = (int64_t)(bytes / wf_dtype_size(t->dtype));
    double *out = malloc((size_t)n * sizeof *out + 8);
    void *raw = malloc(bytes + 1);
    *count = n;
    if (!out || !raw || !wf_fetch(plan, t, raw, bytes)) {
        free(out);
        free(raw);
        return NULL;
    }
    for (int64_t k = 0; k < n; k++) {
        if (t->dtype == WF_F64) out[k] = ((const double *)raw)[k];
        if (t->dtype == WF_F32) out[k] = (double)((const float *)raw)[k];
        if (t->dtype == WF_I32) out[k] = (double)((const int32_t *)raw)[k];
    }
    free(raw);
    return out;
}
