/* core/record/graph.c - graphs: their memory, names, scopes, and the first error.
 *
 * A graph is a list of nodes in an arena. Its nodes do not move, and are freed with it. */
#include "record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"

const char *wf_version(void) {
    return WF_VERSION;
}

/* ---- the graph that could not be allocated --------------------------------------------------- */

static wf_graph failed = { .failed = true,
                           .scope = "",
                           .error = "no graph: out of memory, or a NULL where one was needed",
                           .poison = { .graph = &failed, .id = -1, .name = "" } };

wf_graph *wf_failed_graph(void) {
    return &failed;
}

/* ---- memory ---------------------------------------------------------------------------------- */

void *wf_graph_alloc(wf_graph *g, size_t bytes) {
    void *p = wf_arena_alloc(&g->records, bytes, 1 << 16);
    if (!p) wf_poison(g, "out of memory");
    return p;
}

/* The slot that holds the text in the hash table, or the free slot where it belongs. */
static interned *slot_of(interned *names, size_t cap, const char *text, size_t n) {
    size_t h = wf_hash_bytes(0, text, n);
    while (names[h & (cap - 1)].text && strcmp(names[h & (cap - 1)].text, text) != 0) h++;
    return &names[h & (cap - 1)];
}

static bool grow_names(wf_graph *g) {
    size_t cap = g->cap_names ? 2 * g->cap_names : 64;
    interned *names = calloc(cap, sizeof *names);
    if (!names) return wf_refuse(g, "out of memory");
    for (size_t i = 0; i < g->cap_names; i++) {
        const interned *old = &g->names[i];
        if (old->text) *slot_of(names, cap, old->text, strlen(old->text)) = *old;
    }
    free(g->names);
    g->names = names;
    g->cap_names = cap;
    return true;
}

interned *wf_graph_interned(const wf_graph *g, const char *text) {
    interned *found = g->names ? slot_of(g->names, g->cap_names, text, strlen(text)) : NULL;
    return found && found->text ? found : NULL;
}

const char *wf_graph_intern(wf_graph *g, const char *text) {
    if (2 * g->n_names >= g->cap_names && !grow_names(g)) return NULL;
    size_t n = strlen(text);
    interned *at = slot_of(g->names, g->cap_names, text, n);
    if (at->text) return at->text;
    char *copy = wf_graph_alloc(g, n + 1);
    if (!copy) return NULL;
    g->n_names++;
    return at->text = memcpy(copy, text, n + 1);
}

wf_tensor *wf_graph_add(wf_graph *g, int results) {
    if (g->n_nodes > INT32_MAX / 2) return wf_poison(g, "too many nodes"), NULL;
    if (g->n_nodes + results > g->cap_nodes) {
        int cap = g->cap_nodes ? 2 * g->cap_nodes : 256;
        wf_tensor **nodes = realloc(g->nodes, (size_t)cap * sizeof *nodes);
        if (nodes) g->nodes = nodes;
        int32_t *entry_of = nodes ? realloc(g->entry_of, (size_t)cap * sizeof *entry_of) : NULL;
        if (!entry_of) return wf_poison(g, "out of memory"), NULL;
        memset(entry_of + g->cap_nodes, 0, (size_t)(cap - g->cap_nodes) * sizeof *entry_of);
        g->entry_of = entry_of;
        g->cap_nodes = cap;
    }
    wf_tensor *t = wf_graph_alloc(g, (size_t)results * sizeof *t);
    if (!t) return NULL;
    for (int i = 0; i < results; i++) {
        t[i] = (wf_tensor){ .graph = g, .id = g->n_nodes, .result = i, .name = g->scope };
        g->nodes[g->n_nodes++] = &t[i];
    }
    return t;
}

/* ---- new and free ---------------------------------------------------------------------------- */

/* The lock is recursive, because computing a leaf's initial value may read other leaves, which
 * takes the lock again. */
static bool new_lock(pthread_mutex_t *lock) {
    pthread_mutexattr_t attr;
    if (pthread_mutexattr_init(&attr)) return false;
    bool ok = !pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE) &&
              !pthread_mutex_init(lock, &attr);
    pthread_mutexattr_destroy(&attr);
    return ok;
}

