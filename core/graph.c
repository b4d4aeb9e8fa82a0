/* core/graph.c - graphs: their memory, names, scopes, extents, and the first error.
 *
 * A graph is a list of nodes in rooms of memory. Nothing in it moves or is freed before the graph
 * is. */
#include "engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"

/* Nominal sizes of extents: primes, so that a merged axis still tells its factors, and no accident
 * of equal sizes passes a shape rule while recording: far apart, so that a part of one is no other.
 */
static const int64_t nominal_sizes[MAX_EXTENTS] = {
    0, 4079, 4231, 4397, 4549, 4723, 4903, 5081, 5273, 5449, 5641, 5839, 6037, 6247, 6451, 6659
};

const char *wf_version(void) {
    return "0.1.0";
}

/* ---- the graph that could not be allocated --------------------------------------------------- */

static wf_graph failed = { .failed = true,
                           .scope = "",
                           .error = "no graph: out of memory, or a NULL where one was needed",
                           .poison = { .graph = &failed, .id = -1, .name = "" } };

wf_graph *failed_graph(void) {
    return &failed;
}

/* ---- memory ---------------------------------------------------------------------------------- */

void *graph_alloc(wf_graph *g, size_t bytes) {
    void *p = room_take(&g->insides, bytes, 1 << 16);
    if (!p) wf_poison(g, "out of memory");
    return p;
}

static bool grow_names(wf_graph *g) {
    size_t cap = g->cap_names ? 2 * g->cap_names : 64;
    const char **names = calloc(cap, sizeof *names);
    if (!names) return wf_poison(g, "out of memory"), false;
    for (size_t i = 0; i < g->cap_names; i++) {
        if (!g->names[i]) continue;
        size_t h = wf_hash_bytes(0, g->names[i], strlen(g->names[i]));
        while (names[h & (cap - 1)]) h++;
        names[h & (cap - 1)] = g->names[i];
    }
    free(g->names);
    g->names = names, g->cap_names = cap;
    return true;
}

const char *graph_intern(wf_graph *g, const char *text) {
    if (2 * g->n_names >= g->cap_names && !grow_names(g)) return NULL;
    size_t n = strlen(text), h = wf_hash_bytes(0, text, n), mask = g->cap_names - 1;
    for (; g->names[h & mask]; h++)
        if (strcmp(g->names[h & mask], text) == 0) return g->names[h & mask];
    char *copy = graph_alloc(g, n + 1);
    if (!copy) return NULL;
    memcpy(copy, text, n + 1);
    g->n_names++;
    return g->names[h & mask] = copy;
}

wf_tensor *graph_add(wf_graph *g, int results) {
    if (g->n_nodes > INT32_MAX / 2) return wf_poison(g, "too many nodes"), NULL;
    if (g->n_nodes + results > g->cap_nodes) {
        int cap = g->cap_nodes ? 2 * g->cap_nodes : 256;
        wf_tensor **nodes = realloc(g->nodes, (size_t)cap * sizeof *nodes);
        if (!nodes) return wf_poison(g, "out of memory"), NULL;
        g->nodes = nodes, g->cap_nodes = cap;
    }
    wf_tensor *t = graph_alloc(g, (size_t)results * sizeof *t);
    if (!t) return NULL;
    for (int i = 0; i < results; i++) {
        t[i] = (wf_tensor){ .graph = g, .id = g->n_nodes, .result = i, .name = g->scope };
        g->nodes[g->n_nodes++] = &t[i];
    }
    return t;
}

/* ---- life ------------------------------------------------------------------------------------ */

wf_graph *wf_graph_new(const wf_graph_options *options) {
    wf_graph *g = calloc(1, sizeof *g);
    if (!g) return failed_graph();
    if (pthread_mutex_init(&g->lock, NULL)) return free(g), failed_graph();
    g->real = options ? options->real : WF_F32;
    g->seed = options ? options->seed : 0;
    g->poison = (wf_tensor){ .graph = g, .id = -1, .name = "", .dtype = g->real };
    g->scope = "";
    g->extents[0] = (extent){ .name = "P" };
    g->n_extents = 1;
    if (g->real != WF_F32 && g->real != WF_F64)
        wf_poison(g, "a graph computes in f32 or f64, not %s", wf_dtype_name(g->real));
    return g;
}

void wf_graph_free(wf_graph *g) {
    if (!g || g == failed_graph()) return;
    rooms_free(g->values), rooms_free(g->insides);
    pthread_mutex_destroy(&g->lock);
    free(g->nodes), free(g->names), free(g);
}

bool wf_ok(const wf_graph *g) {
    return g && !g->failed;
}

const char *wf_error(const wf_graph *g) {
    return g ? g->error : failed_graph()->error;
}

bool is_poison(const wf_tensor *t) {
    return t == &t->graph->poison;
}

