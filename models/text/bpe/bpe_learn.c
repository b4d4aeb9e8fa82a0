/* models/text/bpe/bpe_learn.c - learns the merges of byte-pair encoding (Sennrich et al. 2016).
 *
 * For every pair of neighbours there is a count and a list of words; a heap gives the most frequent
 * pair. A merge visits the words of its pair and changes the counts around each place, so the text
 * is counted only once. Entries of the heap may be out of date: an entry with too high a count is
 * put back with the right one, and a pair whose count grows gets a new entry.
 *
 * The order is: the most frequent pair first; of several, the greatest by left, then right, as
 * bytes. */
#include "models/text/tokenizer.h"

#include <stdlib.h>

typedef struct word {
    size_t begin;
    int32_t length;
    int64_t count;
} word;

typedef struct pair {
    int32_t left, right;
    int64_t count;
    int64_t offered; /* the largest count that it has in the heap; 0: it is not there */
    int32_t places;  /* the newest entry of its words in the list of places; -1: none */
} pair;

typedef struct place {
    int32_t word, next;
} place;

typedef struct learner {
    wf_tokenizer *t;
    int32_t *text; /* the symbols of all words, one after the other */
    word *words;
    pair *pairs;
    place *places;
    int32_t *gained; /* pairs that became more frequent in this merge */
    size_t n_text, n_pairs, n_places, n_gained;
    size_t text_capacity, pairs_capacity, places_capacity, gained_capacity;
    wf_pairs index; /* of pairs */
    wf_heap heap;
} learner;

/* ---- counts ---------------------------------------------------------------------------------- */

static bool more_frequent(const void *context, const wf_item *a, const wf_item *b) {
    const learner *l = context;
    const wf_strings *symbols = &l->t->symbols;
    const pair *p = &l->pairs[a->value], *q = &l->pairs[b->value];
    if (a->key != b->key) return a->key > b->key;
    int order = strcmp(wf_strings_at(symbols, p->left), wf_strings_at(symbols, q->left));
    if (order) return order > 0;
    return strcmp(wf_strings_at(symbols, p->right), wf_strings_at(symbols, q->right)) > 0;
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
    l->pairs[l->n_pairs++] = (pair){ left, right, 0, 0, -1 };
    return i;
}

static bool gain(learner *l, int32_t left, int32_t right, int32_t w) {
    int32_t i = pair_of(l, left, right);
    if (i < 0 || l->n_places == INT32_MAX ||
        !wf_grow(&l->places, &l->places_capacity, l->n_places + 1, sizeof *l->places) ||
        !wf_grow(&l->gained, &l->gained_capacity, l->n_gained + 1, sizeof *l->gained))
        return false;
    pair *p = &l->pairs[i];
    p->count += l->words[w].count;
    l->gained[l->n_gained++] = i;
    if (p->places >= 0 && l->places[p->places].word == w) return true;
    l->places[l->n_places] = (place){ w, p->places };
    p->places = (int32_t)l->n_places++;
    return true;
}

static void lose(learner *l, int32_t left, int32_t right, int32_t w) {
    l->pairs[wf_pairs_find(&l->index, left, right)].count -= l->words[w].count;
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
        } else if (p->count > 0 && wf_can_merge(l->t, p->left, p->right)) {
            *best = top.value;
            return true;
        }
    }
    return true;
}

/* ---- a merge --------------------------------------------------------------------------------- */

/* Merges left and right wherever they are neighbours in this word, from left to right. */
static bool merge_in_word(learner *l, const wf_merge *m, int32_t w) {
    int32_t *s = l->text + l->words[w].begin;
    int32_t n = l->words[w].length, to = 0;
    for (int32_t i = 0; i < n; i++) {
        if (i + 1 == n || s[i] != m->left || s[i + 1] != m->right) {
            s[to++] = s[i];
            continue;
        }
        lose(l, m->left, m->right, w);
        if (to) lose(l, s[to - 1], m->left, w);
        if (i + 2 < n) lose(l, m->right, s[i + 2], w);
        if (to && !gain(l, s[to - 1], m->result, w)) return false;
        if (i + 2 < n && !gain(l, m->result, s[i + 2], w)) return false;
        s[to++] = m->result;
        i++;
    }
    l->words[w].length = to;
    return true;
}

static bool merge(learner *l, int32_t best) {
    int32_t left = l->pairs[best].left, right = l->pairs[best].right;
    if (!wf_add_merge(l->t, left, right)) return false;
    wf_merge m = l->t->merges.at[l->t->merges.n - 1];
    for (int32_t at = l->pairs[best].places; at >= 0; at = l->places[at].next)
        if (!merge_in_word(l, &m, l->places[at].word)) return false;
    return wf_symbol_piece(l->t, m.result) && offer(l);
}

/* ---- the text -------------------------------------------------------------------------------- */

static bool add_word(learner *l, int32_t w, wf_span text, int64_t count) {
    l->words[w] = (word){ l->n_text, 0, count };
    if (text.bytes > INT32_MAX ||
        !wf_grow(&l->text, &l->text_capacity, l->n_text + text.bytes, sizeof *l->text))
        return false;
    while (text.bytes) {
        wf_span c = wf_code_point(text.text, text.bytes);
        text.text += c.bytes;
        text.bytes -= c.bytes;
        int32_t *at = &l->text[l->n_text];
        *at = wf_character_symbol(l->t, c, !text.bytes);
        l->n_text++;
        if (l->words[w].length++ && !gain(l, at[-1], at[0], w)) return false;
    }
    return true;
}

static bool add_words(learner *l, const wf_strings *words, const int64_t *counts) {
    l->words = malloc(((size_t)words->n + 1) * sizeof *l->words);
    if (!l->words) return false;
    for (int32_t w = 0; w < words->n; w++) {
        wf_span text = { wf_strings_at(words, w), wf_strings_bytes(words, w) };
        if (!add_word(l, w, text, counts[w])) return false;
    }
    return offer(l);
}

static void close_learner(learner *l) {
    free(l->text), free(l->words), free(l->pairs), free(l->places), free(l->gained);
    free(l->heap.items);
    wf_pairs_free(&l->index);
}

bool wf_learn_merges(wf_tokenizer *t, const wf_strings *words, const int64_t *counts,
                     const wf_tokenizer_options *o) {
    learner l = { .t = t, .heap = { .before = more_frequent } };
    l.heap.context = &l;
    bool ok = add_words(&l, words, counts);
    while (ok && (!o->merges || (int64_t)t->merges.n < o->merges) &&
           (!o->vocab_size || wf_tokenizer_size(t) < o->vocab_size)) {
        int32_t best;
        ok = choose(&l, &best);
        if (!ok || best < 0 || l.pairs[best].count < o->min_freq) break;
        ok = merge(&l, best);
    }
    close_learner(&l);
    return ok;
}
