/* core/picture/dot.c - what a picture of a graph shows: which tensors are drawn in which boxes, and
 * which boxes in which modules.
 *
 * Not here: colours, shapes and text (dot_text.c). The steps, in order: find the nodes that the
 * fetched tensors depend on; build the tree of modules from their paths; fold views into links;
 * fold repeated layers; make boxes; make links. */
#include "dot.h"
#include "core/run_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/random.h"

/* ---- what is needed -------------------------------------------------------------------------- */

static bool visible(const picture *p, const wf_tensor *t) {
    return p->needed[t->id] && t->kind != WF_CONSTANT && (p->options->backward || !is_backward(t));
}

/* Operands come before results, so one pass from the last node to the first is enough. */
static void mark_needed(picture *p) {
    for (int i = 0; i < p->n_fetch; i++) p->needed[p->fetch[i]->id] = true;
    for (int id = p->n - 1; id >= 0; id--) {
        const wf_tensor *t = wf_node(p->graph, id);
        if (!p->needed[id]) continue;
        p->needed[primary(t)->id] = true;
        for (int i = 0; i < t->n_in; i++)
            if (t->in[i]) p->needed[t->in[i]->id] = true;
    }
    for (int id = 0; id < p->n; id++) {
        const wf_tensor *t = wf_node(p->graph, id);
        for (int i = 0; visible(p, t) && i < t->n_in; i++)
            if (t->in[i]) p->used[t->in[i]->id] = true;
    }
    for (int i = 0; i < p->n_fetch; i++) p->used[p->fetch[i]->id] = true;
}

/* ---- modules --------------------------------------------------------------------------------- */

static int module_add(picture *p, const char *path, size_t start, size_t end, int parent) {
    if (!wf_grow(&p->modules, &p->cap_modules, (size_t)p->n_modules + 1, sizeof *p->modules))
        return -1;
    int m = p->n_modules++;
    p->modules[m] = (module){ .path = path,
                              .start = start,
                              .end = end,
                              .parent = parent,
                              .drawn_as = m,
                              .copies = 1,
                              .last = m,
                              .first_child = -1,
                              .last_child = -1,
                              .next = -1,
                              .box = { -1, -1 },
                              .first_box = -1,
                              .last_box = -1 };
    if (parent < 0) return m;
    module *up = &p->modules[parent];
    p->modules[m].level = up->level + 1;
    if (up->first_child < 0)
        up->first_child = m;
    else
        p->modules[up->last_child].next = m;
    up->last_child = m;
    return m;
}

static int child_named(const picture *p, int parent, const char *name, size_t length) {
    int m = p->modules[parent].first_child;
    for (; m >= 0; m = p->modules[m].next) {
        const module *child = &p->modules[m];
        if (child->end - child->start == length &&
            !memcmp(child->path + child->start, name, length))
            break;
    }
    return m;
}

/* The module of the path path[0, length), or its ancestor at the deepest level that is shown. -1:
 * out of memory. */
static int module_at(picture *p, const char *path, size_t length) {
    int m = 0, deepest = DOT_NESTING;
    if (p->options->modules && p->options->depth > 0 && p->options->depth < deepest)
        deepest = p->options->depth;
    for (size_t start = 0, end; m >= 0 && start < length && p->modules[m].level < deepest;
         start = end + 1) {
        for (end = start; end < length && path[end] != '.';) end++;
        int child = child_named(p, m, path + start, end - start);
        m = child >= 0 ? child : module_add(p, path, start, end, m);
    }
    return m;
}

/* The length of the module path in a node's name. A leaf's name is this path, a dot and its own
 * name; the whole name of another node is a path. */
static size_t path_length(const wf_tensor *t) {
    const char *dot = is_leaf(t) ? strrchr(t->name, '.') : NULL;
    return is_leaf(t) ? dot ? (size_t)(dot - t->name) : 0 : strlen(t->name);
}

static bool place_in_modules(picture *p) {
    if (module_add(p, "", 0, 0, -1) < 0) return false;
    for (int id = 0; id < p->n; id++) {
        const wf_tensor *t = wf_node(p->graph, id);
        if (visible(p, t) && (p->where[id] = module_at(p, t->name, path_length(t))) < 0)
            return false;
    }
    return true;
}

/* True if the module is drawn as one box: with options->modules, if it has no modules inside or
 * lies at the deepest level shown. */
static bool is_boxed(const picture *p, int m) {
    const module *at = &p->modules[m];
    return p->options->modules && m > 0 &&
           (at->first_child < 0 || (p->options->depth > 0 && at->level == p->options->depth));
}

/* ---- repeated layers: siblings with numbers as names and the same operations inside ---------- */

