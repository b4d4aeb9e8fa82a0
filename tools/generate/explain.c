/* tools/generate/explain.c - writes the page about one line: its texts and the attention. See
 * explain.h. */
#include "explain.h"
#include "models/model_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/utf8.h"
#include "generate.h"
#include "tools/page/page.h"

/* The most attention weights in the page, over all maps. */
enum { MOST_WEIGHTS = 130000, TITLE_TEXT = 60 };

struct explanation {
    tree tree;
    stack stack;
    attention attention; /* its plan also fetches the nodes of `stack` */
    bool written;
};

/* ---- opening --------------------------------------------------------------------------------- */

/* The callback after each step of the search, which records the step in the tree. Its user pointer
 * is the job, as that of the callback for --stream. */
static bool watch(void *listener, const wf_search_step *step) {
    job *j = listener;
    if (!tree_add(&j->explanation->tree, step)) fail(j->program, "out of memory for --explain");
    return true;
}

/* A plan that fetches every node of the forward pass of one pair. */
static wf_plan *plan_of(const job *j, const stack *s) {
    wf_tensor *feed[3];
    int n = 0;
    if (j->model->src) {
        feed[n++] = j->model->src;
        feed[n++] = j->model->src_length;
    }
    feed[n++] = j->model->tgt;
    wf_plan_options o = { s->nodes, s->n, feed, n, .pool = j->pool };
    return wf_plan_new(j->model->graph, &o);
}

void open_explanation(job *j) {
    if (!j->set->explain) return;
    explanation *e = j->explanation = calloc(1, sizeof *e);
    if (!e || !stack_open(&e->stack, j->model) ||
        !tree_open(&e->tree, &j->options, j->model->tgt_vocab))
        fail(j->program, "out of memory for --explain");
    e->attention = (attention){ j->model, &j->language, plan_of(j, &e->stack), .tgt = NULL };
    e->attention.tgt = calloc((size_t)j->model->max_len + 1, sizeof *e->attention.tgt);
    if (!wf_plan_ok(e->attention.plan))
        fail(j->program, "--explain: %s", wf_plan_error(e->attention.plan));
    if (!e->attention.tgt) fail(j->program, "out of memory for --explain");
    j->options.watched = watch;
    j->options.listener = j;
}

void close_explanation(job *j) {
    explanation *e = j->explanation;
    if (!e) return;
    tree_close(&e->tree);
    stack_close(&e->stack);
    attention_free(&e->attention);
    free(e);
}

/* ---- texts and pieces ------------------------------------------------------------------------ */

/* Writes the tokens of a side: "<name>_ids" and "<name>_pieces". */
static bool pieces_json(const job *j, const char *name, int side, const int32_t *ids, int64_t n,
                        jsonl *out) {
    char key[40];
    snprintf(key, sizeof key, "%s_ids", name);
    json_ints(out, key, ids, n);
    snprintf(key, sizeof key, "%s_pieces", name);
    json_open(out, key, '[');
    bool ok = labels_json(&j->language, side, ids, n, out);
    json_close(out, ']');
    return ok;
}

/* Writes the tokens that the decoder read, which label the attention rows of the output. */
static bool fed_json(const job *j, jsonl *out) {
    const attention *a = &j->explanation->attention;
    const language *l = &j->language;
    json_open(out, "fed_pieces", '[');
    int64_t before = wf_model_begin(j->model, a->n);
    /* the source's first token takes the place of the start */
    bool begun = j->model->start_if_empty && a->n > 0;
    bool start_is_there = j->model->start_first && before && !begun;
    int64_t shown = start_is_there || begun; /* of a->tgt, before its other tokens */
    bool ok = labels_json(l, SIDE_TGT, a->tgt, start_is_there, out) &&
              labels_json(l, SIDE_SRC, a->src, before + begun, out) &&
              labels_json(l, SIDE_TGT, a->tgt + shown, a->t - shown, out);
    json_close(out, ']');
    json_int(out, "fed_before", before);
    return ok;
}

static bool outputs_json(const job *j, const sentence *s, jsonl *out) {
    bool ok = true;
    json_open(out, "outputs", '[');
    for (int k = 0; ok && k < s->decoded.n; k++) {
        const wf_hypothesis *h = &s->decoded.best[k];
        size_t bytes;
        char *text = output_text(j, h, &bytes);
        json_open(out, NULL, '{');
        json_key(out, "text");
        json_bytes(out, text, bytes);
        ok = pieces_json(j, "output", SIDE_TGT, h->tokens, h->length, out);
        json_reals(out, "log_probs", h->log_probs, h->length + 1);
        json_real(out, "total", h->total);
        json_real(out, "score", h->score);
        json_bool(out, "cut", h->cut);
        json_close(out, '}');
        free(text);
    }
    json_close(out, ']');
    return ok;
}

static bool model_json(const job *j, const sentence *s, jsonl *out) {
    char text[256], end[LABEL_TEXT];
    wf_model_text(j->model, text);
    json_text(out, "file", j->set->model);
    json_text(out, "model", text);
    json_int(out, "parameters", wf_model_parameter_count(j->model));
    json_int(out, "vocabulary", j->model->tgt_vocab);
    json_bool(out, "in_one_row", !j->model->src);
    json_bool(out, "text", j->language.text);
    json_int(out, "end_id", j->model->end_id);
    const char *label = language_label(&j->language, SIDE_TGT, j->model->end_id, end);
    json_text(out, "end_piece", j->language.text && label ? label : "end");
    json_text(out, "source", s->source);
    return label && pieces_json(j, "source", SIDE_SRC, s->ids, s->src_length, out);
}

