/* models/text/json/pre_tokenizers.c - the pre-tokenizers of a tokenizer.json; see text_steps.h. */
#include <assert.h>

#include "core/base/utf8.h"
#include "models/text/characters/characters.h"
#include "text_steps.h"

/* ---- cutting by matches ---------------------------------------------------------------------- */

/* Cuts a piece into matches and the texts between them, and removes, merges or keeps these parts as
 * the behaviour says. part() gets them in order. */
typedef struct cutter {
    wf_aligned *a;
    wf_piece piece;
    wf_behavior behavior;
    size_t begin, end; /* a part that may still grow; begin == end: none */
    bool last;         /* the part added last was a match */
} cutter;

static bool keep(cutter *c, size_t begin, size_t end) {
    return begin == end || wf_piece_keep(c->a, wf_piece_cut(c->a, &c->piece, begin, end));
}

/* Keeps the part so far, and begins another one. */
static bool begin_part(cutter *c, size_t begin, size_t end) {
    bool ok = keep(c, c->begin, c->end);
    c->begin = begin;
    c->end = end;
    return ok;
}

/* Adds a part. With MERGED_WITH_NEXT, a match joins the part that follows it, but of several
 * matches in a row only the last does. So a match is kept back until the part after it is known. */
static bool part(cutter *c, size_t begin, size_t end, bool match) {
    bool grows = false;
    if (c->behavior == REMOVED && match) return begin_part(c, end, end);
    if (c->behavior == CONTIGUOUS) grows = match == c->last;
    if (c->behavior == MERGED_WITH_PREVIOUS) grows = match && !c->last;
    if (c->behavior == MERGED_WITH_NEXT) grows = !match && c->last;
    c->last = match;
    if (!grows) return begin_part(c, begin, end);
    if (c->begin == c->end) c->begin = begin;
    c->end = end;
    return true;
}

static bool cut_expression(wf_text_step *s, wf_aligned *a, const wf_piece *p, bool inverted) {
    cutter c = { .a = a, .piece = *p, .behavior = (wf_behavior)s->choice };
    size_t begin, end, last = 0;
    wf_match_result result;
    wf_search search = wf_search_begin(&s->expression, piece_text(a, p));
    while ((result = wf_search_next(&search, &begin, &end)) == A_MATCH) {
        if (begin > last && !part(&c, last, begin, inverted)) return false;
        if (!part(&c, begin, end, !inverted)) return false;
        last = end;
    }
    if (result > A_MATCH) return wf_match_refused(result, a->message);
    return (last == p->bytes || part(&c, last, p->bytes, inverted)) && keep(&c, c.begin, c.end);
}

/* Every character for which `belongs` is true is a match of its own. */
static bool cut_characters(wf_aligned *a, const wf_piece *p, wf_behavior behavior,
                           bool (*belongs)(const void *, uint32_t), const void *with) {
    cutter c = { .a = a, .piece = *p, .behavior = behavior };
    wf_span s = piece_text(a, p);
    size_t last = 0;
    for (size_t at = 0; at < s.bytes;) {
        size_t from = at;
        if (!belongs(with, (uint32_t)wf_utf8_next(s.text, s.bytes, &at))) continue;
        if (from > last && !part(&c, last, from, false)) return false;
        if (!part(&c, from, at, true)) return false;
        last = at;
    }
    return (last == s.bytes || part(&c, last, s.bytes, false)) && keep(&c, c.begin, c.end);
}

/* Calls `cut` for each piece that is still text, and keeps all other pieces as they are. */
static bool each(wf_text_step *s, wf_aligned *a,
                 bool (*cut)(wf_text_step *, wf_aligned *, wf_piece)) {
    for (size_t i = 0; i < a->pieces.n; i++) {
        wf_piece p = a->pieces.at[i];
        if (p.id >= 0 ? !wf_piece_keep(a, p) : !cut(s, a, p)) return false;
    }
    wf_pieces_swap(a);
    return true;
}

bool wf_cut_pieces(const wf_text_steps *s, wf_aligned *a) {
    for (size_t i = 0; i < s->n; i++) {
        const wf_step_kind *kind = s->at[i].kind;
        if (!each(&s->at[i], a, kind->cut)) return false;
        if (kind->cut_parts && !each(&s->at[i], a, kind->cut_parts)) return false;
    }
    return true;
}

/* ---- characters ------------------------------------------------------------------------------ */

static bool space(const void *with, uint32_t c) {
    (void)with;
    return wf_is_space(c);
}
bool wf_is_punctuation(uint32_t c) {
    return wf_has_flag(c, IS_PUNCTUATION);
}
static bool punctuation(const void *with, uint32_t c) {
    (void)with;
    return wf_is_punctuation(c);
}
bool wf_is_digit(uint32_t c) {
    return c < 0x80 ? c >= '0' && c <= '9' : wf_has_flag(c, IS_NUMBER);
}
static bool digit(const void *with, uint32_t c) {
    (void)with;
    return wf_is_digit(c);
}
static bool same(const void *with, uint32_t c) {
    return *(const uint32_t *)with == c;
}

