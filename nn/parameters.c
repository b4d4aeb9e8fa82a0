/* nn/parameters.c - the parameters of a graph, by their names; numbers to feed. */
#include "optimizer.h"

#include <stdlib.h>

/* The part of a pattern after its '!'. A '*' takes any characters: if what follows does not fit, it
 * takes one more. No pattern has more than one place to go back to, the last '*'. */
static bool fits(const char *pattern, const char *name) {
    const char *star = NULL, *taken = NULL;
    while (*name) {
        if (*pattern == '*')
            star = pattern++, taken = name;
        else if (*pattern == *name)
            pattern++, name++;
        else if (star)
            pattern = star + 1, name = ++taken;
        else
            return false;
    }
    while (*pattern == '*') pattern++;
    return !*pattern;
}

bool wf_name_fits(const char *names, const char *name) {
    if (!names || !name) return false;
    return *names == '!' ? !fits(names + 1, name) : fits(names, name);
}

int wf_parameters_named(const wf_graph *g, const char *names, wf_tensor **out, int capacity) {
    int n = 0;
    for (int id = 0; id < wf_node_count(g); id++) {
        wf_tensor *t = wf_node(g, id);
        if (t->kind != WF_PARAM || !wf_name_fits(names, t->name)) continue;
        if (out && n < capacity) out[n] = t;
        n++;
    }
    return n;
}

int wf_parameters(const wf_graph *g, wf_tensor **out, int capacity) {
    return wf_parameters_named(g, "*", out, capacity);
}

bool wf_feed_reals(wf_plan *p, const wf_tensor *t, const double *values, int n) {
    bool real = t && t->dtype != WF_I32;
    size_t bytes = real && n >= 0 ? (size_t)n * wf_dtype_size(t->dtype) : SIZE_MAX;
    bool fits = wf_bound_bytes(p, t) == bytes;
    if (!fits || !values || t->dtype == WF_F64) return wf_feed(p, t, values, bytes);
    float few[16] = { 0 }, *converted = n <= 16 ? few : malloc((size_t)n * sizeof *converted);
    if (!converted) return false;
    for (int i = 0; i < n; i++) converted[i] = (float)values[i];
    bool ok = wf_feed(p, t, converted, bytes);
    if (converted != few) free(converted);
    return ok;
}