static void sign(picture *p) {
    for (int id = 0; id < p->n; id++) {
        const wf_tensor *t = wf_node(p->graph, id);
        if (!visible(p, t) || is_backward(t) || t->kind == WF_INPUT) continue;
        const char *op = t->op ? t->op->name : "";
        for (int m = p->where[id]; m > 0; m = p->modules[m].parent) {
            module *at = &p->modules[m];
            uint64_t h = wf_hash_bytes(at->signature, t->name + at->end, strlen(t->name + at->end));
            h = wf_hash_bytes(h, op, strlen(op));
            at->signature = wf_hash_bytes(h, t->shape, (size_t)t->ndim * sizeof t->shape[0]);
        }
    }
}

static bool is_number(const module *m) {
    for (size_t i = m->start; i < m->end; i++)
        if (m->path[i] < '0' || m->path[i] > '9') return false;
    return m->end > m->start;
}

/* Choose which module each module is drawn as: a repeated layer as the first of its kind. In
 * p->modules, parents come before their children, and earlier siblings before later ones. */
static void fold_layers(picture *p) {
    sign(p);
    for (int m = 1, before; m < p->n_modules; m++) {
        module *at = &p->modules[m];
        const module *up = &p->modules[at->parent];
        if (up->drawn_as != at->parent) { /* inside a repeated layer */
            int twin = child_named(p, up->drawn_as, at->path + at->start, at->end - at->start);
            at->drawn_as = twin >= 0 ? p->modules[twin].drawn_as : up->drawn_as;
            continue;
        }
        for (before = up->first_child; before >= 0 && p->modules[before].next != m;)
            before = p->modules[before].next;
        if (before < 0 || !is_number(at) || !is_number(&p->modules[before])) continue;
        if (at->signature != p->modules[before].signature) continue;
        at->drawn_as = p->modules[before].drawn_as;
        p->modules[at->drawn_as].copies++;
        p->modules[at->drawn_as].last = m;
    }
}

/* True if a link between these modules goes from a layer to another copy of it. Copies are drawn as
 * one box, so it would link the box to itself. */
static bool between_copies(const picture *p, int a, int b) {
    while (p->modules[a].level > p->modules[b].level) a = p->modules[a].parent;
    while (p->modules[b].level > p->modules[a].level) b = p->modules[b].parent;
    while (p->modules[a].parent != p->modules[b].parent) {
        a = p->modules[a].parent;
        b = p->modules[b].parent;
    }
    return a != b && p->modules[a].drawn_as == p->modules[b].drawn_as;
}

/* ---- views: most are drawn as a label of a link ---------------------------------------------- */

static const wf_tensor *source_of(const picture *p, const wf_tensor *t) {
    while (p->folded[t->id]) t = t->in[0];
    return t;
}

/* Fold views into the links that pass through them, except views that need a box of their own. A
 * view needs a box if it is fetched, named or drawn with numbers. In a picture of ops it also needs
 * one if another module reads it, unless it is a view of a parameter, buffer or constant. */
static void fold_views(picture *p) {
    for (int id = 0; id < p->n; id++) {
        const wf_tensor *t = wf_node(p->graph, id);
        p->folded[id] = visible(p, t) && is_view(t) && !t->label;
    }
    for (int i = 0; i < p->n_fetch; i++) p->folded[p->fetch[i]->id] = false;
    for (int i = 0; i < p->options->n_values; i++) p->folded[p->options->values[i].at->id] = false;
    if (p->options->modules) return;
    for (int id = 0; id < p->n; id++) {
        const wf_tensor *t = wf_node(p->graph, id);
        for (int i = 0; visible(p, t) && i < t->n_in; i++) {
            const wf_tensor *in = t->in[i];
            if (!in || !p->folded[in->id] || p->where[in->id] == p->where[id]) continue;
            const wf_tensor *from = in;
            while (is_view(from)) from = from->in[0];
            p->folded[in->id] = is_stored(from) || from->kind == WF_CONSTANT;
        }
    }
}

/* ---- boxes ----------------------------------------------------------------------------------- */

static int box_add(picture *p, const wf_tensor *t, int m) {
    p->boxes[p->n_boxes] = (box){ .node = t,
                                  .module = m,
                                  .as_module = -1,
                                  .next = -1,
                                  .claimed = -1,
                                  .backward = is_backward(t),
                                  .looks_like = wf_style_of(t) };
    return p->n_boxes++;
}

static void box_into_module(picture *p, int b) {
    module *m = &p->modules[p->boxes[b].module];
    if (m->first_box < 0)
        m->first_box = b;
    else
        p->boxes[m->last_box].next = b;
    m->last_box = b;
    m->boxes++;
}

/* The box of a module as a whole. Repeated layers share the box of the first one, which counts the
 * parameters of the first layer alone. */