wf_graph *wf_graph_new(const wf_graph_options *options) {
    wf_graph *g = calloc(1, sizeof *g);
    if (!g) return wf_failed_graph();
    if (!new_lock(&g->lock)) {
        free(g);
        return wf_failed_graph();
    }
    g->real = options ? options->real : WF_F32;
    g->seed = options ? options->seed : 0;
    g->on_error = options ? options->on_error : NULL;
    g->on_error_user = options ? options->user : NULL;
    g->poison = (wf_tensor){ .graph = g, .id = -1, .name = "", .dtype = g->real };
    g->scope = "";
    g->extents[0] = (extent){ .name = "P" };
    g->n_extents = 1;
    if (g->real != WF_F32 && g->real != WF_F64)
        wf_poison(g, "a graph computes in f32 or f64, not %s", wf_dtype_name(g->real));
    return g;
}

void wf_graph_free(wf_graph *g) {
    if (!g || g == wf_failed_graph()) return;
    wf_arenas_free(g->values), wf_arenas_free(g->records);
    pthread_mutex_destroy(&g->lock);
    free(g->nodes), free(g->entry_of), free(g->names), free(g->regions), free(g);
}

bool wf_ok(const wf_graph *g) {
    return g && !g->failed;
}

const char *wf_error(const wf_graph *g) {
    return g ? g->error : wf_failed_graph()->error;
}

bool wf_is_poison(const wf_tensor *t) {
    return t == &t->graph->poison;
}

/* True if the message begins with this name and a colon, or if the name is NULL. */
static bool named(const char *message, const char *name) {
    size_t n = name ? strlen(name) : 0;
    return !name || (strncmp(message, name, n) == 0 && message[n] == ':');
}

static void take_error(wf_graph *g, const char *format, va_list args) {
    if (!g || g->failed) return;
    char said[ERROR_SIZE];
    vsnprintf(said, sizeof said, format, args);
    wf_name_tags(g, said, sizeof said);
    const char *function = named(said, g->function) ? NULL : g->function;
    int n = snprintf(g->error, sizeof g->error, "%s%s%s%s", g->scope, g->scope[0] ? ": " : "",
                     function ? function : "", function ? ": " : "");
    size_t at = n < 0 ? 0 : (size_t)n < sizeof g->error ? (size_t)n : sizeof g->error - 1;
    snprintf(g->error + at, sizeof g->error - at, "%s", said);
    g->failed = true;
    if (g->on_error) g->on_error(g->on_error_user, g->error);
}

wf_tensor *wf_poison(wf_graph *g, const char *format, ...) {
    va_list args;
    va_start(args, format);
    take_error(g, format, args);
    va_end(args);
    return g ? &g->poison : &wf_failed_graph()->poison;
}

bool wf_refuse(wf_graph *g, const char *format, ...) {
    va_list args;
    va_start(args, format);
    take_error(g, format, args);
    va_end(args);
    return false;
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

wf_tensor *wf_node(const wf_graph *g, int id) {
    return g && id >= 0 && id < g->n_nodes ? g->nodes[id] : NULL;
}

enum { MAX_PATH = 255 };

/* ---- scopes ---------------------------------------------------------------------------------- */

const char *wf_scope(wf_graph *g, const char *path) {
    if (!wf_ok(g)) return "";
    if (path && strlen(path) > MAX_PATH) {
        wf_poison(g, "a module path is at most %d bytes long", MAX_PATH);
        return "";
    }
    const char *previous = g->scope, *name = wf_graph_intern(g, path ? path : "");
    if (name) g->scope = name;
    return previous;
}

const char *wf_scope_push(wf_graph *g, const char *name) {
    if (!wf_ok(g)) return "";
    char path[MAX_PATH + 1];
    int n =
        snprintf(path, sizeof path, "%s%s%s", g->scope, g->scope[0] ? "." : "", name ? name : "");
    if (n < 0 || n > MAX_PATH) {
        wf_poison(g, "a module path is at most %d bytes long", MAX_PATH);
        return "";
    }
    return wf_scope(g, path);
}

uint32_t wf_next_site(wf_graph *g) {
    /* The scope is interned here because the first scope is the literal "". */
    if (!wf_ok(g) || !wf_graph_intern(g, g->scope)) return 0;
    return wf_graph_interned(g, g->scope)->sites++;
}
