/* tools/draw/step_debugger.c - a walk through the nodes of one example. See step_debugger.h. */
#include "step_debugger.h"
#include "core/graph_internal.h"

#include <stdlib.h>
#include <string.h>

#include "tools/cli/terminal.h"

enum { FEW_LINES = 24, FEW_NUMBERS = 6, COMMAND_TEXT = 256 };

/* ---- one node -------------------------------------------------------------------------------- */

static const char *name_of(const wf_tensor *t) {
    return t->label ? t->label : t->name;
}

static const char *kind_of(const wf_tensor *t) {
    static const char *const kinds[] = { [WF_COMPUTED] = "",
                                         [WF_PARAM] = "parameter",
                                         [WF_BUFFER] = "buffer",
                                         [WF_INPUT] = "input",
                                         [WF_CONSTANT] = "constant" };
    return t->op ? t->op->name : kinds[t->kind];
}

static void put_shape(const node_list *l, const wf_tensor *t, FILE *out) {
    char text[160];
    int64_t shape[WF_MAX_DIMS];
    int ndim = wf_bound_shape(l->plan, t, shape);
    if (ndim >= 0)
        fprintf(out, "%s %s", wf_dtype_name(t->dtype),
                wf_shape_text(NULL, ndim, shape, text, sizeof text));
    else
        fprintf(out, "%s %s", wf_dtype_name(t->dtype),
                wf_shape_text(t->graph, t->ndim, t->shape, text, sizeof text));
}

/* Writes warnings: "; 1 of 8 rows are all 0; 2 NaN". */
static void put_warnings(const numbers *x, FILE *out) {
    if (x->rows > 1 && x->zero_rows)
        fprintf(out, "; %lld of %lld rows are all 0", (long long)x->zero_rows, (long long)x->rows);
    if (x->nan) fprintf(out, "; %lld NaN", (long long)x->nan);
    if (x->infinite) fprintf(out, "; %lld infinite", (long long)x->infinite);
}

/* Writes a summary: "-1.2 to 3.4, mean 0.5; 3 of 40 are 0". */
static void put_summary(const numbers *x, FILE *out) {
    int64_t finite = x->n - x->nan - x->infinite;
    if (finite > 1) fprintf(out, "  %.4g to %.4g, mean %.4g", x->low, x->high, x->mean);
    if (x->n > 1 && x->zeros)
        fprintf(out, "; %lld of %lld are 0", (long long)x->zeros, (long long)x->n);
    put_warnings(x, out);
}

static void put_first_numbers(const numbers *x, FILE *out) {
    int64_t n = x->n < FEW_NUMBERS ? x->n : FEW_NUMBERS;
    fputs("  ", out);
    for (int64_t i = 0; i < n; i++) fprintf(out, " %.4g", x->x[i]);
    if (x->n > n) fputs(" ...", out);
}

static void put_operand(node_list *l, const wf_tensor *t, int i, FILE *out) {
    char name[32];
    numbers x;
    const wf_tensor *in = t->in[i];
    fprintf(out, "  %-10s ", operand_name(t->op, i, name));
    if (!in) {
        fputs("none\n", out);
        return;
    }
    int place = l->place[in->id];
    if (place >= 0) fprintf(out, "%d ", place + 1);
    put_clean(out, in->op ? in->op->name : name_of(in), -1);
    fputs("  ", out);
    put_shape(l, in, out);
    bool shape_only = t->op->shape_only >> i & 1;
    if (shape_only) {
        fputs("  its shape alone is read\n", out);
        return;
    }
    if (!node_numbers(l, in, &x)) return;
    put_first_numbers(&x, out);
    put_warnings(&x, out);
    free(x.x);
    fputc('\n', out);
}

/* Writes the index of a row of the last axis: "[0,2,*]". */
static void put_row_index(int ndim, const int64_t *shape, int64_t row, FILE *out) {
    int64_t rows = 1;
    for (int axis = 0; axis < ndim - 1; axis++) rows *= shape[axis];
    fputs("    [", out);
    for (int axis = 0; axis < ndim - 1; axis++) {
        rows /= shape[axis];
        fprintf(out, "%lld,", (long long)(row / rows));
        row %= rows;
    }
    fputs("*]", out);
}

