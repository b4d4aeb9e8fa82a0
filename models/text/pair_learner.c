/* models/text/pair_learner.c - learns merges of byte-pair encoding; see pair_learner.h.
 *
 * For every pair of neighbours there is a count and a list of words; a heap gives the most frequent
 * pair. A merge visits the words of its pair and changes the counts around each place, so the text
 * is counted only once. Entries of the heap may be out of date: an entry with too high a count is
 * put back with the right one, and a pair whose count grows gets a new entry. */
#include "pair_learner.h"

#include <assert.h>
#include <stdlib.h>

/* ---- words ----------------------------------------------------------------------------------- */

bool wf_pair_words_begin(wf_pair_words *w, int64_t count) {
    if (w->n_words == INT32_MAX ||
        !wf_grow(&w->words, &w->words_capacity, w->n_words + 1, sizeof *w->words))
        return false;
    w->words[w->n_words++] = (wf_pair_word){ w->n, 0, count };
    return true;
}

bool wf_pair_words_add(wf_pair_words *w, int32_t symbol) {
    assert(w->n_words);
    wf_pair_word *last = &w->words[w->n_words - 1];
    if (last->length == INT32_MAX ||
        !wf_grow(&w->symbols, &w->capacity, w->n + 1, sizeof *w->symbols))
        return false;
    w->symbols[w->n++] = symbol;
    last->length++;
    return true;
}

void wf_pair_words_free(wf_pair_words *w) {
    free(w->symbols), free(w->words);
    *w = (wf_pair_words){ 0 };
}

/* ---- counts ---------------------------------------------------------------------------------- */

typedef struct pair {
    int32_t symbols[2];
    int64_t count;
    int64_t offered; /* the largest count that it has in the heap; 0: it is not there */
    int32_t places;  /* index in `places` of the newest entry of its list of words; -1: none */
} pair;

typedef struct place {
    int32_t word, next;
} place;

typedef struct learner {
    wf_pair_words *text;
    const wf_pair_rule *rule;
    pair *pairs;
    place *places;
    int32_t *gained; /* pairs that became more frequent in this merge */
    size_t n_pairs, n_places, n_gained;
    size_t pairs_capacity, places_capacity, gained_capacity;
    wf_pairs index; /* maps two symbols to the index of their pair */
    wf_heap heap;
} learner;

static bool more_frequent(const void *context, const wf_item *a, const wf_item *b) {
    const learner *l = context;
    if (a->key != b->key) return a->key > b->key;
    return l->rule->before(l->rule->context, l->pairs[a->value].symbols,
                           l->pairs[b->value].symbols);
}

/* The index of this pair; -1: out of memory. */
static int32_t pair_of(learner *l, int32_t left, int32_t right) {
    int32_t i = wf_pairs_find(&l->index, left, right);
    if (i >= 0) return i;
    i = (int32_t)l->n_pairs;
    if (i == INT32_MAX ||
        !wf_grow(&l->pairs, &l->pairs_capacity, l->n_pairs + 1, sizeof *l->pairs) ||
        !wf_pairs_add(&l->index, left, right, i))
        return -1;
    l->pairs[l->n_pairs++] = (pair){ { left, right }, 0, 0, -1 };
    return i;
}

static bool gain(learner *l, int32_t left, int32_t right, int32_t w) {
    int32_t i = pair_of(l, left, right);
    if (i < 0 || l->n_places == INT32_MAX ||
        !wf_grow(&l->places, &l->places_capacity, l->n_places + 1, sizeof *l->places) ||
        !wf_grow(&l->gained, &l->gained_capacity, l->n_gained + 1, sizeof *l->gained))
        return false;
    pair *p = &l->pairs[i];
    p->count += l->text->words[w].count;
    l->gained[l->n_gained++] = i;
    if (p->places >= 0 && l->places[p->places].word == w) return true;
    l->places[l->n_places] = (place){ w, p->places };
    p->places = (int32_t)l->n_places++;
    return true;
}

