/* weft/nn/trainer.h - a training: optimizer, schedule, micro-batches, averages, saving and resuming, by
 * one process or by several ranks.
 *
 *     wf_trainer *t = wf_trainer_new(g, loss_sum, count, &(wf_trainer_options){
 *         .optimizer = wf_optimizer_defaults(WF_ADAM), .schedule = { WF_COSINE, 1e-3, 100, 2000 } });
 *     if (resuming) wf_trainer_load(t, "m.safetensors", NULL);
 *     while (ok && wf_trainer_steps(t) < 2000) {
 *         wf_plan *p = wf_trainer_plan(t);
 *         wf_progress now;
 *         int64_t i, to;
 *         ok = wf_trainer_begin(t, M, &i, &to);           this rank's micro-batches of an update of M
 *         for (; ok && i < to; i++)
 *             ok = wf_bind(p, "B", 32) && wf_feed(p, x, ...) && wf_trainer_add(t, i);
 *         ok = ok && wf_trainer_update(t, &now);
 *         printf("step %lld: loss %g, norm %g\n", (long long)now.step, now.loss, now.norm);
 *     }
 *     wf_trainer_save(t, "m.safetensors", NULL, 0);
 *     wf_trainer_free(t);
 *
 * The caller binds, feeds and fetches the plan as any other. A training that is loaded goes on with
 * the bits that it would have had, at any number of threads: random numbers are a function of the
 * graph's seed, the step and the micro-batch. Which data a step has is up to the caller, who knows
 * the step: wf_trainer_steps.
 *
 * With the option transport the same loop is data-parallel: each rank records the same graph,
 * computes its share of the micro-batches, and owns a shard of moments and averages (ZeRO-1). Bits do
 * not depend on how many ranks there are. Functions marked collective are called by all ranks in the
 * same order. A rank that fails must end the others: wf_transport_fail, or a code of its process. */
#ifndef WEFT_NN_TRAINER_H
#define WEFT_NN_TRAINER_H

#include "../core/save.h"
#include "../core/transport.h"
#include "optimizer.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { WF_MOST_MICRO_BATCHES = 65536 }; /* of an update */
typedef struct wf_trainer_options {
    /* clipping, groups and averages are in it */
    wf_optimizer_options optimizer;
    /* its peak must be set: no rate suits every optimizer */
    wf_schedule schedule;
    /* of an update, at most. 0 or 1: one, whose run also makes the update */
    int64_t micro_batches;
    /* n_params; NULL: all of the graph. Others are frozen */
    wf_tensor *const *params;
    int n_params;
    /* n_fetch more values, to be fetched from the plan after wf_trainer_add */
    wf_tensor *const *fetch;
    int n_fetch;
    /* n_sums scalars that are added over an update's micro-batches: wf_progress.sums */
    wf_tensor *const *sums;
    int n_sums;
    /* NULL: the calling thread only */
    wf_pool *pool;
    /* between the ranks that train together; NULL: one process */
    wf_transport *transport;
} wf_trainer_options;

/* An update, the same on all ranks but for the last three. */
typedef struct wf_progress {
    int64_t step;       /* updates made */
    double loss, count; /* loss_sum / count of all micro-batches; their count */
    double norm;        /* of the gradient before clipping; NaN if unguarded */
    double rate;        /* before the groups' factors */
    const double *sums; /* [n_sums] of all micro-batches, in their order; until the next update */
    int64_t sent, received; /* bytes to and from other ranks */
    double exchanging;      /* seconds in which this rank waited for exchanges */
} wf_progress;

typedef struct wf_trainer wf_trainer;

/* Records an optimizer of the parameters and makes the plans. Its feeds are all inputs that the
 * loss, the count, the fetches and sums need. NULL only if out of memory; a failed trainer says why. */
WF_API wf_trainer *wf_trainer_new(wf_graph *g, wf_tensor *loss_sum, wf_tensor *count,
                                  const wf_trainer_options *options);
WF_API void wf_trainer_free(wf_trainer *t); /* before the graph */
/* False if it could not be made, or if its graph has failed. */
WF_API bool wf_trainer_ok(const wf_trainer *t);
WF_API const char *wf_trainer_error(const wf_trainer *t); /* the last failure, or "" */
/* The plan of a micro-batch: to bind, feed, fetch from and profile, not to run. */
WF_API wf_plan *wf_trainer_plan(wf_trainer *t);
WF_API int64_t wf_trainer_steps(const wf_trainer *t); /* updates made, of earlier runs too */
/* The parameters that are trained, with moments and averages. With several ranks the graph's moments and averages
 * have no values, but on rank 0 while it saves. */
WF_API const wf_optimizer *wf_trainer_optimizer(const wf_trainer *t);
/* Bytes beside the parameters and the plan: moments, averages, sums of gradients, other plans, buffers
 * for exchanges. */
WF_API bool wf_trainer_memory(wf_trainer *t, size_t *bytes);

/* Begin an update of so many micro-batches, or begin it again. This rank's are [from, to), perhaps
 * none; one process has all of them. from and to may be NULL. */
WF_API bool wf_trainer_begin(wf_trainer *t, int64_t micro_batches, int64_t *from, int64_t *to);
/* Run the plan on what was fed, as micro-batch i: each of this rank's once, in order. False if it
 * failed: an update that is not finished is begun again. */
WF_API bool wf_trainer_add(wf_trainer *t, int64_t i);
/* Collective. The update by all micro-batches; then the averages move. False if it failed, as on a
 * gradient that is not finite: nothing is updated, and the same step can be tried with other data.
 * Without option micro_batches wf_trainer_add fails so. But if only the averages fail, out of memory,
 * then the update is made, and counted. out may be NULL. */
WF_API bool wf_trainer_update(wf_trainer *t, wf_progress *out);
/* Collective. Averages and parameters change places, to evaluate or save the averages; the next call
 * exchanges them back. False if there are no averages, or no memory. */
WF_API bool wf_trainer_swap_averages(wf_trainer *t);

/* ---- files: train/trainer_file.c ------------------------------------------------------------- */

/* Collective. Parameters, buffers, the number of steps and the caller's metadata to a safetensors
 * file, whole or not at all, which rank 0 writes: of the same bytes for any number of ranks. Not
 * between the micro-batches of an update. */
WF_API bool wf_trainer_save(wf_trainer *t, const char *path, const wf_meta *meta, int n_meta);
/* Go on from such a file, on each rank. options as of wf_load: NULL is strict; with
 * .allow = WF_ALLOW_MISSING averages, say, may be switched on now, and begin with the next update. On
 * failure nothing has changed. */
WF_API bool wf_trainer_load(wf_trainer *t, const char *path, const wf_load_options *options);
/* Collective. The same file of these leaves and metadata alone, with moments and averages: for formats
 * of one's own, as models have. A rank that has no memory for its list calls it with leaves NULL and n 1:
 * no file is written if it is rank 0, and the others do not wait for it. */
WF_API bool wf_trainer_write(wf_trainer *t, const char *path, wf_tensor *const *leaves, int n,
                             const wf_meta *meta, int n_meta);
/* Moments and averages from such a file, after so many steps; parameters are loaded before. Those of
 * a kind that the file lacks are zeros, as before step 1. */
WF_API bool wf_trainer_resume(wf_trainer *t, const wf_file *f, int64_t steps);

#ifdef __cplusplus
}
#endif
#endif
