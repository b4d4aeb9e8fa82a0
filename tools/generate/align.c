/* tools/generate/align.c - alignments of words from attention. See align.h. */
#include "align.h"

#include <stdlib.h>
#include <string.h>

#include "core/file_internal.h"

bool align_rule_read(const char *text, align_rule *rule) {
    double threshold = 0;
    if (strcmp(text, "hard") == 0 || strcmp(text, "soft") == 0) {
        *rule = (align_rule){ *text == 'h' ? ALIGN_HARD : ALIGN_SOFT, 0 };
        return true;
    }
    if (!wf_parse_real(text, &threshold) || !(threshold >= 0 && threshold <= 1)) return false;
    *rule = (align_rule){ ALIGN_ABOVE, threshold };
    return true;
}

/* The map with the weights of cross-attention. NULL: there is none. */
static const wf_attention_map *cross_map(const wf_model *m) {
    const wf_attention_map *map = m->n_maps ? &m->maps[m->n_maps - 1] : NULL;
    return map && map->source_keys && !map->source_queries && map->layers ? map : NULL;
}

int64_t align_heads(const wf_model *m) {
    const wf_attention_map *map = cross_map(m);
    return map ? map->weights[map->layers - 1]->shape[1] : 0;
}

/* ---- weights --------------------------------------------------------------------------------- */

/* Adds the weights of one output token, a row in each head, to those of the word that it is in. */
static void add_token(alignment *l, const float *row, int64_t stride, int64_t heads, int64_t word,
                      const token_words *src) {
    float *to = l->weights + word * l->src;
    for (int64_t h = 0; h < heads; h++)
        for (int64_t s = 0; s < src->n; s++)
            if (src->word[s] >= 0) to[src->word[s]] += row[h * stride + s];
}

static void divide(float *row, int64_t n, int64_t by) {
    for (int64_t s = 0; s < n && by > 1; s++) row[s] /= (float)by;
}

static int64_t likeliest(const float *row, int64_t n) {
    int64_t best = -1;
    for (int64_t s = 0; s < n; s++)
        if (row[s] > (best < 0 ? 0 : row[best])) best = s;
    return best;
}

/* Computes the weights between words, and the likeliest source word of each word of the output. w
 * [heads, t, n]: the weights between tokens, for the heads that count. */
static bool add_up(alignment *l, const attention *a, const float *w, int64_t heads,
                   const token_words *src, const token_words *out) {
    int64_t *tokens = calloc((size_t)l->tgt + 1, sizeof *tokens);
    if (!tokens) return false;
    for (int64_t t = 0; t < out->n && t < a->t; t++) {
        if (out->word[t] < 0) continue;
        add_token(l, w + t * a->n, a->t * a->n, heads, out->word[t], src);
        tokens[out->word[t]]++;
    }
    for (int64_t t = 0; t < l->tgt; t++) {
        divide(l->weights + t * l->src, l->src, heads * tokens[t]);
        l->best[t] = likeliest(l->weights + t * l->src, l->src);
    }
    free(tokens);
    return true;
}

bool alignment_new(alignment *l, attention *a, int head, const token_words *src,
                   const token_words *out) {
    int64_t heads = 0;
    float *w = attention_picture(a, &heads);
    *l = (alignment){ .src = src->words, .tgt = out->words };
    l->weights = calloc((size_t)(l->src * l->tgt) + 1, sizeof *l->weights);
    l->best = calloc((size_t)l->tgt + 1, sizeof *l->best);
    const float *used = head > 0 ? w + head * a->t * a->n : w;
    bool ok = w && l->weights && l->best && add_up(l, a, used, head >= 0 ? 1 : heads, src, out);
    free(w);
    if (!ok) alignment_free(l);
    return ok;
}

void alignment_free(alignment *l) {
    free(l->weights);
    free(l->best);
    *l = (alignment){ 0 };
}

/* ---- writing --------------------------------------------------------------------------------- */

static bool linked(const alignment *l, align_rule rule, int64_t s, int64_t t) {
    if (rule.kind == ALIGN_HARD) return l->best[t] == s;
    return l->weights[t * l->src + s] > (float)rule.threshold;
}

void alignment_text(const alignment *l, align_rule rule, FILE *out) {
    fputs(" |||", out);
    for (int64_t s = 0; s < l->src && rule.kind != ALIGN_SOFT; s++)
        for (int64_t t = 0; t < l->tgt; t++)
            if (linked(l, rule, s, t)) fprintf(out, " %lld-%lld", (long long)s, (long long)t);
    for (int64_t t = 0; t < l->tgt && rule.kind == ALIGN_SOFT; t++)
        for (int64_t s = 0; s < l->src; s++)
            fprintf(out, "%c%.6g", s ? ',' : ' ', (double)l->weights[t * l->src + s]);
}

static void links_json(const alignment *l, align_rule rule, jsonl *out) {
    for (int64_t s = 0; s < l->src; s++)
        for (int64_t t = 0; t < l->tgt; t++) {
            if (!linked(l, rule, s, t)) continue;
            json_sizes(out, NULL, (int64_t[]){ s, t }, 2);
        }
}

static void weights_json(const alignment *l, jsonl *out) {
    for (int64_t t = 0; t < l->tgt; t++) {
        json_open(out, NULL, '[');
        for (int64_t s = 0; s < l->src; s++) json_digits(out, NULL, l->weights[t * l->src + s], 6);
        json_close(out, ']');
    }
}

void alignment_json(const alignment *l, align_rule rule, jsonl *out) {
    json_open(out, "alignment", '[');
    if (rule.kind == ALIGN_SOFT)
        weights_json(l, out);
    else
        links_json(l, rule, out);
    json_close(out, ']');
}