static bool cut_spaces(wf_text_step *s, wf_aligned *a, wf_piece p) {
    (void)s;
    return cut_characters(a, &p, REMOVED, space, NULL);
}
static bool cut_punctuation(wf_text_step *s, wf_aligned *a, wf_piece p) {
    return cut_characters(a, &p, (wf_behavior)s->choice, punctuation, NULL);
}
static bool cut_digits(wf_text_step *s, wf_aligned *a, wf_piece p) {
    return cut_characters(a, &p, s->flags[0] ? ISOLATED : CONTIGUOUS, digit, NULL);
}
static bool cut_delimiter(wf_text_step *s, wf_aligned *a, wf_piece p) {
    return cut_characters(a, &p, REMOVED, same, &s->code);
}

static const char *const behaviors[] = { "Removed",        "Isolated",   "MergedWithPrevious",
                                         "MergedWithNext", "Contiguous", NULL };

static bool read_bert(wf_text_step *s, const wf_step_source *from) {
    (void)from;
    s->choice = ISOLATED;
    return true;
}
static bool read_punctuation(wf_text_step *s, const wf_step_source *from) {
    s->choice = ISOLATED;
    return !wf_tree_find(from->tree, from->at, "behavior") ||
           wf_step_choice(from, "behavior", behaviors, &s->choice);
}
static bool read_digits(wf_text_step *s, const wf_step_source *from) {
    return wf_step_flag(from, "individual_digits", &s->flags[0]);
}
static bool read_delimiter(wf_text_step *s, const wf_step_source *from) {
    return wf_step_code(from, "delimiter", &s->code);
}

/* ---- expressions ----------------------------------------------------------------------------- */

static bool cut_split(wf_text_step *s, wf_aligned *a, wf_piece p) {
    return cut_expression(s, a, &p, s->flags[INVERT]);
}
static bool read_split(wf_text_step *s, const wf_step_source *from) {
    return wf_step_choice(from, "behavior", behaviors, &s->choice) &&
           wf_step_flag(from, "invert", &s->flags[INVERT]) && wf_step_pattern(from, s);
}

static bool compile(wf_text_step *s, const wf_step_source *from, const char *pattern) {
    return wf_expression_compile(&s->expression, (wf_span){ pattern, strlen(pattern) },
                                 from->message);
}

/* White space, characters of words, and all others. */
typedef enum { KIND_SPACE, KIND_WORD, KIND_OTHER } word_kind;
static word_kind kind_of(uint32_t c) {
    if (wf_is_space(c)) return KIND_SPACE;
    return wf_has_flag(c, IS_WORD) ? KIND_WORD : KIND_OTHER;
}

static bool cut_words(wf_text_step *s, wf_aligned *a, wf_piece p) {
    wf_span text = piece_text(a, &p);
    word_kind last = KIND_SPACE;
    size_t begin = 0;
    (void)s;
    for (size_t at = 0; at < text.bytes;) {
        size_t from = at;
        word_kind kind = kind_of((uint32_t)wf_utf8_next(text.text, text.bytes, &at));
        if (kind == last) continue;
        if (last != KIND_SPACE && !wf_piece_keep(a, wf_piece_cut(a, &p, begin, from))) return false;
        begin = from;
        last = kind;
    }
    return last == KIND_SPACE || wf_piece_keep(a, wf_piece_cut(a, &p, begin, text.bytes));
}

/* ---- ByteLevel ------------------------------------------------------------------------------- */

static bool read_bytes(wf_text_step *s, const wf_step_source *from) {
    bool trim;
    s->flags[USE_REGEX] = true;
    s->choice = ISOLATED;
    return wf_step_flag(from, "add_prefix_space", &s->flags[PREFIX_SPACE]) &&
           wf_step_flag(from, "trim_offsets", &trim) &&
           wf_step_flag_or(from, "use_regex", &s->flags[USE_REGEX]) &&
           compile(s, from,
                   "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|"
                   "\\s+(?!\\S)|\\s+");
}

static bool cut_bytes(wf_text_step *s, wf_aligned *a, wf_piece p) {
    if (s->flags[PREFIX_SPACE] && p.bytes && a->text[p.begin] != ' ' &&
        !wf_piece_prepend(a, &p, (wf_span){ " ", 1 }))
        return false;
    return s->flags[USE_REGEX] ? cut_expression(s, a, &p, false) : wf_piece_keep(a, p);
}

static bool spell_bytes(wf_text_step *s, wf_aligned *a, wf_piece p) {
    (void)s;
    return wf_piece_to_bytes(a, &p) && wf_piece_keep(a, p);
}

