/* models/text/json/model_bpe.c - the model BPE of a tokenizer.json; see word_models.h. */
#include "core/base/utf8.h"
#include "word_models.h"

/* ---- reading --------------------------------------------------------------------------------- */

static bool optional_text(const wf_step_source *from, const char *key, wf_span *out) {
    *out = (wf_span){ "", 0 };
    return !wf_tree_given(from->tree, from->at, key) || wf_step_text(from, key, out);
}

static bool bad_merge(const wf_step_source *from, wf_span left, wf_span right, const char *why) {
    return fail(from->message, "BPE: the merge '%.*s' '%.*s' %s",
                (int)(left.bytes < 60 ? left.bytes : 60), left.text,
                (int)(right.bytes < 60 ? right.bytes : 60), right.text, why);
}

/* Sets *id to the id of the merge's result, the text `left` followed by `end`; -1: the vocabulary
 * lacks it. Files mostly list merges in the order of their results, so the text after the last
 * result is tried first. False: out of memory. */
static bool find_result(wf_word_model *m, wf_span left, wf_span end, int32_t *id) {
    const wf_ids_of_text *v = &m->vocabulary;
    const wf_merge *last = m->merges.n ? &m->merges.at[m->merges.n - 1] : NULL;
    int32_t next = last ? v->by_id[last->result] + 1 : v->texts.n;
    if (next < v->texts.n && wf_strings_span(&v->texts, next).bytes == left.bytes + end.bytes) {
        const char *text = wf_strings_at(&v->texts, next);
        *id = v->ids[next];
        if (memcmp(text, left.text, left.bytes) == 0 &&
            memcmp(text + left.bytes, end.text, end.bytes) == 0)
            return true;
    }
    m->joined.bytes = 0;
    if (!wf_spm_put(&m->joined, left.text, left.bytes) ||
        !wf_spm_put(&m->joined, end.text, end.bytes))
        return false;
    *id = wf_ids_find(v, (wf_span){ m->joined.at, m->joined.bytes });
    return true;
}

/* Merges are added in groups of this size, so that the memory that adding them reads can be
 * prefetched for a whole group. */
enum { MERGES = WF_STRINGS_AHEAD / 2 };

typedef struct some_merges {
    wf_span parts[2 * MERGES]; /* the left and the right part of each */
    int n;                     /* parts */
} some_merges;

static bool add_merge(wf_word_model *m, const wf_step_source *from, wf_span left, wf_span right,
                      wf_merge merge) {
    if (merge.left < 0 || merge.right < 0)
        return bad_merge(from, left, right, "is of a part that is not in the vocabulary");
    if (right.bytes < m->prefix.bytes)
        return bad_merge(from, left, right, "is shorter than the prefix");
    wf_span end = { right.text + m->prefix.bytes, right.bytes - m->prefix.bytes };
    if (!find_result(m, left, end, &merge.result)) return fail(from->message, "out of memory");
    if (merge.result < 0)
        return bad_merge(from, left, right, "gives what is not in the vocabulary");
    if (wf_pairs_find(&m->merges.ranks, merge.left, merge.right) >= 0)
        return bad_merge(from, left, right, "is there twice");
    return wf_merges_add(&m->merges, merge) || fail(from->message, "out of memory");
}

static bool add_merges(wf_word_model *m, const wf_step_source *from, const some_merges *s) {
    wf_merge merges[MERGES];
    wf_strings_prefetch(&m->vocabulary.texts, s->parts, s->n);
    for (int i = 0; i < s->n / 2; i++) {
        merges[i] = (wf_merge){ wf_ids_find(&m->vocabulary, s->parts[2 * i]),
                                wf_ids_find(&m->vocabulary, s->parts[2 * i + 1]), -1 };
        wf_pairs_prefetch(&m->merges.ranks, merges[i].left, merges[i].right);
    }
    for (int i = 0; i < s->n / 2; i++)
        if (!add_merge(m, from, s->parts[2 * i], s->parts[2 * i + 1], merges[i])) return false;
    return true;
}

static bool put_merge(some_merges *s, wf_span left, wf_span right) {
    s->parts[s->n++] = left;
    s->parts[s->n++] = right;
    return true;
}

