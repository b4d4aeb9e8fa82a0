/* weft/nn/trainer.h - a training: optimizer, schedule, micro-batches, averages, saving and
 * resuming, by one process or by several ranks.
 *
 *     wf_trainer *t = wf_trainer_new(g, loss_sum, count, &(wf_trainer_options){
 *         .optimizer = wf_optimizer_defaults(WF_ADAM),
 *         .schedule = { WF_COSINE, 1e-3, 100, 2000 },
 *         .micro_batches = M });
 *     if (resuming) wf_trainer_load(t, "m.safetensors", NULL);
 *     while (ok && wf_trainer_steps(t) < 2000) {
 *         wf_plan *p = wf_trainer_plan(t);
 *         wf_progress now;
 *         int64_t i, to;
 *         ok = wf_trainer_begin(t, M, &i, &to);   this rank's micro-batches of M
 *         for (; ok && i < to; i++)
 *             ok = wf_bind(p, "B", 32) && wf_feed(p, x, ...) && wf_trainer_add(t, i);
 *         ok = ok && wf_trainer_update(t, &now);
 *         if (ok) printf("step %lld: loss %g\n", (long long)now.step, now.loss);
 *     }
 *     wf_trainer_save(t, "m.safetensors", NULL, 0);
 *     wf_trainer_free(t);
 *
 * The caller binds, feeds and fetches the plan as any other. A loaded training goes on with the
 * same bits as if it had not stopped, at any number of threads: random numbers are a function of
 * the graph's seed, the step and the micro-batch. The caller chooses the data of each step, by
 * wf_trainer_steps.
 *
 * With the option transport the same loop is data-parallel: each rank records the same graph,
 * computes its share of the micro-batches, and owns a shard of moments and averages (ZeRO-1). Bits
 * do not depend on how many ranks there are. Functions marked collective are called by all ranks
 * in the same order. A rank that fails must end the others, by wf_transport_fail or by its exit
 * code. */
#ifndef WEFT_NN_TRAINER_H
#define WEFT_NN_TRAINER_H

#include "../core/save.h"
#include "../core/transport.h"
#include "optimizer.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { WF_MOST_MICRO_BATCHES = 65536 }; /* most micro-batches of an update */
typedef struct wf_trainer_options {
    /* also sets clipping, parameter groups and averages */
    wf_optimizer_options optimizer;
    /* schedule.peak must be set, because no rate suits every optimizer */
    wf_schedule schedule;
    /* most micro-batches of an update. 0 or 1: an update has one micro-batch. In a single process
     * wf_trainer_add then already changes the weights, and wf_trainer_update counts the step */
    int64_t micro_batches;
    /* n_params parameters to train; NULL: all of the graph. Others are frozen */
    wf_tensor *const *params;
    int n_params;
    /* n_fetch further values, which the plan can fetch after wf_trainer_add */
    wf_tensor *const *fetch;
    int n_fetch;
    /* n_sums scalars to add over an update's micro-batches: wf_progress.sums */
    wf_tensor *const *sums;
    int n_sums;
    /* NULL: the calling thread only */
    wf_pool *pool;
    /* connects the ranks that train together; NULL: one process */
    wf_transport *transport;
} wf_trainer_options;

/* The result of an update. It is the same on all ranks, except for the last three fields. */
typedef struct wf_progress {
    int64_t step;       /* updates made */
    double loss, count; /* loss_sum / count over all micro-batches; their total count */
    double norm;        /* norm of the gradient before clipping; NaN if unguarded */
    double rate;        /* learning rate, before the factors of groups */
    /* [n_sums]: totals over all micro-batches, in the order of the options; valid until the next
     * update */
    const double *sums;
    int64_t sent, received; /* bytes to and from other ranks */
    double exchanging;      /* seconds in which this rank waited for exchanges */
} wf_progress;

typedef struct wf_trainer wf_trainer;

/* Record an optimizer of the parameters and make the plans. The feeds are all inputs that the loss,
 * the count, the fetches and sums need. NULL only if out of memory; for other failures see
 * wf_trainer_error. */