static int module_box(picture *p, const wf_tensor *t, int m) {
    int drawn = p->modules[m].drawn_as, *here = &p->modules[drawn].box[is_backward(t)];
    if (*here < 0) {
        *here = box_add(p, t, p->modules[drawn].parent);
        p->boxes[*here].as_module = drawn;
        box_into_module(p, *here);
    }
    box *b = &p->boxes[*here];
    if (m == drawn && t->kind == WF_PARAM) b->parameters += wf_count(t);
    if (wf_style_of(t) < b->looks_like) b->looks_like = wf_style_of(t);
    return *here;
}

static bool same_kind(const wf_tensor *a, const wf_tensor *b) {
    const char *x = a->name + path_length(a), *y = b->name + path_length(b);
    return a->op == b->op && is_backward(a) == is_backward(b) && strcmp(x, y) == 0;
}

/* The box of a single operation or leaf; repeated layers share one. */
static int single_box(picture *p, const wf_tensor *t, int m) {
    int drawn = p->modules[m].drawn_as, b = p->options->modules ? p->modules[drawn].first_box : -1;
    while (b >= 0 && (p->boxes[b].as_module >= 0 || p->boxes[b].claimed == m ||
                      !same_kind(p->boxes[b].node, t)))
        b = p->boxes[b].next;
    if (b < 0) box_into_module(p, b = box_add(p, t, drawn));
    if (m == drawn) p->boxes[b].node = t;
    p->boxes[b].claimed = m;
    return b;
}

static void make_boxes(picture *p) {
    for (int id = 0; id < p->n; id++) {
        const wf_tensor *t = wf_node(p->graph, id);
        p->box_of[id] = -1;
        if (!visible(p, t) || p->folded[id] || (is_leaf(t) && !p->used[id])) continue;
        if (t->result)
            p->box_of[id] = p->box_of[primary(t)->id];
        else if (is_boxed(p, p->where[id]) && t->kind != WF_INPUT)
            p->box_of[id] = module_box(p, t, p->where[id]);
        else
            p->box_of[id] = single_box(p, t, p->where[id]);
    }
}

static int result_box(picture *p, const wf_tensor *t) {
    int b = box_add(p, t, 0);
    p->boxes[b].result = true;
    box_into_module(p, b);
    return b;
}

/* ---- links ----------------------------------------------------------------------------------- */

/* True if a picture of modules has such a link already. Between two boxes one link per shape is
 * drawn, and only one for all forward values that a gradient reads. */
static bool link_known(const picture *p, const link *l) {
    bool saved = p->boxes[l->to].backward && !p->boxes[l->from].backward;
    for (int i = p->links_into[l->to]; i >= 0; i = p->links[i].next)
        if (p->links[i].from == l->from &&
            (saved || (p->links[i].value->ndim == l->value->ndim &&
                       !memcmp(p->links[i].value->shape, l->value->shape, sizeof l->value->shape))))
            return true;
    return false;
}

static void link_add(picture *p, const wf_tensor *value, int to, bool shape_only) {
    const wf_tensor *source = source_of(p, value);
    link l = { .from = p->box_of[source->id],
               .to = to,
               .value = value,
               .source = source,
               .shape_only = shape_only,
               .next = p->links_into[to] };
    bool known = p->options->modules && link_known(p, &l);
    if (l.from < 0 || l.from == to || known) return;
    p->links_into[to] = p->n_links;
    p->links[p->n_links++] = l;
}

static void make_links(picture *p) {
    for (int id = 0; id < p->n; id++) {
        const wf_tensor *t = wf_node(p->graph, id);
        if (p->box_of[id] < 0 || t->result) continue;
        for (int i = 0; i < t->n_in; i++) {
            const wf_tensor *in = t->in[i];
            bool shape_only = t->op->shape_only >> i & 1;
            if (!in || !visible(p, in) || between_copies(p, p->where[in->id], p->where[id]))
                continue;
            if (shape_only && (p->options->modules || is_backward(t))) continue;
            link_add(p, is_view(t) ? source_of(p, in) : in, p->box_of[id], shape_only);
        }
    }
    for (int i = 0; i < p->n_fetch; i++) {
        const wf_tensor *t = p->fetch[i];
        if (p->box_of[t->id] < 0) continue;
        if (is_backward(t))
            p->boxes[p->box_of[t->id]].fetched = true;
        else
            link_add(p, t, result_box(p, t), false);
    }
}

/* ---- a plan's measurements ------------------------------------------------------------------- */

