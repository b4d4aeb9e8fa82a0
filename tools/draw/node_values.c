/* tools/draw/node_values.c - computes the value of every node. See node_values.h. */
#include "node_values.h"
#include "core/graph_internal.h"
#include "core/run_internal.h"
#include "tools/cli/refused.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- which nodes ----------------------------------------------------------------------------- */

/* False for a shape (wf_shape) and for an update, which have no values. */
static bool has_value(const wf_tensor *t) {
    if (t->kind == WF_CONSTANT) return wf_has_values(t);
    return !t->op || !t->op->writes;
}

/* Operands come before results, so one pass from the last node to the first is enough. */
bool *nodes_behind(const wf_graph *g, wf_tensor *const *wanted, int n) {
    bool *needed = calloc((size_t)wf_node_count(g) + 1, sizeof *needed);
    for (int i = 0; needed && i < n; i++) needed[wanted[i]->id] = true;
    for (int id = wf_node_count(g) - 1; needed && id >= 0; id--) {
        const wf_tensor *t = wf_node(g, id);
        if (!needed[id]) continue;
        needed[id - t->result] = true;
        for (int i = 0; i < t->n_in; i++)
            if (t->in[i]) needed[t->in[i]->id] = true;
    }
    return needed;
}

/* ---- the plan -------------------------------------------------------------------------------- */

/* A plan that fetches all needed nodes that have values, and feeds the inputs among them. NULL: out
 * of memory. */
static wf_plan *new_plan(wf_graph *g, const bool *needed, bool training) {
    int total = wf_node_count(g);
    wf_tensor **fetch = calloc((size_t)total + 1, sizeof *fetch);
    wf_tensor **feed = calloc((size_t)total + 1, sizeof *feed);
    wf_plan_options o = { .fetch = fetch, .feed = feed, .as_recorded = true, .training = training };
    for (int id = 0; fetch && feed && id < total; id++) {
        wf_tensor *t = wf_node(g, id);
        if (!needed[id] || !has_value(t)) continue;
        fetch[o.n_fetch++] = t;
        if (t->kind == WF_INPUT) feed[o.n_feed++] = t;
    }
    wf_plan *p = fetch && feed ? wf_plan_new(g, &o) : NULL;
    free(fetch);
    free(feed);
    return p;
}

/* ---- the order ------------------------------------------------------------------------------- */

/* Adds a node to the list. The plan's steps are in order. Leaves and views, which are not steps,
 * come before the first node that reads them. */
static void place_node(node_list *l, const wf_tensor *t, const bool *needed) {
    if (l->place[t->id] >= 0 || !needed[t->id]) return;
    for (int i = 0; i < t->n_in; i++)
        if (t->in[i]) place_node(l, t->in[i], needed);
    if (t->result) place_node(l, t - t->result, needed);
    if (!has_value(t) || t->kind == WF_CONSTANT || l->place[t->id] >= 0) return;
    l->place[t->id] = l->n;
    l->node[l->n++] = t;
}

static void order(node_list *l, const wf_graph *g, const bool *needed) {
    wf_step step;
    for (int i = 0; wf_step_at(l->plan, i, &step); i++)
        if (step.node) place_node(l, wf_node(g, step.node->id), needed);
    for (int id = 0; id < wf_node_count(g); id++) place_node(l, wf_node(g, id), needed);
}

bool node_list_new(node_list *l, wf_tensor *const *wanted, int n, const example *e, char *message) {
    wf_graph *g = wanted[0]->graph;
    size_t total = (size_t)wf_node_count(g) + 1;
    bool *needed = nodes_behind(g, wanted, n);
    *l =
        (node_list){ .node = calloc(total, sizeof *l->node), .place = malloc(total * sizeof(int)) };
    if (needed && l->node && l->place) {
        for (size_t i = 0; i < total; i++) l->place[i] = -1;
        l->plan = new_plan(g, needed, false);
    }
    bool ok = l->plan && wf_plan_ok(l->plan) && example_feed(e, l->plan) && wf_run(l->plan);
    if (ok)
        order(l, g, needed);
    else
        refused(message, "%s",
                l->plan && *wf_plan_error(l->plan) ? wf_plan_error(l->plan) : "out of memory");
    free(needed);
    return ok;
}

