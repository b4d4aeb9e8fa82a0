/* core/json.c - a strict JSON reader; see json.h. */
#include "json.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_DEPTH = 128 }; /* of a value that is skipped; what serde_json allows too */

static bool fail(struct wf_json *j, const char *what) {
    if (!*j->error)
        snprintf(j->error, sizeof j->error, "header byte %td: %s", j->at - j->start, what);
    return false;
}

/* ---- UTF-8 ------------------------------------------------------------------------------------ */

/* Unicode 15, table 3-7: the length of the well-formed sequence at p, 0 if there is none. */
static size_t utf8_length(const unsigned char *p, size_t n) {
    if (p[0] < 0x80) return 1;
    size_t length = p[0] < 0xC2 ? 0 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : p[0] < 0xF5 ? 4 : 0;
    if (length == 0 || length > n) return 0;
    unsigned char low = p[0] == 0xE0 ? 0xA0 : p[0] == 0xF0 ? 0x90 : 0x80; /* overlong below */
    unsigned char high = p[0] == 0xED ? 0x9F : p[0] == 0xF4 ? 0x8F : 0xBF; /* surrogates, > 10FFFF */
    if (p[1] < low || p[1] > high) return 0;
    for (size_t i = 2; i < length; i++)
        if ((p[i] & 0xC0) != 0x80) return 0;
    return length;
}

size_t wf_utf8_prefix(const char *text, size_t size) {
    size_t at = 0;
    for (size_t length; at < size; at += length)
        if ((length = utf8_length((const unsigned char *)text + at, size - at)) == 0) break;
    return at;
}

static char *utf8_put(char *to, uint32_t c) {
    if (c < 0x80) {
        *to++ = (char)c;
        return to;
    }
    if (c < 0x800) *to++ = (char)(0xC0 | c >> 6);
    else {
        if (c < 0x10000) *to++ = (char)(0xE0 | c >> 12);
        else *to++ = (char)(0xF0 | c >> 18), *to++ = (char)(0x80 | (c >> 12 & 0x3F));
        *to++ = (char)(0x80 | (c >> 6 & 0x3F));
    }
    *to++ = (char)(0x80 | (c & 0x3F));
    return to;
}

/* ---- tokens ----------------------------------------------------------------------------------- */

bool wf_json_begin(struct wf_json *j, char *text, size_t size) {
    *j = (struct wf_json){ .start = text, .at = text, .end = text + size };
    size_t good = wf_utf8_prefix(text, size);
    if (good == size) return true;
    j->at += good;
    return fail(j, "not UTF-8");
}

static char next(struct wf_json *j) { /* the zero at the end is no token, so nothing runs past it */
    while (*j->at == ' ' || *j->at == '\t' || *j->at == '\n' || *j->at == '\r') j->at++;
    return *j->at;
}

bool wf_json_finish(struct wf_json *j) {
    next(j);
    return j->at == j->end || fail(j, "text after the end of the JSON");
}

bool wf_json_accept(struct wf_json *j, char c) {
    if (next(j) != c) return false;
    j->at++;
    return true;
}

bool wf_json_expect(struct wf_json *j, char c) {
    char what[] = "' ' expected";
    what[1] = c;
    return wf_json_accept(j, c) || fail(j, what);
}

static bool hex4(struct wf_json *j, uint32_t *out) {
    uint32_t value = 0;
    for (int i = 0; i < 4; i++, j->at++) {
        static const char digits[] = "0123456789abcdef0123456789ABCDEF";
        const char *digit = *j->at ? strchr(digits, *j->at) : NULL;
        if (!digit) return fail(j, "\\u needs four hexadecimal digits");
        value = value << 4 | ((uint32_t)(digit - digits) & 15);
    }
    *out = value;
    return true;
}

