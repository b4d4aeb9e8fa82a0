/* models/text/learn/learn_pieces.c - learns the vocabularies of BPE and WordPiece; see
 * json_learn.h.
 *
 * Both merge the most frequent pair of neighbours, again and again; of equally frequent pairs, the
 * one with the lowest ids. Hugging Face's tokenizers library does so, too: its WordPieceTrainer is
 * BPE. In WordPiece a piece that does not begin its word has the prefix "##", and a merge drops the
 * prefix of its right part. */
#include <stdlib.h>

#include "json_learn.h"
#include "models/text/pair_learner.h"

#define PREFIX "##"
enum { PREFIX_BYTES = 2 };

typedef struct pieces {
    wf_json_learner *l;
    size_t prefix; /* bytes of the prefix; 0: there is none */
    wf_merges merges;
    wf_spm_text joined;
} pieces;

/* ---- characters ------------------------------------------------------------------------------ */

static int32_t add(pieces *p, wf_span text, bool inside) {
    if (!inside || !p->prefix) return wf_strings_add(&p->l->pieces, text.text, text.bytes);
    p->joined.bytes = 0;
    if (!wf_spm_put(&p->joined, PREFIX, PREFIX_BYTES) ||
        !wf_spm_put(&p->joined, text.text, text.bytes))
        return -1;
    return wf_strings_add(&p->l->pieces, p->joined.at, p->joined.bytes);
}

static int by_text(const void *a, const void *b) {
    return strcmp(((const wf_ranked *)a)->text.text, ((const wf_ranked *)b)->text.text);
}

/* Adds the characters by code point: first as beginnings of words, then those seen inside of words
 * with the prefix. */
static bool add_alphabet(pieces *p, const wf_tally *characters, const wf_tally *inside) {
    wf_ranked *r = wf_tally_rank(characters);
    bool ok = r != NULL;
    if (r) qsort(r, (size_t)characters->strings.n, sizeof *r, by_text);
    for (int32_t i = 0; ok && i < characters->strings.n; i++) ok = add(p, r[i].text, false) >= 0;
    for (int32_t i = 0; ok && p->prefix && i < characters->strings.n; i++)
        if (wf_strings_find(&inside->strings, r[i].text.text, r[i].text.bytes) >= 0)
            ok = add(p, r[i].text, true) >= 0;
    free(r);
    return ok;
}

/* Counts the characters that do not begin their word. */
static bool count_inside(const wf_json_learner *l, wf_tally *inside) {
    for (int32_t i = 0; i < l->words.strings.n; i++) {
        wf_span word = wf_strings_span(&l->words.strings, i);
        wf_character_next(&word);
        if (!wf_tally_characters(inside, word, 1)) return false;
    }
    return true;
}

/* All bytes, as byte-level text spells them. */
static bool take_bytes(wf_tally *characters) {
    char spelled[CODE_POINT];
    for (int byte = 0; byte < 256; byte++) {
        wf_span s = { spelled, wf_spell_byte((unsigned char)byte, spelled) };
        if (!wf_tally_add(characters, s, 1)) return false;
    }
    return true;
}

static bool take_characters(pieces *p) {
    wf_tally characters = { 0 }, inside = { 0 };
    wf_json_learner *l = p->l;
    bool ok = p->prefix ? wf_learn_alphabet(l, &characters) && count_inside(l, &inside)
                        : take_bytes(&characters);
    ok = (ok && add_alphabet(p, &characters, &inside)) || fail(l->message, "out of memory");
    wf_tally_free(&characters);
    wf_tally_free(&inside);
    return ok && wf_learn_room(l, l->pieces.n - l->n_special);
}

/* ---- merges ---------------------------------------------------------------------------------- */

static bool lower(const void *context, const int32_t a[2], const int32_t b[2]) {
    (void)context;
    return a[0] != b[0] ? a[0] < b[0] : a[1] < b[1];
}

static bool allows(const void *context, int32_t left, int32_t right) {
    (void)context;
    return left >= 0 && right >= 0;
}

static int32_t merge(void *context, int32_t left, int32_t right) {
    pieces *p = context;
    wf_strings *s = &p->l->pieces;
    p->joined.bytes = 0;
    if (!wf_spm_put(&p->joined, wf_strings_at(s, left), wf_strings_span(s, left).bytes) ||
        !wf_spm_put(&p->joined, wf_strings_at(s, right) + p->prefix,
                    wf_strings_span(s, right).bytes - p->prefix))
        return -1;
    int32_t result = wf_strings_add(s, p->joined.at, p->joined.bytes);
    /* a pair may come again, where another merge gives one of its symbols */
    if (result < 0 || wf_pairs_find(&p->merges.ranks, left, right) >= 0) return result;
    return wf_merges_add(&p->merges, (wf_merge){ left, right, result }) ? result : -1;
}

