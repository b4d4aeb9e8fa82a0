/* tools/draw/formula.c - a formula as a graph. See formula.h.
 *
 *     sum     := product { ("+" | "-") product }
 *     product := sign { ("*" | "/" | "@") sign }
 *     sign    := "-" sign | power
 *     power   := atom [ "^" sign ]
 *     atom    := number | name | name "(" sum { "," sum } ")" | "(" sum ")"
 *
 * The parser is recursive, and records ops while it reads. Its depth is limited, so that no text
 * can overflow the stack. */
#include "formula.h"
#include "core/file_internal.h"
#include "ops/ops_internal.h"

#include "core/file.h"
#include "tools/cli/refused.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- functions with settings ----------------------------------------------------------------- */

static wf_tensor *softmax(wf_tensor *const *x) {
    return wf_softmax(x[0], -1);
}
static wf_tensor *log_softmax(wf_tensor *const *x) {
    return wf_log_softmax(x[0], -1);
}
static wf_tensor *masked_softmax(wf_tensor *const *x) {
    return wf_masked_softmax(x[0], x[1], false);
}
static wf_tensor *sum(wf_tensor *const *x) {
    return wf_sum(x[0], WF_ALL_AXES, false);
}
static wf_tensor *mean(wf_tensor *const *x) {
    return wf_mean(x[0], WF_ALL_AXES, false);
}
static wf_tensor *largest(wf_tensor *const *x) {
    return wf_max(x[0], WF_ALL_AXES, false);
}
static wf_tensor *smallest(wf_tensor *const *x) {
    return wf_min(x[0], WF_ALL_AXES, false);
}
static wf_tensor *sum_of_rows(wf_tensor *const *x) {
    return wf_sum(x[0], WF_LAST_AXIS, true);
}
static wf_tensor *transpose(wf_tensor *const *x) {
    return wf_transpose(x[0], -1, -2);
}
static wf_tensor *layer_norm(wf_tensor *const *x) {
    return wf_layer_norm(x[0], WF_LAST_AXIS, NULL, NULL, 1e-5);
}
static wf_tensor *rms_norm(wf_tensor *const *x) {
    return wf_rms_norm(x[0], NULL, 1e-5);
}
static wf_tensor *product(wf_tensor *const *x) {
    return wf_matmul(x[0], x[1]);
}
static wf_tensor *attention(wf_tensor *const *x) {
    return wf_matmul(wf_attention_weights(x[0], x[1], NULL, NULL), x[2]);
}

static const struct function {
    const char *name;
    int arity;
    wf_tensor *(*record)(wf_tensor *const *x);
} functions[] = {
    { "softmax", 1, softmax },
    { "log_softmax", 1, log_softmax },
    { "masked_softmax", 2, masked_softmax },
    { "sum", 1, sum },
    { "mean", 1, mean },
    { "max", 1, largest },
    { "min", 1, smallest },
    { "sum_rows", 1, sum_of_rows },
    { "transpose", 1, transpose },
    { "layer_norm", 1, layer_norm },
    { "rms_norm", 1, rms_norm },
    { "matmul", 2, product },
    { "attention", 3, attention },
};
enum { N_FUNCTIONS = sizeof functions / sizeof *functions, MOST_ARGUMENTS = 4 };

/* ---- the parser ------------------------------------------------------------------------------ */

typedef struct parser {
    wf_graph *g;
    const char *text, *at;
    const leaf_text *leaves;
    int n_leaves, depth;
    bool used[MOST_LEAVES];
    wf_tensor *leaf[MOST_LEAVES];
    bool failed;
    char *message;
} parser;

/* Keeps the first mistake, with the character where it is, counted from 1. */
static wf_tensor *WF_PRINTF(3, 4) wrong(parser *p, const char *where, const char *format, ...) {
    char reason[WF_MESSAGE];
    va_list args;
    va_start(args, format);
    if (!p->failed) {
        vsnprintf(reason, sizeof reason, format, args);
        snprintf(p->message, WF_MESSAGE, "--formula, character %d: %.200s",
                 (int)(where - p->text) + 1, reason);
    }
    va_end(args);
    p->failed = true;
    return NULL;
}

static void skip_blanks(parser *p) {
    while (*p->at == ' ' || *p->at == '\t') p->at++;
}