/* After "\u": one character, or both halves of a surrogate pair. */
static bool unicode_escape(struct wf_json *j, char **to) {
    uint32_t c, low;
    if (!hex4(j, &c)) return false;
    if (c == 0) return fail(j, "U+0000 in a string");
    if (c >= 0xD800 && c <= 0xDFFF) {
        if (c >= 0xDC00 || j->at[0] != '\\' || j->at[1] != 'u') return fail(j, "half a surrogate pair");
        j->at += 2;
        if (!hex4(j, &low)) return false;
        if (low < 0xDC00 || low > 0xDFFF) return fail(j, "half a surrogate pair");
        c = 0x10000 + ((c - 0xD800) << 10 | (low - 0xDC00));
    }
    *to = utf8_put(*to, c); /* six characters or twelve become at most four */
    return true;
}

static bool escape(struct wf_json *j, char **to) {
    static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
    char c = *j->at;
    const char *found = c ? strchr(from, c) : NULL;
    if (c != 'u' && !found) return fail(j, "unknown escape");
    j->at++;
    if (c == 'u') return unicode_escape(j, to);
    *(*to)++ = into[found - from];
    return true;
}

bool wf_json_string(struct wf_json *j, char **out) {
    if (!wf_json_accept(j, '"')) return fail(j, "a string expected");
    char *to = *out = j->at;
    while (*j->at != '"') {
        if ((unsigned char)*j->at < 0x20)
            return fail(j, j->at == j->end ? "a string without end" : "a control character in a string");
        if (*j->at != '\\') *to++ = *j->at++;
        else if (j->at++, !escape(j, &to)) return false;
    }
    j->at++;
    *to = 0;
    return true;
}

static bool digit(const struct wf_json *j) { return *j->at >= '0' && *j->at <= '9'; }

bool wf_json_size(struct wf_json *j, int64_t *out) {
    int64_t value = 0;
    next(j);
    if (!digit(j)) return fail(j, "an integer, not negative, expected");
    if (j->at[0] == '0' && j->at[1] >= '0' && j->at[1] <= '9') return fail(j, "a leading zero");
    for (; digit(j); j->at++) {
        int d = *j->at - '0';
        if (value > (INT64_MAX - d) / 10) return fail(j, "an integer above 2^63 - 1");
        value = value * 10 + d;
    }
    *out = value;
    return true;
}

/* ---- values that no one asked for --------------------------------------------------------------- */

static bool digits(struct wf_json *j) {
    if (!digit(j)) return fail(j, "a digit expected");
    while (digit(j)) j->at++;
    return true;
}

static bool skip_number(struct wf_json *j) {
    if (*j->at == '-') j->at++;
    if (*j->at == '0') j->at++;
    else if (!digits(j)) return false;
    if (*j->at == '.' && (j->at++, !digits(j))) return false;
    if (*j->at == 'e' || *j->at == 'E') {
        j->at++;
        if (*j->at == '+' || *j->at == '-') j->at++;
        return digits(j);
    }
    return true;
}

static bool skip_scalar(struct wf_json *j) {
    static const char *const words[] = { "true", "false", "null" };
    char *ignored;
    if (next(j) == '"') return wf_json_string(j, &ignored);
    if (*j->at == '-' || digit(j)) return skip_number(j);
    for (int i = 0; i < 3; i++)
        if (strncmp(j->at, words[i], strlen(words[i])) == 0) {
            j->at += strlen(words[i]);
            return true;
        }
    return fail(j, "a value expected");
}

static bool skip_key(struct wf_json *j) {
    char *ignored;
    return wf_json_string(j, &ignored) && wf_json_expect(j, ':');
}

/* Go into arrays and objects and remember, instead of recursing, what closes each. */
bool wf_json_skip(struct wf_json *j) {
    char closing[MAX_DEPTH];
    int depth = 0;
    do {
        bool object = next(j) == '{';
        if (object || *j->at == '[') {
            if (depth == MAX_DEPTH) return fail(j, "nested too deep");
            closing[depth++] = object ? '}' : ']';
            j->at++;
            if (next(j) != closing[depth - 1]) {
                if (object && !skip_key(j)) return false;
                continue;
            }
        } else if (!skip_scalar(j)) return false;
        while (depth > 0 && !wf_json_accept(j, ',')) /* a value has ended: so do those it was the last of */
            if (!wf_json_expect(j, closing[--depth])) return false;
        if (depth > 0 && closing[depth - 1] == '}' && !skip_key(j)) return false;
    } while (depth > 0);
    return true;
}
