/* models/text/json/model_unigram.c - the model Unigram of a tokenizer.json; see word_models.h.
 *
 * The most probable cut of a word is found in double precision, as in Hugging Face's tokenizers
 * library. SentencePiece itself has single precision, so the two may differ where scores are
 * close. */
#include <math.h>
#include <stdlib.h>

#include "core/base/utf8.h"
#include "word_models.h"

/* The best cut of the word up to a byte: its score, and the beginning and id of its last part. */
struct wf_best_path {
    double score;
    uint32_t from; /* UINT32_MAX: no cut ends here */
    int32_t id;
};

/* ---- reading --------------------------------------------------------------------------------- */

static bool read_piece(wf_word_model *m, const wf_step_source *from, size_t value) {
    const json_tree *t = from->tree;
    size_t text = wf_tree_first(t, value), score = text ? wf_tree_next(t, value, text) : 0;
    double x;
    if (!score || wf_tree_next(t, value, score) || wf_tree_kind(t, text) != JSON_STRING ||
        !wf_tree_real(t, score, &x))
        return fail(from->message, "Unigram: a piece is no text with a score");
    if (!wf_grow(&m->scores, &m->scores_capacity, (size_t)m->size + 1, sizeof *m->scores))
        return fail(from->message, "out of memory");
    m->scores[m->size] = x;
    if (x < m->lowest) m->lowest = x;
    return wf_ids_add(&m->vocabulary, wf_tree_text(t, text), m->size++, from->message);
}

/* Prefetches what adding the next pieces will read. Returns the piece after them. */
static size_t look_ahead(const wf_ids_of_text *v, const json_tree *t, size_t list, size_t piece) {
    wf_span texts[WF_STRINGS_AHEAD];
    int n = 0;
    for (; piece && n < WF_STRINGS_AHEAD; piece = wf_tree_next(t, list, piece)) {
        size_t text = wf_tree_first(t, piece);
        texts[n++] = text ? wf_tree_text(t, text) : (wf_span){ "", 0 };
    }
    wf_strings_prefetch(&v->texts, texts, n);
    return piece;
}

static bool build_trie(wf_word_model *m, char *message) {
    const wf_strings *s = &m->vocabulary.texts;
    wf_trie_key *keys = malloc(((size_t)s->n + 1) * sizeof *keys);
    size_t n = 0;
    if (!keys) return fail(message, "out of memory");
    for (int32_t i = 0; i < s->n; i++) {
        wf_span text = wf_strings_span(s, i);
        if (text.bytes) keys[n++] = (wf_trie_key){ text, m->vocabulary.ids[i] };
    }
    bool ok = wf_trie_build(&m->trie, keys, n);
    free(keys);
    return ok || fail(message, "out of memory");
}

bool wf_unigram_read(wf_word_model *m, const wf_step_source *from) {
    const json_tree *t = from->tree;
    size_t list, unknown = wf_tree_given(t, from->at, "unk_id");
    int64_t id = -1;
    m->lowest = INFINITY;
    if (!wf_step_value(from, "vocab", &list) ||
        !wf_step_flag_or(from, "byte_fallback", &m->byte_fallback))
        return false;
    if (wf_tree_kind(t, list) != JSON_ARRAY)
        return fail(from->message, "Unigram: the vocabulary is no list");
    if (!wf_ids_reserve(&m->vocabulary, wf_tree_at_most(t, list) / 3))
        return fail(from->message, "out of memory");
    for (size_t i = wf_tree_first(t, list), ahead = i; i; i = wf_tree_next(t, list, i)) {
        if (i == ahead) ahead = look_ahead(&m->vocabulary, t, list, i);
        if (!read_piece(m, from, i)) return false;
    }
    if (unknown && (!wf_tree_size(t, unknown, INT32_MAX, &id) || id >= m->size))
        return fail(from->message, "Unigram: the unknown id is not in the vocabulary");
    m->unknown_id = (int32_t)id;
    wf_word_model_bytes(m);
    return build_trie(m, from->message);
}

/* ---- the best way ---------------------------------------------------------------------------- */

static inline void offer(wf_best_path *to, double score, size_t from, int32_t id) {
    if (to->from == UINT32_MAX || score > to->score)
        *to = (wf_best_path){ score, (uint32_t)from, id };
}

static bool find_best(wf_word_model *m, wf_span word, char *message) {
    if (!wf_grow(&m->best, &m->best_capacity, word.bytes + 1, sizeof *m->best))
        return fail(message, "out of memory");
    for (size_t i = 0; i <= word.bytes; i++) m->best[i] = (wf_best_path){ 0, UINT32_MAX, 0 };
    for (size_t at = 0, n; at < word.bytes; at += n) {
        double score = m->best[at].score;
        bool single = false;
        int32_t node = 0;
        n = wf_utf8_announced(word.text + at, word.bytes - at);
        for (size_t i = at; m->trie.nodes && i < word.bytes; i++) {
            if ((node = trie_step(&m->trie, node, word.text[i])) < 0) break;
            int32_t id = m->trie.nodes[node].value;
            if (id < 0) continue;
            offer(&m->best[i + 1], m->scores[id] + score, at, id);
            single = single || i + 1 - at == n;
        }
        if (single) continue;
        offer(&m->best[at + n], m->lowest - WF_UNKNOWN_PENALTY + score, at, m->unknown_id);
        if (m->best[at + n].id < 0)
            return fail(message, "a character is not in the vocabulary, which has no unknown id");
    }
    return true;
}

/* Adds the tokens of a part of the word. With byte fallback an unknown part becomes the tokens of
 * its bytes, if the vocabulary has all of them. */
static bool put_part(wf_word_model *m, wf_span word, size_t begin, size_t end, wf_word_tokens *to,
                     char *message) {
    wf_span part = { word.text + begin, end - begin };
    wf_word_token token = { wf_ids_find(&m->vocabulary, part), (uint32_t)begin, (uint32_t)end,
                            false };
    bool bytes = token.id < 0 && m->byte_fallback;
    for (size_t i = 0; bytes && i < part.bytes; i++)
        bytes = m->bytes[(unsigned char)part.text[i]] >= 0;
    for (size_t i = 0; bytes && i < part.bytes; i++) {
        token.id = m->bytes[(unsigned char)part.text[i]];
        if (!wf_word_token_add(to, token, message)) return false;
    }
    if (bytes) return true;
    token.unknown = token.id < 0;
    if (token.unknown) token.id = m->unknown_id;
    return wf_word_token_add(to, token, message);
}

/* Reverses the links of the best cut: m->best[i] gets the end (from) and the id of the part that
 * begins at byte i. */
static void turn(wf_word_model *m, size_t end) {
    uint32_t next = (uint32_t)end;
    int32_t id = -1;
    for (size_t at = end;;) {
        wf_best_path old = m->best[at];
        m->best[at].from = next;
        m->best[at].id = id;
        if (!at) return;
        next = (uint32_t)at;
        id = old.id;
        at = old.from;
    }
}

bool wf_unigram_word(wf_word_model *m, wf_span word, wf_word_tokens *to, char *message) {
    if (!find_best(m, word, message)) return false;
    turn(m, word.bytes);
    for (size_t at = 0, end; at < word.bytes; at = end) {
        int32_t id = m->best[at].id;
        end = m->best[at].from;
        /* unknown parts that follow each other become one */
        while (id == m->unknown_id && end < word.bytes && m->best[end].id == id)
            end = m->best[end].from;
        if (!put_part(m, word, at, end, to, message)) return false;
    }
    return true;
}
