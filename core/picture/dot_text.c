/* core/picture/dot_text.c - how a picture looks: Graphviz text with colours, shapes, labels and a
 * legend.
 *
 * Families of operations differ in fill colour (Paul Tol's light scheme, which is safe for
 * colour-blind readers) and in shape (for grey print). One function escapes all names for HTML-like
 * labels. The gradient is drawn upwards beside the forward values: its links are laid out
 * backwards. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/utf8.h"
#include "core/emit/c_text.h"
#include "core/graph_internal.h"
#include "core/run_internal.h"
#include "dot.h"

/* The look of the boxes of some families of ops. A module looks like that one of its operations
 * whose row comes first. */
typedef struct style {
    const char *families, *meaning, *look;
} style;
enum { SHAPE_STYLE = 7, OTHER_STYLE, INPUT_STYLE, PARAM_STYLE, BUFFER_STYLE, RESULT_STYLE };
enum { N_STYLES = RESULT_STYLE + 1 };
static const style styles[N_STYLES] = {
    { "attention", "attention", "shape=component fillcolor=\"#99DDFF\"" },
    { "matmul", "matrix product", "shape=box fillcolor=\"#77AADD\"" },
    { "index", "table lookup", "shape=cylinder fillcolor=\"#BBCC33\"" },
    { "norm reduce", "sum or normalise",
      "shape=hexagon fillcolor=\"#44BB99\" margin=\"0.02,0.01\"" },
    { "loss", "loss", "shape=octagon fillcolor=\"#EE8866\" margin=\"0.02,0.01\"" },
    { "update", "update", "shape=parallelogram fillcolor=\"#FFAABB\"" },
    { "elementwise random", "element by element",
      "shape=ellipse fillcolor=\"#EEDD88\" margin=\"0.02,0.01\"" },
    { "shape constant", "shape",
      "shape=box style=\"filled,rounded\" fillcolor=\"#EEEEEE\" height=0.22 margin=\"0.1,0.04\"" },
    { "", "other", "shape=diamond fillcolor=\"#FFFFFF\"" },
    { NULL, "input", "shape=box style=\"filled,rounded\" fillcolor=\"#FFFFFF\" penwidth=2" },
    { NULL, "parameter",
      "shape=note fillcolor=\"#FFFFFF\" color=\"#888888\" height=0.22 margin=\"0.08,0.03\"" },
    { NULL, "buffer",
      "shape=note fillcolor=\"#DDDDDD\" color=\"#888888\" height=0.22 margin=\"0.08,0.03\"" },
    { NULL, "result",
      "shape=box style=\"filled,rounded\" fillcolor=\"#FFFFFF\" penwidth=2 peripheries=2" },
};

static bool has_word(const char *words, const char *word) {
    size_t n = strlen(word);
    for (const char *at = words; n && (at = strstr(at, word)); at += n)
        if ((at == words || at[-1] == ' ') && (at[n] == ' ' || !at[n])) return true;
    return false;
}

