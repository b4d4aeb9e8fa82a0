/* tools/attention.c - where a model looks, as JSON and as a heat map. See attention.h.
 *
 * A row of weights belongs to the query of one target position: the token fed there is the row's
 * label. */
#include "attention.h"

#include <stdlib.h>

#include "jsonl.h"
#include "svg.h"

bool attention_new(attention *a, wf_transformer *m, wf_pool *pool, char *message) {
    *a = (attention){ m, wf_transformer_attention_plan(m, pool) };
    if (!wf_plan_ok(a->plan)) snprintf(message, 256, "%s", wf_plan_error(a->plan));
    return wf_plan_ok(a->plan);
}

void attention_free(attention *a) {
    wf_plan_free(a->plan);
}

bool attention_run(attention *a, int64_t n, const int32_t *src, int64_t t, const int32_t *tgt,
                   char *message) {
    wf_plan *p = a->plan;
    int32_t length = (int32_t)n;
    bool ok = wf_bind(p, "B", 1) && wf_bind(p, "S", n) && wf_bind(p, "T", t) &&
              wf_feed(p, a->model->src, src) && wf_feed(p, a->model->src_length, &length) &&
              wf_feed(p, a->model->tgt, tgt) && wf_run(p);
    if (!ok) snprintf(message, 256, "%s", wf_plan_error(p));
    return ok;
}

/* The weights [1, H, rows, columns] of one layer, malloc'ed; NULL: none to be had. */
static float *weights_of(attention *a, const wf_tensor *weights, int64_t shape[WF_MAX_DIMS]) {
    float *values = NULL;
    if (wf_bound_shape(a->plan, weights, shape) == 4)
        values = malloc(wf_bound_bytes(a->plan, weights));
    if (values && wf_fetch(a->plan, weights, values)) return values;
    free(values);
    return NULL;
}

static void matrix_json(FILE *out, const float *w, int64_t rows, int64_t columns) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            fputs(j ? "," : i ? "],[" : "[[", out);
            fprintf(out, "%.6g", (double)w[i * columns + j]);
        }
    fputs("]]", out);
}

/* ,"<kind>":[[head, head, ...], layer, ...]: every head is rows of queries over columns of keys. */
static bool kind_json(attention *a, const char *kind, wf_tensor *const *layers, int64_t n,
                      FILE *out) {
    json_key(out, kind);
    for (int64_t layer = 0; layer < n; layer++) {
        int64_t shape[WF_MAX_DIMS];
        float *w = weights_of(a, layers[layer], shape);
        if (!w) return false;
        for (int64_t h = 0; h < shape[1]; h++) {
            fputs(h ? "," : layer ? ",[" : "[[", out);
            matrix_json(out, w + h * shape[2] * shape[3], shape[2], shape[3]);
        }
        fputc(']', out);
        free(w);
    }
    fputc(']', out);
    return true;
}

bool attention_json(attention *a, int64_t n, const int32_t *src, int64_t t, const int32_t *tgt,
                    FILE *out) {
    const wf_transformer *m = a->model;
    int64_t layers = m->config.decoder_layers;
    wf_tensor **self = calloc((size_t)layers, sizeof *self),
              **cross = calloc((size_t)layers, sizeof *cross);
    bool ok = self && cross;
    for (int64_t i = 0; ok && i < layers; i++)
        self[i] = m->decoder_weights[i].self, cross[i] = m->decoder_weights[i].cross;
    if (ok) {
        json_begin(out, "attention");
        json_ints(out, "source", src, n);
        json_ints(out, "target", tgt, t);
        ok = kind_json(a, "encoder_self", m->encoder_weights, m->config.encoder_layers, out) &&
             kind_json(a, "decoder_self", self, layers, out) &&
             kind_json(a, "cross", cross, layers, out);
        json_end(out);
    }
    free(self);
    free(cross);
    return ok && !ferror(out);
}

/* Ids as labels, in one block of memory: free(labels). */
static const char **labels_of(const int32_t *ids, int64_t n) {
    enum { DIGITS = 12 };
    const char **labels = malloc((size_t)n * (sizeof *labels + DIGITS));
    char *text = (char *)(labels + n);
    for (int64_t i = 0; labels && i < n; i++, text += DIGITS) {
        snprintf(text, DIGITS, "%d", (int)ids[i]);
        labels[i] = text;
    }
    return labels;
}

bool attention_svg(attention *a, int64_t n, const int32_t *src, int64_t t, const int32_t *tgt,
                   FILE *out) {
    const wf_transformer *m = a->model;
    int64_t last = m->config.decoder_layers - 1, shape[WF_MAX_DIMS];
    char title[80];
    const char **rows = labels_of(tgt, t), **columns = labels_of(src, n);
    float *w = weights_of(a, m->decoder_weights[last].cross, shape);
    snprintf(title, sizeof title, "Cross-attention of decoder layer %lld", (long long)last);
    bool ok = rows && columns && w &&
              svg_heat_map(out, &(struct svg_heat_map){ .title = title,
                                                        .weights = w,
                                                        .heads = shape[1],
                                                        .rows = t,
                                                        .columns = n,
                                                        .row_labels = rows,
                                                        .column_labels = columns,
                                                        .row_axis = "token fed to the decoder",
                                                        .column_axis = "source token" });
    free(w);
    free(rows);
    free(columns);
    return ok;
}
