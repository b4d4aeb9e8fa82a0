/* ops/product/einsum.c - Einstein summation: "nqhd,nkhd->nhqk" names the axes of the operands and
 * of the result by letters. A letter that is not in the result is summed over. Without "->" the
 * result has the letters that occur once, in ASCII order. "..." stands for any number of axes. They
 * broadcast as in NumPy, and come first in a result without "->". An einsum is not an op: it is
 * recorded as sums, permutes, products and reshapes, and so is its gradient.
 *
 * Operands are multiplied in pairs, from left to right. In a pair there are four kinds of letters:
 * those in both operands and still needed (batch), in both and not needed (contracted), and those
 * only in a or only in b (kept). With its axes in this order a pair is one batched matrix product
 * [batch, a's kept, contracted] x [batch, contracted, b's kept]. */
#include <string.h>

#include "core/compose.h"
#include "core/graph_internal.h"
#include "ops/base/op_base.h"
#include "ops/base/shapes.h"

/* "..." stands for axes that are aligned on the right. They get letters of their own, with codes 1
 * to 8; code 8 is the last axis. */
enum { LAST_CODE = WF_MAX_DIMS, MAX_LETTERS = 52 + LAST_CODE };

/* A tensor; letters[i] is the letter of axis i. */
typedef struct term {
    wf_tensor *x;
    char letters[2 * WF_MAX_DIMS + 1];
} term;

typedef struct formula {
    wf_graph *g;
    const char *text;
    int n;
    int dots; /* the most axes for which "..." stands in an operand */
    term terms[WF_MAX_OPERANDS];
    char result[MAX_LETTERS + 1];
} formula;

static bool fail(const formula *f, const char *what, char letter) {
    return wf_refuse(f->g, "einsum: \"%s\": %s '%c'", f->text, what, letter);
}

/* ---- sets of letters, as strings ------------------------------------------------------------- */

static bool has(const char *letters, char letter) {
    return letter && strchr(letters, letter);
}

static void append(char *letters, char letter) {
    size_t n = strlen(letters);
    letters[n] = letter;
    letters[n + 1] = '\0';
}

/* ---- reading the formula --------------------------------------------------------------------- */

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Reads letters up to `,`, `->` or the end, ignoring spaces. "..." becomes a '.'. */
static bool read_letters(const formula *f, const char **p, char *letters) {
    int n = 0;
    for (;; ++*p) {
        if (**p == ' ' || **p == '\t') continue;
        if (**p == '\0' || **p == ',' || **p == '-') break;
        bool dots = strncmp(*p, "...", 3) == 0 && !memchr(letters, '.', (size_t)n);
        if (!dots && !is_letter(**p)) return fail(f, "cannot read", **p);
        if (n == WF_MAX_DIMS + 1) return fail(f, "too many axes from", **p);
        letters[n++] = **p;
        if (dots) *p += 2;
    }
    letters[n] = '\0';
    return true;
}

/* Replaces a '.' among the letters by the codes of `axes` axes. */
static bool replace_dots(const formula *f, char *letters, int axes) {
    char *dot = strchr(letters, '.');
    if (dot) {
        memmove(dot + axes, dot + 1, strlen(dot));
        for (int i = 0; i < axes; i++) dot[i] = (char)(LAST_CODE + 1 - axes + i);
    }
    return strlen(letters) <= WF_MAX_DIMS || fail(f, "too many axes in", *letters);
}

static bool read_terms(formula *f, const char **p) {
    for (int i = 0; i < f->n; i++) {
        term *t = &f->terms[i];
        if (!read_letters(f, p, t->letters)) return false;
        int axes = has(t->letters, '.') ? t->x->ndim - (int)strlen(t->letters) + 1 : 0;
        if (axes < 0 || (!has(t->letters, '.') && (int)strlen(t->letters) != t->x->ndim))
            return wf_refuse(f->g, "einsum: \"%s\": operand %d has %d axes and the letters \"%s\"",
                             f->text, i, t->x->ndim, t->letters);
        if (axes > f->dots) f->dots = axes;
        if (!replace_dots(f, t->letters, axes)) return false;
        if (i == f->n - 1 ? **p == ',' : **p != ',')
            return wf_refuse(f->g, "einsum: \"%s\": not a formula of %d operands", f->text, f->n);
        if (**p == ',') ++*p;
    }
    return true;
}

