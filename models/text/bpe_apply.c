/* models/text/bpe_apply.c - byte-pair encoding of a word, in the order of subword-nmt's apply_bpe.
 *
 * Again and again, the merge that was learned first among those that fit is applied at all its
 * places, from left to right. With the places in a heap by (merge, place) a word of n characters
 * costs O(n log n), so that a megabyte without a space does no harm. What comes out and is not
 * in the vocabulary is taken apart again by the merge that made it. */
#include "tokenizer.h"

enum { LONG_WORD = 256, SEEN_BYTES = 1 << 24 }; /* what is remembered of words */

/* ---- the chain of symbols -------------------------------------------------------------------- */

static bool first_merge(const void *context, const wf_item *a, const wf_item *b) {
    (void)context;
    return a->key != b->key ? a->key < b->key : a->value < b->value;
}

/* Every character a link: returns how many, or -1. */
static int32_t lay_out(wf_tokenizer *t, wf_span word) {
    int32_t n = 0;
    if (word.bytes > INT32_MAX / 2 ||
        !wf_grow(&t->chain, &t->chain_capacity, word.bytes, sizeof *t->chain) ||
        !wf_grow(&t->fresh, &t->fresh_capacity, word.bytes, sizeof *t->fresh))
        return -1;
    while (word.bytes) {
        wf_span c = wf_code_point(word.text, word.bytes);
        word.text += c.bytes, word.bytes -= c.bytes;
        t->chain[n] = (wf_chain){ wf_character_symbol(t, c, !word.bytes), n - 1, n + 1 };
        n++;
    }
    t->chain[n - 1].after = -1;
    return n;
}

/* The link and the one after it, if something merges them, are a place to visit. */
static bool visit(wf_tokenizer *t, int32_t at) {
    const wf_chain *link = at < 0 ? NULL : &t->chain[at];
    if (!link || link->after < 0) return true;
    int32_t rank = wf_pairs_find(&t->ranks, link->symbol, t->chain[link->after].symbol);
    return rank < 0 || wf_heap_push(&t->heap, (wf_item){ rank, at });
}

/* Does the merge still fit here? Then two links become one. */
static bool join(wf_tokenizer *t, const wf_merge *m, int32_t at) {
    wf_chain *link = &t->chain[at];
    if (link->symbol != m->left || link->after < 0 || t->chain[link->after].symbol != m->right)
        return false;
    t->chain[link->after].symbol = -1;
    link->after = t->chain[link->after].after;
    link->symbol = m->result;
    if (link->after >= 0) t->chain[link->after].before = at;
    return true;
}

/* All places of one merge, and only then what has become possible beside them. */
static bool merge_everywhere(wf_tokenizer *t) {
    int64_t rank = t->heap.items[0].key;
    int32_t n = 0;
    while (t->heap.n && t->heap.items[0].key == rank) {
        int32_t at = wf_heap_pop(&t->heap).value;
        if (join(t, &t->merges[rank], at)) t->fresh[n++] = at;
    }
    for (int32_t i = 0; i < n; i++)
        if (!visit(t, t->chain[t->fresh[i]].before) || !visit(t, t->fresh[i])) return false;
    return true;
}

/* ---- ids ------------------------------------------------------------------------------------- */

static bool put_id(wf_tokenizer *t, int64_t *n, int32_t id) {
    if (!wf_grow(&t->ids, &t->ids_capacity, (size_t)*n + 1, sizeof *t->ids)) return false;
    t->ids[(*n)++] = id;
    return true;
}

/* A symbol outside of the vocabulary: its two halves, theirs, ... The stack is the array fresh. */
static bool take_apart(wf_tokenizer *t, int32_t symbol, int64_t *n) {
    size_t depth = 0;
    t->fresh[depth++] = symbol;
    while (depth) {
        int32_t s = t->fresh[--depth];
        if (s < 0 || t->about[s].id >= 0 || t->about[s].merge < 0) {
            if (!put_id(t, n, s < 0 || t->about[s].id < 0 ? WF_UNK_ID : t->about[s].id))
                return false;
            continue;
        }
        const wf_merge *m = &t->merges[t->about[s].merge];
        if (!wf_grow(&t->fresh, &t->fresh_capacity, depth + 2, sizeof *t->fresh)) return false;
        t->fresh[depth++] = m->right, t->fresh[depth++] = m->left;
    }
    return true;
}

static int64_t apply(wf_tokenizer *t, wf_span word) {
    int64_t n_ids = 0;
    int32_t n = lay_out(t, word);
    t->heap.before = first_merge, t->heap.n = 0;
    for (int32_t i = 0; i < n; i++)
        if (!visit(t, i)) return -1;
    while (t->heap.n)
        if (!merge_everywhere(t)) return -1;
    for (int32_t i = 0; n > 0 && i >= 0; i = t->chain[i].after)
        if (!take_apart(t, t->chain[i].symbol, &n_ids)) return -1;
    return n < 0 ? -1 : n_ids;
}

/* ---- what was seen --------------------------------------------------------------------------- */

static void forget(wf_seen *s) {
    wf_strings_free(&s->words); /* the other arrays are used again */
}

static bool remember(wf_tokenizer *t, wf_span word, int64_t n) {
    wf_seen *s = &t->seen;
    if (s->words.used > SEEN_BYTES) forget(s);
    size_t i = (size_t)s->words.n, begin = i ? s->ends[i - 1] : 0, end = begin + (size_t)n;
    if (!wf_grow(&s->ends, &s->ends_capacity, i + 1, sizeof *s->ends) ||
        !wf_grow(&s->ids, &s->ids_capacity, end, sizeof *s->ids) ||
        wf_strings_add(&s->words, word.text, word.bytes) < 0)
        return false;
    memcpy(s->ids + begin, t->ids, (size_t)n * sizeof *s->ids);
    s->ends[i] = end;
    return true;
}

int64_t wf_apply_merges(wf_tokenizer *t, wf_span word, const int32_t **ids) {
    int32_t i = wf_strings_find(&t->seen.words, word.text, word.bytes);
    if (i >= 0) {
        size_t begin = i ? t->seen.ends[i - 1] : 0;
        *ids = t->seen.ids + begin;
        return (int64_t)(t->seen.ends[i] - begin);
    }
    int64_t n = apply(t, word);
    *ids = t->ids;
    return n < 0 || word.bytes > LONG_WORD || remember(t, word, n) ? n : -1;
}