static void measure(picture *p) {
    wf_step step;
    int n = wf_step_count(p->options->plan); /* 0 before the extents are bound */
    p->measured = n > 0;
    for (int i = 0; i < n; i++) {
        if (!wf_step_at(p->options->plan, i, &step)) continue;
        double seconds = step.runs ? step.seconds / (double)step.runs : 0;
        p->seconds += seconds;
        int b = step.node && step.node->id < p->n ? p->box_of[step.node->id] : -1;
        if (b < 0) continue;
        p->boxes[b].steps++;
        if (p->boxes[b].as_module < 0 && step.op == step.node->op &&
            step.op != wf_node(p->graph, step.node->id)->op)
            p->boxes[b].runs_as = step.op;
        p->boxes[b].seconds += seconds;
        p->boxes[b].memory += step.size;
        if (step.tasks > p->boxes[b].tasks) p->boxes[b].tasks = step.tasks;
    }
}

/* Find the boxes whose nodes were fused into another node in the plan. */
static void find_fused(picture *p) {
    for (int i = 0; i < p->n_boxes; i++) {
        box *b = &p->boxes[i];
        const wf_tensor *by = b->result || b->as_module >= 0 || b->steps
                                  ? NULL
                                  : wf_computed_in(p->options->plan, b->node);
        b->fused_into = by && by != b->node ? by : NULL;
    }
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool fail(char *message, const char *why) {
    if (message) snprintf(message, WF_MESSAGE, "%s", why);
    return false;
}

static bool allocate(picture *p) {
    size_t n = (size_t)p->n, operands = (size_t)p->n_fetch, boxes = n + (size_t)p->n_fetch;
    for (int id = 0; id < p->n; id++) operands += (size_t)wf_node(p->graph, id)->n_in;
    p->needed = calloc(n, sizeof *p->needed);
    p->used = calloc(n, sizeof *p->used);
    p->folded = calloc(n, sizeof *p->folded);
    p->where = calloc(n, sizeof *p->where);
    p->box_of = calloc(n, sizeof *p->box_of);
    p->boxes = calloc(boxes, sizeof *p->boxes);
    p->links = calloc(operands, sizeof *p->links);
    p->links_into = calloc(boxes, sizeof *p->links_into);
    for (size_t i = 0; p->links_into && i < boxes; i++) p->links_into[i] = -1;
    return p->needed && p->used && p->folded && p->where && p->box_of && p->boxes && p->links &&
           p->links_into;
}

static void free_picture(picture *p) {
    free(p->needed), free(p->used), free(p->folded), free(p->where), free(p->box_of);
    free(p->modules), free(p->boxes), free(p->links), free(p->links_into);
}

static bool make_picture(picture *p, char *message) {
    if (!allocate(p)) return fail(message, "out of memory");
    mark_needed(p);
    if (!place_in_modules(p)) return fail(message, "out of memory");
    fold_views(p);
    if (p->options->modules) fold_layers(p);
    make_boxes(p);
    if (p->n_boxes > DOT_LIMIT && !p->options->force) {
        char why[WF_MESSAGE];
        snprintf(why, sizeof why,
                 "the picture would have %d nodes, more than %d: draw modules, or force it",
                 p->n_boxes, DOT_LIMIT);
        return fail(message, why);
    }
    make_links(p);
    if (p->options->plan) {
        measure(p);
        find_fused(p);
    }
    for (int m = p->n_modules - 1; m > 0; m--)
        if (p->modules[m].boxes || p->modules[m].groups) p->modules[p->modules[m].parent].groups++;
    return true;
}

static bool is_node_of(const wf_graph *g, const wf_tensor *t) {
    return t && t->graph == g && t->id >= 0;
}

/* True if the numbers to draw are given with their plan, and each of them is the value of a node of
 * this graph, drawn at a node of this graph. */
static bool values_fit(const wf_dot_options *o, const wf_graph *g) {
    if (o->n_values < 0 || (o->n_values > 0 && (!o->values || !o->valued))) return false;
    for (int i = 0; i < o->n_values; i++)
        if (!is_node_of(g, o->values[i].at) || !is_node_of(g, o->values[i].value)) return false;
    return true;
}

char *wf_dot(wf_tensor *const *fetch, int n, const wf_dot_options *options, char *message) {
    if (message) message[0] = '\0';
    if (!fetch || n <= 0 || !fetch[0]) return fail(message, "there is no tensor to draw"), NULL;
    wf_graph *g = fetch[0]->graph;
    if (!wf_ok(g)) return fail(message, wf_error(g)), NULL;
    for (int i = 0; i < n; i++)
        if (!fetch[i] || fetch[i]->graph != g)
            return fail(message, "the tensors to draw must be of one graph"), NULL;
    picture p = { .graph = g,
                  .options = options ? options : &(wf_dot_options){ 0 },
                  .fetch = fetch,
                  .n_fetch = n,
                  .n = wf_node_count(g) };
    if (!values_fit(p.options, g))
        return fail(message, "numbers to draw must be of nodes of this graph, with a plan"), NULL;
    char *text = NULL;
    if (make_picture(&p, message) && !(text = wf_picture_text(&p))) fail(message, "out of memory");
    free_picture(&p);
    return text;
}
