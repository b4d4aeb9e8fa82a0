/* models/text/json/json_tree.c - a JSON text as a tree; see json_tree.h. */
#include "json_tree.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "core/file/json.h"
#include "core/file_internal.h"

enum { MAX_DEPTH = 64, LONG = 1 << 20, BYTES_A_VALUE = 8 };

typedef struct reader {
    struct wf_json json;
    json_tree *tree;
    uint32_t open[MAX_DEPTH]; /* arrays and objects that are not closed */
    int depth;
} reader;

static json_value *add(json_tree *t, json_kind kind) {
    if (t->n == UINT32_MAX ||
        (t->n == t->capacity && !wf_grow(&t->values, &t->capacity, t->n + 1, sizeof *t->values)))
        return NULL;
    json_value *v = &t->values[t->n++];
    *v = (json_value){ .next = (uint32_t)t->n, .kind = kind };
    return v;
}

static bool read_string(reader *r) {
    json_value *v = add(r->tree, JSON_STRING);
    char *text;
    size_t bytes;
    if (!v || !wf_json_text(&r->json, &text, &bytes)) return false;
    v->begin = (uint32_t)(text - r->json.start);
    v->bytes = (uint32_t)bytes;
    return true;
}

static bool read_scalar(reader *r, char c) {
    json_kind kind = JSON_NUMBER;
    if (c == 'n') kind = JSON_NULL;
    if (c == 'f') kind = JSON_FALSE;
    if (c == 't') kind = JSON_TRUE;
    json_value *v = add(r->tree, kind);
    if (!v) return false;
    v->begin = (uint32_t)(r->json.at - r->json.start);
    if (!wf_json_skip(&r->json)) return false;
    v->bytes = (uint32_t)(r->json.at - r->json.start) - v->begin;
    return true;
}

/* Closes arrays and objects that end here, and moves to the next value of the innermost open one.
 * False: the text has ended, or it is not JSON. */
static bool advance(reader *r, bool first) {
    while (r->depth) {
        json_value *list = &r->tree->values[r->open[r->depth - 1]];
        bool object = list->kind == JSON_OBJECT;
        char c = wf_json_next(&r->json);
        if (c == (object ? '}' : ']')) {
            r->json.at++;
            list->next = (uint32_t)r->tree->n;
            r->depth--;
            first = false;
            continue;
        }
        if (!first && !wf_json_expect(&r->json, ',')) return false;
        return !object || (read_string(r) && wf_json_expect(&r->json, ':'));
    }
    return false;
}

static bool read_value(reader *r, bool *opened) {
    char c = wf_json_next(&r->json);
    *opened = c == '{' || c == '[';
    if (c == '"') return read_string(r);
    if (!*opened) return read_scalar(r, c);
    if (r->depth == MAX_DEPTH || !add(r->tree, c == '{' ? JSON_OBJECT : JSON_ARRAY)) return false;
    r->open[r->depth++] = (uint32_t)r->tree->n - 1;
    r->json.at++;
    return true;
}

static bool refuse(const reader *r, char *message) {
    const char *error = r->json.error;
    if (!*error)
        return fail(message,
                    r->depth == MAX_DEPTH ? "the JSON is nested deeper than %d" : "out of memory",
                    MAX_DEPTH);
    return fail(message, "%s", strncmp(error, "header ", 7) == 0 ? error + 7 : error);
}

/* Allocates the array of values of a LONG text at once, with a value for every BYTES_A_VALUE bytes
 * of text. If the array is large, wf_memory_raw asks the system for huge pages. If the text has
 * more values, the array grows as usual. */
static bool reserve(json_tree *t, size_t bytes) {
    size_t n = bytes / BYTES_A_VALUE;
    if (bytes < LONG) return true;
    t->values = wf_memory_raw(n * sizeof *t->values);
    if (t->values) t->capacity = n;
    return t->values;
}

bool wf_tree_read(json_tree *t, char *text, size_t bytes, char *message) {
    reader r = { .tree = t };
    bool opened = false;
    *t = (json_tree){ .text = text };
    if (bytes > UINT32_MAX / 2) return fail(message, "the JSON has more than 2 GB");
    if (!reserve(t, bytes)) return fail(message, "out of memory");
    if (!wf_json_begin(&r.json, text, bytes)) return fail(message, "the JSON is not UTF-8");
    if (wf_json_next(&r.json) != '{') return fail(message, "the JSON is no object");
    do
        if (!read_value(&r, &opened)) return refuse(&r, message);
    while (advance(&r, opened));
    if (*r.json.error || r.depth || !wf_json_finish(&r.json)) return refuse(&r, message);
    return true;
}