static int occurrences(const formula *f, char letter) {
    int n = 0;
    for (int i = 0; i < f->n; i++)
        for (const char *p = f->terms[i].letters; *p; p++) n += *p == letter;
    return n;
}

static bool read_result(formula *f, const char *p) {
    if (*p == '\0') {
        for (int i = f->dots; i > 0; i--) append(f->result, (char)(LAST_CODE + 1 - i));
        for (char c = 'A'; c <= 'z'; c++)
            if (occurrences(f, c) == 1) append(f->result, c);
        return true;
    }
    if (*p++ != '-' || *p++ != '>') return fail(f, "cannot read", p[-1] ? p[-1] : '-');
    if (!read_letters(f, &p, f->result)) return false;
    if (*p) return fail(f, "cannot read", *p);
    if (!replace_dots(f, f->result, f->dots)) return false;
    for (const char *r = f->result; *r; r++) {
        if (!occurrences(f, *r)) return fail(f, "no operand has", *r);
        if (has(r + 1, *r)) return fail(f, "the result repeats", *r);
    }
    return true;
}

/* A size as text: the name of an extent, or a number. */
static const char *size_text(const formula *f, int64_t size, char text[64]) {
    wf_shape_text(f->g, 1, &size, text, 64); /* "[B]" */
    text[strlen(text) - 1] = '\0';
    return text + 1;
}

static bool sizes_differ(const formula *f, int letter, int64_t a, int64_t b) {
    char first[64], second[64];
    return wf_refuse(f->g, "einsum: \"%s\": '%c' is %s in one operand and %s in another", f->text,
                     letter > LAST_CODE ? letter : '.', size_text(f, a, first),
                     size_text(f, b, second));
}

/* True if every letter has the same size everywhere. */
static bool sizes_agree(const formula *f) {
    int64_t size[128] = { 0 };
    bool seen[128] = { false };
    for (int i = 0; i < f->n; i++) {
        const term *t = &f->terms[i];
        for (int a = 0; t->letters[a]; a++) {
            int c = t->letters[a];
            if (seen[c] && size[c] != t->x->shape[a])
                return sizes_differ(f, c, size[c], t->x->shape[a]);
            seen[c] = true;
            size[c] = t->x->shape[a];
        }
    }
    return true;
}

/* ---- one term -------------------------------------------------------------------------------- */

/* Remove the letter of axis i, which the tensor no longer has. */
static void remove_letter(term *t, int i) {
    memmove(t->letters + i, t->letters + i + 1, strlen(t->letters + i));
}

/* Drops axes of "..." that have size 1 and are longer in another operand, because they
 * broadcast. */
static void drop_broadcast_axes(formula *f) {
    bool longer[LAST_CODE + 1] = { false };
    for (int i = 0; i < f->n; i++)
        for (const char *p = f->terms[i].letters; *p; p++)
            if (*p <= LAST_CODE && f->terms[i].x->shape[p - f->terms[i].letters] != 1)
                longer[(int)*p] = true;
    for (int i = 0; i < f->n; i++) {
        term *t = &f->terms[i];
        for (int a = (int)strlen(t->letters) - 1; a >= 0; a--) {
            if (t->letters[a] > LAST_CODE || t->x->shape[a] != 1 || !longer[(int)t->letters[a]])
                continue;
            t->x = wf_squeeze(t->x, WF_AXIS(a));
            remove_letter(t, a);
        }
    }
}