static bool take(parser *p, char c) {
    skip_blanks(p);
    if (*p->at != c) return false;
    p->at++;
    return true;
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* If recording y failed, reports that at the character of its function or operator. */
static wf_tensor *recorded(parser *p, const char *where, wf_tensor *y) {
    if (!p->failed && !wf_ok(p->g)) wrong(p, where, "%s", wf_error(p->g));
    return p->failed ? NULL : y;
}

static bool deeper(parser *p, const char *where) {
    if (++p->depth > DEEPEST_FORMULA) wrong(p, where, "the formula is nested too deeply");
    return !p->failed;
}

static wf_tensor *parse_sum(parser *p);

static bool read_number(const char *text, size_t n, double *x) {
    char number[64];
    if (n >= sizeof number) return false;
    memcpy(number, text, n);
    number[n] = '\0';
    return wf_parse_real(number, x);
}

/* ---- values of leaves ------------------------------------------------------------------------ */

static bool bad_leaf(parser *p, const leaf_text *l, const char *why) {
    if (!p->failed) snprintf(p->message, WF_MESSAGE, "--%.60s: %s", l->name, why);
    p->failed = true;
    return false;
}

/* Reads "1 2 3; 4 5 6" into x, and sets the numbers of rows and columns: 1 and 1 for a single
 * number. */
static bool read_matrix(parser *p, const leaf_text *l, double *x, int64_t *rows, int64_t *columns) {
    int64_t n = 0, in_row = 0;
    *rows = *columns = 0;
    for (const char *at = l->values;;) {
        at += strspn(at, " \t,\n");
        if (*at && *at != ';') {
            size_t length = strcspn(at, " \t,;\n");
            if (n == MOST_ELEMENTS) return bad_leaf(p, l, "it has more than 10000 numbers");
            if (!read_number(at, length, &x[n]))
                return bad_leaf(p, l,
                                "its values are written as '1 2 3; 4 5 6', and it has what is "
                                "no number");
            at += length;
            n++;
            in_row++;
            continue;
        }
        if (in_row && *columns && in_row != *columns)
            return bad_leaf(p, l, "its rows are not of one length");
        if (!in_row && (*at || !*rows)) return bad_leaf(p, l, "it has a row without numbers");
        if (in_row) *columns = in_row;
        *rows += in_row != 0;
        in_row = 0;
        if (!*at++) break;
    }
    return true;
}

static wf_tensor *record_leaf(parser *p, int i) {
    const leaf_text *l = &p->leaves[i];
    double *x = calloc(MOST_ELEMENTS, sizeof *x);
    int64_t rows, columns;
    if (p->leaf[i]) {
        free(x);
        return p->leaf[i];
    }
    if (!x) bad_leaf(p, l, "out of memory");
    if (x && read_matrix(p, l, x, &rows, &columns)) {
        int ndim = rows == 1 && columns == 1 ? 0 : 2;
        p->leaf[i] = wf_param(p->g, l->name, ndim, (int64_t[]){ rows, columns }, wf_init_zeros());
        if (!wf_write(p->leaf[i], x, (size_t)(rows * columns) * sizeof *x))
            bad_leaf(p, l, "out of memory");
    }
    free(x);
    return p->failed ? NULL : p->leaf[i];
}

/* ---- atoms ----------------------------------------------------------------------------------- */

static wf_tensor *parse_number(parser *p) {
    const char *from = p->at;
    size_t n = 0;
    double x;
    while (is_digit(from[n]) || from[n] == '.' || (n && (from[n] == 'e' || from[n] == 'E')) ||
           (n && (from[n] == '-' || from[n] == '+') && (from[n - 1] == 'e' || from[n - 1] == 'E')))
        n++;
    if (!read_number(from, n, &x)) return wrong(p, from, "this is no number");
    p->at += n;
    return recorded(p, from, wf_constant(p->g, x));
}

static wf_tensor *parse_name(parser *p, const char *from, size_t n) {
    for (int i = 0; i < p->n_leaves; i++)
        if (strlen(p->leaves[i].name) == n && !strncmp(p->leaves[i].name, from, n)) {
            p->used[i] = true;
            return record_leaf(p, i);
        }
    return wrong(p, from, "'%.*s' has no value: give it as --%.*s \"1 2 3; 4 5 6\"", (int)n, from,
                 (int)n, from);
}

/* The op of the library with this name, if it has operands and no attributes; else NULL. */
static const wf_op *plain_op(const char *name, size_t n) {
    for (int i = 0; i < wf_op_count(); i++) {
        const wf_op *op = wf_op_at(i);
        bool plain = op->attr_bytes == 0 && op->results <= 1 && !op->writes && op->arity > 0 &&
                     op->arity <= MOST_ARGUMENTS;
        if (plain && strlen(op->name) == n && !strncmp(op->name, name, n)) return op;
    }
    return NULL;
}

static int parse_arguments(parser *p, wf_tensor **x) {
    int n = 0;
    if (take(p, ')')) return 0;
    do {
        const char *from = p->at;
        wf_tensor *y = parse_sum(p);
        if (!y) return -1;
        if (n == MOST_ARGUMENTS) return wrong(p, from, "no function takes so many operands"), -1;
        x[n++] = y;
    } while (take(p, ','));
    if (take(p, ')')) return n;
    wrong(p, p->at,
          *p->at ? "here a comma or a closing parenthesis is missing"
                 : "the formula ends before a closing parenthesis");
    return -1;
}

static wf_tensor *parse_call(parser *p, const char *from, size_t length) {
    wf_tensor *x[MOST_ARGUMENTS];
    const struct function *f = NULL;
    for (int i = 0; i < N_FUNCTIONS; i++)
        if (strlen(functions[i].name) == length && !strncmp(functions[i].name, from, length))
            f = &functions[i];
    const wf_op *op = f ? NULL : plain_op(from, length);
    if (!f && !op) return wrong(p, from, "there is no function '%.*s'", (int)length, from);
    int n = parse_arguments(p, x), arity = f ? f->arity : op->arity;
    if (n < 0) return NULL;
    if (n != arity)
        return wrong(p, from, "%.*s takes %d operand%s, not %d", (int)length, from, arity,
                     arity == 1 ? "" : "s", n);
    return recorded(p, from, f ? f->record(x) : wf_record(op, n, x, NULL));
}

static wf_tensor *parse_atom(parser *p) {
    skip_blanks(p);
    const char *from = p->at;
    if (take(p, '(')) {
        wf_tensor *y = parse_sum(p);
        if (y && !take(p, ')'))
            return wrong(p, p->at, "the parenthesis of character %d is not closed",
                         (int)(from - p->text) + 1);
        return y;
    }
    if (is_digit(*from) || *from == '.') return parse_number(p);
    size_t n = 0;
    while (is_letter(from[n]) || (n && is_digit(from[n]))) n++;
    if (!n)
        return wrong(p, from,
                     *from ? "here a number, a name or a parenthesis is wanted"
                           : "the formula ends where an operand is wanted");
    p->at += n;
    return take(p, '(') ? parse_call(p, from, n) : parse_name(p, from, n);
}

/* ---- operators ------------------------------------------------------------------------------- */

static wf_tensor *parse_sign(parser *p);

static wf_tensor *parse_power(parser *p) {
    wf_tensor *a = parse_atom(p);
    if (!a || !take(p, '^')) return a;
    const char *where = p->at - 1;
    if (!deeper(p, where)) return NULL;
    wf_tensor *b = parse_sign(p);
    p->depth--;
    return b ? recorded(p, where, wf_pow(a, b)) : NULL;
}

static wf_tensor *parse_sign(parser *p) {
    if (!take(p, '-')) return parse_power(p);
    const char *where = p->at - 1;
    if (!deeper(p, where)) return NULL;
    wf_tensor *x = parse_sign(p);
    p->depth--;
    return x ? recorded(p, where, wf_neg(x)) : NULL;
}

static wf_tensor *parse_product(parser *p) {
    wf_tensor *a = parse_sign(p);
    while (a) {
        skip_blanks(p);
        const char *where = p->at;
        char c = *where;
        if (c != '*' && c != '/' && c != '@') break;
        p->at++;
        wf_tensor *b = parse_sign(p);
        if (!b) return NULL;
        wf_tensor *y = NULL;
        if (c == '*')
            y = wf_mul(a, b);
        else
            y = c == '/' ? wf_div(a, b) : wf_matmul(a, b);
        a = recorded(p, where, y);
    }
    return a;
}

static wf_tensor *parse_sum(parser *p) {
    if (!deeper(p, p->at)) return NULL;
    wf_tensor *a = parse_product(p);
    while (a) {
        skip_blanks(p);
        const char *where = p->at;
        if (*where != '+' && *where != '-') break;
        p->at++;
        wf_tensor *b = parse_product(p);
        if (!b) a = NULL;
        if (b) a = recorded(p, where, *where == '+' ? wf_add(a, b) : wf_sub(a, b));
    }
    p->depth--;
    return a;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static wf_tensor *parse(parser *p) {
    wf_tensor *y = parse_sum(p);
    skip_blanks(p);
    if (y && *p->at) return wrong(p, p->at, "here the formula could end, but goes on");
    for (int i = 0; y && i < p->n_leaves; i++)
        if (!p->used[i])
            return bad_leaf(p, &p->leaves[i], "the formula has no such variable"), NULL;
    if (y && y->kind != WF_COMPUTED)
        return wrong(p, p->text, "there is nothing to compute in it"), NULL;
    return y;
}

bool formula_subject(subject *s, const char *formula, const leaf_text *leaves, int n, bool backward,
                     char *message) {
    *s = (subject){ .is_formula = true };
    snprintf(s->title, sizeof s->title, "%.150s", formula);
    if (strlen(formula) > LONGEST_FORMULA)
        return refused(message, "--formula: it is longer than %d characters", LONGEST_FORMULA);
    s->graph = wf_graph_new(&(wf_graph_options){ .real = WF_F64, .seed = 1 });
    parser p = { .g = s->graph,
                 .text = formula,
                 .at = formula,
                 .leaves = leaves,
                 .n_leaves = n,
                 .message = message };
    wf_tensor *y = parse(&p);
    if (!y) {
        wf_graph_free(s->graph);
        s->graph = NULL;
        return false;
    }
    return subject_fetch(s, y, backward, message);
}