void wf_tree_free(json_tree *t) {
    free(t->values);
    *t = (json_tree){ 0 };
}

/* ---- looking at it --------------------------------------------------------------------------- */

size_t wf_tree_first(const json_tree *t, size_t list) {
    assert(list < t->n);
    bool holds = t->values[list].kind >= JSON_ARRAY && t->values[list].next > list + 1;
    return holds ? list + 1 : 0;
}

size_t wf_tree_next(const json_tree *t, size_t list, size_t i) {
    size_t next = t->values[i].next;
    return next < t->values[list].next ? next : 0;
}

json_kind wf_tree_kind(const json_tree *t, size_t i) {
    return (json_kind)t->values[i].kind;
}

wf_span wf_tree_text(const json_tree *t, size_t i) {
    return (wf_span){ t->text + t->values[i].begin, t->values[i].bytes };
}

bool wf_tree_is(const json_tree *t, size_t i, const char *text) {
    const json_value *v = &t->values[i];
    return v->kind == JSON_STRING && v->bytes == strlen(text) &&
           memcmp(t->text + v->begin, text, v->bytes) == 0;
}

size_t wf_tree_at_most(const json_tree *t, size_t list) {
    return t->values[list].kind >= JSON_ARRAY ? t->values[list].next - list - 1 : 0;
}

size_t wf_tree_find(const json_tree *t, size_t object, const char *key) {
    size_t found = 0;
    if (t->values[object].kind != JSON_OBJECT) return 0;
    for (size_t i = wf_tree_first(t, object); i;) {
        size_t value = t->values[i].next;
        if (wf_tree_is(t, i, key)) found = value;
        i = wf_tree_next(t, object, value);
    }
    return found;
}

size_t wf_tree_given(const json_tree *t, size_t object, const char *key) {
    size_t value = wf_tree_find(t, object, key);
    return wf_tree_kind(t, value) == JSON_NULL ? 0 : value;
}

bool wf_tree_size(const json_tree *t, size_t i, int64_t most, int64_t *out) {
    wf_span s = wf_tree_text(t, i);
    *out = 0;
    if (t->values[i].kind != JSON_NUMBER) return false;
    for (; s.bytes; s.text++, s.bytes--) {
        if (*s.text < '0' || *s.text > '9') return false;
        if (*out > (most - (*s.text - '0')) / 10) return false;
        *out = *out * 10 + (*s.text - '0');
    }
    return *out <= most;
}

/* ---- real numbers ---------------------------------------------------------------------------- */

/* Powers of ten that double precision represents exactly. */
static const double exact[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
enum { COUNT_OF_EXACT = sizeof exact / sizeof *exact };

/* A whole number up to this has room for one more digit. */
#define SAFE (UINT64_MAX / 10 - 1)

/* Returns digits * 10^exponent. The power of ten is applied in one step; an exponent below -308
 * takes several. */
static double scale(uint64_t digits, int64_t exponent) {
    double x = (double)digits, ten;
    for (; exponent < -308 && x != 0; exponent += 308) x /= 1e308;
    if (x == 0 || exponent > 308) return exponent > 308 && x != 0 ? INFINITY : x;
    int size = (int)(exponent < 0 ? -exponent : exponent);
    if (size < COUNT_OF_EXACT) {
        ten = exact[size];
    } else {
        char power[16];
        snprintf(power, sizeof power, "1e%d", size);
        if (!wf_parse_real(power, &ten)) return NAN;
    }
    return exponent < 0 ? x / ten : x * ten;
}

bool wf_tree_real(const json_tree *t, size_t i, double *out) {
    wf_span s = wf_tree_text(t, i);
    uint64_t digits = 0;
    int64_t exponent = 0, written = 0;
    bool point = false, full = false;
    if (t->values[i].kind != JSON_NUMBER) return false;
    bool negative = *s.text == '-';
    size_t at = negative;
    for (; at < s.bytes && ((s.text[at] >= '0' && s.text[at] <= '9') || s.text[at] == '.'); at++) {
        if (s.text[at] == '.') {
            point = true;
            continue;
        }
        uint64_t digit = (uint64_t)(s.text[at] - '0');
        full = full || (digits > SAFE && digits > (UINT64_MAX - digit) / 10);
        if (!full) digits = digits * 10 + digit;
        exponent += full ? !point : -(int64_t)point;
    }
    if (at < s.bytes) {
        bool minus = s.text[++at] == '-';
        if (minus || s.text[at] == '+') at++;
        for (; at < s.bytes; at++)
            if (written < 100000) written = written * 10 + (s.text[at] - '0');
        exponent += minus ? -written : written;
    }
    *out = scale(digits, exponent);
    if (negative) *out = -*out;
    return isfinite(*out);
}