/* 1 where the indices of axes i and j are equal, in a shape that broadcasts to x. */
static wf_tensor *identity(wf_tensor *x, int i, int j) {
    return wf_equal(wf_unsqueeze(wf_arange(x, i), wf_other_axes(i, x->ndim)),
                    wf_unsqueeze(wf_arange(x, j), wf_other_axes(j, x->ndim)));
}

/* A repeated letter takes the diagonal: elements off the diagonal are set to 0, and the second axis
 * is summed. */
static void take_diagonals(term *t) {
    for (int i = 0; t->letters[i]; i++)
        for (int j = i + 1; t->letters[j];) {
            if (t->letters[i] != t->letters[j]) {
                j++;
                continue;
            }
            wf_tensor *on = wf_where(identity(t->x, i, j), t->x, wf_zero(t->x));
            t->x = wf_sum(on, WF_AXIS(j), false);
            remove_letter(t, j);
        }
}

static void sum_all_but(term *t, const char *needed) {
    uint32_t axes = WF_NO_AXES;
    for (int i = 0; t->letters[i]; i++)
        if (!has(needed, t->letters[i])) axes |= WF_AXIS(i);
    if (axes == WF_NO_AXES) return;
    t->x = wf_sum(t->x, axes, false);
    for (int i = (int)strlen(t->letters) - 1; i >= 0; i--)
        if (axes >> i & 1) remove_letter(t, i);
}

/* The tensor with its axes in the order of `letters`. Axes that it lacks get size 1. */
static wf_tensor *arranged(const term *t, const char *letters) {
    int order[2 * WF_MAX_DIMS], n = 0;
    uint32_t missing = 0;
    bool sorted = true;
    for (int i = 0; letters[i]; i++) {
        if (!has(t->letters, letters[i])) {
            missing |= WF_AXIS(i);
            continue;
        }
        order[n] = (int)(strchr(t->letters, letters[i]) - t->letters);
        sorted &= order[n] == n;
        n++;
    }
    wf_tensor *x = sorted ? t->x : wf_permute(t->x, order);
    return missing ? wf_unsqueeze(x, missing) : x;
}

/* Merges n axes from `first` on into one; for n = 0, inserts an axis of size 1. */
static wf_tensor *merged(wf_tensor *x, int first, int n) {
    int64_t dims[WF_MAX_DIMS] = { 0 };
    int ndim = x->ndim - n + 1;
    if (n == 0) return wf_unsqueeze(x, WF_AXIS(first));
    if (n == 1) return x;
    for (int i = 0; i < ndim; i++) dims[i] = i == first ? WF_REST : WF_KEEP;
    return wf_reshape(x, ndim, dims);
}

/* ---- a pair of operands ---------------------------------------------------------------------- */

typedef struct kinds {
    char batch[2 * WF_MAX_DIMS + 1], a[2 * WF_MAX_DIMS + 1], b[2 * WF_MAX_DIMS + 1],
        contracted[2 * WF_MAX_DIMS + 1];
} kinds;

static kinds sort_letters(const term *a, const term *b, const char *needed) {
    kinds s = { 0 };
    for (const char *p = a->letters; *p; p++)
        append(!has(b->letters, *p) ? s.a : has(needed, *p) ? s.batch : s.contracted, *p);
    for (const char *p = b->letters; *p; p++)
        if (!has(a->letters, *p)) append(s.b, *p);
    return s;
}

/* A tensor with the axes [batch, a, b], whose shape is used to split the merged axes of the
 * product. Its values are never computed. */
static wf_tensor *shape_of_pair(const term *a, const term *b, const term *result) {
    term kept_a = *a, kept_b = *b;
    sum_all_but(&kept_a, result->letters);
    sum_all_but(&kept_b, result->letters);
    return wf_mul(arranged(&kept_a, result->letters), arranged(&kept_b, result->letters));
}

