/* weft/nn/trainer.h - the loop that every training has: rates, micro-batches, averages, saving and
 * resuming. It hides no plan: the caller binds, feeds and fetches as with any other.
 *
 *     wf_trainer *t = wf_trainer_new(g, loss_sum, count, &(wf_trainer_options){
 *         .optimizer = wf_optimizer_defaults(WF_ADAM), .schedule = { WF_COSINE, 1e-3, 100, 2000 } });
 *     if (resuming) wf_trainer_load(t, "m.safetensors");
 *     while (wf_trainer_steps(t) < 2000) {
 *         wf_plan *p = wf_trainer_plan(t);
 *         wf_progress now;
 *         ok = wf_bind(p, "B", 32) && wf_feed(p, x, ...) && wf_trainer_step(t, &now);
 *         printf("step %lld: loss %g, norm %g\n", (long long)now.step, now.loss, now.norm);
 *     }
 *     wf_trainer_save(t, "m.safetensors", NULL, 0);
 *     wf_trainer_free(t);
 *
 * A training that is loaded goes on with the bits that it would have had, at any number of threads:
 * what is random is a function of the graph's seed and the step. Which data a step has is up to the
 * caller, who knows the step: wf_trainer_steps. */
#ifndef WEFT_NN_TRAINER_H
#define WEFT_NN_TRAINER_H

#include "../core/save.h"
#include "optimizer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wf_trainer_options {
    wf_optimizer_options optimizer; /* clipping, groups and averages are in it; the trainer sets
                                       `partial_sums` */
    wf_schedule schedule;           /* its peak must be set: no rate suits every optimizer */
    int micro_batches;              /* of an update; 0 or 1: each step is an update */
    wf_tensor *const *params;       /* n_params; NULL: all of the graph. Others are frozen */
    int n_params;
    wf_tensor *const *fetch; /* n_fetch more values, to be fetched after a step */
    int n_fetch;
    wf_pool *pool; /* NULL: the calling thread only */
} wf_trainer_options;

/* After a step. */
typedef struct wf_progress {
    int64_t step; /* updates made */
    bool updated; /* false: a micro-batch that is not the last of its update */
    double loss;  /* loss_sum / count, of all micro-batches of the update so far */
    double count;
    double norm; /* of the gradient before clipping; NaN if unguarded, and until `updated` */
    double rate; /* of this update, before the groups' factors */
} wf_progress;

typedef struct wf_trainer wf_trainer;

/* Records an optimizer of the parameters and makes the plans. Its feeds are all inputs that the
 * loss, the count and the fetches need. NULL only if out of memory; a failed trainer says why. */
WF_API wf_trainer *wf_trainer_new(wf_graph *g, wf_tensor *loss_sum, wf_tensor *count,
                                  const wf_trainer_options *options);
WF_API void wf_trainer_free(wf_trainer *t); /* before the graph */
WF_API bool wf_trainer_ok(const wf_trainer *t);
WF_API const char *wf_trainer_error(const wf_trainer *t); /* the last failure, or "" */
/* The plan of a step, or of a micro-batch: to bind, feed, fetch from and profile, not to run. */
WF_API wf_plan *wf_trainer_plan(wf_trainer *t);
WF_API int64_t wf_trainer_steps(const wf_trainer *t); /* updates made, of earlier runs too */
WF_API const wf_optimizer *wf_trainer_optimizer(const wf_trainer *t);
/* Run the plan on what was fed; with micro-batches the last of an update also makes the update.
 * False if it failed, as on a gradient that is not finite: nothing is updated, and the same step
 * can be tried with other data. But if it is only the averages that fail, out of memory, then the
 * update is made, and counted. out may be NULL. */
WF_API bool wf_trainer_step(wf_trainer *t, wf_progress *out);
/* Parameters, buffers, the number of steps and the caller's metadata to a safetensors file, whole
 * or not at all. Not between the micro-batches of an update. */
WF_API bool wf_trainer_save(wf_trainer *t, const char *path, const wf_meta *meta, int n_meta);
/* Go on from such a file. options as of wf_load: NULL is strict; with .allow = WF_ALLOW_MISSING
 * averages, say, may be switched on now, and begin with the next update. On failure nothing has
 * changed. */
WF_API bool wf_trainer_load(wf_trainer *t, const char *path, const wf_load_options *options);

#ifdef __cplusplus
}
#endif
#endif
