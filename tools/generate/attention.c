/* tools/generate/attention.c - where a model looks, as JSON and as a heat map. See attention.h. */
#include "attention.h"

#include <stdlib.h>
#include <string.h>

#include "tools/draw/svg.h"

bool attention_new(attention *a, wf_transformer *m, const language *l, wf_pool *pool,
                   char *message) {
    *a = (attention){ m, l, wf_transformer_attention_plan(m, pool), .tgt = NULL };
    a->tgt = calloc((size_t)m->config.max_len + 1, sizeof *a->tgt);
    if (m->config.decoder_layers == 0)
        return snprintf(message, 256, "its decoder has no layers, so no attention to show"), false;
    if (!wf_plan_ok(a->plan))
        snprintf(message, 256, "%s", wf_plan_error(a->plan));
    else if (!a->tgt)
        snprintf(message, 256, "out of memory");
    return a->tgt && wf_plan_ok(a->plan);
}

void attention_free(attention *a) {
    wf_plan_free(a->plan);
    free(a->tgt);
}

bool attention_run(attention *a, int64_t n, const int32_t *src, int64_t length,
                   const int32_t *output, char *message) {
    const wf_transformer *m = a->model;
    wf_plan *p = a->plan;
    int32_t src_length = (int32_t)n;
    a->src = src, a->n = n, a->t = length + 1; /* at most max_len: decoding keeps to it */
    a->tgt[0] = m->config.start_id;
    memcpy(a->tgt + 1, output, (size_t)length * sizeof *output);
    a->tgt[a->t] = m->config.end_id;
    bool ok = wf_bind(p, "B", 1) && wf_bind(p, "S", n) && wf_bind(p, "T", a->t) &&
              wf_feed(p, m->src, src) && wf_feed(p, m->src_length, &src_length) &&
              wf_feed(p, m->tgt, a->tgt) && wf_run(p);
    if (!ok) snprintf(message, 256, "%s", wf_plan_error(p));
    return ok;
}

bool attention_is_svg(const char *path) {
    const char *suffix = strrchr(path, '.');
    return suffix && strcmp(suffix, ".svg") == 0;
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

static void matrix_json(jsonl *out, const float *w, int64_t rows, int64_t columns) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            json_raw(out, "%s%.6g", j ? "," : i ? "],[" : "[[", (double)w[i * columns + j]);
    json_raw(out, "]]");
}

/* ,"<kind>":[[head, head, ...], layer, ...]: every head is rows of queries over columns of keys. */
static bool kind_json(attention *a, const char *kind, wf_tensor *const *layers, int64_t n,
                      jsonl *out) {
    json_key(out, kind);
    json_raw(out, "[");
    for (int64_t layer = 0; layer < n; layer++) {
        int64_t shape[WF_MAX_DIMS];
        float *w = weights_of(a, layers[layer], shape);
        if (!w) return false;
        for (int64_t h = 0; h < shape[1]; h++) {
            json_raw(out, h ? "," : layer ? ",[" : "[");
            matrix_json(out, w + h * shape[2] * shape[3], shape[2], shape[3]);
        }
        json_raw(out, "]");
        free(w);
    }
    json_raw(out, "]");
    return true;
}

/* ,"<side>":[ids] and, of text, ,"<side>_tokens":[pieces] */
static void ids_json(const attention *a, const char *name, int side, const int32_t *ids, int64_t n,
                     jsonl *out) {
    char key[40], buffer[PIECE_TEXT];
    json_ints(out, name, ids, n);
    if (!a->language->text) return;
    snprintf(key, sizeof key, "%s_tokens", name);
    json_key(out, key);
    for (int64_t i = 0; i < n; i++) {
        json_raw(out, i ? "," : "[");
        json_string(out, language_piece(a->language, side, ids[i], buffer));
    }
    json_raw(out, "]");
}

bool attention_json(attention *a, jsonl *out) {
    const wf_transformer *m = a->model;
    int64_t layers = m->config.decoder_layers;
    wf_tensor **self = calloc((size_t)layers, sizeof *self),
              **cross = calloc((size_t)layers, sizeof *cross);
    bool ok = self && cross;
    for (int64_t i = 0; ok && i < layers; i++)
        self[i] = m->decoder_weights[i].self, cross[i] = m->decoder_weights[i].cross;
    if (ok) {
        json_begin(out, "attention");
        ids_json(a, "source", SIDE_SRC, a->src, a->n, out);
        ids_json(a, "target", SIDE_TGT, a->tgt, a->t, out);
        ok = kind_json(a, "encoder_self", m->encoder_weights, m->config.encoder_layers, out) &&
             kind_json(a, "decoder_self", self, layers, out) &&
             kind_json(a, "cross", cross, layers, out);
        json_end(out);
    }
    free(self);
    free(cross);
    return ok && !out->failed;
}

/* ---- pictures -------------------------------------------------------------------------------- */

float *attention_cross(attention *a, int64_t shape[WF_MAX_DIMS]) {
    const wf_transformer *m = a->model;
    return weights_of(a, m->decoder_weights[m->config.decoder_layers - 1].cross, shape);
}

const char **attention_labels(const attention *a, int side) {
    int64_t n = side == SIDE_SRC ? a->n : a->t;
    const int32_t *ids = side == SIDE_SRC ? a->src : a->tgt + 1;
    const char **labels = malloc((size_t)n * (sizeof *labels + PIECE_TEXT));
    char *buffer = (char *)(labels + n);
    for (int64_t i = 0; labels && i < n; i++, buffer += PIECE_TEXT) {
        labels[i] = language_piece(a->language, side, ids[i], buffer);
        if (strcmp(labels[i], " ") == 0) labels[i] = "\xE2\x90\xA3"; /* a space that is seen */
    }
    return labels;
}

bool attention_svg(attention *a, FILE *out) {
    int64_t shape[WF_MAX_DIMS];
    char title[80];
    const char **rows = attention_labels(a, SIDE_TGT), **columns = attention_labels(a, SIDE_SRC);
    float *w = attention_cross(a, shape);
    snprintf(title, sizeof title, "Cross-attention of decoder layer %lld",
             (long long)a->model->config.decoder_layers - 1);
    bool ok = rows && columns && w &&
              svg_heat_map(out, &(struct svg_heat_map){ .title = title,
                                                        .weights = w,
                                                        .heads = shape[1],
                                                        .rows = a->t,
                                                        .columns = a->n,
                                                        .row_labels = rows,
                                                        .column_labels = columns,
                                                        .row_axis = "the token being written",
                                                        .column_axis = "the source tokens" });
    free(w);
    free(rows);
    free(columns);
    return ok;
}