static wf_tensor *contract(const term *a, const term *b, const kinds *s, const term *result) {
    int batch = (int)strlen(s->batch), m = (int)strlen(s->a), n = (int)strlen(s->b),
        k = (int)strlen(s->contracted);
    char left[4 * WF_MAX_DIMS + 1] = "", right[4 * WF_MAX_DIMS + 1] = "";
    strcat(strcat(strcat(left, s->batch), s->a), s->contracted);
    strcat(strcat(strcat(right, s->batch), s->contracted), s->b);
    wf_tensor *x = merged(merged(arranged(a, left), batch + m, k), batch, m);  /* [batch, M, K] */
    wf_tensor *y = merged(merged(arranged(b, right), batch + k, n), batch, k); /* [batch, K, N] */
    wf_tensor *z = wf_matmul(x, y);                                            /* [batch, M, N] */
    if (m > 1 || n > 1) return wf_reshape_like(z, shape_of_pair(a, b, result));
    uint32_t ones = (m ? 0 : WF_AXIS(batch)) | (n ? 0 : WF_AXIS(batch + 1));
    return ones ? wf_squeeze(z, ones) : z;
}

/* Replace a by the product of a and b, without letters that are no longer needed. */
static bool join(const formula *f, term *a, const term *b, const char *needed) {
    kinds s = sort_letters(a, b, needed);
    term result = { 0 };
    if (strlen(s.batch) + strlen(s.a) + strlen(s.b) > WF_MAX_DIMS)
        return fail(f, "too many axes at once, among them", b->letters[0]);
    strcat(strcat(strcat(result.letters, s.batch), s.a), s.b);
    if (s.contracted[0]) {
        result.x = contract(a, b, &s, &result);
    } else {
        wf_tensor *factor = arranged(b, result.letters);
        result.x = wf_mul(arranged(a, result.letters), factor);
    }
    *a = result;
    return true;
}

/* ---- the whole formula ----------------------------------------------------------------------- */

/* Collects the letters of the result, and of the operands from `from` on except operand `but`. */
static void needed_letters(const formula *f, int from, int but, char *needed) {
    strcpy(needed, f->result);
    for (int i = from; i < f->n; i++)
        for (const char *p = f->terms[i].letters; *p && i != but; p++)
            if (!has(needed, *p)) append(needed, *p);
}

static wf_tensor *evaluate(formula *f) {
    char needed[MAX_LETTERS + 1];
    for (int i = 0; i < f->n; i++) {
        take_diagonals(&f->terms[i]);
        needed_letters(f, 0, i, needed);
        sum_all_but(&f->terms[i], needed);
    }
    term *all = &f->terms[0];
    for (int i = 1; i < f->n; i++) {
        needed_letters(f, i + 1, -1, needed);
        if (!join(f, all, &f->terms[i], needed)) return all->x;
    }
    return arranged(all, f->result);
}

wf_tensor *wf_einsum(const char *text, wf_tensor *const *operands, int n) {
    formula f = { .text = text, .n = n };
    if (n < 1 || !operands) return wf_poison(NULL, "einsum: no operands");
    if (n > WF_MAX_OPERANDS)
        return wf_poison(operands[0] ? operands[0]->graph : NULL, "einsum: %d operands, at most %d",
                         n, WF_MAX_OPERANDS);
    wf_compose("einsum", n, operands);
    if (!operands[0]) return wf_poison(NULL, "einsum: operand 0 is NULL");
    f.g = operands[0]->graph;
    if (!text) return wf_poison(f.g, "einsum: the formula is NULL");
    for (int i = 0; i < n; i++) {
        if (!operands[i]) return wf_poison(f.g, "einsum: operand %d is NULL", i);
        f.terms[i].x = operands[i];
    }
    const char *p = text;
    bool read = read_terms(&f, &p) && read_result(&f, p);
    if (read) drop_broadcast_axes(&f);
    read = read && sizes_agree(&f);
    if (!read || !wf_ok(f.g)) return wf_composed(wf_poison(f.g, "einsum: failed"));
    wf_tensor *y = evaluate(&f);
    return wf_composed(y == operands[0] ? wf_alias(y) : y);
}
