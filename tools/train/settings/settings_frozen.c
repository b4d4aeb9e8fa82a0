/* tools/train/settings/settings_frozen.c - which parameters are trained: those whose names do not
 * begin with a prefix of --freeze, or with --lora the adapters alone. See settings.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph_internal.h"
#include "settings_file.h"

/* True if the name begins with the first of the prefixes. An empty prefix fits no name. */
static bool begins(const char *name, const char *prefix) {
    size_t n = strcspn(prefix, ",");
    return n && strncmp(name, prefix, n) == 0;
}

/* The next prefix of the list; NULL: there are no more. */
static const char *next(const char *prefix) {
    const char *comma = strchr(prefix, ',');
    return comma ? comma + 1 : NULL;
}

static bool frozen(const char *prefixes, const char *name) {
    for (; prefixes; prefixes = next(prefixes))
        if (begins(name, prefixes)) return true;
    return false;
}

/* True if the parameter is not trained. With adapters, only they are trained. */
static bool is_frozen(const settings *set, const wf_tensor *param) {
    return set->model.lora ? !wf_from_hook(param) : frozen(set->model.freeze, param->name);
}

wf_tensor **settings_trained(const settings *set, const wf_model *m, int *n) {
    int all = wf_parameters(m->graph, NULL, NULL, 0);
    wf_tensor **params = calloc((size_t)all + 1, sizeof(wf_tensor *));
    *n = 0;
    if (!params) return NULL;
    wf_parameters(m->graph, NULL, params, all);
    for (int i = 0; i < all; i++)
        if (!is_frozen(set, params[i])) params[(*n)++] = params[i];
    return params;
}

int64_t settings_frozen(const settings *set, const wf_model *m) {
    int64_t n = 0;
    for (int id = 0; id < wf_node_count(m->graph); id++) {
        const wf_tensor *t = wf_node(m->graph, id);
        if (t->kind == WF_PARAM && is_frozen(set, t)) n += wf_count(t);
    }
    return n;
}

/* Exits if a prefix fits no parameter. A tied table has only the first of its names. */
static void check_prefix(const wf_model *m, const char *prefix) {
    int length = (int)strcspn(prefix, ",");
    for (int id = 0; id < wf_node_count(m->graph); id++) {
        const wf_tensor *t = wf_node(m->graph, id);
        if (t->kind == WF_PARAM && begins(t->name, prefix)) return;
    }
    for (int i = 1; i < m->n_tied; i++)
        if (begins(m->tied[i], prefix))
            usage_error(&train_program, "--freeze %.*s: in this model that is one table with %s",
                        length, prefix, m->tied[0]);
    usage_error(&train_program,
                "--freeze '%.*s': no parameter's name begins with it; inspect lists the names in a "
                "model file",
                length, prefix);
}

void settings_check_freeze(const settings *set, const wf_model *m) {
    if (!set->model.freeze) return;
    int64_t n = settings_frozen(set, m);
    if (n && n == wf_model_parameter_count(m))
        usage_error(&train_program, "--freeze %s leaves nothing to train", set->model.freeze);
    if (!wf_ok(m->graph)) return; /* a failed graph may lack names, and has its own error message */
    for (const char *prefix = set->model.freeze; prefix; prefix = next(prefix))
        check_prefix(m, prefix);
}