/* Writes every number, with a line for each row of the last axis. */
static void put_all_numbers(node_list *l, const wf_tensor *t, FILE *out) {
    int64_t shape[WF_MAX_DIMS];
    int ndim = wf_bound_shape(l->plan, t, shape);
    numbers x;
    if (ndim < 0 || !node_numbers(l, t, &x)) return;
    int64_t columns = ndim ? shape[ndim - 1] : 1;
    for (int64_t i = 0; i < x.n; i++) {
        if (i % columns == 0) put_row_index(ndim, shape, i / columns, out);
        fprintf(out, " %.5g%s", x.x[i], (i + 1) % columns ? "" : "\n");
    }
    free(x.x);
}

/* Writes the numbers as nested brackets, with long axes shortened, in a limited number of lines. */
static void put_numbers(node_list *l, const wf_tensor *t, FILE *out) {
    char *text = node_text(l, t);
    int lines = 0;
    for (char *at = text; at && *at; lines++) {
        size_t n = strcspn(at, "\n");
        if (lines == FEW_LINES) {
            fputs("    ... (v shows all)\n", out);
            break;
        }
        fprintf(out, "%s%.*s\n", n ? "    " : "", (int)n, at);
        at += n + (at[n] == '\n');
    }
    free(text);
}

/* Prints node i. If memory runs out, the text ends early, perhaps within a line. */
static void show(node_list *l, int i, bool all, FILE *out) {
    char attributes[ATTRIBUTES_TEXT];
    const wf_tensor *t = l->node[i];
    numbers x;
    fprintf(out, "%d/%d  %s  ", i + 1, l->n, kind_of(t));
    put_clean(out, name_of(t), -1);
    if (t->forward) {
        fputs("  recorded by the gradient rule of ", out);
        if (l->place[t->forward->id] >= 0) fprintf(out, "%d ", l->place[t->forward->id] + 1);
        fputs(kind_of(t->forward), out);
    }
    if (t->function) fprintf(out, "  in %s", t->function);
    fputc('\n', out);
    if (t->op && *formula_value(t->op))
        fprintf(out, "  %s%s\n", t->result ? "saved beside: " : "", t->op->formula);
    if (*attributes_text(t, attributes)) fprintf(out, "  with       %s\n", attributes);
    for (int k = 0; t->op && k < t->n_in && !l->failed; k++) put_operand(l, t, k, out);
    if (l->failed || !node_numbers(l, t, &x)) return;
    fprintf(out, "  = ");
    put_shape(l, t, out);
    put_summary(&x, out);
    free(x.x);
    bool breaks = node_breaks(l, t);
    if (l->failed) return;
    fputs(breaks ? "\n  NOT FINITE, though its operands are\n" : "\n", out);
    if (all)
        put_all_numbers(l, t, out);
    else
        put_numbers(l, t, out);
}

/* ---- finding --------------------------------------------------------------------------------- */

static bool has_word(const wf_tensor *t, const char *word) {
    return strstr(name_of(t), word) || strstr(t->name, word) || strstr(kind_of(t), word);
}

/* The index of the next node after `from`, wrapping around, whose name or op contains the word; -1:
 * none. */
static int find_word(node_list *l, int from, const char *word) {
    for (int k = 1; k <= l->n; k++) {
        int i = (from + k) % l->n;
        if (has_word(l->node[i], word)) return i;
    }
    return -1;
}

static int find_break(node_list *l) {
    for (int i = 0; i < l->n; i++)
        if (node_breaks(l, l->node[i])) return i;
    return -1;
}

static int find_zero_row(node_list *l, int from) {
    for (int k = 1; k <= l->n; k++) {
        int i = (from + k) % l->n;
        numbers x;
        if (!node_numbers(l, l->node[i], &x)) continue;
        free(x.x);
        if (x.rows > 1 && x.zero_rows) return i;
    }
    return -1;
}

