/* tools/generate/attention_maps.c - attention weights as JSON and as heat maps. See
 * attention_maps.h. */
#include "attention_maps.h"
#include "models/model_internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/refused.h"
#include "tools/draw/svg.h"

/* The attention map whose queries are the tokens of the output. */
static const wf_attention_map *pictured(const attention *a) {
    return &a->model->maps[a->model->n_maps - 1];
}

bool attention_new(attention *a, wf_model *m, const language *l, wf_pool *pool, char *message) {
    *a = (attention){ m, l, wf_model_plan(m, WF_PLAN_ATTENTION, pool), .tgt = NULL };
    a->tgt = calloc((size_t)m->max_len + 1, sizeof *a->tgt);
    if (m->n_maps == 0 || pictured(a)->layers == 0)
        return refused(message, "it has no layers, so no attention to show");
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
    const wf_model *m = a->model;
    wf_plan *p = a->plan;
    int32_t src_length = (int32_t)n;
    a->src = src;
    a->n = n;
    a->t = length + 1; /* at most max_len, a limit that decoding observes */
    a->tgt[0] = m->start_id;
    memcpy(a->tgt + 1, output, (size_t)length * sizeof *output);
    a->tgt[a->t] = m->end_id;
    const wf_batch one = { 1, n, a->t, src, &src_length, a->tgt, NULL };
    bool ok = wf_model_feed(m, p, &one) && wf_run(p);
    if (!ok) snprintf(message, 256, "%s", wf_plan_error(p));
    return ok;
}

bool attention_is_svg(const char *path) {
    const char *suffix = strrchr(path, '.');
    return suffix && strcmp(suffix, ".svg") == 0;
}

float *attention_weights(attention *a, const wf_tensor *weights, int64_t shape[WF_MAX_DIMS]) {
    float *values = NULL;
    size_t bytes = wf_bound_bytes(a->plan, weights);
    if (wf_bound_shape(a->plan, weights, shape) == 4) values = malloc(bytes);
    if (values && wf_fetch(a->plan, weights, values, bytes)) return values;
    free(values);
    return NULL;
}

static void matrix_json(jsonl *out, const float *w, int64_t rows, int64_t columns) {
    json_open(out, NULL, '[');
    for (int64_t i = 0; i < rows; i++) {
        json_open(out, NULL, '[');
        for (int64_t j = 0; j < columns; j++) json_digits(out, NULL, w[i * columns + j], 6);
        json_close(out, ']');
    }
    json_close(out, ']');
}

/* Writes ,"<name>":[[head, head, ...], layer, ...]. Every head has rows for queries and columns for
 * keys. */
static bool map_json(attention *a, const wf_attention_map *map, jsonl *out) {
    json_open(out, map->name, '[');
    for (int64_t layer = 0; layer < map->layers; layer++) {
        int64_t shape[WF_MAX_DIMS];
        float *w = attention_weights(a, map->weights[layer], shape);
        if (!w) return false;
        json_open(out, NULL, '[');
        for (int64_t h = 0; h < shape[1]; h++)
            matrix_json(out, w + h * shape[2] * shape[3], shape[2], shape[3]);
        json_close(out, ']');
        free(w);
    }
    json_close(out, ']');
    return true;
}

bool labels_json(const language *l, int side, const int32_t *ids, int64_t n, jsonl *out) {
    char text[LABEL_TEXT];
    for (int64_t i = 0; i < n; i++) {
        const char *label = language_label(l, side, ids[i], text);
        if (!label) return false;
        json_text(out, NULL, label);
    }
    return true;
}

/* Writes ,"<side>":[ids] and, for text, ,"<side>_tokens":[readable pieces]. False: out of
 * memory. */
static bool ids_json(const attention *a, const char *name, int side, const int32_t *ids, int64_t n,
                     jsonl *out) {
    char key[40];
    json_ints(out, name, ids, n);
    if (!a->language->text) return true;
    snprintf(key, sizeof key, "%s_tokens", name);
    json_open(out, key, '[');
    bool ok = labels_json(a->language, side, ids, n, out);
    json_close(out, ']');
    return ok;
}

bool attention_json(attention *a, jsonl *out) {
    json_begin(out, "attention");
    bool ok = ids_json(a, "source", SIDE_SRC, a->src, a->n, out) &&
              ids_json(a, "target", SIDE_TGT, a->tgt, a->t, out);
    for (int i = 0; i < a->model->n_maps && ok; i++) ok = map_json(a, &a->model->maps[i], out);
    json_end(out);
    return ok && !out->failed;
}

/* ---- pictures -------------------------------------------------------------------------------- */

