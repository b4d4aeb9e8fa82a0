/* models/text/bpe/bpe_apply.c - byte-pair encoding of a word, in the order of subword-nmt's
 * apply_bpe.
 *
 * Repeatedly, the earliest learned merge that fits is applied everywhere in the word. A result that
 * is not in the vocabulary is split again into the two symbols that were merged. */
#include "models/text/tokenizer.h"

/* LONG_WORD: bytes of the longest word that is remembered. SEEN_BYTES: if the remembered words have
 * more bytes than this, all of them are forgotten. */
enum { LONG_WORD = 256, SEEN_BYTES = 1 << 24 };

/* Begins the merger's chain with a link for every character of a word. */
static bool lay_out(wf_tokenizer *t, wf_span word) {
    t->merger.n = 0;
    while (word.bytes) {
        wf_span c = wf_character_next(&word);
        if (!wf_merger_add(&t->merger, wf_character_symbol(t, c, !word.bytes), c.bytes))
            return false;
    }
    return true;
}

/* ---- ids ------------------------------------------------------------------------------------- */

static bool put_id(wf_tokenizer *t, int64_t *n, int32_t id) {
    if (!wf_grow(&t->ids, &t->ids_capacity, (size_t)*n + 1, sizeof *t->ids)) return false;
    t->ids[(*n)++] = id;
    return true;
}

/* Appends the ids of a symbol. If it is not in the vocabulary, it is split into the two symbols of
 * the first merge that makes it, and those again; a single character becomes WF_UNK_ID. */
static bool take_apart(wf_tokenizer *t, int32_t symbol, int64_t *n) {
    size_t depth = 0;
    if (!wf_grow(&t->stack, &t->stack_capacity, 1, sizeof *t->stack)) return false;
    t->stack[depth++] = symbol;
    while (depth) {
        int32_t s = t->stack[--depth];
        if (s < 0 || t->about[s].id >= 0 || t->about[s].merge < 0) {
            if (!put_id(t, n, s < 0 || t->about[s].id < 0 ? WF_UNK_ID : t->about[s].id))
                return false;
            continue;
        }
        const wf_merge *m = &t->merges.at[t->about[s].merge];
        if (!wf_grow(&t->stack, &t->stack_capacity, depth + 2, sizeof *t->stack)) return false;
        t->stack[depth++] = m->right;
        t->stack[depth++] = m->left;
    }
    return true;
}

static int64_t apply(wf_tokenizer *t, wf_span word) {
    const wf_merge_rule rule = wf_merges_rule(&t->merges, true);
    int64_t n_ids = 0;
    if (!lay_out(t, word) || !wf_merge_all(&t->merger, &rule)) return -1;
    for (int32_t i = t->merger.n ? 0 : -1; i >= 0; i = t->merger.chain[i].after)
        if (!take_apart(t, t->merger.chain[i].symbol, &n_ids)) return -1;
    return n_ids;
}

/* ---- what was seen --------------------------------------------------------------------------- */

static bool remember(wf_tokenizer *t, wf_span word, int64_t n) {
    wf_seen *s = &t->seen;
    /* the other arrays are reused */
    if (s->words.used > SEEN_BYTES) wf_strings_free(&s->words);
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