/* ---- commands -------------------------------------------------------------------------------- */

typedef struct session {
    node_list *list;
    FILE *out;
    int at;
    char word[COMMAND_TEXT]; /* searched for last */
    bool done;
} session;

static bool refuse(const session *s, const char *why, const char *what) {
    fputs(why, s->out);
    put_clean(s->out, what, -1);
    fputc('\n', s->out);
    return false;
}

static bool go(session *s, int to, const char *none) {
    if (s->list->failed) return false;
    if (to < 0) return refuse(s, none, "");
    s->at = to;
    show(s->list, to, false, s->out);
    return true;
}

static bool go_to_number(session *s, const char *text) {
    char *end;
    long n = strtol(text, &end, 10);
    if (end == text || *end || n < 1 || n > s->list->n) {
        fprintf(s->out, "g N: N is 1 to %d\n", s->list->n);
        return false;
    }
    return go(s, (int)n - 1, "");
}

static bool search(session *s, const char *word) {
    if (*word) snprintf(s->word, sizeof s->word, "%s", word);
    if (!*s->word) return refuse(s, "/WORD: a part of a name or an op", "");
    int to = find_word(s->list, s->at, s->word);
    return to < 0 ? refuse(s, "no node has: ", s->word) : go(s, to, "");
}

static bool obey(session *s, char *line) {
    line += strspn(line, " \t");
    for (size_t n = strlen(line); n && strchr(" \t\r\n", line[n - 1]);) line[--n] = '\0';
    if (*line == '/') return search(s, line + 1);
    if (*line == 'g') return go_to_number(s, line + 1 + strspn(line + 1, " \t"));
    if (strlen(line) > 1) return refuse(s, "no command: ", line);
    switch (*line) {
    case '\0':
    case 'n':
        return go(s, s->at + 1 < s->list->n ? s->at + 1 : -1, "this is the last node");
    case 'p':
        return go(s, s->at - 1, "this is the first node");
    case 'f':
        return go(s, find_break(s->list), "no node made a NaN or an infinity of finite operands");
    case 'z':
        return go(s, find_zero_row(s->list, s->at), "no node has a row of zeros");
    case 'v':
        if (s->at < 0) s->at = 0;
        show(s->list, s->at, true, s->out);
        return true;
    case 'h':
    case '?':
        fputs(STEP_KEYS "\n", s->out);
        return true;
    case 'q':
        s->done = true;
        return true;
    default:
        return refuse(s, "no command: ", line);
    }
}

void step_interactively(node_list *l, FILE *in, FILE *out) {
    session s = { .list = l, .out = out };
    char line[COMMAND_TEXT];
    show(l, 0, false, out);
    while (!s.done && !l->failed) {
        fputs(STEP_KEYS "\n> ", out);
        fflush(out);
        if (!fgets(line, sizeof line, in)) break;
        obey(&s, line);
    }
}

bool step_commands(node_list *l, const char *commands, FILE *out) {
    session s = { .list = l, .out = out, .at = -1 };
    char line[COMMAND_TEXT];
    bool all = true;
    for (const char *at = commands; !s.done && !l->failed; at++) {
        size_t n = strcspn(at, ";");
        snprintf(line, sizeof line, "%.*s", (int)n, at);
        if (!obey(&s, line)) all = false;
        at += n;
        if (!*at) break;
    }
    return all;
}

bool step_all(node_list *l, FILE *out) {
    for (int i = 0; i < l->n && !l->failed; i++) {
        show(l, i, false, out);
        if (!l->failed) fputc('\n', out);
    }
    int broken = l->failed ? -1 : find_break(l);
    if (l->failed) return false;
    if (broken < 0) {
        fprintf(out, "none of %d nodes made a NaN or an infinity of finite operands\n", l->n);
        return true;
    }
    fprintf(out, "the first that is not finite: %d/%d  %s  ", broken + 1, l->n,
            kind_of(l->node[broken]));
    put_clean(out, name_of(l->node[broken]), -1);
    fputc('\n', out);
    return false;
}