const char *attention_title(const attention *a, char text[80]) {
    bool cross = pictured(a)->source_keys;
    long long layers = (long long)pictured(a)->layers;
    snprintf(text, 80, "%s of %s %lld of %lld", cross ? "cross-attention" : "self-attention",
             cross ? "decoder layer" : "layer", layers, layers);
    return text;
}

int64_t attention_columns(const attention *a) {
    return pictured(a)->source_keys ? a->n : wf_model_begin(a->model, a->n) + a->t;
}

float *attention_picture(attention *a, int64_t *heads) {
    int64_t shape[WF_MAX_DIMS], columns = attention_columns(a);
    float *w = attention_weights(a, pictured(a)->weights[pictured(a)->layers - 1], shape);
    if (!w) return NULL;
    int64_t skipped = shape[2] - a->t; /* a decoder-only model has rows for the source, too */
    *heads = shape[1];
    for (int64_t h = 0; skipped && h < shape[1]; h++)
        memmove(w + h * a->t * columns, w + (h * shape[2] + skipped) * columns,
                (size_t)(a->t * columns) * sizeof *w);
    return w;
}

/* Allocates labels and their text in one block. NULL: out of memory. */
static const char **labels_new(int64_t n, char **text) {
    const char **labels = malloc((size_t)n * (sizeof *labels + LABEL_TEXT));
    *text = (char *)(labels + n);
    return labels;
}

/* False: out of memory. */
static bool add_labels(const attention *a, int side, const int32_t *ids, int64_t n,
                       const char **labels, char *text) {
    for (int64_t i = 0; i < n; i++, text += LABEL_TEXT) {
        labels[i] = language_label(a->language, side, ids[i], text);
        if (!labels[i]) return false;
    }
    return true;
}

static const char **labels_or_null(const char **labels, bool ok) {
    if (ok) return labels;
    free(labels);
    return NULL;
}

const char **attention_row_labels(const attention *a) {
    char *text;
    const char **labels = labels_new(a->t, &text);
    bool ok = labels && add_labels(a, SIDE_TGT, a->tgt + 1, a->t, labels, text);
    /* for text the end is written </s>; in numbers it has no symbol */
    if (ok && !a->language->text)
        snprintf(text + (a->t - 1) * LABEL_TEXT, LABEL_TEXT, "%d (end)", (int)a->tgt[a->t]);
    return labels_or_null(labels, ok);
}

/* Moves the label of the start token, which follows n source tokens, to the front, where the model
 * has read it. */
static void start_before(const char **labels, int64_t n) {
    const char *start = labels[n];
    memmove(labels + 1, labels, (size_t)n * sizeof *labels);
    labels[0] = start;
}

const char **attention_column_labels(const attention *a) {
    char *text;
    int64_t n = attention_columns(a);
    const char **labels = labels_new(n, &text);
    bool ok = labels && add_labels(a, SIDE_SRC, a->src, a->n, labels, text);
    /* 1 if the model read the source's first token in the place of the start token, else 0 */
    int64_t begun = a->model->start_if_empty && a->n > 0;
    if (ok && n > a->n)
        ok = add_labels(a, SIDE_TGT, a->tgt + begun, a->t - begun, labels + a->n,
                        text + a->n * LABEL_TEXT);
    if (ok && n > a->n && a->model->start_first && !begun) start_before(labels, a->n);
    return labels_or_null(labels, ok);
}

/* Draws the last layer's map with a function of tools/draw. */
static bool draw_map(attention *a, FILE *out, bool capital,
                     bool (*draw)(FILE *, const struct svg_heat_map *)) {
    int64_t heads = 0;
    char title[80];
    const char **rows = attention_row_labels(a), **columns = attention_column_labels(a);
    float *w = attention_picture(a, &heads);
    attention_title(a, title);
    if (capital) title[0] = (char)toupper((unsigned char)title[0]);
    const char *axis = pictured(a)->source_keys ? "the source tokens" : "the tokens before it";
    bool ok = rows && columns && w &&
              draw(out, &(struct svg_heat_map){ .title = title,
                                                .weights = w,
                                                .heads = heads,
                                                .rows = a->t,
                                                .columns = attention_columns(a),
                                                .row_labels = rows,
                                                .column_labels = columns,
                                                .row_axis = "the token being written",
                                                .column_axis = axis });
    free(w);
    free(rows);
    free(columns);
    return ok;
}

bool attention_svg(attention *a, FILE *out) {
    return draw_map(a, out, true, svg_heat_map);
}

bool attention_text(attention *a, FILE *out) {
    return draw_map(a, out, false, text_heat_map);
}