/* A merge is "a b", or ["a", "b"]. */
static bool read_merge(some_merges *s, const wf_step_source *from, size_t value) {
    const json_tree *t = from->tree;
    if (wf_tree_kind(t, value) == JSON_STRING) {
        wf_span both = wf_tree_text(t, value);
        const char *space = memchr(both.text, ' ', both.bytes);
        if (both.bytes >= 8 && memcmp(both.text, "#version", 8) == 0) return true;
        wf_span left = { both.text, space ? (size_t)(space - both.text) : both.bytes };
        wf_span right = { "", 0 };
        if (space) right = (wf_span){ space + 1, both.bytes - left.bytes - 1 };
        if (!space || memchr(right.text, ' ', right.bytes))
            return bad_merge(from, both, (wf_span){ "", 0 }, "has not two parts");
        return put_merge(s, left, right);
    }
    size_t left = wf_tree_first(t, value), right = left ? wf_tree_next(t, value, left) : 0;
    if (!right || wf_tree_next(t, value, right) || wf_tree_kind(t, left) != JSON_STRING ||
        wf_tree_kind(t, right) != JSON_STRING)
        return fail(from->message, "BPE: a merge is no pair of texts");
    return put_merge(s, wf_tree_text(t, left), wf_tree_text(t, right));
}

/* An upper bound for the number of merges. In the JSON tree a merge is three values if it is a pair
 * of texts, and one if it is a single text. */
static size_t merges_at_most(const json_tree *t, size_t merges) {
    size_t first = wf_tree_first(t, merges), values = wf_tree_at_most(t, merges);
    return first && wf_tree_kind(t, first) == JSON_ARRAY ? values / 3 + 1 : values;
}

static bool read_merges(wf_word_model *m, const wf_step_source *from, size_t merges) {
    const json_tree *t = from->tree;
    if (!wf_merges_reserve(&m->merges, merges_at_most(t, merges)))
        return fail(from->message, "out of memory");
    for (size_t i = wf_tree_first(t, merges); i;) {
        some_merges some = { .n = 0 };
        bool good = true;
        for (; i && good && some.n < 2 * MERGES; i = wf_tree_next(t, merges, i))
            good = read_merge(&some, from, i);
        /* of several errors the first in the file is reported */
        if (!add_merges(m, from, &some) || !good) return false;
    }
    return true;
}

static bool no_dropout(const wf_step_source *from) {
    size_t value = wf_tree_given(from->tree, from->at, "dropout");
    double p = 0;
    if (!value || (wf_tree_real(from->tree, value, &p) && p == 0)) return true;
    return fail(from->message, "BPE: dropout is not known here");
}

bool wf_bpe_read(wf_word_model *m, const wf_step_source *from) {
    size_t merges;
    m->has_unknown = wf_tree_given(from->tree, from->at, "unk_token") > 0;
    if (!no_dropout(from) || !optional_text(from, "unk_token", &m->unknown) ||
        !optional_text(from, "continuing_subword_prefix", &m->prefix) ||
        !optional_text(from, "end_of_word_suffix", &m->suffix) ||
        !wf_step_flag_or(from, "fuse_unk", &m->fuse_unknown) ||
        !wf_step_flag_or(from, "byte_fallback", &m->byte_fallback) ||
        !wf_step_flag_or(from, "ignore_merges", &m->ignore_merges) ||
        !wf_word_model_vocabulary(m, from) || !wf_step_value(from, "merges", &merges))
        return false;
    m->unknown_id = wf_ids_find(&m->vocabulary, m->unknown);
    wf_word_model_bytes(m);
    return read_merges(m, from, merges);
}

/* ---- a word ---------------------------------------------------------------------------------- */

/* The number of bytes of unknown characters that have no token yet. */
typedef struct unknown {
    size_t bytes;
} unknown;

static bool add(wf_word_model *m, int32_t id, size_t bytes, char *message) {
    return wf_merger_add(&m->merger, id, bytes) || fail(message, "out of memory");
}

/* Adds the tokens of a character's bytes, with its prefix and suffix. *done is false if the
 * vocabulary lacks one of them. */
static bool add_bytes(wf_word_model *m, wf_span s, bool *done, char *message) {
    *done = false;
    for (size_t i = 0; i < s.bytes; i++)
        if (m->bytes[(unsigned char)s.text[i]] < 0) return true;
    *done = true;
    for (size_t i = 0; i < s.bytes; i++)
        if (!add(m, m->bytes[(unsigned char)s.text[i]], 1, message)) return false;
    return true;
}

static bool add_unknown(wf_word_model *m, size_t bytes, unknown *u, char *message) {
    if (!m->has_unknown) return true;
    if (m->unknown_id < 0)
        return fail(message, "the unknown token '%.*s' is not in the vocabulary",
                    (int)(m->unknown.bytes < 60 ? m->unknown.bytes : 60), m->unknown.text);
    if (u->bytes && !m->fuse_unknown) {
        if (!add(m, m->unknown_id, u->bytes, message)) return false;
        u->bytes = 0;
    }
    u->bytes += bytes;
    return true;
}

/* Spells a character as the vocabulary does: with the prefix unless it begins its word, and with
 * the suffix if it ends its word. */
