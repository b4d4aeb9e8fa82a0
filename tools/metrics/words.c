/* tools/metrics/words.c - code points and words. See words.h.
 *
 * The tokenizer 13a is four substitutions over the whole line, one after the other, as in
 * sacreBLEU's tokenizer_re.py; each is one function here. As with Python's re.sub, a match does not
 * see what an earlier match has consumed. */
#include "words.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/utf8.h"

void codes_free(codes *c) {
    free(c->at);
    *c = (codes){ 0 };
}

static void add(codes *c, int32_t code) {
    c->failed |= !wf_grow(&c->at, &c->capacity, (size_t)c->n + 1, sizeof *c->at);
    if (!c->failed) c->at[c->n++] = code;
}

static void clear(codes *c, const codes *from) {
    c->n = 0;
    c->failed = from && from->failed;
}

void codes_decode(codes *c, const char *text, size_t bytes) {
    clear(c, NULL);
    for (size_t at = 0; at < bytes;) {
        size_t begin = at;
        int32_t code = wf_utf8_next(text, bytes, &at);
        add(c, code >= 0 ? code : 0xDC00 + (unsigned char)text[begin]);
    }
}

bool code_is_space(int32_t c) {
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
           c == 0x202F || c == 0x205F || c == 0x3000;
}

void codes_without_space(const codes *in, codes *out) {
    clear(out, in);
    for (int64_t i = 0; i < in->n; i++)
        if (!code_is_space(in->at[i])) add(out, in->at[i]);
}

/* ---- 13a ------------------------------------------------------------------------------------- */

static bool is_digit(int32_t c) {
    return c >= '0' && c <= '9';
}

static bool is_no_digit(int32_t c) {
    return !is_digit(c);
}

static bool is_point(int32_t c) {
    return c == '.' || c == ',';
}

static bool is_dash(int32_t c) {
    return c == '-';
}

/* [\{-\~\[-\` -\&\(-\+\:-\@\/]: the space, and all printable ASCII except letters, digits,
 * and ' , - . */
static bool is_symbol(int32_t c) {
    return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
           (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

/* Replaces every occurrence of `from` by `to`; both are ASCII. */
static void replace(const codes *in, codes *out, const char *from, const char *to) {
    int64_t length = (int64_t)strlen(from);
    clear(out, in);
    for (int64_t i = 0; i < in->n;) {
        int64_t k = 0;
        while (k < length && i + k < in->n && in->at[i + k] == from[k]) k++;
        if (k < length) {
            add(out, in->at[i++]);
            continue;
        }
        for (const char *c = to; *c; c++) add(out, *c);
        i += length;
    }
}

static void space_out_symbols(const codes *in, codes *out) {
    clear(out, in);
    for (int64_t i = 0; i < in->n; i++) {
        bool symbol = is_symbol(in->at[i]);
        if (symbol) add(out, ' ');
        add(out, in->at[i]);
        if (symbol) add(out, ' ');
    }
}

/* Replaces (first)(second) by "\1 \2 ", or by " \1 \2" with `before`. */
static void space_out(const codes *in, codes *out, bool (*first)(int32_t), bool (*second)(int32_t),
                      bool before) {
    clear(out, in);
    for (int64_t i = 0; i < in->n; i++) {
        if (i + 1 == in->n || !first(in->at[i]) || !second(in->at[i + 1])) {
            add(out, in->at[i]);
            continue;
        }
        if (before) add(out, ' ');
        add(out, in->at[i]);
        add(out, ' ');
        add(out, in->at[++i]);
        if (!before) add(out, ' ');
    }
}

/* Copies the line without white space at its end, between two spaces. */
static void frame(const codes *in, codes *out) {
    int64_t n = in->n;
    clear(out, in);
    while (n > 0 && code_is_space(in->at[n - 1])) n--;
    add(out, ' ');
    for (int64_t i = 0; i < n; i++) add(out, in->at[i]);
    add(out, ' ');
}

void codes_13a(const codes *in, codes *out, codes *spare) {
    frame(in, spare);
    replace(spare, out, "<skipped>", "");
    replace(out, spare, "&quot;", "\"");
    replace(spare, out, "&amp;", "&");
    replace(out, spare, "&lt;", "<");
    replace(spare, out, "&gt;", ">");
    space_out_symbols(out, spare);
    space_out(spare, out, is_no_digit, is_point, false);
    space_out(out, spare, is_point, is_no_digit, true);
    space_out(spare, out, is_digit, is_dash, false);
}

/* ---- words ----------------------------------------------------------------------------------- */

void codes_words(const codes *in, ngrams *trie, codes *out) {
    clear(out, in);
    for (int64_t i = 0; i < in->n; i++) {
        if (code_is_space(in->at[i])) continue;
        uint32_t word = NGRAMS_WORDS;
        for (; i < in->n && !code_is_space(in->at[i]); i++)
            word = ngrams_child(trie, word, in->at[i]);
        add(out, (int32_t)word);
    }
}

void codes_letters(const codes *in, ngrams *trie, codes *out) {
    clear(out, in);
    for (int64_t i = 0; i < in->n; i++)
        add(out, (int32_t)ngrams_child(trie, NGRAMS_WORDS, in->at[i]));
}
