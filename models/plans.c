/* models/plans.c - what is run of the Transformer's one graph: a list of fetches and a list of
 * feeds per use.
 *
 * No node is recorded here. Bind "B", "S" and "T" (and "P", the position, when decoding), feed,
 * run, fetch. */
#include "transformer.h"

#include <stdlib.h>
#include <string.h>

/* Room for every update, weight or cached tensor, and a few more. */
typedef struct list {
    wf_tensor **items;
    int n, capacity;
} list;

static list list_new(int capacity) {
    return (list){ calloc((size_t)capacity, sizeof(wf_tensor *)), 0, capacity };
}

static void add(list *l, wf_tensor *t) {
    if (l->items && l->n < l->capacity) l->items[l->n++] = t;
}

static void add_all(list *l, wf_tensor *const *items, int64_t n) {
    for (int64_t i = 0; i < n; i++) add(l, items[i]);
}

/* A list that could not be allocated plans no graph, which is a failed plan. Frees the lists. */
static wf_plan *plan(wf_transformer *m, wf_pool *pool, list fetch, list feed, bool training,
                     bool with_state) {
    wf_plan_options o = { .fetch = fetch.items,
                          .n_fetch = fetch.n,
                          .feed = feed.items,
                          .n_feed = feed.n,
                          .pool = pool,
                          .training = training,
                          .with_state = with_state };
    wf_plan *p = wf_plan_new(fetch.items && feed.items ? m->graph : NULL, &o);
    free(fetch.items), free(feed.items);
    return p;
}

/* The inputs of a pair of sentences. */
static list pair(const wf_transformer *m, int more) {
    list l = list_new(4 + more);
    add(&l, m->src), add(&l, m->src_length), add(&l, m->tgt), add(&l, m->labels);
    return l;
}

static void add_loss(list *l, const wf_transformer *m) {
    add(l, m->loss.loss), add(l, m->loss.nll), add(l, m->loss.count), add(l, m->correct);
}

wf_plan *wf_transformer_train_plan(wf_transformer *m, wf_pool *pool) {
    if (!m) return wf_plan_new(NULL, NULL);
    list fetch = list_new(5 + m->optimizer.n), feed = pair(m, 1);
    add_loss(&fetch, m);
    if (m->optimizer.norm) add(&fetch, m->optimizer.norm);
    add_all(&fetch, m->optimizer.updates, m->optimizer.n);
    add(&feed, m->optimizer.rates);
    return plan(m, pool, fetch, feed, true, false);
}

/* Fails if there is no accumulation: nothing is fetched. */
wf_plan *wf_transformer_accumulate_plan(wf_transformer *m, wf_pool *pool) {
    if (!m) return wf_plan_new(NULL, NULL);
    const wf_accumulation *a = &m->optimizer.accumulation;
    int n = a->adds ? m->optimizer.n + 1 : 0;
    list fetch = list_new(5 + m->optimizer.n), feed = pair(m, 1);
    if (n) add_loss(&fetch, m), add(&feed, a->more);
    add_all(&fetch, a->adds, n);
    return plan(m, pool, fetch, feed, true, false);
}

wf_plan *wf_transformer_apply_plan(wf_transformer *m, wf_pool *pool) {
    if (!m) return wf_plan_new(NULL, NULL);
    const wf_accumulation *a = &m->optimizer.accumulation;
    list fetch = list_new(1 + m->optimizer.n), feed = list_new(1);
    if (a->norm) add(&fetch, a->norm);
    add_all(&fetch, a->updates, a->updates ? m->optimizer.n : 0);
    add(&feed, m->optimizer.rates);
    return plan(m, pool, fetch, feed, true, false);
}

wf_plan *wf_transformer_average_plan(wf_transformer *m, wf_pool *pool) {
    if (!m) return wf_plan_new(NULL, NULL);
    const wf_averages *a = &m->optimizer.averages;
    list fetch = list_new(1 + a->n), feed = list_new(1);
    add_all(&fetch, a->updates, a->n);
    if (a->n) add(&feed, a->rate);
    return plan(m, pool, fetch, feed, true, false);
}

wf_plan *wf_transformer_eval_plan(wf_transformer *m, wf_pool *pool) {
    if (!m) return wf_plan_new(NULL, NULL);
    list fetch = list_new(4);
    add_loss(&fetch, m);
    return plan(m, pool, fetch, pair(m, 0), false, false);
}

wf_plan *wf_transformer_score_plan(wf_transformer *m, wf_pool *pool) {
    if (!m) return wf_plan_new(NULL, NULL);
    list fetch = list_new(2);
    add(&fetch, m->token_log_probs), add(&fetch, m->logits);
    return plan(m, pool, fetch, pair(m, 0), false, false);
}

wf_plan *wf_transformer_attention_plan(wf_transformer *m, wf_pool *pool) {
    if (!m) return wf_plan_new(NULL, NULL);
    int64_t n = m->config.encoder_layers, layers = m->config.decoder_layers;
    list fetch = list_new((int)(n + 2 * layers)), feed = list_new(3);
    add_all(&fetch, m->encoder_weights, n);
    for (int64_t i = 0; i < layers; i++)
        add(&fetch, m->decoder_weights[i].self), add(&fetch, m->decoder_weights[i].cross);
    add(&feed, m->src), add(&feed, m->src_length), add(&feed, m->tgt);
    return plan(m, pool, fetch, feed, false, false);
}

/* What `encode` hands to `decode`. */
static list memory(const wf_transformer *m, int more) {
    int64_t layers = m->config.decoder_layers;
    list l = list_new((int)(1 + 2 * layers) + more);
    add_all(&l, m->cross_k, layers);
    add_all(&l, m->cross_v, layers);
    add(&l, m->memory_mask);
    return l;
}

wf_plan *wf_transformer_encode_plan(wf_transformer *m, wf_pool *pool) {
    if (!m) return wf_plan_new(NULL, NULL);
    list feed = list_new(2);
    add(&feed, m->src), add(&feed, m->src_length);
    return plan(m, pool, memory(m, 0), feed, false, false);
}

wf_plan *wf_transformer_decode_plan(wf_transformer *m, wf_pool *pool) {
    if (!m) return wf_plan_new(NULL, NULL);
    list fetch = list_new(1), feed = memory(m, 1);
    add(&fetch, m->logits);
    add(&feed, m->tgt);
    return plan(m, pool, fetch, feed, false, true);
}