/* ---- attention ------------------------------------------------------------------------------- */

/* The part of a map that fits in the page. */
typedef struct part {
    int64_t heads, first_layer, first_row;
    int64_t shape[WF_MAX_DIMS]; /* [1, heads, rows, columns] of the whole map */
} part;

/* Chooses a part with at most `most` weights: the last heads are left out first, then the first
 * layers, then the first rows. One row of one layer and head always stays. */
static bool choose_part(attention *a, const wf_attention_map *map, int64_t most, part *p) {
    *p = (part){ 0 };
    if (wf_bound_shape(a->plan, map->weights[0], p->shape) != 4) return false;
    int64_t columns = p->shape[3], size = p->shape[2] * columns;
    int64_t heads = most / (map->layers * size), layers = most / size, rows = most / columns;
    p->heads = heads < p->shape[1] ? heads : p->shape[1];
    if (heads < 1) p->heads = 1;
    if (heads < 1) p->first_layer = map->layers - (layers < 1 ? 1 : layers);
    if (layers < 1) p->first_row = p->shape[2] - (rows < 1 ? 1 : rows);
    return true;
}

/* Packs weights from 0 to 1 as 16-bit numbers, low byte first. Returns the end of the packed
 * bytes. */
static unsigned char *pack(const float *w, int64_t n, unsigned char *bytes) {
    for (int64_t i = 0; i < n; i++) {
        double share = w[i] > 0 ? fmin((double)w[i], 1) : 0; /* a NaN is 0 */
        unsigned x = (unsigned)(share * 65535 + 0.5);
        *bytes++ = (unsigned char)(x & 0xFF);
        *bytes++ = (unsigned char)(x >> 8);
    }
    return bytes;
}

static bool layer_json(attention *a, const wf_tensor *weights, const part *p, jsonl *out) {
    int64_t shape[WF_MAX_DIMS], rows = p->shape[2], columns = p->shape[3];
    int64_t n = (rows - p->first_row) * columns;
    float *w = attention_weights(a, weights, shape);
    unsigned char *bytes = w ? malloc(2 * (size_t)(p->heads * n) + 1) : NULL, *end = bytes;
    for (int64_t h = 0; bytes && h < p->heads; h++)
        end = pack(w + (h * rows + p->first_row) * columns, n, end);
    if (bytes) {
        json_key(out, NULL);
        json_base64(out, bytes, (size_t)(end - bytes));
    }
    bool ok = bytes != NULL;
    free(bytes);
    free(w);
    return ok;
}

static bool map_json(attention *a, const wf_attention_map *map, int64_t most, jsonl *out) {
    part p;
    bool ok = choose_part(a, map, most, &p);
    if (!ok) return false;
    json_open(out, NULL, '{');
    json_text(out, "name", map->name);
    json_bool(out, "source_queries", map->source_queries);
    json_bool(out, "source_keys", map->source_keys);
    json_int(out, "heads", p.heads);
    json_int(out, "all_heads", p.shape[1]);
    json_int(out, "first_layer", p.first_layer);
    json_int(out, "first_row", p.first_row);
    json_int(out, "rows", p.shape[2] - p.first_row);
    json_int(out, "columns", p.shape[3]);
    json_open(out, "layers", '[');
    for (int64_t i = p.first_layer; ok && i < map->layers; i++)
        ok = layer_json(a, map->weights[i], &p, out);
    json_close(out, ']');
    json_close(out, '}');
    return ok;
}

static bool attention_maps_json(attention *a, jsonl *out) {
    const wf_model *m = a->model;
    bool ok = true;
    json_open(out, "attention", '[');
    for (int i = 0; ok && i < m->n_maps; i++)
        if (m->maps[i].layers) ok = map_json(a, &m->maps[i], MOST_WEIGHTS / m->n_maps, out);
    json_close(out, ']');
    return ok;
}

/* ---- the page -------------------------------------------------------------------------------- */

/* Makes the title "weft: ein Mann mit ...", cut between characters. */
static void title_of(const sentence *s, char title[TITLE_TEXT + 16]) {
    size_t n = strlen(s->source), most = TITLE_TEXT;
    bool cut = n > most;
    if (cut) {
        n = most;
        while (n > 0 && wf_utf8_continues(s->source[n])) n--;
    }
    snprintf(title, TITLE_TEXT + 16, "weft: %.*s%s", (int)n, s->source, cut ? " ..." : "");
}

static bool page_json(job *j, const sentence *s, jsonl *data) {
    explanation *e = j->explanation;
    return model_json(j, s, data) && outputs_json(j, s, data) && fed_json(j, data) &&
           tree_json(&e->tree, &j->options, &j->language, data) &&
           attention_maps_json(&e->attention, data) &&
           stack_json(&e->stack, e->attention.plan, data);
}

void explain_answer(job *j, const sentence *s) {
    explanation *e = j->explanation;
    char title[TITLE_TEXT + 16], message[WF_MESSAGE];
    page p;
    if (s->decoded.n == 0) return;
    const wf_hypothesis *h = &s->decoded.best[0];
    if (!attention_run(&e->attention, s->src_length, s->ids, h->length, h->tokens, message))
        fail(j->program, "--explain: %s", message);
    tree_mark(&e->tree, &s->decoded);
    title_of(s, title);
    jsonl *data = page_begin(&p, j->page.stream, title, page_explain_css, page_explain_js);
    bool complete = page_json(j, s, data);
    if (!page_end(&p) || !complete)
        fail(j->program, "%s could not be written: out of memory or disk", j->set->explain);
    e->written = true;
}

bool explanation_written(const job *j) {
    return j->explanation && j->explanation->written;
}
