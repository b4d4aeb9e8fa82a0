/* models/text/json/normalizers.c - the normalizers of a tokenizer.json; see text_steps.h. */
#include "core/base/utf8.h"
#include "models/text/characters/characters.h"
#include "text_steps.h"

/* ---- characters one by one ------------------------------------------------------------------- */

static uint32_t next_code(wf_span s, size_t *at) {
    return (uint32_t)wf_utf8_next(s.text, s.bytes, at);
}

/* True if the piece can be left alone: `touches` is false for all its characters, and
 * wf_piece_whole is true. */
static bool none(const wf_aligned *a, const wf_piece *p, bool (*touches)(uint32_t)) {
    wf_span s = piece_text(a, p);
    for (size_t at = 0; at < s.bytes;)
        if (touches(next_code(s, &at))) return false;
    return wf_piece_whole(a, p);
}

/* Removes the characters for which `drops` is true. In the list of changes, the character before
 * them counts how many are removed after it. */
static bool filter(wf_aligned *a, wf_piece *p, bool (*drops)(uint32_t)) {
    size_t dropped = 0, at_start = 0;
    bool any = false;
    if (none(a, p, drops)) return true;
    wf_change_begin(a);
    for (size_t at = 0; at < p->bytes;) {
        uint32_t code = next_code(piece_text(a, p), &at);
        if (drops(code)) {
            if (any)
                a->changes[a->n_changes - 1].change--;
            else
                dropped++;
            continue;
        }
        if (!any) at_start = dropped;
        any = true;
        if (!wf_change_add(a, code, 0)) return false;
    }
    return wf_change_all(a, p, at_start);
}

/* Turns the characters for which `touches` is true into spaces. */
static bool to_spaces(wf_aligned *a, wf_piece *p, bool (*touches)(uint32_t)) {
    if (none(a, p, touches)) return true;
    wf_change_begin(a);
    for (size_t at = 0; at < p->bytes;) {
        uint32_t code = next_code(piece_text(a, p), &at);
        if (!wf_change_add(a, touches(code) ? ' ' : code, 0)) return false;
    }
    return wf_change_all(a, p, 0);
}

static bool has_lower(uint32_t code) {
    uint32_t second;
    return wf_lower_case(code, &second) != code || second;
}

static bool normalize_lower(wf_text_step *s, wf_aligned *a, wf_piece *p) {
    (void)s;
    if (none(a, p, has_lower)) return true;
    wf_change_begin(a);
    for (size_t at = 0; at < p->bytes;) {
        uint32_t second, code = wf_lower_case(next_code(piece_text(a, p), &at), &second);
        if (!wf_change_add(a, code, 0) || (second && !wf_change_add(a, second, 1))) return false;
    }
    return wf_change_all(a, p, 0);
}

/* ---- BERT ------------------------------------------------------------------------------------ */

bool wf_bert_drops(uint32_t c) {
    if (c >= 0x20 && c < 0x7F) return false;
    return !c || c == 0xFFFD || wf_has_flag(c, IS_CONTROL);
}

bool wf_other_space(uint32_t c) {
    return c != ' ' && wf_is_space(c);
}

/* The ranges of Hugging Face's tokenizers library. The sixth begins at 2B920 there, although
 * Unicode's begins at 2B820. */
