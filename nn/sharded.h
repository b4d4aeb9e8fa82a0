/* weft/nn/sharded.h - an optimizer divided among ranks: each owns a slice of the parameters, of their
 * moments and averages (ZeRO-1, Rajbhandari et al. 2020), and computes a part of an update's
 * micro-batches.
 *
 * All ranks record the same graph with an optimizer, whose options have the partial sums of
 * wf_sharded_partial_sums. An update, of M micro-batches:
 *
 *     wf_sharded_range(s, M, &from, &to);
 *     for (i = from; i < to; i++)
 *         ... feed p, a plan that fetches accumulation.adds, with micro-batch i
 *         ok = wf_sharded_feed(s, p, i, M) && wf_run(p);
 *     wf_sharded_update(s, M, rates, &norm);
 *
 * Gradients are added in the order of the tree of wf_accumulation, the norm block by block: the bits
 * are those of one process, for any number of ranks. The ranks call the collectives below in the
 * same order. Where the transport allows any_thread, gradients leave in rounds of 16 MB, while the last
 * micro-batch is run. From there to the end of wf_sharded_update the transport belongs to another
 * thread: its numbers are not to be read, all other calls here return false (or 0), and one rank alone
 * cannot give the update up. */
#ifndef WEFT_NN_SHARDED_H
#define WEFT_NN_SHARDED_H

#include "../core/transport.h"
#include "optimizer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wf_sharded wf_sharded;

enum { WF_MOST_MICRO_BATCHES = 65536 }; /* of an update */
/* wf_optimizer_options.partial_sums of a rank, for updates of up to so many micro-batches. 0: too
 * many of them, none, or there is no such rank. */
WF_API int wf_sharded_partial_sums(int64_t micro_batches, int rank, int ranks);
/* o: the optimizer of g, recorded with these options for these parameters, of updates of up to so
 * many micro-batches. Takes the slice from the graph: wf_sharded_scatter. All must live longer. NULL
 * with message[256]. */
WF_API wf_sharded *wf_sharded_new(wf_graph *g, const wf_optimizer *o, wf_tensor *const *params,
                                  const wf_optimizer_options *options, int64_t micro_batches,
                                  wf_transport *t, wf_pool *pool, char *message);
WF_API void wf_sharded_free(wf_sharded *s);               /* before the graph */
WF_API const char *wf_sharded_error(const wf_sharded *s); /* the last failure, or "" */

/* This rank's micro-batches of an update of so many: [from, to), perhaps none. */
WF_API void wf_sharded_range(const wf_sharded *s, int64_t micro_batches, int64_t *from,
                             int64_t *to);
/* Feed accumulation.at for micro-batch i, in order from `from` on. p may not run after s is
 * freed. */
WF_API bool wf_sharded_feed(wf_sharded *s, wf_plan *p, int64_t i, int64_t micro_batches);
/* Collective: gradients to their owners, an update by these rates (wf_optimizer_rates), parameters
 * to all. norm: as wf_optimizer.norm, NaN if unguarded; may be NULL. False on all ranks if it failed
 * on one, as on a gradient that is not finite; what it has changed is then not to be saved. */
WF_API bool wf_sharded_update(wf_sharded *s, int64_t micro_batches, const double rates[3],
                              double *norm);
/* The averages of this rank's slice move: wf_optimizer_average_rate. */
WF_API bool wf_sharded_average(wf_sharded *s, double rate);
/* Collective: the averages take the place of the parameters on all ranks, and the next call puts
 * these back. */
WF_API bool wf_sharded_swap_averages(wf_sharded *s);
/* Collective: rank 0's graph gets all moments and averages, to be saved. */
WF_API bool wf_sharded_gather(wf_sharded *s);
/* The graph's moments and averages, which the ranks do not train with, give their memory back. */
WF_API void wf_sharded_release(wf_sharded *s);
/* The slice is taken from the graph: parameters, and what it has of moments and averages, as after
 * loading a file; then as wf_sharded_release. */
WF_API bool wf_sharded_scatter(wf_sharded *s);

/* Bytes of this rank's slice and of what travels; and what it sends in an update of so many
 * micro-batches to other ranks. */
WF_API size_t wf_sharded_memory(const wf_sharded *s);
WF_API int64_t wf_sharded_traffic(const wf_sharded *s, int64_t micro_batches);
/* Seconds of exchanges so far, at least, that went by while micro-batches were run. */
WF_API double wf_sharded_hidden(const wf_sharded *s);

#ifdef __cplusplus
}
#endif
#endif