wf_tensor *wf_poison(wf_graph *g, const char *format, ...) {
    if (!g) return &failed_graph()->poison;
    if (g->failed) return &g->poison;
    int n = g->scope[0] ? snprintf(g->error, sizeof g->error, "%s: ", g->scope) : 0;
    size_t at = n < 0 ? 0 : (size_t)n < sizeof g->error ? (size_t)n : sizeof g->error - 1;
    va_list args;
    va_start(args, format);
    vsnprintf(g->error + at, sizeof g->error - at, format, args);
    va_end(args);
    g->failed = true;
    if (g->on_error) g->on_error(g->on_error_user, g->error);
    return &g->poison;
}

void wf_on_error(wf_graph *g, void (*call)(void *user, const char *message), void *user) {
    if (!g || g == failed_graph()) return;
    g->on_error = call, g->on_error_user = user;
}

wf_dtype wf_real(const wf_graph *g) {
    return g ? g->real : WF_F32;
}

uint64_t wf_seed(const wf_graph *g) {
    return g ? g->seed : 0;
}

int wf_node_count(const wf_graph *g) {
    return g ? g->n_nodes : 0;
}

const wf_tensor *wf_node(const wf_graph *g, int id) {
    return g && id >= 0 && id < g->n_nodes ? g->nodes[id] : NULL;
}

enum { MAX_PATH = 255 };

/* ---- scopes ---------------------------------------------------------------------------------- */

const char *wf_scope(wf_graph *g, const char *path) {
    if (!wf_ok(g)) return "";
    if (path && strlen(path) > MAX_PATH)
        return wf_poison(g, "a module path is at most %d bytes long", MAX_PATH), "";
    const char *previous = g->scope, *name = graph_intern(g, path ? path : "");
    if (name) g->scope = name;
    return previous;
}

const char *wf_scope_push(wf_graph *g, const char *name) {
    if (!wf_ok(g)) return "";
    char path[MAX_PATH + 1];
    int n =
        snprintf(path, sizeof path, "%s%s%s", g->scope, g->scope[0] ? "." : "", name ? name : "");
    if (n < 0 || n > MAX_PATH)
        return wf_poison(g, "a module path is at most %d bytes long", MAX_PATH), "";
    return wf_scope(g, path);
}

/* ---- extents --------------------------------------------------------------------------------- */

int64_t wf_extent(wf_graph *g, const char *name, int64_t max) {
    if (!wf_ok(g)) return 1;
    if (!name || !name[0]) return wf_poison(g, "an extent needs a name"), 1;
    bool position = strcmp(name, "P") == 0;
    if (max < (position ? 0 : 1) || max > INT32_MAX)
        return wf_poison(g, "extent '%s': a maximum of %lld is out of range", name, (long long)max),
               1;
    for (int i = 0; i < g->n_extents; i++) {
        if (strcmp(g->extents[i].name, name) != 0 || !g->extents[i].declared) continue;
        if (g->extents[i].max == max) return i ? EXTENT_TAG - i : 0;
        return wf_poison(g, "extent '%s' was declared with maximum %lld, now %lld", name,
                         (long long)g->extents[i].max, (long long)max),
               1;
    }
    if (position) {
        g->extents[0].max = max, g->extents[0].declared = true;
        return 0;
    }
    if (g->n_extents == MAX_EXTENTS)
        return wf_poison(g, "extent '%s': at most %d extents", name, MAX_EXTENTS - 1), 1;
    extent *e = &g->extents[g->n_extents];
    *e = (extent){ graph_intern(g, name), max, nominal_sizes[g->n_extents], true };
    return e->name ? EXTENT_TAG - g->n_extents++ : 1;
}

/* A size in terms of extents: 512, B, B*T, B*4. */
static int size_text(const wf_graph *g, int64_t size, char *buffer, size_t limit) {
    int n = 0;
    bool named = false;
    for (int e = 1; g && size > 0 && e < g->n_extents; e++)
        for (; size % g->extents[e].nominal == 0 && (size_t)n < limit;
             size /= g->extents[e].nominal) {
            n += snprintf(buffer + n, limit - (size_t)n, "%s%s", named ? "*" : "",
                          g->extents[e].name);
            named = true;
        }
    if (!named) return snprintf(buffer, limit, "%lld", (long long)size);
    if (size != 1 && (size_t)n < limit)
        n += snprintf(buffer + n, limit - (size_t)n, "*%lld", (long long)size);
    return n;
}

const char *wf_shape_text(const wf_graph *g, int ndim, const int64_t *shape, char *buffer,
                          size_t size) {
    if (!size || !buffer) return buffer;
    if (!shape) ndim = 0;
    size_t at = 0;
    for (int i = 0; i <= ndim && at + 1 < size; i++) {
        buffer[at++] = i == 0 ? '[' : i == ndim ? ']' : ',';
        if (i == ndim || at >= size) break;
        int n = size_text(g, shape[i], buffer + at, size - at);
        at = n < 0 || (size_t)n >= size - at ? size - 1 : at + (size_t)n;
    }
    if (ndim <= 0 && at + 1 < size) buffer[at++] = ']';
    buffer[at < size ? at : size - 1] = '\0';
    return buffer;
}
