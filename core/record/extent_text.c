/* core/record/extent_text.c - the tags and nominal sizes that stand for named extents, and their
 * text in messages. extents.c explains these numbers. */
#include "record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Nominal sizes of the extents: primes, so that a merged axis can be factored into its extents, and
 * so that two extents never have equal sizes by accident; far apart, so that B-4 is not another
 * extent. */
const int64_t wf_nominal_sizes[MAX_EXTENTS] = { 0,    4079, 4231, 4397, 4549, 4723, 4903, 5081,
                                                5273, 5449, 5641, 5839, 6037, 6247, 6451, 6659 };
/* Nominal sizes for the second run of a shape rule that failed. The difference between an extent's
 * two sizes is different for every extent. */
const int64_t wf_other_sizes[MAX_EXTENTS] = { 0,    7001, 7193, 7393, 7583, 7789, 7993, 8191,
                                              8387, 8581, 8779, 8969, 9161, 9391, 9587, 9781 };

/* ---- tags ------------------------------------------------------------------------------------ */

/* The tag of extent i is -(2^50 + 2^i 2^31). From a sum of a few tags, a multiple of one, or a tag
 * plus a number, the tags and the number can be recovered; none of these is another tag. */
#define TAG_UNIT (INT64_C(1) << 50)
#define TAG_STEP (INT64_C(1) << 31)

int64_t wf_extent_tag(int i) {
    return -(TAG_UNIT + TAG_STEP * (INT64_C(1) << i));
}

/* Split a number into `times` tags, `code` (the sum of their 2^i) and a rest. False: the number was
 * not computed from tags. */
static bool read_tag(int64_t size, int64_t *times, int64_t *code, int64_t *rest) {
    if (size > -(TAG_UNIT / 2) || size < -(TAG_UNIT << 12)) return false;
    *times = (TAG_UNIT / 2 - size) / TAG_UNIT;
    int64_t left = -size - *times * TAG_UNIT;
    *code = (left + TAG_STEP / 2) / TAG_STEP;
    *rest = *code * TAG_STEP - left;
    return *code > 0;
}

static int extent_of_code(const wf_graph *g, int64_t code) {
    for (int e = 1; e < g->n_extents; e++)
        if (code == INT64_C(1) << e) return e;
    return -1;
}

int wf_extent_of(const wf_graph *g, int64_t size) {
    int64_t times, code, rest;
    bool one = read_tag(size, &times, &code, &rest) && times == 1 && rest == 0;
    return one ? extent_of_code(g, code) : -1;
}

/* ---- text ------------------------------------------------------------------------------------ */

typedef struct text {
    char *buffer;
    size_t size; /* bytes that the buffer has */
    size_t n;    /* length of the text so far, without the final 0 */
} text;

static void put(text *t, const char *format, ...) WF_PRINTF(2, 3);
static void put(text *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = t->n < t->size ? vsnprintf(t->buffer + t->n, t->size - t->n, format, args) : 0;
    va_end(args);
    if (n > 0) t->n += (size_t)n;
    if (t->n >= t->size) t->n = t->size - 1;
}

/* Write a * name + c, leaving out a factor 1 and a term 0. */
static void put_linear(text *t, int64_t a, const char *name, int64_t c) {
    if (a == -1)
        put(t, "-");
    else if (a != 1)
        put(t, "%" PRId64 "*", a);
    put(t, c ? "%s%+" PRId64 : "%s", name, c);
}

/* Write, for messages, a size that a caller computed from tags: a multiple of one extent or a sum
 * of different ones, plus a number. False: it is neither. */
static bool put_tag(text *t, const wf_graph *g, int64_t size) {
    int64_t times, code, rest;
    if (!read_tag(size, &times, &code, &rest)) return false;
    int e = code % times == 0 ? extent_of_code(g, code / times) : -1;
    if (e > 0) {
        put_linear(t, times, g->extents[e].name, rest);
        return true;
    }
    text sum = *t;
    for (e = 1; e < g->n_extents; e++)
        if (code >> e & 1) {
            put(&sum, "%s%s", sum.n == t->n ? "" : "+", g->extents[e].name);
            code -= INT64_C(1) << e;
            times--;
        }
    if (code || times) { /* with times left, an extent occurs more than once */
        t->buffer[t->n] = '\0';
        return false;
    }
    *t = sum;
    if (rest) put(t, "%+" PRId64, rest);
    return true;
}

/* Write a size that was computed from nominal sizes: 512, B, B*T, B*4; or B+c if |c| is at most
 * NEAR. */
enum { NEAR = 16 };
static void put_size(text *t, const wf_graph *g, int64_t size) {
    bool named = false;
    for (int e = 1; g && size > 0 && e < g->n_extents; e++)
        for (; size % g->extents[e].nominal == 0; size /= g->extents[e].nominal, named = true)
            put(t, "%s%s", named ? "*" : "", g->extents[e].name);
    if (named && size != 1) put(t, "*%" PRId64, size);
    for (int e = 1; g && size > 0 && !named && e < g->n_extents; e++) {
        int64_t c = size - g->extents[e].nominal;
        named = c >= -NEAR && c <= NEAR;
        if (named) put_linear(t, 1, g->extents[e].name, c);
    }
    if (!named) put(t, "%" PRId64, size);
}

