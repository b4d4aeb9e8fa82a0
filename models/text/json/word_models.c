/* models/text/json/word_models.c - vocabularies, and the models WordPiece and WordLevel; see
 * word_models.h. */
#include "word_models.h"

#include <stdlib.h>

#include "core/base/utf8.h"

/* ---- texts and ids --------------------------------------------------------------------------- */

/* Ids may have gaps, but an id may not exceed eight times the number of texts so far by more than
 * MOST_GAPS. This limits the table of all ids. */
enum { MOST_GAPS = 1 << 20 };

bool wf_ids_reserve(wf_ids_of_text *v, size_t n) {
    return wf_strings_reserve(&v->texts, n) &&
           wf_grow(&v->ids, &v->ids_capacity, n, sizeof *v->ids) &&
           wf_grow(&v->by_id, &v->by_id_capacity, n, sizeof *v->by_id);
}

bool wf_ids_add(wf_ids_of_text *v, wf_span text, int64_t id, char *message) {
    int32_t i = wf_strings_add(&v->texts, text.text, text.bytes);
    if (id < 0 || id > INT32_MAX - 1 || (uint64_t)id > 8 * (uint64_t)v->texts.n + MOST_GAPS)
        return fail(message, "the id %lld of '%.60s' is too far from the others", (long long)id,
                    text.text);
    if (i < 0 || !wf_grow(&v->ids, &v->ids_capacity, (size_t)i + 1, sizeof *v->ids) ||
        !wf_grow(&v->by_id, &v->by_id_capacity, (size_t)id + 1, sizeof *v->by_id))
        return fail(message, "out of memory");
    for (; v->n_ids <= (size_t)id; v->n_ids++) v->by_id[v->n_ids] = -1;
    v->ids[i] = (int32_t)id;
    v->by_id[id] = i;
    if (text.bytes > v->longest) v->longest = text.bytes;
    return true;
}

int32_t wf_ids_find(const wf_ids_of_text *v, wf_span text) {
    int32_t i = wf_strings_find(&v->texts, text.text, text.bytes);
    return i < 0 ? -1 : v->ids[i];
}

wf_span wf_id_text(const wf_ids_of_text *v, int64_t id) {
    int32_t i = id < 0 || (uint64_t)id >= v->n_ids ? -1 : v->by_id[id];
    if (i < 0) return (wf_span){ NULL, 0 };
    return wf_strings_span(&v->texts, i);
}

static void free_ids(wf_ids_of_text *v) {
    wf_strings_free(&v->texts);
    free(v->ids), free(v->by_id);
    *v = (wf_ids_of_text){ 0 };
}

/* ---- shared ---------------------------------------------------------------------------------- */

bool wf_word_token_add(wf_word_tokens *to, wf_word_token token, char *message) {
    if (to->n == to->capacity && !wf_grow(&to->at, &to->capacity, to->n + 1, sizeof *to->at))
        return fail(message, "out of memory");
    to->at[to->n++] = token;
    return true;
}

void wf_word_model_bytes(wf_word_model *m) {
    char text[8];
    for (int i = 0; i < 256; i++) {
        snprintf(text, sizeof text, "<0x%02X>", (unsigned)i);
        m->bytes[i] = wf_ids_find(&m->vocabulary, (wf_span){ text, 6 });
    }
}

/* Prefetches what adding the next keys of an object will read. Returns the key after them. */
static size_t look_ahead(const wf_ids_of_text *v, const json_tree *t, size_t list, size_t key) {
    wf_span texts[WF_STRINGS_AHEAD];
    int n = 0;
    for (; key && n < WF_STRINGS_AHEAD; key = wf_tree_next(t, list, t->values[key].next))
        texts[n++] = wf_tree_text(t, key);
    wf_strings_prefetch(&v->texts, texts, n);
    return key;
}

bool wf_word_model_vocabulary(wf_word_model *m, const wf_step_source *from) {
    const json_tree *t = from->tree;
    size_t list;
    if (!wf_step_value(from, "vocab", &list)) return false;
    if (wf_tree_kind(t, list) != JSON_OBJECT)
        return fail(from->message, "%s: the vocabulary is no object", from->type);
    if (!wf_ids_reserve(&m->vocabulary, wf_tree_at_most(t, list) / 2))
        return fail(from->message, "out of memory");
    for (size_t key = wf_tree_first(t, list), ahead = key; key;) {
        size_t value = t->values[key].next;
        int64_t id;
        if (key == ahead) ahead = look_ahead(&m->vocabulary, t, list, key);
        if (!wf_tree_size(t, value, INT32_MAX, &id))
            return fail(from->message, "%s: the vocabulary has an id that is no whole number",
                        from->type);
        if (!wf_ids_add(&m->vocabulary, wf_tree_text(t, key), id, from->message)) return false;
        key = wf_tree_next(t, list, value);
    }
    m->size = m->vocabulary.texts.n;
    return true;
}

static bool read_unknown(wf_word_model *m, const wf_step_source *from) {
    if (!wf_step_text(from, "unk_token", &m->unknown)) return false;
    m->unknown_id = wf_ids_find(&m->vocabulary, m->unknown);
    return true;
}