int wf_style_of(const wf_tensor *t) {
    if (t->kind == WF_PARAM) return PARAM_STYLE;
    if (t->kind == WF_BUFFER) return BUFFER_STYLE;
    if (is_leaf(t)) return INPUT_STYLE;
    for (int i = 0; i < OTHER_STYLE; i++)
        if (has_word(styles[i].families, t->op->family ? t->op->family : "")) return i;
    return OTHER_STYLE;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void WF_PRINTF(2, 3) add(wf_text *t, const char *format, ...) {
    char some[600];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(some, sizeof some, format, args);
    va_end(args);
    t->lacks |= n < 0 || (size_t)n >= sizeof some;
    wf_text_puts(t, some);
}

/* Escape any bytes for an HTML-like label or a quoted string. An empty text and a leading ']' are
 * escaped, too, because Graphviz rejects them. */
static void add_escaped(wf_text *t, const char *s, size_t n) {
    if (!n) add(t, "&#160;");
    if (n && *s == ']') {
        add(t, "&#93;");
        s++;
        n--;
    }
    while (n) {
        size_t good = wf_utf8_prefix(s, n);
        for (size_t i = 0; i < good; i++) {
            bool control = (unsigned char)s[i] < ' ' || s[i] == 127;
            if (strchr("&<>\"\\", s[i]))
                add(t, "&#%d;", s[i]);
            else
                wf_text_add(t, control ? " " : s + i, 1);
        }
        if (good < n) {
            add(t, "&#65533;");
            good++; /* skips a byte that is not part of valid UTF-8 */
        }
        s += good;
        n -= good;
    }
}

static void add_name(wf_text *t, const char *s) {
    add_escaped(t, s, strlen(s));
}

/* ---- labels ---------------------------------------------------------------------------------- */

#define SMALL "<FONT POINT-SIZE=\"10\">"

/* Writes the bound shape if there is a plan with bound extents, else the recorded shape with the
 * names of extents. */
static void add_sizes(wf_text *out, const picture *p, const wf_tensor *t) {
    char buffer[160];
    int64_t bound[WF_MAX_DIMS];
    int ndim = p->measured ? wf_bound_shape(p->options->plan, t, bound) : -1;
    const char *shape = ndim >= 0
                            ? wf_shape_text(NULL, ndim, bound, buffer, sizeof buffer)
                            : wf_shape_text(p->graph, t->ndim, t->shape, buffer, sizeof buffer);
    add_name(out, shape);
}

static void add_shape(wf_text *out, const picture *p, const wf_tensor *t) {
    add_sizes(out, p, t);
    add(out, " %s", wf_dtype_name(t->dtype));
}

/* Writes a number as "512", "1.02 k", "12.3 k", "1.05 M". It is computed with integers, so that the
 * locale has no effect. */
static void add_count(wf_text *out, int64_t n) {
    static const char *const units[] = { "", " k", " M", " G", " T", " P" };
    int u = 0;
    int64_t unit = 1;
    for (; n / unit >= 1000 && u < 5; u++) unit *= 1000;
    int64_t hundredths = u ? (n / 10 + unit / 2000) / (unit / 1000) : 0;
    int64_t whole = u ? hundredths / 100 : n;
    add(out, "%lld", (long long)whole);
    if (u && whole < 10)
        add(out, ".%02lld", (long long)hundredths % 100);
    else if (u && whole < 100)
        add(out, ".%lld", (long long)hundredths % 100 / 10);
    add(out, "%s", units[u]);
}

static void add_bytes(wf_text *out, size_t n) {
    add_count(out, (int64_t)n);
    add(out, n < 1000 ? " B" : "B");
}

/* Writes the part of m's path from module `from` on, m included, and the number of repeated layers:
 * "decoder.layers.0-5  x6". */
static void add_module_name(wf_text *out, const picture *p, int from, int m) {
    const module *at = &p->modules[m], *last = &p->modules[at->last];
    const module *first = &p->modules[from];
    add_escaped(out, at->path + first->start, at->end - first->start);
    if (at->copies == 1) return;
    add(out, "-");
    add_escaped(out, last->path + last->start, last->end - last->start);
    add(out, "  x%d", at->copies);
}

/* Writes the first five distinct operations of a module in their order, "matmul, add"; "..." for
 * more. Views are left out. */
static void add_operations(wf_text *out, const picture *p, int b) {
    enum { SHOWN_OPS = 5 };
    const wf_op *seen[SHOWN_OPS];
    int n = 0;
    for (int id = 0; id < p->n && n <= SHOWN_OPS; id++) {
        const wf_tensor *t = wf_node(p->graph, id);
        bool known = p->box_of[id] != b || is_leaf(t) || is_view(t) ||
                     p->modules[p->where[id]].drawn_as != p->where[id];
        for (int i = 0; i < n && !known; i++) known = seen[i] == t->op;
        if (known) continue;
        add(out, "%s", n == 0 ? "<BR/>" SMALL : n == SHOWN_OPS ? ", ..." : ", ");
        if (n < SHOWN_OPS) {
            seen[n] = t->op;
            add_name(out, t->op->name);
        }
        n++;
    }
    if (n) add(out, "</FONT>");
}

static void add_module_label(wf_text *out, const picture *p, int b) {
    const box *at = &p->boxes[b];
    int m = at->as_module, parent = p->modules[m].parent;
    bool layer = p->modules[m].copies > 1 && parent > 0;
    add(out, "<B>");
    add_module_name(out, p, layer ? parent : m, m);
    add(out, "</B>%s", at->backward ? " gradient" : "");
    if (!at->backward) add_operations(out, p, b);
    if (!at->parameters) return;
    add(out, "<BR/>" SMALL);
    add_count(out, at->parameters);
    add(out, " parameters</FONT>");
}

/* The last part of a path: "weight" of "decoder.layers.0.weight", but "layers.0" if it ends in a
 * number. */
static const char *last_name(const char *full) {
    const char *dot = strrchr(full, '.');
    if (!dot || !dot[1]) return full;
    const char *from = dot;
    if (dot[1] >= '0' && dot[1] <= '9')
        while (from > full && from[-1] != '.') from--;
    return from == dot ? dot + 1 : from;
}

static void add_leaf_label(wf_text *out, const picture *p, const wf_tensor *t) {
    bool bold = t->kind == WF_INPUT;
    add(out, bold ? "<B>" : SMALL);
    add_name(out, last_name(t->name));
    add(out, bold ? "</B><BR/>" SMALL : "<BR/>");
    add_shape(out, p, t);
    add(out, "</FONT>");
}

/* Writes the views that were folded on the way from source to value: "reshape, permute". True if
 * there were any. */
static bool add_views(wf_text *out, const wf_tensor *source, const wf_tensor *value) {
    if (value == source) return false;
    if (add_views(out, source, value->in[0])) add(out, ", ");
    add_name(out, value->op->name);
    return true;
}

static void add_operation_name(wf_text *out, const picture *p, const wf_tensor *t) {
    const wf_tensor *source = t;
    if (is_view(t))
        for (source = t->in[0]; p->folded[source->id];) source = source->in[0];
    if (!add_views(out, source, t)) add_name(out, t->op->name);
}

static void add_constants(wf_text *out, const picture *p, const wf_tensor *t) {
    for (int i = 0; i < t->n_in; i++) {
        if (!t->in[i] || t->in[i]->kind != WF_CONSTANT) continue;
        char number[32];
        if (wf_print(NULL, t->in[i], number, sizeof number) < 0) out->lacks = true;
        add(out, "<BR/>" SMALL "%s", p->options->n_values ? "with " : "");
        add_name(out, number);
        add(out, "</FONT>");
    }
}

/* title: index of the module that contains only this operation, -1: none. Of its path, the label
 * has the part that begins with the name of module `from`. */
static void add_operation_label(wf_text *out, const picture *p, const wf_tensor *t, int from,
                                int title) {
    if (title >= 0) {
        add(out, "<B>");
        add_module_name(out, p, from, title);
        add(out, "</B><BR/>");
    }
    bool small = title >= 0 || wf_style_of(t) == SHAPE_STYLE;
    add(out, small ? SMALL : "<B>");
    add_operation_name(out, p, t);
    add(out, small ? "</FONT>" : "</B>");
    add_constants(out, p, t);
    if (!t->label) return;
    add(out, "<BR/><I>");
    add_name(out, last_name(t->label));
    add(out, "</I>");
}

/* Writes each row of a matrix on a line of its own, without brackets. */
static void add_numbers(wf_text *out, wf_plan *plan, const wf_tensor *t) {
    char *numbers = wf_print_new(plan, t);
    out->lacks |= numbers == NULL;
    for (const char *at = numbers; at && *at;) {
        size_t between = strspn(at, "[] \n");
        const char *gap = strstr(at, "\n\n");
        if (gap && gap < at + between) add(out, "<BR/>"); /* another matrix begins */
        at += between;
        size_t line = strcspn(at, "]\n");
        if (line) {
            add(out, "<BR/>");
            add_escaped(out, at, line);
        }
        at += line;
    }
    free(numbers);
}

static void add_values(wf_text *out, const picture *p, const wf_tensor *t) {
    for (int i = 0; i < p->options->n_values; i++) {
        const wf_dot_value *v = &p->options->values[i];
        if (v->at != t) continue;
        if (v->label) {
            add(out, "<BR/>" SMALL "<I>");
            add_name(out, v->label);
            add(out, "</I></FONT>");
        }
        add(out, "<FONT FACE=\"DejaVu Sans Mono,Menlo,monospace\" POINT-SIZE=\"10\">");
        add_numbers(out, p->options->valued, v->value);
        add(out, "</FONT>");
    }
}

static void add_time(wf_text *out, double seconds) {
    double ns = seconds * 1e9;
    if (!(ns < 1e18)) ns = 0; /* a wrong clock */
    if (ns < 1e4)
        add(out, "%lld ns", (long long)ns);
    else if (ns < 1e7)
        add(out, "%lld us", (long long)(ns / 1e3));
    else
        add(out, "%lld ms", (long long)(ns / 1e6));
}

static void add_measurements(wf_text *out, const picture *p, const box *b) {
    if (b->fused_into || b->runs_as) {
        add(out, "<BR/>" SMALL "%s", b->fused_into ? "computed in " : "runs as ");
        add_name(out, b->fused_into ? b->fused_into->op->name : b->runs_as->name);
        add(out, "</FONT>");
    }
    if (!b->steps) return;
    add(out, "<BR/>" SMALL);
    if (b->steps > 1) add(out, "%d steps, ", b->steps);
    add_time(out, b->seconds);
    if (p->seconds > 0) add(out, " (%d %%)", (int)(100 * b->seconds / p->seconds + 0.5));
    add(out, "<BR/>%lld task%s, ", (long long)b->tasks, b->tasks == 1 ? "" : "s");
    add_bytes(out, b->memory);
    add(out, "</FONT>");
}

/* ---- boxes, links and modules ---------------------------------------------------------------- */

static void add_box(wf_text *out, const picture *p, int b, int from, int title) {
    const box *at = &p->boxes[b];
    add(out, "n%d [%s", b, styles[at->result ? RESULT_STYLE : at->looks_like].look);
    if (at->backward) add(out, " style=\"filled,dashed\"");
    if (at->fetched) add(out, " penwidth=2.5");
    add(out, " tooltip=\"");
    const module *m = at->as_module >= 0 ? &p->modules[at->as_module] : NULL;
    if (m)
        add_escaped(out, m->path, m->end);
    else
        add_name(out, at->node->label ? at->node->label : at->node->name);
    add(out, "\" label=<");
    if (at->result) {
        add(out, "<B>");
        add_name(out, at->node->label ? last_name(at->node->label) : "result");
        add(out, "</B><BR/>" SMALL);
        add_shape(out, p, at->node);
        add(out, "</FONT>");
    } else if (m)
        add_module_label(out, p, b);
    else if (is_leaf(at->node))
        add_leaf_label(out, p, at->node);
    else
        add_operation_label(out, p, at->node, from, title);
    if (at->as_module < 0 && !at->result) add_values(out, p, at->node);
    add_measurements(out, p, at);
    add(out, ">]\n");
}

/* True if the module has a single operation, which is then drawn under the module's name. */
static bool is_single(const picture *p, const module *m) {
    const box *b = m->boxes == 1 && !m->groups ? &p->boxes[m->first_box] : NULL;
    return b && b->as_module < 0 && !is_leaf(b->node);
}

/* A module that contains only one module is not drawn: the names of both become the name of the
 * inner one, which begins with module `from`. */
static void add_module(wf_text *out, const picture *p, int m, int from, int *number) {
    const module *at = &p->modules[m];
    bool single = m > 0 && is_single(p, at);
    bool cluster = m > 0 && !single && (at->boxes || at->groups > 1);
    if (cluster) {
        add(out, "subgraph cluster_%d {\nlabel=<<B>", (*number)++);
        add_module_name(out, p, from, m);
        add(out, "</B>>\nfillcolor=\"%s\"\n", at->level % 2 ? "#F6F6F4" : "#ECECE8");
    }
    for (int b = at->first_box; b >= 0; b = p->boxes[b].next)
        add_box(out, p, b, from, single ? m : -1);
    for (int child = at->first_child; child >= 0; child = p->modules[child].next)
        if (p->modules[child].boxes || p->modules[child].groups)
            add_module(out, p, child, cluster || m == 0 ? child : from, number);
    if (cluster) add(out, "}\n");
}

/* An edge of the gradient is written with its ends swapped and drawn backwards, so that it points
 * upwards. Edges from forward values to the gradient do not affect the layout. */
static void add_link(wf_text *out, const picture *p, const link *l) {
    const box *from = &p->boxes[l->from], *to = &p->boxes[l->to];
    bool stored = from->as_module < 0 && !from->result && is_stored(l->source);
    bool upwards = from->backward && to->backward, saved = !from->backward && to->backward;
    add(out, "n%d -> n%d [", upwards ? l->to : l->from, upwards ? l->from : l->to);
    if (upwards) add(out, "dir=back style=dashed ");
    if (saved)
        add(out, "style=dashed color=\"#AAAAAA\" constraint=false ");
    else if (l->shape_only)
        add(out, "style=dotted constraint=false ");
    if (stored) add(out, "arrowhead=none color=\"#888888\" ");
    bool shape = !stored && !saved, views = l->value != l->source && !saved && !p->options->modules;
    add(out, "label=<&#160;");
    if (views) add_views(out, l->source, l->value);
    if (views && shape) add(out, "<BR/>&#160;");
    bool usual = l->value->dtype == wf_real(p->graph);
    if (shape && usual) add_sizes(out, p, l->value);
    if (shape && !usual) add_shape(out, p, l->value);
    add(out, ">]\n");
}

/* Put the first gradient box of a node or module beside the box of its forward values. */
static void add_ranks(wf_text *out, const picture *p) {
    for (int b = 0, last = -1; b < p->n_boxes; b++) {
        const box *at = &p->boxes[b];
        int twin = at->as_module >= 0                 ? p->modules[at->as_module].box[0]
                   : at->node->forward && !at->result ? p->box_of[at->node->forward->id]
                                                      : -1;
        if (!at->backward || twin < 0 || twin == last) continue;
        add(out, "{ rank=same n%d n%d }\n", twin, b);
        last = twin;
    }
}

static void add_legend(wf_text *out, const picture *p) {
    bool used[N_STYLES] = { false }, gradient = false;
    for (int b = 0; b < p->n_boxes; b++) {
        used[p->boxes[b].result ? RESULT_STYLE : p->boxes[b].looks_like] = true;
        gradient |= p->boxes[b].backward;
    }
    add(out, "subgraph cluster_legend {\nlabel=<<B>legend</B>>\n"
             "fillcolor=\"#FFFFFF\"\nnode [fontsize=9]\n");
    int last = -1;
    for (int i = 0; i < N_STYLES; i++) {
        if (!used[i]) continue;
        add(out, "legend%d [%s label=\"%s\"]\n", i, styles[i].look, styles[i].meaning);
        if (last >= 0) add(out, "legend%d -> legend%d [style=invis]\n", last, i);
        last = i;
    }
    if (gradient) {
        add(out, "legend%d [shape=box style=dashed label=\"gradient: dashed,\\nupwards\"]\n",
            N_STYLES);
        add(out, "legend%d -> legend%d [style=invis]\n", last, N_STYLES);
    }
    add(out, "}\n");
}

static void add_title(wf_text *out, const picture *p) {
    if (!p->options->title && !p->measured) return;
    add(out, "labelloc=t\nlabel=<<FONT POINT-SIZE=\"16\">");
    add_name(out, p->options->title ? p->options->title : "plan");
    add(out, "</FONT>");
    if (p->measured) {
        add(out, "<BR/>%d steps, ", wf_step_count(p->options->plan));
        add_time(out, p->seconds);
        add(out, " a run, arena ");
        add_bytes(out, wf_plan_memory(p->options->plan));
    }
    add(out, "<BR/>&#160;>\n");
}

/* The widest of the usual fonts. A picture laid out with it also fits if the reader has another
 * font. */
#define FONT "fontname=\"DejaVu Sans,Verdana,sans-serif\""

char *wf_picture_text(const picture *p) {
    wf_text out = { 0 };
    add(&out, "digraph weft {\n"
              "graph [" FONT " fontsize=11 rankdir=TB newrank=true nodesep=0.3 ranksep=0.35 "
              "style=\"filled,rounded\" color=\"#BBBBBB\" labeljust=l bgcolor=white]\n"
              "node [" FONT " fontsize=11 style=filled height=0.35 margin=\"0.12,0.05\"]\n"
              "edge [" FONT " fontsize=9 fontcolor=\"#555555\" arrowsize=0.7]\n");
    add_title(&out, p);
    int number = 0;
    add_module(&out, p, 0, 0, &number);
    for (int i = 0; i < p->n_links; i++) add_link(&out, p, &p->links[i]);
    if (p->options->backward) add_ranks(&out, p);
    add_legend(&out, p);
    add(&out, "}\n");
    if (out.lacks) wf_text_free(&out);
    return out.at;
}