const char *wf_shape_text(const wf_graph *g, int ndim, const int64_t *shape, char *buffer,
                          size_t size) {
    text t = { buffer, size, 0 };
    if (!size || !buffer) return buffer;
    put(&t, "[");
    for (int i = 0; shape && i < ndim; i++) {
        if (i) put(&t, ",");
        put_size(&t, g, shape[i]);
    }
    put(&t, "]");
    return buffer;
}

/* ---- two values ------------------------------------------------------------------------------ */

/* Find a and c with n[i] = a m[i] + c for both i. False unless |a| and |c| are at most 2000, and a
 * is not 0. */
static bool solve(const int64_t n[2], const int64_t m[2], int64_t *a, int64_t *c) {
    enum { MOST = 2000 };
    int64_t step = m[0] - m[1], times = step ? (n[0] - n[1]) / step : 0;
    if (!times || times * step != n[0] - n[1] || times > MOST || times < -MOST) return false;
    *a = times;
    *c = n[0] - times * m[0];
    return *c >= -MOST && *c <= MOST;
}

static bool put_product(text *t, const wf_graph *g, int64_t a, int64_t b) {
    text product = *t;
    for (int e = 1; a > 0 && b > 0 && e < g->n_extents; e++)
        while (a % wf_nominal_sizes[e] == 0 && b % wf_other_sizes[e] == 0) {
            put(&product, "%s%s", product.n == t->n ? "" : "*", g->extents[e].name);
            a /= wf_nominal_sizes[e];
            b /= wf_other_sizes[e];
        }
    if (a != b) {
        t->buffer[t->n] = '\0';
        return false;
    }
    *t = product;
    if (a != 1) put(t, "*%" PRId64, a);
    return true;
}

static bool put_one(text *t, const wf_graph *g, const int64_t n[2]) {
    int64_t a, c;
    for (int e = 1; e < g->n_extents; e++)
        if (solve(n, (int64_t[]){ wf_nominal_sizes[e], wf_other_sizes[e] }, &a, &c)) {
            put_linear(t, a, g->extents[e].name, c);
            return true;
        }
    return false;
}

static bool put_two(text *t, const wf_graph *g, const int64_t n[2]) {
    int64_t a, c;
    char name[128];
    for (int e = 1; e < g->n_extents; e++)
        for (int f = e; f < g->n_extents; f++) {
            const int64_t e0 = wf_nominal_sizes[e], e1 = wf_other_sizes[e],
                          f0 = wf_nominal_sizes[f], f1 = wf_other_sizes[f];
            bool sum = solve(n, (int64_t[]){ e0 + f0, e1 + f1 }, &a, &c) && a == 1;
            if (!sum && !solve(n, (int64_t[]){ e0 * f0, e1 * f1 }, &a, &c)) continue;
            snprintf(name, sizeof name, "%s%c%s", g->extents[e].name, sum ? '+' : '*',
                     g->extents[f].name);
            put_linear(t, a, name, c);
            return true;
        }
    return false;
}

/* Write a number as an expression of the extents' names, or "?" if none is found. The number is
 * n[0] with the nominal sizes and n[1] with the other ones. */
static void put_both(text *t, const wf_graph *g, const int64_t n[2]) {
    if (put_product(t, g, n[0], n[1]) || put_one(t, g, n) || put_two(t, g, n)) return;
    put(t, "?"); /* not a simple expression */
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* The length of the integer that begins at p, or 0. Digits inside a word or a fraction do not count
 * as an integer. */
static size_t read_integer(const char *start, const char *p, int64_t *value) {
    char before = p > start ? p[-1] : ' ', *end;
    bool sign = *p == '-' && is_digit(p[1]) && !is_digit(before);
    bool inside = before == '_' || before == '.' || is_digit(before) ||
                  (before >= 'a' && before <= 'z') || (before >= 'A' && before <= 'Z');
    if (!sign && (!is_digit(*p) || inside)) return 0;
    *value = strtoll(p, &end, 10); /* clamped on overflow */
    return (size_t)(end - p);
}

void wf_name_tags(const wf_graph *g, char *message, size_t size) {
    char copy[ERROR_SIZE];
    text t = { message, size, 0 };
    snprintf(copy, sizeof copy, "%s", message);
    message[0] = '\0';
    for (const char *p = copy; *p;) {
        int64_t n;
        size_t length = read_integer(copy, p, &n);
        if (!length)
            put(&t, "%c", *p++);
        else if (put_tag(&t, g, n))
            p += length;
        else {
            put(&t, "%.*s", (int)length, p);
            p += length;
        }
    }
}

void wf_name_numbers(const wf_graph *g, const char *first, const char *second,
                     char message[WF_MESSAGE]) {
    char named[WF_MESSAGE] = "";
    text t = { named, sizeof named, 0 };
    for (const char *p = first, *q = second; *p || *q;) {
        int64_t n[2];
        size_t length = read_integer(first, p, &n[0]), other = read_integer(second, q, &n[1]);
        if (!length != !other || (!length && *p != *q)) return;
        if (!length) {
            put(&t, "%c", *p);
            p++;
            q++;
        } else if (n[0] == n[1])
            put(&t, "%.*s", (int)length, p);
        else
            put_both(&t, g, n);
        p += length;
        q += other;
    }
    memcpy(message, named, sizeof named);
}
