/* nn/parameters.c - finds the parameters of a graph by name, and feeds numbers to a plan. */
#include "optimizer.h"

#include "core/lend.h"

/* Matches a name with a pattern without its '!'. A '*' takes any characters: if the rest of the
 * pattern does not fit, the '*' takes one more. Only the last '*' ever has to be tried again. */
static bool fits(const char *pattern, const char *name) {
    const char *star = NULL, *taken = NULL;
    while (*name) {
        if (*pattern == '*') {
            star = pattern++;
            taken = name;
        } else if (*pattern == *name) {
            pattern++;
            name++;
        } else if (star) {
            pattern = star + 1;
            name = ++taken;
        } else
            return false;
    }
    while (*pattern == '*') pattern++;
    return !*pattern;
}

bool wf_name_fits(const char *names, const char *name) {
    if (!names || !name) return false;
    return *names == '!' ? !fits(names + 1, name) : fits(names, name);
}

int wf_parameters(const wf_graph *g, const char *names, wf_tensor **out, int capacity) {
    int n = 0;
    for (int id = 0; id < wf_node_count(g); id++) {
        wf_tensor *t = wf_node(g, id);
        if (t->kind != WF_PARAM || (names && !wf_name_fits(names, t->name))) continue;
        if (out && n < capacity) out[n] = t;
        n++;
    }
    return n;
}

bool wf_feed_reals(wf_plan *p, const wf_tensor *t, const double *values, int n) {
    bool real = t && t->dtype != WF_I32;
    size_t bytes = real && n >= 0 ? (size_t)n * wf_dtype_size(t->dtype) : SIZE_MAX;
    if (!real || n < 0 || !values || t->dtype == WF_F64) return wf_feed(p, t, values, bytes);
    void *place;
    if (!wf_feed_place(p, t, bytes, &place)) return false;
    float *converted = place;
    for (int i = 0; converted && i < n; i++) converted[i] = (float)values[i];
    return true;
}