static bool more(const void *context) {
    const wf_json_learner *l = ((const pieces *)context)->l;
    return l->pieces.n < l->o->vocab_size;
}

/* Characters that are not in the alphabet are left out of their words. */
static bool add_word(const pieces *p, wf_pair_words *words, wf_span word, int64_t count) {
    char text[PREFIX_BYTES + CODE_POINT] = PREFIX;
    if (!wf_pair_words_begin(words, count)) return false;
    for (bool inside = false; word.bytes; inside = true) {
        wf_span c = wf_character_next(&word);
        size_t before = inside ? p->prefix : 0;
        memcpy(text + before, c.text, c.bytes);
        int32_t symbol = wf_strings_find(&p->l->pieces, text, before + c.bytes);
        memcpy(text, PREFIX, PREFIX_BYTES);
        if (symbol >= 0 && !wf_pair_words_add(words, symbol)) return false;
    }
    return true;
}

static bool learn(pieces *p) {
    const wf_tally *from = &p->l->words;
    const wf_pair_rule rule = { lower, allows, merge, more, p->l->o->min_freq, p };
    wf_pair_words words = { 0 };
    bool ok = true;
    for (int32_t i = 0; ok && i < from->strings.n; i++) {
        wf_span word = wf_strings_span(&from->strings, i);
        ok = add_word(p, &words, word, from->counts[i]);
    }
    ok = (ok && wf_learn_pairs(&words, &rule)) || fail(p->l->message, "out of memory");
    wf_pair_words_free(&words);
    return ok && wf_learn_enough(p->l, p->l->pieces.n);
}

/* ---- written --------------------------------------------------------------------------------- */

static void put_vocabulary(wf_json_learner *l) {
    wf_learn_put(l, "\"vocab\":{");
    for (int32_t id = 0; id < l->pieces.n; id++) {
        if (id) wf_learn_put(l, ",");
        wf_learn_put_text(l, wf_strings_at(&l->pieces, id));
        wf_learn_put(l, ":");
        wf_learn_put_number(l, id);
    }
    wf_learn_put(l, "}");
}

static void put_merges(wf_json_learner *l, const pieces *p) {
    wf_learn_put(l, ",\"merges\":[");
    for (size_t i = 0; i < p->merges.n; i++) {
        wf_learn_put(l, i ? ",[" : "[");
        wf_learn_put_text(l, wf_strings_at(&l->pieces, p->merges.at[i].left));
        wf_learn_put(l, ",");
        wf_learn_put_text(l, wf_strings_at(&l->pieces, p->merges.at[i].right));
        wf_learn_put(l, "]");
    }
    wf_learn_put(l, "]");
}

static bool learn_all(pieces *p) {
    bool ok = take_characters(p) && learn(p);
    free(p->joined.at);
    if (!ok) wf_merges_free(&p->merges);
    return ok;
}

bool wf_learn_bpe(wf_json_learner *l) {
    pieces p = { .l = l };
    if (!learn_all(&p)) return false;
    wf_learn_put(l, "{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,"
                    "\"continuing_subword_prefix\":\"\",\"end_of_word_suffix\":\"\","
                    "\"fuse_unk\":false,\"byte_fallback\":false,\"ignore_merges\":false,");
    put_vocabulary(l);
    put_merges(l, &p);
    wf_learn_put(l, "}");
    wf_merges_free(&p.merges);
    return true;
}

bool wf_learn_wordpiece(wf_json_learner *l) {
    pieces p = { .l = l, .prefix = PREFIX_BYTES };
    if (!learn_all(&p)) return false;
    wf_merges_free(&p.merges);
    wf_learn_put(l, "{\"type\":\"WordPiece\",\"unk_token\":");
    wf_learn_put_text(l, wf_strings_at(&l->pieces, l->roles.unknown));
    wf_learn_put(l,
                 ",\"continuing_subword_prefix\":\"" PREFIX "\",\"max_input_chars_per_word\":100,");
    put_vocabulary(l);
    wf_learn_put(l, "}");
    return true;
}
