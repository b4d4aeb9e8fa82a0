/* models/text/json/token_decoders.c - the decoders of a tokenizer.json: what tokens' texts become;
 * see text_steps.h. */
#include <stdlib.h>

#include "core/base/utf8.h"
#include "text_steps.h"

/* ---- lists of texts -------------------------------------------------------------------------- */

static wf_span text_at(const wf_texts *t, size_t i) {
    size_t from = i ? t->ends[i - 1] : 0;
    const char *all = t->text.at ? t->text.at : ""; /* NULL if all texts are empty */
    return (wf_span){ all + from, t->ends[i] - from };
}

bool wf_texts_put(wf_parts *p, wf_span s) {
    return wf_spm_put(&p->next.text, s.text, s.bytes) || fail(p->message, "out of memory");
}

bool wf_texts_end(wf_parts *p) {
    wf_texts *t = &p->next;
    if (t->n == t->capacity && !wf_grow(&t->ends, &t->capacity, t->n + 1, sizeof *t->ends))
        return fail(p->message, "out of memory");
    t->ends[t->n++] = t->text.bytes;
    return true;
}

void wf_texts_swap(wf_parts *p) {
    wf_texts old = p->now;
    p->now = p->next;
    p->next = old;
    p->next.n = p->next.text.bytes = 0;
}

bool wf_decode_texts(wf_text_step *s, wf_parts *p) {
    if (s->kind->decode) return s->kind->decode(s, p);
    for (size_t i = 0; i < p->now.n; i++)
        if (!s->kind->put(s, p, text_at(&p->now, i), i) || !wf_texts_end(p)) return false;
    wf_texts_swap(p);
    return true;
}

static bool put_string(wf_parts *p, const char *text) {
    return wf_texts_put(p, (wf_span){ text, strlen(text) });
}

/* Appends a text in which `what` is replaced, as Rust does it: an empty `what` is found before
 * every character and at the end. */
static bool put_replaced(wf_parts *p, wf_span s, wf_span what, wf_span by) {
    while (s.bytes) {
        bool found = wf_span_begins(s, what);
        wf_span part = found && what.bytes ? wf_span_take(&s, what.bytes) : wf_character_next(&s);
        if (found && !wf_texts_put(p, by)) return false;
        if ((!found || !what.bytes) && !wf_texts_put(p, part)) return false;
    }
    return what.bytes || wf_texts_put(p, by);
}

/* ---- ByteLevel ------------------------------------------------------------------------------- */

/* Appends the bytes that a token spells. A token with any other character is appended as it is. */
static bool put_spelled(wf_parts *p, wf_span s) {
    size_t before = p->next.text.bytes;
    for (size_t at = 0; at < s.bytes;) {
        int byte = wf_character_byte((uint32_t)wf_utf8_next(s.text, s.bytes, &at));
        char c = (char)byte;
        if (byte < 0) {
            p->next.text.bytes = before;
            return wf_texts_put(p, s);
        }
        if (!wf_texts_put(p, (wf_span){ &c, 1 })) return false;
    }
    return true;
}

/* Appends a text as valid UTF-8, with U+FFFD for every part that is not. */
static bool put_valid(wf_parts *p, wf_span s) {
    for (size_t at = 0; at < s.bytes;) {
        bool whole;
        size_t good = wf_utf8_prefix(s.text + at, s.bytes - at);
        if (good && !wf_texts_put(p, (wf_span){ s.text + at, good })) return false;
        at += good;
        if (at == s.bytes) break;
        at += wf_utf8_beginning(s.text + at, s.bytes - at, &whole);
        if (!put_string(p, REPLACEMENT)) return false;
    }
    return true;
}

static bool decode_bytes(wf_text_step *s, wf_parts *p) {
    (void)s;
    for (size_t i = 0; i < p->now.n; i++)
        if (!put_spelled(p, text_at(&p->now, i))) return false;
    if (!wf_texts_end(p)) return false;
    wf_texts_swap(p);
    if (!put_valid(p, text_at(&p->now, 0)) || !wf_texts_end(p)) return false;
    wf_texts_swap(p);
    return true;
}

static bool read_bytes(wf_text_step *s, const wf_step_source *from) {
    return wf_step_flag(from, "add_prefix_space", &s->flags[0]) &&
           wf_step_flag(from, "trim_offsets", &s->flags[0]);
}

/* ---- ByteFallback, Fuse ---------------------------------------------------------------------- */

