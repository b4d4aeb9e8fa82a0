/* models/text/bpe/bpe_learn.c - learns the merges of byte-pair encoding of words and of bytes.
 *
 * The order is that of subword-nmt: the most frequent pair first; of equally frequent ones, the
 * greatest by its left symbol, then by its right one, as bytes. See pair_learner.h. */
#include "models/text/pair_learner.h"
#include "models/text/tokenizer.h"

typedef struct learning {
    wf_tokenizer *t;
    const wf_tokenizer_options *o;
} learning;

static bool greater(const void *context, const int32_t a[2], const int32_t b[2]) {
    const wf_strings *symbols = &((const learning *)context)->t->symbols;
    int order = strcmp(wf_strings_at(symbols, a[0]), wf_strings_at(symbols, b[0]));
    if (order) return order > 0;
    return strcmp(wf_strings_at(symbols, a[1]), wf_strings_at(symbols, b[1])) > 0;
}

static bool allows(const void *context, int32_t left, int32_t right) {
    return wf_can_merge(((const learning *)context)->t, left, right);
}

static int32_t merge(void *context, int32_t left, int32_t right) {
    wf_tokenizer *t = ((learning *)context)->t;
    if (!wf_add_merge(t, left, right)) return -1;
    int32_t result = t->merges.at[t->merges.n - 1].result;
    return wf_symbol_piece(t, result) ? result : -1;
}

static bool more(const void *context) {
    const learning *l = context;
    return (!l->o->merges || (int64_t)l->t->merges.n < l->o->merges) &&
           (!l->o->vocab_size || wf_tokenizer_size(l->t) < l->o->vocab_size);
}

static bool add_word(wf_pair_words *words, const wf_tokenizer *t, wf_span text, int64_t count) {
    if (!wf_pair_words_begin(words, count)) return false;
    while (text.bytes) {
        wf_span c = wf_character_next(&text);
        if (!wf_pair_words_add(words, wf_character_symbol(t, c, !text.bytes))) return false;
    }
    return true;
}

bool wf_learn_merges(wf_tokenizer *t, const wf_strings *words, const int64_t *counts,
                     const wf_tokenizer_options *o) {
    wf_pair_words symbols = { 0 };
    learning l = { t, o };
    const wf_pair_rule rule = { greater, allows, merge, more, o->min_freq, &l };
    bool ok = true;
    for (int32_t w = 0; ok && w < words->n; w++)
        ok = add_word(&symbols, t, wf_strings_span(words, w), counts[w]);
    ok = ok && wf_learn_pairs(&symbols, &rule);
    wf_pair_words_free(&symbols);
    return ok;
}
