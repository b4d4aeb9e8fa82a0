/* models/decode/few_logits.c - the logits of a shortlist's candidates alone.
 *
 * A decoding step ends with `hidden`, the last layer's output. The rows of the output matrix for
 * all candidates of the batch are copied once, in the matrix's layout, into a graph of one product.
 * Each logit is a sum of its own, and each int8 row has its own scale. So a logit has the bits that
 * the whole product gives it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/graph_internal.h"
#include "core/lend.h"
#include "core/record/record.h"
#include "models/model_internal.h"
#include "narrow.h"
#include "nn/layers_internal.h"
#include "ops/base/panels.h"

struct few_logits {
    wf_graph *graph;
    wf_tensor *hidden, *logits; /* [B,D], [B,n] */
    wf_plan *plan;
    int32_t *ids; /* [n] ascending */
    int64_t n, vocab;
    /* [rows,V] logits: those of ids, and minus infinity for all other tokens */
    char *rows;
    size_t bytes;
};

void wf_few_logits_close(few_logits *few) {
    if (!few) return;
    wf_plan_free(few->plan);
    wf_graph_free(few->graph);
    wf_memory_free(few->rows, few->bytes);
    free(few->ids);
    free(few);
}

/* ---- the matrix ------------------------------------------------------------------------------ */

static wf_view view_of(const wf_tensor *t, void *data) {
    wf_view v;
    wf_set_shape(&v, t->dtype, t->ndim, t->shape);
    v.layout = wf_layout_of(t);
    v.data = data;
    return v;
}

/* A parameter of the small graph with those rows of `of` that few->ids names, in the same layout.
 * NULL: out of memory. */
static wf_tensor *taken(few_logits *few, const char *name, wf_tensor *of) {
    int64_t shape[] = { few->n, of->ndim > 1 ? of->shape[1] : 1 };
    wf_tensor *t = wf_param(few->graph, name, of->ndim, shape, wf_init_zeros());
    void *data = NULL, *all = wf_leaf_data(of);
    bool ok = all && wf_ok(few->graph) && (of->ndim < 2 || wf_set_layout(t, wf_layout_of(of)));
    if (!ok || !wf_leaf_reserve(t, &data)) return NULL;
    wf_view from = view_of(of, all), to = view_of(t, data);
    ok = wf_take_rows(&from, few->ids, &to);
    wf_leaf_settle(t, data, ok);
    return ok ? t : NULL;
}

static bool record(few_logits *few, const wf_model *m, int64_t most_rows, wf_pool *pool) {
    few->graph = wf_graph_new(&(wf_graph_options){ .real = wf_real(m->graph) });
    struct wf_linear_layer output = { .weight = taken(few, "weight", m->output_weight) };
    if (m->output_bias) output.bias = taken(few, "bias", m->output_bias);
    if (!output.weight || (m->output_bias && !output.bias)) return false;
    int64_t shape[] = { wf_extent(few->graph, "B", most_rows), m->output_weight->shape[1] };
    few->hidden = wf_input(few->graph, "hidden", wf_real(m->graph), 2, shape);
    few->logits = wf_linear(&output, few->hidden);
    wf_plan_options o = { .fetch = &few->logits, .n_fetch = 1, .feed = &few->hidden, .n_feed = 1 };
    o.pool = pool;
    few->plan = wf_plan_new(few->graph, &o);
    return wf_plan_ok(few->plan);
}

/* ---- a step ---------------------------------------------------------------------------------- */

/* Allocates the rows of a search, filled with minus infinity. */
static bool make_rows(few_logits *few, wf_dtype real, int64_t most_rows) {
    int64_t n = most_rows * few->vocab;
    few->bytes = (size_t)n * wf_dtype_size(real);
    few->rows = wf_memory_new(few->bytes);
    for (int64_t i = 0; few->rows && i < n; i++) wf_logit_put(real, few->rows, i, -INFINITY);
    return few->rows;
}

/* Marks ids as wanted. Returns how many were not marked before. */
static int64_t mark(unsigned char *wanted, const int32_t *ids, int64_t n) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        count += !wanted[ids[i]];
        wanted[ids[i]] = 1;
    }
    return count;
}

static bool open_few(few_logits *few, search *q, const unsigned char *wanted) {
    const wf_model *m = q->d->model;
    int64_t most_rows = (int64_t)q->b * q->width;
    few->vocab = m->tgt_vocab;
    few->ids = malloc((size_t)few->vocab * sizeof *few->ids);
    for (int32_t id = 0; few->ids && id < few->vocab; id++)
        if (wanted[id]) few->ids[few->n++] = id;
    return few->ids && make_rows(few, wf_real(m->graph), most_rows) &&
           record(few, m, most_rows, q->d->pool);
}

/* Why open_few failed. */
static const char *reason(const few_logits *few) {
    const char *why = few && few->graph ? wf_error(few->graph) : "";
    if (!why[0] && few && few->plan) why = wf_plan_error(few->plan);
    return why[0] ? why : "out of memory";
}

bool wf_few_logits_open(search *q, const int32_t *ids, int64_t n, few_logits **few) {
    const wf_model *m = q->d->model;
    if (!m->output_weight || m->output_weight->kind != WF_PARAM) return true;
    if (m->output_bias && m->output_bias->kind != WF_PARAM) return true;
    unsigned char *wanted = calloc((size_t)m->tgt_vocab, 1);
    if (!wanted) return wf_decoder_fail(q->d, "out of memory");
    bool ok = true;
    /* copying more than half of the matrix's rows costs more than it saves */
    if (mark(wanted, ids, n) <= m->tgt_vocab / 2) {
        *few = calloc(1, sizeof **few);
        ok = (*few && open_few(*few, q, wanted)) || wf_decoder_fail(q->d, "%s", reason(*few));
        ok = ok && wf_decoder_stop_at_hidden(q->d);
    }
    free(wanted);
    return ok;
}

#define SPREAD(real)                                                                               \
    static void spread_##real(const few_logits *few, const real *from, int rows) {                 \
        real *to = (real *)(void *)few->rows;                                                      \
        for (int row = 0; row < rows; row++, from += few->n, to += few->vocab)                     \
            for (int64_t i = 0; i < few->n; i++) to[few->ids[i]] = from[i];                        \
    }
SPREAD(float)
SPREAD(double)

bool wf_few_logits_compute(few_logits *few, wf_decoder *d, int rows) {
    wf_plan *p = few->plan;
    size_t bytes = (size_t)(rows * few->hidden->shape[1]) * wf_dtype_size(few->hidden->dtype);
    bool ok = wf_bind(p, "B", rows) && wf_feed(p, few->hidden, d->logits, bytes) && wf_run(p);
    const void *found = ok ? wf_fetched(p, few->logits) : NULL;
    if (!found) return wf_decoder_fail_plan(d, p);
    if (few->logits->dtype == WF_F64)
        spread_double(few, found, rows);
    else
        spread_float(few, found, rows);
    d->logits = few->rows;
    return true;
}