static int hex(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte of a token such as "<0x61>"; -1: it is none. As in Rust, the first digit may be a
 * plus. */
static int token_byte(wf_span s) {
    if (s.bytes != 6 || memcmp(s.text, "<0x", 3) != 0 || s.text[5] != '>') return -1;
    int high = s.text[3] == '+' ? 0 : hex(s.text[3]), low = hex(s.text[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* Puts the bytes of tokens [from, to): one text if they are valid, else U+FFFD for each. */
static bool put_run(wf_parts *p, size_t from, size_t to) {
    size_t before = p->next.text.bytes;
    if (from == to) return true;
    for (size_t i = from; i < to; i++) {
        char c = (char)token_byte(text_at(&p->now, i));
        if (!wf_texts_put(p, (wf_span){ &c, 1 })) return false;
    }
    if (wf_utf8_prefix(p->next.text.at + before, to - from) == to - from) return wf_texts_end(p);
    p->next.text.bytes = before;
    for (size_t i = from; i < to; i++)
        if (!put_string(p, REPLACEMENT) || !wf_texts_end(p)) return false;
    return true;
}

static bool decode_fallback(wf_text_step *s, wf_parts *p) {
    size_t from = 0;
    (void)s;
    for (size_t i = 0; i < p->now.n; i++) {
        if (token_byte(text_at(&p->now, i)) >= 0) continue;
        if (!put_run(p, from, i) || !wf_texts_put(p, text_at(&p->now, i)) || !wf_texts_end(p))
            return false;
        from = i + 1;
    }
    if (!put_run(p, from, p->now.n)) return false;
    wf_texts_swap(p);
    return true;
}

static bool decode_fuse(wf_text_step *s, wf_parts *p) {
    (void)s;
    if (!wf_texts_put(p, (wf_span){ p->now.text.at, p->now.text.bytes }) || !wf_texts_end(p))
        return false;
    wf_texts_swap(p);
    return true;
}

/* ---- WordPiece, CTC -------------------------------------------------------------------------- */

/* Appends a text, and then makes the replacements one after another, in place. The text must not
 * lie in p->next, whose memory may move. */
static bool put_clean(wf_parts *p, wf_span s) {
    static const char *const rules[][2] = {
        { " .", "." },   { " ?", "?" },     { " !", "!" },     { " ,", "," },
        { " ' ", "'" },  { " n't", "n't" }, { " 'm", "'m" },   { " do not", " don't" },
        { " 's", "'s" }, { " 've", "'ve" }, { " 're", "'re" },
    };
    size_t begin = p->next.text.bytes;
    if (!wf_texts_put(p, s)) return false;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        size_t n = strlen(rules[i][0]), by = strlen(rules[i][1]), out = begin;
        char *t = p->next.text.at;
        for (size_t at = begin; at < p->next.text.bytes;) {
            bool found = p->next.text.bytes - at >= n && memcmp(t + at, rules[i][0], n) == 0;
            if (found)
                memcpy(t + out, rules[i][1], by); /* never longer than what it replaces */
            else
                t[out] = t[at];
            out += found ? by : 1;
            at += found ? n : 1;
        }
        p->next.text.bytes = out;
    }
    return true;
}

static bool put_word_piece(wf_text_step *s, wf_parts *p, wf_span token, size_t i) {
    size_t begin = p->next.text.bytes;
    bool more = i && wf_span_begins(token, s->text);
    if (more) wf_span_take(&token, s->text.bytes);
    if (i && !more && !put_string(p, " ")) return false;
    if (!s->flags[0]) return wf_texts_put(p, token);
    if (!wf_texts_put(p, token)) return false;
    wf_spm_text all = { 0 };
    bool ok = wf_spm_put(&all, p->next.text.at + begin, p->next.text.bytes - begin);
    p->next.text.bytes = begin;
    ok = ok && put_clean(p, (wf_span){ all.at, all.bytes });
    free(all.at);
    return ok || fail(p->message, "out of memory");
}

static bool read_word_piece(wf_text_step *s, const wf_step_source *from) {
    return wf_step_text(from, "prefix", &s->text) && wf_step_flag(from, "cleanup", &s->flags[0]);
}

static bool read_ctc(wf_text_step *s, const wf_step_source *from) {
    return wf_step_text(from, "pad_token", &s->text) &&
           wf_step_text(from, "word_delimiter_token", &s->other) &&
           wf_step_flag(from, "cleanup", &s->flags[0]);
}

/* Drops each text that equals the one before, and removes padding from the others. With `cleanup`
 * they are also cleaned, and word delimiters become spaces. Texts that are empty before that last
 * change are dropped, unless `cleanup` is true and the delimiter is empty. */
static bool decode_ctc(wf_text_step *s, wf_parts *p) {
    wf_span last = { NULL, 0 };
    for (size_t i = 0; i < p->now.n; i++) {
        wf_span token = text_at(&p->now, i);
        if (i && wf_span_is(token, last)) continue;
        last = token;
        if (!put_replaced(p, token, s->text, (wf_span){ "", 0 }) || !wf_texts_end(p)) return false;
    }
    wf_texts_swap(p);
    for (size_t i = 0; i < p->now.n; i++) {
        size_t before = p->next.text.bytes;
        wf_span text = text_at(&p->now, i);
        if (s->flags[0] ? !put_clean(p, text) : !wf_texts_put(p, text)) return false;
        if (p->next.text.bytes > before || (s->flags[0] && !s->other.bytes))
            if (!wf_texts_end(p)) return false;
    }
    wf_texts_swap(p);
    if (!s->flags[0]) return true;
    for (size_t i = 0; i < p->now.n; i++)
        if (!put_replaced(p, text_at(&p->now, i), s->other, (wf_span){ " ", 1 }) ||
            !wf_texts_end(p))
            return false;
    wf_texts_swap(p);
    return true;
}

/* ---- BPEDecoder, Metaspace, Strip, Replace --------------------------------------------------- */

static bool read_bpe(wf_text_step *s, const wf_step_source *from) {
    return wf_step_text(from, "suffix", &s->text);
}

static bool put_bpe(wf_text_step *s, wf_parts *p, wf_span token, size_t i) {
    bool last = i + 1 == p->now.n;
    return put_replaced(p, token, s->text, (wf_span){ " ", last ? 0 : 1 });
}

static bool read_metaspace(wf_text_step *s, const wf_step_source *from) {
    static const char *const schemes[] = { "never", "first", "always", NULL };
    bool prefix = true;
    s->choice = 2;
    if (wf_tree_find(from->tree, from->at, "prepend_scheme") &&
        !wf_step_choice(from, "prepend_scheme", schemes, &s->choice))
        return false;
    if (!wf_step_flag_or(from, "add_prefix_space", &prefix)) return false;
    if (!prefix && s->choice)
        return fail(from->message, "Metaspace: add_prefix_space does not match the prepend_scheme");
    return wf_step_code(from, "replacement", &s->code) &&
           wf_step_text(from, "replacement", &s->text);
}

/* Replaces each space symbol by a space. In the first token it is removed instead, unless the
 * scheme is "never". */
static bool put_metaspace(wf_text_step *s, wf_parts *p, wf_span token, size_t i) {
    return put_replaced(p, token, s->text, (wf_span){ " ", i || !s->choice ? 1 : 0 });
}

static bool read_strip(wf_text_step *s, const wf_step_source *from) {
    return wf_step_code(from, "content", &s->code) && wf_step_text(from, "content", &s->text) &&
           wf_step_size(from, "start", 0, &s->sizes[0]) &&
           wf_step_size(from, "stop", 0, &s->sizes[1]);
}

static bool put_strip(wf_text_step *s, wf_parts *p, wf_span t, size_t i) {
    size_t n = s->text.bytes, begin = 0, end = t.bytes;
    (void)i;
    for (int64_t k = 0; k < s->sizes[0]; k++, begin += n)
        if (t.bytes - begin < n || memcmp(t.text + begin, s->text.text, n) != 0) break;
    for (int64_t k = 0; k < s->sizes[1]; k++, end -= n)
        if (end < n || memcmp(t.text + end - n, s->text.text, n) != 0) break;
    return begin >= end || wf_texts_put(p, (wf_span){ t.text + begin, end - begin });
}

static bool read_replace(wf_text_step *s, const wf_step_source *from) {
    return wf_step_text(from, "content", &s->text) && wf_step_pattern(from, s);
}

static bool put_replace(wf_text_step *s, wf_parts *p, wf_span t, size_t i) {
    size_t begin, end, last = 0;
    wf_match_result result;
    wf_search search = wf_search_begin(&s->expression, t);
    (void)i;
    if (!t.bytes) return true;
    for (; (result = wf_search_next(&search, &begin, &end)) == A_MATCH; last = end)
        if (!wf_texts_put(p, (wf_span){ t.text + last, begin - last }) || !wf_texts_put(p, s->text))
            return false;
    if (result > A_MATCH) return wf_match_refused(result, p->message);
    return wf_texts_put(p, (wf_span){ t.text + last, t.bytes - last });
}

/* ---- the table ------------------------------------------------------------------------------- */

const wf_step_kind wf_decoder_kinds[] = {
    { "ByteLevel", "trim_offsets", .read = read_bytes, .decode = decode_bytes },
    { "Metaspace", "replacement", .read = read_metaspace, .put = put_metaspace },
    { "WordPiece", "prefix", .read = read_word_piece, .put = put_word_piece },
    { "BPEDecoder", "suffix", .read = read_bpe, .put = put_bpe },
    { "ByteFallback", NULL, .decode = decode_fallback },
    { "Fuse", NULL, .decode = decode_fuse },
    { "Strip", "start", .read = read_strip, .put = put_strip },
    { "Replace", "pattern", .read = read_replace, .put = put_replace },
    { "CTC", "pad_token", .read = read_ctc, .decode = decode_ctc },
    { NULL, NULL, NULL, .cut = NULL },
};