static bool put_unknown(const wf_word_model *m, wf_span word, wf_word_tokens *to, char *message) {
    if (m->unknown_id < 0)
        return fail(message, "the unknown token '%.*s' is not in the vocabulary",
                    (int)(m->unknown.bytes < 60 ? m->unknown.bytes : 60), m->unknown.text);
    return wf_word_token_add(to, (wf_word_token){ m->unknown_id, 0, (uint32_t)word.bytes, false },
                             message);
}

/* ---- WordLevel ------------------------------------------------------------------------------- */

static bool word_level_read(wf_word_model *m, const wf_step_source *from) {
    return wf_word_model_vocabulary(m, from) && read_unknown(m, from);
}

static bool word_level_word(wf_word_model *m, wf_span word, wf_word_tokens *to, char *message) {
    int32_t id = wf_ids_find(&m->vocabulary, word);
    if (id < 0) return put_unknown(m, word, to, message);
    return wf_word_token_add(to, (wf_word_token){ id, 0, (uint32_t)word.bytes, false }, message);
}

/* ---- WordPiece ------------------------------------------------------------------------------- */

static bool word_piece_read(wf_word_model *m, const wf_step_source *from) {
    return wf_word_model_vocabulary(m, from) && read_unknown(m, from) &&
           wf_step_text(from, "continuing_subword_prefix", &m->prefix) &&
           wf_step_size(from, "max_input_chars_per_word", 0, &m->most_characters);
}

static bool too_many(const wf_word_model *m, wf_span word) {
    int64_t n = 0;
    for (size_t i = 0; i < word.bytes; i++) n += !wf_utf8_continues(word.text[i]);
    return n > m->most_characters;
}

/* Finds the longest part of a word from `begin` on that is in the vocabulary. A part that does not
 * begin the word has the prefix. Returns its end; `begin`: there is none; SIZE_MAX: out of
 * memory. */
static size_t longest_part(wf_word_model *m, wf_span word, size_t begin, int32_t *id) {
    size_t extra = begin ? m->prefix.bytes : 0, end = word.bytes;
    wf_span part = { word.text + begin, 0 };
    if (extra) {
        m->joined.bytes = 0;
        if (!wf_spm_put(&m->joined, m->prefix.text, extra) ||
            !wf_spm_put(&m->joined, word.text + begin, word.bytes - begin))
            return SIZE_MAX;
        part.text = m->joined.at;
    }
    if (end - begin + extra > m->vocabulary.longest)
        end = begin + (m->vocabulary.longest > extra ? m->vocabulary.longest - extra : 0);
    for (; end > begin; end--) {
        if (end < word.bytes && wf_utf8_continues(word.text[end])) continue;
        part.bytes = end - begin + extra;
        if ((*id = wf_ids_find(&m->vocabulary, part)) >= 0) return end;
    }
    return begin;
}

static bool word_piece_word(wf_word_model *m, wf_span word, wf_word_tokens *to, char *message) {
    size_t before = to->n, end;
    int32_t id;
    if (too_many(m, word)) return put_unknown(m, word, to, message);
    for (size_t begin = 0; begin < word.bytes; begin = end) {
        end = longest_part(m, word, begin, &id);
        if (end == SIZE_MAX) return fail(message, "out of memory");
        if (end == begin) {
            to->n = before;
            return put_unknown(m, word, to, message);
        }
        wf_word_token token = { id, (uint32_t)begin, (uint32_t)end, false };
        if (!wf_word_token_add(to, token, message)) return false;
    }
    return true;
}

/* ---- the table ------------------------------------------------------------------------------- */

static const wf_word_model_kind kinds[] = {
    { "BPE", wf_bpe_read, wf_bpe_word },
    { "WordPiece", word_piece_read, word_piece_word },
    { "WordLevel", word_level_read, word_level_word },
    { "Unigram", wf_unigram_read, wf_unigram_word },
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

/* If a model has no type, its fields tell which one it is. */
static const char *guess(const json_tree *t, size_t value) {
    if (wf_tree_find(t, value, "merges")) return "BPE";
    if (wf_tree_find(t, value, "max_input_chars_per_word")) return "WordPiece";
    if (wf_tree_find(t, value, "unk_token")) return "WordLevel";
    return wf_tree_find(t, value, "vocab") ? "Unigram" : "";
}

bool wf_word_model_read(wf_word_model *m, const json_tree *tree, size_t value, char *message) {
    if (!value || wf_tree_kind(tree, value) != JSON_OBJECT)
        return fail(message, "the file has no model");
    size_t type = wf_tree_find(tree, value, "type");
    wf_span name = { guess(tree, value), 0 };
    name.bytes = strlen(name.text);
    if (type) name = wf_tree_text(tree, type);
    for (int i = 0; i < N_KINDS; i++)
        if (name.bytes == strlen(kinds[i].type) &&
            memcmp(name.text, kinds[i].type, name.bytes) == 0)
            m->kind = &kinds[i];
    if (!m->kind)
        return fail(message, "the model '%.*s' is not known here",
                    (int)(name.bytes < 60 ? name.bytes : 60), name.text);
    return m->kind->read(m, &(wf_step_source){ tree, value, m->kind->type, message });
}

void wf_word_model_free(wf_word_model *m) {
    free_ids(&m->vocabulary), wf_strings_free(&m->words);
    wf_merges_free(&m->merges), wf_merger_free(&m->merger), wf_trie_free(&m->trie);
    free(m->word_ends), free(m->seen.at), free(m->joined.at), free(m->scores), free(m->best);
    *m = (wf_word_model){ 0 };
}