bool node_list_of(node_list *l, const subject *s, const example *e, char *message) {
    const wf_model *m = s->model;
    int most = s->n + 2, n = s->n;
    for (int k = 0; m && k < m->n_maps; k++) most += (int)m->maps[k].layers;
    wf_tensor **wanted = calloc((size_t)most, sizeof *wanted);
    if (!wanted) return refused(message, "out of memory");
    memcpy(wanted, s->fetch, (size_t)s->n * sizeof *wanted);
    if (m) {
        wanted[n++] = m->token_log_probs;
        wanted[n++] = m->loss.loss;
    }
    for (int k = 0; m && k < m->n_maps; k++)
        for (int64_t i = 0; i < m->maps[k].layers; i++) wanted[n++] = m->maps[k].weights[i];
    bool ok = node_list_new(l, wanted, n, e, message);
    free(wanted);
    return ok;
}

void node_list_free(node_list *l) {
    wf_plan_free(l->plan);
    free(l->node);
    free(l->place);
    *l = (node_list){ 0 };
}

/* ---- numbers --------------------------------------------------------------------------------- */

static double element(const void *data, wf_dtype dtype, int64_t i) {
    switch (dtype) {
    case WF_F32:
        return ((const float *)data)[i];
    case WF_F64:
        return ((const double *)data)[i];
    default:
        return ((const int32_t *)data)[i];
    }
}

static void count_rows(numbers *out, int64_t columns) {
    if (columns <= 0) return;
    out->rows = out->n / columns;
    for (int64_t row = 0; row < out->rows; row++) {
        int64_t i = 0;
        while (i < columns && out->x[row * columns + i] == 0) i++;
        out->zero_rows += i == columns;
    }
}

static void summarise(numbers *out) {
    int64_t finite = 0;
    double sum = 0;
    for (int64_t i = 0; i < out->n; i++) {
        double x = out->x[i];
        out->nan += isnan(x);
        out->infinite += isinf(x) != 0;
        out->zeros += x == 0;
        if (!isfinite(x)) continue;
        if (!finite || x < out->low) out->low = x;
        if (!finite || x > out->high) out->high = x;
        finite++;
        sum += x;
    }
    out->mean = finite ? sum / (double)finite : 0;
}

bool node_numbers(node_list *l, const wf_tensor *t, numbers *out) {
    int64_t shape[WF_MAX_DIMS];
    int ndim = wf_bound_shape(l->plan, t, shape);
    size_t bytes = wf_bound_bytes(l->plan, t), unit = wf_dtype_size(t->dtype);
    void *data = malloc(bytes + 1);
    *out = (numbers){ .n = (int64_t)(bytes / unit) };
    out->x = malloc(((size_t)out->n + 1) * sizeof *out->x);
    bool got = ndim >= 0 && data && out->x && wf_fetch(l->plan, t, data, bytes);
    for (int64_t i = 0; got && i < out->n; i++) out->x[i] = element(data, t->dtype, i);
    free(data);
    if (got) {
        summarise(out);
        count_rows(out, ndim ? shape[ndim - 1] : 0);
    } else {
        free(out->x);
        out->x = NULL;
        l->failed = true;
    }
    return got;
}

bool node_breaks(node_list *l, const wf_tensor *t) {
    numbers y, x;
    if (!node_numbers(l, t, &y)) return false;
    free(y.x);
    bool nan = y.nan, infinite = y.infinite;
    for (int i = 0; i < t->n_in && (nan || infinite); i++) {
        if (!t->in[i] || !has_value(t->in[i]) || !node_numbers(l, t->in[i], &x)) continue;
        free(x.x);
        if (x.nan) nan = false;
        if (x.nan || x.infinite) infinite = false;
    }
    return nan || infinite;
}

char *node_text(node_list *l, const wf_tensor *t) {
    char *text = wf_print_new(t->kind == WF_CONSTANT ? NULL : l->plan, t);
    l->failed |= text == NULL;
    return text;
}

/* ---- formulas -------------------------------------------------------------------------------- */