static void lose(learner *l, int32_t left, int32_t right, int32_t w) {
    l->pairs[wf_pairs_find(&l->index, left, right)].count -= l->text->words[w].count;
}

/* Push pairs whose count grew, unless the heap already has that count. */
static bool offer(learner *l) {
    for (size_t i = 0; i < l->n_gained; i++) {
        pair *p = &l->pairs[l->gained[i]];
        if (p->count <= p->offered) continue;
        p->offered = p->count;
        if (!wf_heap_push(&l->heap, (wf_item){ p->count, l->gained[i] })) return false;
    }
    l->n_gained = 0;
    return true;
}

/* Finds the most frequent pair that may be merged; *best -1: none is left. False: out of memory. */
static bool choose(learner *l, int32_t *best) {
    for (*best = -1; l->heap.n;) {
        wf_item top = wf_heap_pop(&l->heap);
        pair *p = &l->pairs[top.value];
        if (top.key != p->offered) continue; /* a newer entry has a higher count */
        p->offered = top.key == p->count ? 0 : p->count;
        if (p->offered) {
            if (!wf_heap_push(&l->heap, (wf_item){ p->count, top.value })) return false;
        } else if (p->count > 0 &&
                   l->rule->allows(l->rule->context, p->symbols[0], p->symbols[1])) {
            *best = top.value;
            return true;
        }
    }
    return true;
}

/* ---- a merge --------------------------------------------------------------------------------- */

/* Merges left and right wherever they are neighbours in this word, from left to right. */
static bool merge_in_word(learner *l, const int32_t m[2], int32_t result, int32_t w) {
    wf_pair_word *word = &l->text->words[w];
    int32_t *s = l->text->symbols + word->begin, n = word->length, to = 0;
    for (int32_t i = 0; i < n; i++) {
        if (i + 1 == n || s[i] != m[0] || s[i + 1] != m[1]) {
            s[to++] = s[i];
            continue;
        }
        lose(l, m[0], m[1], w);
        if (to) lose(l, s[to - 1], m[0], w);
        if (i + 2 < n) lose(l, m[1], s[i + 2], w);
        if (to && !gain(l, s[to - 1], result, w)) return false;
        if (i + 2 < n && !gain(l, result, s[i + 2], w)) return false;
        s[to++] = result;
        i++;
    }
    word->length = to;
    return true;
}

static bool merge(learner *l, int32_t best) {
    const int32_t symbols[2] = { l->pairs[best].symbols[0], l->pairs[best].symbols[1] };
    int32_t result = l->rule->merge(l->rule->context, symbols[0], symbols[1]);
    if (result < 0) return false;
    for (int32_t at = l->pairs[best].places; at >= 0; at = l->places[at].next)
        if (!merge_in_word(l, symbols, result, l->places[at].word)) return false;
    return offer(l);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool count_pairs(learner *l) {
    for (size_t w = 0; w < l->text->n_words; w++) {
        const wf_pair_word *word = &l->text->words[w];
        const int32_t *s = l->text->symbols + word->begin;
        for (int32_t i = 1; i < word->length; i++)
            if (!gain(l, s[i - 1], s[i], (int32_t)w)) return false;
    }
    return offer(l);
}

bool wf_learn_pairs(wf_pair_words *words, const wf_pair_rule *rule) {
    learner l = { .text = words, .rule = rule, .heap = { .before = more_frequent } };
    l.heap.context = &l;
    bool ok = count_pairs(&l);
    while (ok && rule->more(rule->context)) {
        int32_t best;
        ok = choose(&l, &best);
        if (!ok || best < 0 || l.pairs[best].count < rule->min_freq) break;
        ok = merge(&l, best);
    }
    free(l.pairs), free(l.places), free(l.gained), free(l.heap.items);
    wf_pairs_free(&l.index);
    return ok;
}
