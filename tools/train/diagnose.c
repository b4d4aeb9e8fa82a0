/* tools/train/diagnose.c - finds the tensor that is not finite after a failed step. See
 * diagnose.h. */
#include "diagnose.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks/ranks.h"

static bool finite_all(const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(x[i])) return false;
    return true;
}

/* A buffer as large as the largest parameter; the caller frees it. NULL: out of memory. */
static float *parameter_buffer(wf_tensor *const *params, int n) {
    size_t bytes = sizeof(float);
    for (int i = 0; i < n; i++)
        if (wf_bytes(params[i]) > bytes) bytes = wf_bytes(params[i]);
    return malloc(bytes);
}

static bool parameter_not_finite(wf_tensor *const *params, int n, float *buffer, char name[256]) {
    for (int i = 0; i < n; i++) {
        if (!wf_read(params[i], buffer, wf_bytes(params[i]))) continue;
        if (finite_all(buffer, wf_count(params[i]))) continue;
        snprintf(name, 256, "parameter %s", params[i]->name);
        return true;
    }
    return false;
}

/* True if the loss, a gradient or the norm of all gradients is not finite; `name` says which.
 * False: all are finite, or the plan failed. fetch[0] is the loss; the gradients of the trained
 * parameters follow. */
static bool gradient_not_finite(wf_plan *p, wf_tensor *const *fetch, const wf_optimizer *o,
                                float *buffer, char name[256]) {
    float loss, square = 0;
    if (!wf_run(p) || !wf_fetch(p, fetch[0], &loss, sizeof loss)) return false;
    if (!isfinite(loss)) {
        snprintf(name, 256, "loss (%g)", (double)loss);
        return true;
    }
    for (int i = 0; i < o->n; i++) {
        const wf_tensor *param = o->params[i];
        if (!wf_fetch(p, fetch[i + 1], buffer, wf_bytes(param))) return false;
        for (int64_t k = 0; k < wf_count(param); k++) square += buffer[k] * buffer[k];
        if (finite_all(buffer, wf_count(param))) continue;
        snprintf(name, 256, "gradient of %s", param->name);
        return true;
    }
    snprintf(name, 256, "norm of the gradient");
    return !isfinite(square);
}

/* Finds the first tensor with a NaN or an infinity after a failed step, and writes what it is to
 * `name`. Parameters are searched first; then the loss, the gradients and their norm, which are
 * computed again from batch b, without an update. b NULL: only the parameters. False: all are
 * finite, or the computation failed. */
static bool find_non_finite(wf_model *m, const wf_optimizer *o, const batch *b, uint64_t step,
                            char name[256]) {
    int all = wf_parameters(m->graph, NULL, NULL, 0), n = o->n;
    wf_tensor **params = calloc((size_t)all, sizeof *params);
    wf_tensor **fetch = calloc((size_t)n + 1, sizeof *fetch);
    float *buffer = NULL;
    wf_plan *p = NULL;
    bool found = false;
    if (params && fetch) {
        wf_parameters(m->graph, NULL, params, all);
        buffer = parameter_buffer(params, all);
        fetch[0] = m->objective;
        for (int i = 0; i < n; i++) fetch[i + 1] = o->grads[i];
        wf_tensor *const feed[] = { m->tgt, m->labels, m->src, m->src_length, m->alignment };
        p = wf_plan_new(m->graph,
                        &(wf_plan_options){ .fetch = fetch,
                                            .n_fetch = n + 1,
                                            .training = true,
                                            .n_feed = (m->src ? 4 : 2) + (m->alignment != NULL),
                                            .feed = feed });
        wf_random_step(p, step, 0);
    }
    if (buffer)
        found = parameter_not_finite(params, all, buffer, name) ||
                (b && batch_feed(b, p, m) && gradient_not_finite(p, fetch, o, buffer, name));
    wf_plan_free(p);
    free(buffer), free(fetch), free(params);
    return found;
}

/* The findings of a rank: the name of a tensor that is not finite, or ""; and the error of its
 * step, or "" if another rank caused it. */
typedef struct diagnosis {
    char name[256], why[256];
} diagnosis;

bool diagnose(session *s, int64_t step, char name[256], char why[256]) {
    diagnosis mine = { "", "" };
    const char *error = wf_trainer_error(s->trainer);
    if (!find_non_finite(s->model, wf_trainer_optimizer(s->trainer),
                         s->work.last.batches ? &s->batch : NULL, (uint64_t)step, mine.name))
        mine.name[0] = '\0';
    if (!strstr(error, "another rank")) snprintf(mine.why, sizeof mine.why, "%.255s", error);
    strcpy(name, mine.name);
    strcpy(why, mine.why);
    if (!s->transport) return *name;
    diagnosis *all = ranks_gather(s, &mine, sizeof mine);
    name[0] = why[0] = '\0';
    for (int r = 0; r < wf_transport_size(s->transport); r++) {
        if (!*name) strcpy(name, all[r].name);
        if (!*why) strcpy(why, all[r].why);
    }
    free(all);
    return *name;
}