const char *formula_value(const wf_op *op) {
    const char *end = op->formula ? strstr(op->formula, "): ") : NULL;
    return end ? end + 3 : "";
}

const char *operand_name(const wf_op *op, int i, char buffer[32]) {
    const char *at = op->formula ? strchr(op->formula, '(') : NULL;
    for (int k = 0; at && k < i; k++) at = strpbrk(at + 1, ",)");
    size_t n = at && *at != ')' ? strcspn(at + 1, ",)") : 0;
    const char *name = n ? at + 1 + (at[1] == ' ') : "";
    n = strcspn(name, ",)");
    if (n && name[0] != '.')
        snprintf(buffer, 32, "%.*s", (int)n, name);
    else
        snprintf(buffer, 32, "operand %d", i);
    return buffer;
}

/* ---- attributes ------------------------------------------------------------------------------ */

static size_t size_of_type(const char *type) {
    static const struct {
        const char *name;
        size_t size;
    } types[] = { { "double", sizeof(double) },     { "int", sizeof(int) },
                  { "int32_t", sizeof(int32_t) },   { "int64_t", sizeof(int64_t) },
                  { "unsigned", sizeof(unsigned) }, { "uint32_t", sizeof(uint32_t) },
                  { "uint64_t", sizeof(uint64_t) }, { "bool", sizeof(bool) } };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, type) == 0) return types[i].size;
    return 0;
}

bool next_attribute(const char **at, attribute *a) {
    size_t end = a->from + a->size;
    if (!*at || sscanf(*at, " %15[a-z0-9_] %31[a-z0-9_]", a->type, a->name) != 2) return false;
    a->size = size_of_type(a->type);
    if (!a->size) return false;
    a->from = (end + a->size - 1) / a->size * a->size;
    *at = strchr(*at, ',');
    if (*at) ++*at;
    return true;
}

/* Writes the axes of a set of bits: "axes = 0 2". */
static int put_axes(char *text, size_t room, uint32_t axes) {
    int n = snprintf(text, room, "axes =");
    for (int i = 0; i < WF_MAX_DIMS && n > 0 && (size_t)n < room; i++)
        if (axes >> i & 1) n += snprintf(text + n, room - (size_t)n, " %d", i);
    return n;
}

/* Writes an attribute, such as "eps = 1e-05", but no flag that is not set, and no `site`, the
 * number that gives each random op its own random bits. */
static int put_attribute(char *text, size_t room, const attribute *a, const void *attrs) {
    union {
        double real;
        int32_t i32;
        int64_t i64;
        uint32_t bits;
        bool flag;
    } value;
    memcpy(&value, (const char *)attrs + a->from, a->size);
    if (strcmp(a->name, "site") == 0) return 0;
    if (strcmp(a->name, "axes") == 0) return put_axes(text, room, value.bits);
    if (strcmp(a->type, "bool") == 0) return value.flag ? snprintf(text, room, "%s", a->name) : 0;
    if (strcmp(a->type, "double") == 0)
        return snprintf(text, room, "%s = %.9g", a->name, value.real + 0.0);
    if (a->size == sizeof(int32_t)) return snprintf(text, room, "%s = %d", a->name, value.i32);
    if (value.i64 == INT64_MAX) return snprintf(text, room, "%s = end", a->name);
    return snprintf(text, room, "%s = %lld", a->name, (long long)value.i64);
}

const char *attributes_text(const wf_tensor *t, char buffer[ATTRIBUTES_TEXT]) {
    const char *at = t->op ? t->op->attributes : NULL;
    attribute a = { .size = 0 };
    size_t n = 0;
    buffer[0] = '\0';
    while (next_attribute(&at, &a) && a.from + a.size <= t->op->attr_bytes) {
        char one[96];
        if (put_attribute(one, sizeof one, &a, t->attrs) <= 0) continue;
        int wrote = snprintf(buffer + n, ATTRIBUTES_TEXT - n, "%s%s", n ? ", " : "", one);
        if (wrote < 0 || (size_t)wrote >= ATTRIBUTES_TEXT - n) break;
        n += (size_t)wrote;
    }
    return buffer;
}