/* ---- Metaspace ------------------------------------------------------------------------------- */

/* Reads prepend_scheme. False with message if the older field add_prefix_space contradicts it. */
static bool scheme(wf_text_step *s, const wf_step_source *from) {
    static const char *const schemes[] = { "first", "never", "always", NULL };
    bool prefix = true;
    bool given = wf_tree_find(from->tree, from->at, "prepend_scheme") > 0;
    s->choice = SCHEME_ALWAYS;
    if (given && !wf_step_choice(from, "prepend_scheme", schemes, &s->choice)) return false;
    if (!wf_step_flag_or(from, "add_prefix_space", &prefix)) return false;
    if (!prefix && s->choice != SCHEME_NEVER)
        return fail(from->message, "Metaspace: add_prefix_space does not match the prepend_scheme");
    return true;
}

static bool read_metaspace(wf_text_step *s, const wf_step_source *from) {
    s->flags[SPLIT_SPACES] = true;
    return wf_step_code(from, "replacement", &s->code) &&
           wf_step_text(from, "replacement", &s->text) && scheme(s, from) &&
           wf_step_flag_or(from, "split", &s->flags[SPLIT_SPACES]) &&
           wf_expression_literal(&s->expression, (wf_span){ " ", 1 }, from->message);
}

static bool cut_metaspace(wf_text_step *s, wf_aligned *a, wf_piece p) {
    if (!wf_piece_replace(a, &p, &s->expression, s->text)) return false;
    bool wanted = s->choice == SCHEME_ALWAYS || (s->choice == SCHEME_FIRST && !p.from);
    if (wanted && p.bytes && !wf_span_begins(piece_text(a, &p), s->text) &&
        !wf_piece_prepend(a, &p, s->text))
        return false;
    return s->flags[SPLIT_SPACES] ? cut_characters(a, &p, MERGED_WITH_NEXT, same, &s->code)
                                  : wf_piece_keep(a, p);
}

/* ---- FixedLength ----------------------------------------------------------------------------- */

static bool read_length(wf_text_step *s, const wf_step_source *from) {
    s->sizes[0] = 5;
    return !wf_tree_find(from->tree, from->at, "length") ||
           wf_step_size(from, "length", 1, &s->sizes[0]);
}

static bool cut_length(wf_text_step *s, wf_aligned *a, wf_piece p) {
    wf_span text = piece_text(a, &p);
    size_t begin = 0;
    int64_t n = 0;
    for (size_t at = 0; at < text.bytes;) {
        at += wf_utf8_announced(text.text + at, text.bytes - at);
        if (++n < s->sizes[0] && at < text.bytes) continue;
        if (!wf_piece_keep(a, wf_piece_cut(a, &p, begin, at))) return false;
        begin = at;
        n = 0;
    }
    return true;
}

/* ---- UnicodeScripts -------------------------------------------------------------------------- */

/* Cuts where two scripts meet. Characters without a script stay with the text before them; at the
 * start of a piece they are dropped. */
static bool cut_scripts(wf_text_step *s, wf_aligned *a, wf_piece p) {
    wf_span text = piece_text(a, &p);
    uint32_t last = 0;
    size_t begin = 0;
    (void)s;
    for (size_t at = 0; at < text.bytes;) {
        size_t from = at;
        uint32_t script =
            wf_table_value(&wf_cuts, (uint32_t)wf_utf8_next(text.text, text.bytes, &at));
        if (!script || script == last) continue;
        if (last && !wf_piece_keep(a, wf_piece_cut(a, &p, begin, from))) return false;
        begin = from;
        last = script;
    }
    return !last || wf_piece_keep(a, wf_piece_cut(a, &p, begin, text.bytes));
}

/* ---- the table ------------------------------------------------------------------------------- */

const wf_step_kind wf_pre_tokenizer_kinds[] = {
    { "BertPreTokenizer", NULL, .read = read_bert, .cut = cut_spaces,
      .cut_parts = cut_punctuation },
    { "ByteLevel", "trim_offsets", .read = read_bytes, .cut = cut_bytes, .cut_parts = spell_bytes },
    { "Metaspace", "replacement", .read = read_metaspace, .cut = cut_metaspace },
    { "Whitespace", NULL, .cut = cut_words },
    { "WhitespaceSplit", NULL, .cut = cut_spaces },
    { "Punctuation", NULL, .read = read_punctuation, .cut = cut_punctuation },
    { "Digits", "individual_digits", .read = read_digits, .cut = cut_digits },
    { "Split", "pattern", .read = read_split, .cut = cut_split },
    { "CharDelimiterSplit", "delimiter", .read = read_delimiter, .cut = cut_delimiter },
    { "UnicodeScripts", NULL, .cut = cut_scripts },
    { "FixedLength", "length", .read = read_length, .cut = cut_length },
    { NULL, NULL, NULL, .cut = NULL },
};
