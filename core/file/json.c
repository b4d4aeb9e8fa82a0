/* core/file/json.c - a strict JSON reader; see json.h. */
#include "json.h"

#include <stdio.h>
#include <string.h>

#include "core/base/utf8.h"
#include "core/base/utf8_long.h"

/* deepest nesting of a value that is skipped; the same limit as serde_json */
enum { MAX_DEPTH = 128 };

/* ---- tokens ------------------------------------------------------------------------------ */

static bool fail(struct wf_json *j, const char *what) {
    if (!*j->error)
        snprintf(j->error, sizeof j->error, "header byte %td: %s", j->at - j->start, what);
    return false;
}

static char peek(const struct wf_json *j) {
    return j->at < j->end ? *j->at : 0;
}
static bool digit(const struct wf_json *j) {
    return peek(j) >= '0' && peek(j) <= '9';
}

static bool take(struct wf_json *j, char c) {
    if (j->at == j->end || *j->at != c) return false;
    j->at++;
    return true;
}

static bool accept(struct wf_json *j, char c) {
    return wf_json_next(j) == c && take(j, c);
}

/* Skips four spaces at a time, because lines of files that people read are indented. */
char wf_json_after_space(struct wf_json *j) {
    char *at = j->at;
    for (uint32_t word;; at += sizeof word) {
        while (at < j->end && (*at == '\n' || *at == '\t' || *at == '\r')) at++;
        if ((size_t)(j->end - at) < sizeof word) break;
        memcpy(&word, at, sizeof word);
        if (word != 0x20202020u) break;
    }
    while (at < j->end && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r')) at++;
    j->at = at;
    return at < j->end ? *at : '\0';
}

bool wf_json_missing(struct wf_json *j, char c) {
    char what[] = "' ' expected";
    what[1] = c;
    return fail(j, what);
}

bool wf_json_begin(struct wf_json *j, char *text, size_t size) {
    size_t good = wf_utf8_valid(text, size);
    *j = (struct wf_json){ .start = text, .at = text, .end = text + size };
    if (good == size) return true;
    j->at += good;
    return fail(j, "not UTF-8");
}

bool wf_json_finish(struct wf_json *j) {
    wf_json_next(j);
    return j->at == j->end || fail(j, "text after the end of the JSON");
}

/* A character that stands for itself in a string. */
static bool is_plain(char c) {
    return (unsigned char)c >= ' ' && c != '"' && c != '\\';
}

static bool hex4(struct wf_json *j, uint32_t *out) {
    *out = 0;
    for (int i = 0; i < 4; i++, j->at++) {
        unsigned char c = (unsigned char)peek(j);
        bool letter = (unsigned)(c | 0x20) - 'a' < 6; /* its low four bits are 1 to 6 */
        if (!(letter | digit(j))) return fail(j, "\\u needs four hexadecimal digits");
        *out = *out << 4 | ((c & 15u) + 9u * letter);
    }
    return true;
}

/* Reads what follows "\u": one character, or both halves of a surrogate pair. */
static bool unicode_escape(struct wf_json *j, char **to) {
    uint32_t c, low = 0;
    if (!hex4(j, &c)) return false;
    if (c >= 0xD800 && c <= 0xDFFF) {
        bool pair = c < 0xDC00 && take(j, '\\') && take(j, 'u');
        if (pair && !hex4(j, &low)) return false;
        if (low < 0xDC00 || low > 0xDFFF) return fail(j, "half a surrogate pair");
        c = 0x10000 + ((c - 0xD800) << 10 | (low - 0xDC00));
    }
    /* six or twelve characters of the escape become at most four bytes */
    *to += wf_utf8_put(*to, (int32_t)c);
    return true;
}

static bool escape(struct wf_json *j, char **to) {
    static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
    if (take(j, 'u')) return unicode_escape(j, to);
    const char *found = peek(j) ? strchr(from, peek(j)) : NULL;
    if (!found) return fail(j, "unknown escape");
    j->at++;
    *(*to)++ = into[found - from];
    return true;
}

#define ONES ((uint64_t)0x0101010101010101u)

/* Marks each byte of a word that is below c by its high bit. Bytes above the lowest marked one may
 * be marked wrongly. */
static uint64_t below(uint64_t word, uint64_t c) {
    return (word - ONES * c) & ~word & (ONES << 7);
}

/* The first byte at or after `at` that does not stand for itself in a string: a quote, a backslash
 * or a control character; `end` if there is none. */
static char *plain_end(char *at, char *end) {
    for (uint64_t word; (size_t)(end - at) >= sizeof word; at += sizeof word) {
        memcpy(&word, at, sizeof word);
        uint64_t quotes = word ^ ONES * '"', backslashes = word ^ ONES * '\\';
        uint64_t special = below(word, ' ') | below(quotes, 1) | below(backslashes, 1);
        if (!special) continue;
#if defined __BYTE_ORDER__ && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        return at + __builtin_ctzll(special) / 8;
#else
        break;
#endif
    }
    while (at < end && is_plain(*at)) at++;
    return at;
}

bool wf_json_text(struct wf_json *j, char **out, size_t *bytes) {
    if (!accept(j, '"')) return fail(j, "a string expected");
    char *to = *out = j->at;
    for (;;) {
        size_t plain = (size_t)(plain_end(j->at, j->end) - j->at);
        if (to != j->at) memmove(to, j->at, plain);
        to += plain;
        j->at += plain;
        if (j->at == j->end) return fail(j, "a string without end");
        if (*j->at == '"') break;
        if (!take(j, '\\')) return fail(j, "a control character in a string");
        if (!escape(j, &to)) return false;
    }
    j->at++;
    *to = 0; /* overwrites nothing unread: the closing quote was at this place or after it */
    *bytes = (size_t)(to - *out);
    return true;
}

bool wf_json_string(struct wf_json *j, char **out) {
    size_t bytes;
    if (!wf_json_text(j, out, &bytes)) return false;
    return !memchr(*out, '\0', bytes) || fail(j, "U+0000 in a string");
}

bool wf_json_size(struct wf_json *j, int64_t *out) {
    *out = 0;
    wf_json_next(j);
    if (!digit(j)) return fail(j, "an integer, not negative, expected");
    if (take(j, '0')) return digit(j) ? fail(j, "a leading zero") : true;
    for (; digit(j); j->at++) {
        int d = *j->at - '0';
        if (*out > (INT64_MAX - d) / 10) return fail(j, "an integer above 2^63 - 1");
        *out = *out * 10 + d;
    }
    return true;
}

static bool more(struct wf_json *j, const char *brackets, bool *first) {
    if (!*first) return accept(j, ',') || (wf_json_expect(j, brackets[1]) && false);
    *first = false;
    return wf_json_expect(j, brackets[0]) && !accept(j, brackets[1]);
}

bool wf_json_item(struct wf_json *j, bool *first) {
    return more(j, "[]", first);
}

bool wf_json_key(struct wf_json *j, bool *first, char **key) {
    return more(j, "{}", first) && wf_json_string(j, key) && wf_json_expect(j, ':');
}

/* ---- values to be skipped ---------------------------------------------------------------- */

static bool skip_digits(struct wf_json *j) {
    if (!digit(j)) return fail(j, "a digit expected");
    while (digit(j)) j->at++;
    return true;
}

static bool skip_number(struct wf_json *j) {
    take(j, '-');
    if (!take(j, '0') && !skip_digits(j)) return false;
    if (take(j, '.') && !skip_digits(j)) return false;
    if (!take(j, 'e') && !take(j, 'E')) return true;
    if (!take(j, '+')) take(j, '-');
    return skip_digits(j);
}

static bool skip_scalar(struct wf_json *j) {
    static const char *const words[] = { "true", "false", "null" };
    char *ignored;
    if (wf_json_next(j) == '"') return wf_json_string(j, &ignored);
    if (digit(j) || peek(j) == '-') return skip_number(j);
    for (int i = 0; i < 3; i++) {
        size_t n = strlen(words[i]);
        if ((size_t)(j->end - j->at) < n || memcmp(j->at, words[i], n) != 0) continue;
        j->at += n;
        return true;
    }
    return fail(j, "a value expected");
}

/* Keeps the brackets of the open arrays and objects on a stack, instead of recursing. */
bool wf_json_skip(struct wf_json *j) {
    const char *open[MAX_DEPTH];
    bool first = false;
    char *ignored;
    int depth = 0;
    do {
        bool object = wf_json_next(j) == '{';
        if (object || peek(j) == '[') {
            if (depth == MAX_DEPTH) return fail(j, "nested too deep");
            open[depth++] = object ? "{}" : "[]";
            first = true;
        } else if (!skip_scalar(j))
            return false;
        while (depth > 0 && !more(j, open[depth - 1], &first)) depth--;
        if (*j->error) return false;
        if (depth > 0 && *open[depth - 1] == '{')
            if (!wf_json_string(j, &ignored) || !wf_json_expect(j, ':')) return false;
    } while (depth > 0);
    return true;
}

/* ---- writing ------------------------------------------------------------------------------- */

int wf_json_escape(int32_t code, char out[WF_JSON_ESCAPE]) {
    unsigned c = (unsigned)code;
    if (c == '"' || c == '\\') return snprintf(out, WF_JSON_ESCAPE, "\\%c", (char)c);
    if (c < 0x10000) return snprintf(out, WF_JSON_ESCAPE, "\\u%04x", c & 0xFFFF);
    return snprintf(out, WF_JSON_ESCAPE, "\\u%04x\\u%04x", (0xD7C0 + (c >> 10)) & 0xFFFF,
                    0xDC00 + (c & 0x3FF));
}

void wf_json_quote(wf_json_put *put, void *to, const char *text) {
    char escape[WF_JSON_ESCAPE];
    put(to, "\"", 1);
    while (*text) {
        size_t plain = 0;
        while (is_plain(text[plain])) plain++;
        if (plain) put(to, text, plain);
        text += plain;
        /* \n is shorter than \u000a, and texts such as vocabularies have many newlines */
        if (*text == '\n')
            put(to, "\\n", 2);
        else if (*text)
            put(to, escape, (size_t)wf_json_escape(*text, escape));
        text += *text != '\0';
    }
    put(to, "\"", 1);
}