bool wf_is_chinese(uint32_t c) {
    return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
           (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
           (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
           (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

static bool space_chinese(wf_aligned *a, wf_piece *p) {
    if (none(a, p, wf_is_chinese)) return true;
    wf_change_begin(a);
    for (size_t at = 0; at < p->bytes;) {
        uint32_t code = next_code(piece_text(a, p), &at);
        bool chinese = wf_is_chinese(code);
        if ((chinese && !wf_change_add(a, ' ', 0)) || !wf_change_add(a, code, chinese) ||
            (chinese && !wf_change_add(a, ' ', 1)))
            return false;
    }
    return wf_change_all(a, p, 0);
}

bool wf_is_accent(uint32_t c) {
    return c >= 0x300 && wf_has_flag(c, IS_ACCENT);
}

static bool read_bert(wf_text_step *s, const wf_step_source *from) {
    if (!wf_step_flag(from, "clean_text", &s->flags[CLEAN]) ||
        !wf_step_flag(from, "handle_chinese_chars", &s->flags[CHINESE]) ||
        !wf_step_flag(from, "lowercase", &s->flags[LOWER]))
        return false;
    s->flags[ACCENTS] = s->flags[LOWER];
    return wf_step_flag_or(from, "strip_accents", &s->flags[ACCENTS]);
}

static bool normalize_bert(wf_text_step *s, wf_aligned *a, wf_piece *p) {
    if (s->flags[CLEAN] && !(filter(a, p, wf_bert_drops) && to_spaces(a, p, wf_other_space)))
        return false;
    if (s->flags[CHINESE] && !space_chinese(a, p)) return false;
    if (s->flags[ACCENTS] && !(wf_piece_normal(a, p, false, false) && filter(a, p, wf_is_accent)))
        return false;
    return !s->flags[LOWER] || normalize_lower(s, a, p);
}

/* ---- Strip, StripAccents, Nmt ---------------------------------------------------------------- */

static bool read_strip(wf_text_step *s, const wf_step_source *from) {
    return wf_step_flag(from, "strip_left", &s->flags[0]) &&
           wf_step_flag(from, "strip_right", &s->flags[1]);
}

static bool normalize_strip(wf_text_step *step, wf_aligned *a, wf_piece *p) {
    wf_span s = piece_text(a, p);
    bool left = step->flags[0], right = step->flags[1];
    size_t begin = 0, end = 0, dropped = 0;
    bool any = false;
    for (size_t at = 0; at < s.bytes;) {
        size_t from = at;
        bool space = wf_is_space(next_code(s, &at));
        if (!space) end = at;
        if (!space && !any) begin = from;
        any = any || !space;
        dropped += left && !any;
    }
    if (!left) begin = 0;
    if (!right) end = s.bytes;
    if (left && !any) begin = s.bytes;
    if (begin == 0 && end == s.bytes) return true;
    wf_change_begin(a);
    for (size_t at = begin; at < end;)
        if (!wf_change_add(a, next_code(piece_text(a, p), &at), 0)) return false;
    return wf_change_all(a, p, dropped);
}

bool wf_is_mark(uint32_t c) {
    return c >= 0x300 && wf_has_flag(c, IS_MARK);
}

static bool normalize_marks(wf_text_step *s, wf_aligned *a, wf_piece *p) {
    (void)s;
    return filter(a, p, wf_is_mark);
}

bool wf_nmt_drops(uint32_t c) {
    return (c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F ||
           c == 0x9F;
}

bool wf_nmt_space(uint32_t c) {
    return c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 ||
           (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
           c == 0xFEFF || c == 0xFFFD;
}

static bool normalize_nmt(wf_text_step *s, wf_aligned *a, wf_piece *p) {
    (void)s;
    return filter(a, p, wf_nmt_drops) && to_spaces(a, p, wf_nmt_space);
}

/* ---- normal forms ---------------------------------------------------------------------------- */

static bool read_form(wf_text_step *s, const wf_step_source *from) {
    s->flags[COMPATIBLE] = strchr(from->type, 'K') != NULL;
    s->flags[COMPOSES] = strchr(from->type, 'C') != NULL;
    return true;
}

static bool normalize_form(wf_text_step *s, wf_aligned *a, wf_piece *p) {
    return wf_piece_normal(a, p, s->flags[COMPATIBLE], s->flags[COMPOSES]);
}

/* ---- Replace, Prepend, ByteLevel ------------------------------------------------------------- */

static bool read_replace(wf_text_step *s, const wf_step_source *from) {
    return wf_step_text(from, "content", &s->text) && wf_step_pattern(from, s);
}

static bool normalize_replace(wf_text_step *s, wf_aligned *a, wf_piece *p) {
    return wf_piece_replace(a, p, &s->expression, s->text);
}

static bool read_prepend(wf_text_step *s, const wf_step_source *from) {
    return wf_step_text(from, "prepend", &s->text);
}

static bool normalize_prepend(wf_text_step *s, wf_aligned *a, wf_piece *p) {
    return !p->bytes || wf_piece_prepend(a, p, s->text);
}

static bool normalize_bytes(wf_text_step *s, wf_aligned *a, wf_piece *p) {
    (void)s;
    return !p->bytes || wf_piece_to_bytes(a, p);
}

/* ---- the table ------------------------------------------------------------------------------- */

const wf_step_kind wf_normalizer_kinds[] = {
    { "BertNormalizer", "clean_text", .read = read_bert, .normalize = normalize_bert },
    { "Strip", "strip_left", .read = read_strip, .normalize = normalize_strip },
    { "StripAccents", NULL, .normalize = normalize_marks },
    { "NFC", NULL, .read = read_form, .normalize = normalize_form },
    { "NFD", NULL, .read = read_form, .normalize = normalize_form },
    { "NFKC", NULL, .read = read_form, .normalize = normalize_form },
    { "NFKD", NULL, .read = read_form, .normalize = normalize_form },
    { "Lowercase", NULL, .normalize = normalize_lower },
    { "Nmt", NULL, .normalize = normalize_nmt },
    { "Precompiled", "precompiled_charsmap", .read = wf_charsmap_read,
      .normalize = wf_charsmap_normalize },
    { "Replace", "pattern", .read = read_replace, .normalize = normalize_replace },
    { "Prepend", "prepend", .read = read_prepend, .normalize = normalize_prepend },
    { "ByteLevel", NULL, .normalize = normalize_bytes },
    { NULL, NULL, NULL, .cut = NULL },
};