WF_API wf_trainer *wf_trainer_new(wf_graph *g, wf_tensor *loss_sum, wf_tensor *count,
                                  const wf_trainer_options *options);
WF_API void wf_trainer_free(wf_trainer *t); /* before the graph */
/* False if the trainer could not be made. */
WF_API bool wf_trainer_ok(const wf_trainer *t);
/* The reason of the trainer's last failure since it was made, or since the last wf_trainer_begin,
 * wf_trainer_update or resume; if there is none, the error of its plan, or "". */
WF_API const char *wf_trainer_error(const wf_trainer *t);
/* The plan of a micro-batch. Bind it, feed it, fetch from it and profile it, but do not run it:
 * wf_trainer_add does. */
WF_API wf_plan *wf_trainer_plan(wf_trainer *t);
/* the number of updates made so far, including those before a resume */
WF_API int64_t wf_trainer_steps(const wf_trainer *t);
/* The trained parameters with their moments and averages. With several ranks, the graph's moments
 * and averages have no values, except on rank 0 while it saves. */
WF_API const wf_optimizer *wf_trainer_optimizer(const wf_trainer *t);
/* The bytes used besides the parameters and the plan: moments, averages, sums of gradients, other
 * plans, buffers for exchanges. With several ranks it may return false between the rank's last
 * micro-batch and wf_trainer_update. */
WF_API bool wf_trainer_memory(wf_trainer *t, size_t *bytes);

/* Begin an update of so many micro-batches. Those of an unfinished update are dropped, but a change
 * that wf_trainer_add has already made to the weights stays (see the option micro_batches). With
 * several ranks it may fail once the rank's last micro-batch was added, because the ranks then
 * exchange gradients. This rank must add each i with *from <= i < *to, which may be none; a single
 * process has all of them. from and to may be NULL. */
WF_API bool wf_trainer_begin(wf_trainer *t, int64_t micro_batches, int64_t *from, int64_t *to);
/* Run the plan on the data that were fed, as micro-batch i. Each rank adds every one of its
 * micro-batches once, in order. If it returns false, begin the update anew. */
WF_API bool wf_trainer_add(wf_trainer *t, int64_t i);
/* Collective. Make the update from all micro-batches, then update the averages. False if it failed.
 * If the reason is a gradient that is not finite, nothing is updated, and the same step can be
 * tried with other data. In a single process without micro_batches, wf_trainer_add fails in this
 * case. If only the averages fail, because memory is short, the update has been made and is
 * counted. out may be NULL. */
WF_API bool wf_trainer_update(wf_trainer *t, wf_progress *out);
/* Collective. Exchange averages and parameters, in order to evaluate or save the averages; the next
 * call exchanges them back. False if there are no averages, or out of memory. */
WF_API bool wf_trainer_swap_averages(wf_trainer *t);

/* ---- files: train/trainer_file.c ------------------------------------------------------------- */

/* Collective. Rank 0 writes parameters, buffers, the number of steps and the caller's metadata to a
 * safetensors file, whole or not at all. The file has the same bytes for any number of ranks. Do
 * not call it between the micro-batches of an update. */
WF_API bool wf_trainer_save(wf_trainer *t, const char *path, const wf_meta *meta, int n_meta);
/* Go on from such a file; every rank calls it. options are those of wf_load: NULL is strict. With
 * .allow = WF_ALLOW_MISSING, the trainer may have averages that the file lacks; they begin with the
 * next update. A file that is refused changes nothing. */
WF_API bool wf_trainer_load(wf_trainer *t, const char *path, const wf_load_options *options);
/* Load moments and averages from such a file, written after so many steps; load the parameters
 * before. If the file has no moments, they keep their values (zeros in a new trainer); if it has no
 * averages, they begin with the next update. False if it has only some of either for its
 * parameters. */
WF_API bool wf_trainer_resume(wf_trainer *t, const wf_file *f, int64_t steps);

#ifdef __cplusplus
}
#endif
#endif
