/* models/common/model.c - binds and feeds pairs of sentences for a model of any architecture. See
 * model.h. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/lend.h"
#include "core/plan/plan.h"
#include "models/kind.h"
#include "models/message.h"
#include "models/model_internal.h"

enum { MAX_PAIRS = 1 << 20 };

void wf_model_text(const wf_model *m, char text[WF_MESSAGE]) {
    if (!text) return;
    text[0] = '\0';
    if (m) m->kind->describe(m->config, text);
}

void wf_model_free(wf_model *m) {
    if (!m) return;
    wf_graph_free(m->graph);
    free((void *)(uintptr_t)m->training.adapters.targets);
    for (int i = 0; i < m->n_maps; i++) free(m->maps[i].weights);
    free(m->memory);
    free(m);
}

int64_t wf_model_parameter_count(const wf_model *m) {
    int64_t n = 0;
    for (int id = 0; m && id < wf_node_count(m->graph); id++) {
        const wf_tensor *t = wf_node(m->graph, id);
        if (t->kind == WF_PARAM) n += wf_count(t);
    }
    return n;
}

int64_t wf_model_begin(const wf_model *m, int64_t n) {
    if (!m || m->src) return 0;
    return m->start_if_empty && n > 0 ? n - 1 : n;
}

int64_t wf_model_longest_source(const wf_model *m) {
    if (!m) return 0;
    return m->src || m->start_if_empty ? m->max_len : m->max_len - 1;
}

int64_t wf_model_room(const wf_model *m, int64_t n) {
    return m ? m->max_len - 1 - wf_model_begin(m, n) : -1;
}

/* ---- pairs ----------------------------------------------------------------------------------- */

bool wf_model_bind(const wf_model *m, wf_plan *p, int64_t B, int64_t S, int64_t T) {
    if (!p) return false;
    if (!m) return wf_plan_fail(p, "there is no model");
    if (S < 0 || T < 0 || S > INT32_MAX || T > INT32_MAX)
        return wf_plan_fail(
            p, "sources of %lld and targets of %lld tokens: both are from 0 to 2^31 - 1",
            (long long)S, (long long)T);
    if (m->src) return wf_bind(p, "B", B) && wf_bind(p, "S", S) && (!m->tgt || wf_bind(p, "T", T));
    return wf_bind(p, "B", B) && wf_bind(p, "T", S + T);
}

static bool feed_apart(const wf_model *m, wf_plan *p, const wf_batch *b) {
    size_t row = (size_t)b->B * sizeof *b->src, S = (size_t)b->S, T = (size_t)b->T;
    return wf_model_bind(m, p, b->B, b->S, b->T) && wf_feed(p, m->src, b->src, row * S) &&
           wf_feed(p, m->src_length, b->src_length, row) &&
           (!m->tgt || wf_feed(p, m->tgt, b->tgt, row * T)) &&
           (!b->labels || wf_feed(p, m->labels, b->labels, row * T));
}

/* The number of tokens of target i that are fed: up to its last counted label, but at least 1.
 * Without labels all T are fed. */
static int64_t target_length(const wf_batch *b, int64_t i) {
    int64_t n = b->T;
    while (b->labels && n > 1 && b->labels[i * b->T + n - 1] == WF_IGNORE_LABEL) n--;
    return n;
}

static int64_t longest_row(const wf_model *m, const wf_batch *b) {
    int64_t most = 1;
    for (int64_t i = 0; i < b->B; i++) {
        int64_t n = wf_model_begin(m, b->src_length[i]) + target_length(b, i);
        if (n > most) most = n;
    }
    return most;
}

/* Writes the sequence [T] of pair i: the source, then the target, then end tokens as padding. With
 * start_first, the first token of the target, which is the start, comes before the source; with
 * start_if_empty, a source replaces the start token. */
static void join(const wf_model *m, const wf_batch *b, int64_t i, int64_t T, int32_t *row) {
    int64_t n = b->src_length[i], k = target_length(b, i), begin = wf_model_begin(m, n);
    assert(k >= 1 && begin + k <= T);
    for (int64_t t = begin + k; t < T; t++) row[t] = m->end_id;
    memcpy(row + begin, b->tgt + i * b->T, (size_t)k * sizeof *row);
    if (m->start_first && begin == n) *row++ = b->tgt[i * b->T];
    if (n) memcpy(row, b->src + i * b->S, (size_t)n * sizeof *row);
}

/* Writes the label of each token of pair i's sequence, which is the next token. Labels in the
 * source are not counted. */
static void join_labels(const wf_model *m, const wf_batch *b, int64_t i, int64_t T,
                        int32_t *labels) {
    int64_t begin = wf_model_begin(m, b->src_length[i]), k = target_length(b, i);
    for (int64_t t = 0; t < T; t++) labels[t] = WF_IGNORE_LABEL;
    memcpy(labels + begin, b->labels + i * b->T, (size_t)k * sizeof *labels);
}

/* Checks the sizes and lengths of a batch, because a plan can only check the tensors that it is
 * fed. */
static bool pairs_ok(wf_plan *p, const wf_batch *b) {
    if (b->B < 1 || b->B > MAX_PAIRS || b->S < 0 || b->T < 1)
        return wf_plan_fail(
            p,
            "a batch of %lld pairs, sources of %lld and targets of %lld tokens: it has from 1 to "
            "%lld pairs, and a target has at least 1",
            (long long)b->B, (long long)b->S, (long long)b->T, (long long)MAX_PAIRS);
    if (b->S > 0 && !b->src) return wf_plan_fail(p, "there are no sources: src is NULL");
    for (int64_t i = 0; i < b->B; i++)
        if (b->src_length[i] < 0 || b->src_length[i] > b->S)
            return wf_plan_fail(p, "source %lld has %d tokens, not 0 to %lld", (long long)i,
                                (int)b->src_length[i], (long long)b->S);
    return true;
}

/* Joins pairs directly in the plan's memory, so that feeding a batch allocates nothing. */
static bool feed_one_sequence(const wf_model *m, wf_plan *p, const wf_batch *b) {
    int64_t T = longest_row(m, b);
    size_t bytes = (size_t)(b->B * T) * sizeof(int32_t);
    void *rows, *labels = NULL;
    bool ok = wf_bind(p, "B", b->B) && wf_bind(p, "T", T) &&
              wf_feed_place(p, m->tgt, bytes, &rows) &&
              (!b->labels || wf_feed_place(p, m->labels, bytes, &labels));
    for (int64_t i = 0; ok && i < b->B; i++) {
        if (rows) join(m, b, i, T, (int32_t *)rows + i * T);
        if (labels) join_labels(m, b, i, T, (int32_t *)labels + i * T);
    }
    return ok;
}

bool wf_model_feed(const wf_model *m, wf_plan *p, const wf_batch *pairs) {
    if (!wf_plan_ok(p)) return false;
    if (!m || !pairs) return wf_plan_fail(p, "there is no model, or there is no batch");
    if (!pairs->src_length)
        return wf_plan_fail(p, "src_length is NULL: it holds the length of each source, "
                               "0 where there is none");
    if (!pairs->tgt) return wf_plan_fail(p, "tgt is NULL: there is nothing to feed");
    return pairs_ok(p, pairs) && (m->src ? feed_apart : feed_one_sequence)(m, p, pairs);
}
