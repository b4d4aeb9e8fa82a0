/* models/common/plans.c - the plans over a model's graph: a list of fetches and a list of feeds for
 * each use.
 *
 * No node is recorded here. Bind "B", "S" and "T" (and "P", the position, when decoding), feed,
 * run, fetch. */
#include "models/model.h"
#include "models/model_internal.h"

#include <stdlib.h>

/* A list of tensors with a fixed capacity. items NULL: out of memory. */
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

/* Makes a plan, and frees the lists. If a list could not be allocated, the plan has no graph, and
 * has failed. */
static wf_plan *plan(wf_model *m, wf_pool *pool, list fetch, list feed, bool with_state) {
    wf_plan_options o = { .fetch = fetch.items,
                          .n_fetch = fetch.n,
                          .feed = feed.items,
                          .n_feed = feed.n,
                          .pool = pool,
                          .with_state = with_state };
    wf_plan *p = wf_plan_new(fetch.items && feed.items ? m->graph : NULL, &o);
    free(fetch.items), free(feed.items);
    return p;
}

static void add_sources(list *l, const wf_model *m) {
    if (m->src) {
        add(l, m->src);
        add(l, m->src_length);
    }
}

/* The inputs for pairs: src and src_length, and tgt, if the model has them, and labels. */
static list pair(const wf_model *m) {
    list l = list_new(4);
    add_sources(&l, m);
    if (m->tgt) add(&l, m->tgt);
    add(&l, m->labels);
    return l;
}

static void add_loss(list *l, const wf_model *m) {
    add(l, m->loss.loss);
    add(l, m->loss.nll);
    add(l, m->loss.count);
    add(l, m->correct);
}

static wf_plan *evaluate(wf_model *m, wf_pool *pool) {
    list fetch = list_new(4);
    add_loss(&fetch, m);
    return plan(m, pool, fetch, pair(m), false);
}

static wf_plan *score(wf_model *m, wf_pool *pool) {
    list fetch = list_new(2);
    add(&fetch, m->token_log_probs);
    add(&fetch, m->logits);
    return plan(m, pool, fetch, pair(m), false);
}

static wf_plan *attention(wf_model *m, wf_pool *pool) {
    int64_t layers = 0;
    for (int i = 0; i < m->n_maps; i++) layers += m->maps[i].layers;
    list fetch = list_new((int)layers + 1), feed = list_new(3);
    for (int i = 0; i < m->n_maps; i++) add_all(&fetch, m->maps[i].weights, m->maps[i].layers);
    add_sources(&feed, m);
    if (m->tgt) add(&feed, m->tgt);
    return plan(m, pool, fetch, feed, false);
}

wf_plan *wf_model_plan(wf_model *m, wf_model_use use, wf_pool *pool) {
    if (m && use == WF_PLAN_EVALUATE) return evaluate(m, pool);
    if (m && use == WF_PLAN_SCORE) return score(m, pool);
    if (m && use == WF_PLAN_ATTENTION) return attention(m, pool);
    return wf_plan_new(NULL, NULL);
}

/* A decoder-only model has no encoder outputs, so its plan has nothing to fetch, and fails:
 * wf_plan_ok is false. */
wf_plan *wf_model_encode_plan(wf_model *m, wf_pool *pool) {
    if (!m) return wf_plan_new(NULL, NULL);
    list fetch = list_new(m->n_memory + 1), feed = list_new(2);
    add_all(&fetch, m->memory, m->n_memory);
    add_sources(&feed, m);
    return plan(m, pool, fetch, feed, false);
}

static wf_plan *with_state(wf_model *m, wf_pool *pool, wf_tensor *wanted) {
    list fetch = list_new(1), feed = list_new(m->n_memory + 1);
    add(&fetch, wanted);
    add_all(&feed, m->memory, m->n_memory);
    add(&feed, m->tgt);
    return plan(m, pool, fetch, feed, true);
}

wf_plan *wf_model_step_plan(wf_model *m, wf_pool *pool) {
    return m ? with_state(m, pool, m->logits) : wf_plan_new(NULL, NULL);
}

wf_plan *wf_model_prompt_plan(wf_model *m, wf_pool *pool) {
    return m ? with_state(m, pool, m->hidden) : wf_plan_new(NULL, NULL);
}