static bool spell(wf_word_model *m, wf_span *s, bool first, bool last) {
    bool prefix = !first && m->prefix.bytes, suffix = last && m->suffix.bytes;
    if (!prefix && !suffix) return true;
    m->joined.bytes = 0;
    if (prefix && !wf_spm_put(&m->joined, m->prefix.text, m->prefix.bytes)) return false;
    if (!wf_spm_put(&m->joined, s->text, s->bytes)) return false;
    if (suffix && !wf_spm_put(&m->joined, m->suffix.text, m->suffix.bytes)) return false;
    *s = (wf_span){ m->joined.at, m->joined.bytes };
    return true;
}

/* Adds the tokens of a word's characters. The token of unknown characters is added only when a
 * known character or the end follows. Tokens of bytes are added at once, so they may precede the
 * token of an unknown character that stands before them in the text, as in Hugging Face's
 * tokenizers library. */
static bool add_characters(wf_word_model *m, wf_span word, char *message) {
    unknown u = { 0 };
    m->merger.n = 0;
    for (size_t at = 0, n; at < word.bytes; at += n) {
        n = wf_utf8_announced(word.text + at, word.bytes - at);
        wf_span s = { word.text + at, n };
        bool done = false;
        if (!spell(m, &s, !at, at + n == word.bytes)) return fail(message, "out of memory");
        int32_t id = wf_ids_find(&m->vocabulary, s);
        if (id >= 0) {
            if (u.bytes && !add(m, m->unknown_id, u.bytes, message)) return false;
            u.bytes = 0;
            if (!add(m, id, n, message)) return false;
            continue;
        }
        if (m->byte_fallback && !add_bytes(m, s, &done, message)) return false;
        if (!done && !add_unknown(m, n, &u, message)) return false;
    }
    return !u.bytes || add(m, m->unknown_id, u.bytes, message);
}

static bool merge_word(wf_word_model *m, wf_span word, wf_word_tokens *to, char *message) {
    wf_merge_rule rule = wf_merges_rule(&m->merges, false);
    if (!add_characters(m, word, message)) return false;
    if (!m->merger.n) return true;
    if (!wf_merge_all(&m->merger, &rule)) return fail(message, "out of memory");
    for (int32_t i = 0; i >= 0; i = m->merger.chain[i].after) {
        const wf_link *l = &m->merger.chain[i];
        wf_word_token token = { l->symbol, (uint32_t)l->begin, (uint32_t)(l->begin + l->bytes),
                                false };
        if (!wf_word_token_add(to, token, message)) return false;
    }
    return true;
}

/* ---- words that were seen -------------------------------------------------------------------- */

enum { LONGEST_WORD = 64, MOST_WORDS = 1 << 16 };

/* Remembers a word's tokens, which are those from `first` on. A word that is too long, or for which
 * memory runs out, is merged again the next time. */
static void remember(wf_word_model *m, wf_span word, const wf_word_tokens *to, size_t first) {
    size_t n = to->n - first, words = (size_t)m->words.n;
    if (word.bytes > LONGEST_WORD) return;
    if (words == MOST_WORDS) {
        wf_strings_free(&m->words);
        m->seen.n = words = 0;
    }
    if (!wf_grow(&m->word_ends, &m->word_ends_capacity, words + 1, sizeof *m->word_ends) ||
        !wf_grow(&m->seen.at, &m->seen.capacity, m->seen.n + n + 1, sizeof *m->seen.at) ||
        wf_strings_add(&m->words, word.text, word.bytes) < 0)
        return;
    for (size_t i = first; i < to->n; i++) m->seen.at[m->seen.n++] = to->at[i];
    m->word_ends[words] = m->seen.n;
}

bool wf_bpe_word(wf_word_model *m, wf_span word, wf_word_tokens *to, char *message) {
    size_t first = to->n;
    int32_t known = wf_strings_find(&m->words, word.text, word.bytes);
    if (known >= 0) {
        size_t from = known ? m->word_ends[known - 1] : 0, n = m->word_ends[known] - from;
        if (to->n + n > to->capacity && !wf_grow(&to->at, &to->capacity, to->n + n, sizeof *to->at))
            return fail(message, "out of memory");
        for (size_t i = 0; i < n; i++) to->at[to->n++] = m->seen.at[from + i];
        return true;
    }
    int32_t id = m->ignore_merges ? wf_ids_find(&m->vocabulary, word) : -1;
    if (id >= 0) {
        wf_word_token token = { id, 0, (uint32_t)word.bytes, false };
        if (!wf_word_token_add(to, token, message)) return false;
    } else if (!merge_word(m, word, to, message))
        return false;
    remember(m, word, to, first);
    return true;
}
