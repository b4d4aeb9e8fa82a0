/* models/text/json/added_tokens.c - tokens that are cut out first; see added_tokens.h. */
#include "added_tokens.h"

#include <stdlib.h>

#include "core/base/utf8.h"
#include "models/text/characters/characters.h"

/* ---- reading --------------------------------------------------------------------------------- */

/* The most bytes of a token's text. This limits the time of a search at each place in a text. */
enum { LONGEST_CONTENT = 4096 };

bool wf_normalize_piece(wf_text_steps *s, wf_aligned *a, wf_piece *p) {
    for (size_t i = 0; i < s->n; i++)
        if (!s->at[i].kind->normalize(&s->at[i], a, p)) return false;
    return true;
}

static int by_id(const void *a, const void *b) {
    const wf_added_token *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static bool read_token(wf_added_token *t, const wf_step_source *from) {
    return wf_step_text(from, "content", &t->content) &&
           wf_step_flag(from, "single_word", &t->single_word) &&
           wf_step_flag(from, "lstrip", &t->left_strip) &&
           wf_step_flag(from, "rstrip", &t->right_strip) &&
           wf_step_flag(from, "normalized", &t->normalized) &&
           wf_step_flag(from, "special", &t->special);
}

static bool normal_content(wf_added_token *t, wf_text_steps *normalizers, wf_aligned *a,
                           char *message) {
    t->normal = t->content;
    if (!t->normalized || !normalizers->n) return true;
    if (!wf_aligned_begin(a, t->content.text, t->content.bytes, message)) return false;
    wf_piece p = a->pieces.at[0];
    if (!wf_normalize_piece(normalizers, a, &p)) return false;
    t->owned = wf_copy(a->text + p.begin, p.bytes);
    t->normal = (wf_span){ t->owned, p.bytes };
    return t->owned || fail(message, "out of memory");
}

/* A token replaces an earlier one that has the same id. */
static bool place(wf_added_tokens *t, wf_added_token token, char *message) {
    int32_t known = wf_pairs_find(&t->places, token.id, 0);
    size_t at = known < 0 ? t->n : (size_t)known;
    if (known < 0 && (!wf_grow(&t->at, &t->capacity, t->n + 1, sizeof *t->at) ||
                      !wf_pairs_add(&t->places, token.id, 0, (int32_t)at))) {
        free(token.owned);
        return fail(message, "out of memory");
    }
    if (at < t->n) free(t->at[at].owned);
    t->n += at == t->n;
    t->at[at] = token;
    return !token.special ||
           wf_strings_add(&t->specials, token.content.text, token.content.bytes) >= 0 ||
           fail(message, "out of memory");
}

static bool build(wf_added_tokens *t, bool normal, char *message) {
    wf_trie_key *keys = malloc((t->n + 1) * sizeof *keys);
    size_t n = 0;
    if (!keys) return fail(message, "out of memory");
    bool ok = true;
    for (size_t i = 0; ok && i < t->n; i++) {
        wf_span text = t->at[i].normal;
        if (t->at[i].normalized != normal) continue;
        ok = text.bytes || fail(message, "the added token '%.60s' is empty when it is normalized",
                                t->at[i].content.text);
        if (!ok) break;
        unsigned char byte = (unsigned char)*text.text;
        t->first[normal][byte >> 5] |= 1u << (byte & 31);
        keys[n++] = (wf_trie_key){ text, t->at[i].id };
    }
    ok = ok &&
         (wf_trie_build(normal ? &t->normal : &t->raw, keys, n) || fail(message, "out of memory"));
    for (size_t i = 1; ok && i < n; i++)
        ok = !wf_span_is(keys[i].text, keys[i - 1].text) ||
             fail(message, "two added tokens are '%.60s' when they are normalized",
                  keys[i].text.text);
    free(keys);
    return ok;
}

static bool too_long(const wf_added_token *t, char *message) {
    return t->content.bytes > LONGEST_CONTENT || t->normal.bytes > LONGEST_CONTENT
               ? !fail(message, "an added token has more than %d bytes", LONGEST_CONTENT)
               : false;
}

static bool add(wf_added_tokens *t, const wf_step_source *from, wf_strings *own, wf_word_model *m,
                wf_text_steps *normalizers, wf_aligned *a) {
    wf_added_token token = { 0 };
    if (!read_token(&token, from)) return false;
    if (!token.content.bytes) return true;
    int32_t i = wf_strings_find(own, token.content.text, token.content.bytes);
    token.id = wf_ids_find(&m->vocabulary, token.content);
    if (token.id < 0) {
        if (i < 0) i = wf_strings_add(own, token.content.text, token.content.bytes);
        if (i < 0) return fail(from->message, "out of memory");
        if (m->size + i > INT32_MAX - 1) return fail(from->message, "too many tokens");
        token.id = (int32_t)m->size + i;
    }
    if (!normal_content(&token, normalizers, a, from->message) || too_long(&token, from->message)) {
        free(token.owned);
        return false;
    }
    return place(t, token, from->message);
}

bool wf_added_read(wf_added_tokens *t, const json_tree *tree, size_t value, wf_word_model *m,
                   wf_text_steps *normalizers, wf_aligned *a, char *message) {
    wf_step_source from = { tree, 0, "added_tokens", message };
    wf_strings own = { 0 };
    bool ok = true;
    if (!value) return true;
    if (wf_tree_kind(tree, value) != JSON_ARRAY) return fail(message, "added_tokens is no list");
    for (size_t i = wf_tree_first(tree, value); ok && i; i = wf_tree_next(tree, value, i)) {
        from.at = i;
        ok = add(t, &from, &own, m, normalizers, a);
    }
    wf_strings_free(&own);
    wf_pairs_free(&t->places);
    if (ok && t->n) qsort(t->at, t->n, sizeof *t->at, by_id);
    return ok && build(t, false, message) && build(t, true, message);
}

void wf_added_free(wf_added_tokens *t) {
    for (size_t i = 0; i < t->n; i++) free(t->at[i].owned);
    wf_trie_free(&t->raw), wf_trie_free(&t->normal), wf_strings_free(&t->specials),
        wf_pairs_free(&t->places);
    free(t->at);
    *t = (wf_added_tokens){ 0 };
}

const wf_added_token *wf_added_find(const wf_added_tokens *t, int32_t id) {
    return t->n ? bsearch(&(wf_added_token){ .id = id }, t->at, t->n, sizeof *t->at, by_id) : NULL;
}

/* ---- cutting --------------------------------------------------------------------------------- */

/* The longest token with which a text begins: its id, or -1. */
static int32_t match(const wf_trie *t, wf_span s, size_t *bytes) {
    int32_t node = 0, id = -1;
    for (size_t i = 0; i < s.bytes && (node = trie_step(t, node, s.text[i])) >= 0; i++) {
        if (t->nodes[node].value < 0) continue;
        id = t->nodes[node].value;
        *bytes = i + 1;
    }
    return id;
}

static size_t character_before(wf_span s, size_t at, uint32_t *code) {
    size_t from = at;
    do from--;
    while (from && wf_utf8_continues(s.text[from]));
    *code = (uint32_t)wf_utf8_code(s.text + from, at - from);
    return from;
}

static bool touches_word(wf_span s, size_t begin, size_t end) {
    uint32_t code;
    if (begin) {
        character_before(s, begin, &code);
        if (wf_has_flag(code, IS_WORD)) return true;
    }
    if (end == s.bytes) return false;
    return wf_has_flag((uint32_t)wf_utf8_next(s.text, s.bytes, &end), IS_WORD);
}

/* Where the spaces before `at` begin, but not before `least`. */
static size_t spaces_before(wf_span s, size_t at, size_t least) {
    uint32_t code;
    while (at > least) {
        size_t from = character_before(s, at, &code);
        if (!wf_is_space(code)) break;
        at = from;
    }
    return at;
}

static size_t spaces_after(wf_span s, size_t at) {
    for (size_t next = at; at < s.bytes; at = next)
        if (!wf_is_space((uint32_t)wf_utf8_next(s.text, s.bytes, &next))) break;
    return at;
}

/* The run of spaces found last, from `begin` to `end`. It is kept because each added token of white
 * space in it may strip the spaces after it, and would read the rest of the run again. */
typedef struct space_run {
    size_t begin, end;
} space_run;

static size_t end_of_spaces(space_run *r, wf_span s, size_t at) {
    if (at < r->begin || at > r->end) *r = (space_run){ at, spaces_after(s, at) };
    return r->end;
}

static bool cut_piece(const wf_added_tokens *t, wf_aligned *a, const wf_piece *p, bool normal) {
    const wf_trie *trie = normal ? &t->normal : &t->raw;
    wf_span s = piece_text(a, p);
    space_run run = { 0, 0 };
    size_t last = 0, bytes = 0;
    for (size_t at = 0; trie->nodes && at < s.bytes;) {
        unsigned char byte = (unsigned char)s.text[at];
        bool may = t->first[normal][byte >> 5] >> (byte & 31) & 1;
        wf_span rest = { s.text + at, s.bytes - at };
        int32_t id = may ? match(trie, rest, &bytes) : -1;
        size_t begin = at, end = at + bytes;
        at += id < 0 ? 1 : bytes;
        const wf_added_token *token = id < 0 ? NULL : wf_added_find(t, id);
        if (!token || (token->single_word && touches_word(s, begin, end))) continue;
        if (token->left_strip) begin = begin < last ? last : spaces_before(s, begin, last);
        if (token->right_strip) end = end_of_spaces(&run, s, end);
        if (end < begin) end = begin; /* the token before has already taken this text */
        if (last < begin && !wf_piece_keep(a, wf_piece_cut(a, p, last, begin))) return false;
        wf_piece part = wf_piece_cut(a, p, begin, end);
        part.id = id;
        if (!wf_piece_keep(a, part)) return false;
        last = end;
    }
    return last >= s.bytes || wf_piece_keep(a, wf_piece_cut(a, p, last, s.bytes));
}

bool wf_added_cut(const wf_added_tokens *t, wf_aligned *a, bool normal) {
    for (size_t i = 0; i < a->pieces.n; i++) {
        wf_piece p = a->pieces.at[i];
        if (p.id >= 0 ? !wf_piece_keep(a, p) : !cut_piece(t, a, &p, normal)) return false;
    }
    wf_pieces_swap(a);
    return true;
}
