/* nn/optimizer_internal.h - inside the library and its programs: records an optimizer, and
 * recognises its buffers in files by name. Trainers (trainer.h) and tests use it. Not installed.
 *
 * A plan that fetches the updates makes a step; the rate of the step is fed:
 *
 *     wf_optimizer_options adam = wf_optimizer_defaults(WF_ADAM);
 *     wf_optimizer o = wf_optimizer_new(g, loss_sum, count, params, n, &adam);
 *     wf_plan *p = wf_plan_new(g, ...);                  feeds x and o.rates, fetches o.updates
 *     double rates[3];
 *     wf_optimizer_rates(&adam, 1e-3, step, rates);
 *     wf_feed_reals(p, o.rates, rates, 3) && wf_run(p); */
#ifndef WEFT_NN_OPTIMIZER_INTERNAL_H
#define WEFT_NN_OPTIMIZER_INTERNAL_H

#include <stdbool.h>
#include <string.h>

#include "nn/optimizer.h"

/* The scope of an optimizer without a name. */
#define WF_OPTIMIZER_SCOPE "optimizer"
/* True if this name in a checkpoint is that of a buffer of an optimizer in this scope, such as a
 * moment. */
static inline bool wf_is_moment(const char *name) {
    return strncmp(name, WF_OPTIMIZER_SCOPE ".", sizeof WF_OPTIMIZER_SCOPE) == 0;
}

/* Record the gradients of loss_sum, and one update per parameter. An update divides its gradient by
 * count. Parameters that are not in params are frozen. Free the arrays with wf_optimizer_free; the
 * tensors are the graph's. */
wf_optimizer wf_optimizer_new(wf_graph *g, wf_tensor *loss_sum, wf_tensor *count,
                              wf_tensor *const *params, int n, const wf_optimizer_options *o);
/* Record an optimizer for gradients that the caller has recorded, or feeds as inputs. grads[i] is
 * the gradient with respect to params[i] of a sum of `count` losses. squares: the wf_square_sums of
 * all gradients of the norm, if grads are only some of them; NULL: grads are all of them. */
wf_optimizer wf_optimizer_from_gradients(wf_graph *g, wf_tensor *const *grads, wf_tensor *count,
                                         wf_tensor *squares, wf_tensor *const *params, int n,
                                         const wf_optimizer_options *o);
/* Free the arrays of an optimizer; its nodes belong to the graph. */
void wf_optimizer_free(wf_optimizer *o);
/* Compute the values to feed as rates at this step, counted from 1 (0 and less count as 1). They
 * are the learning rate and Adam's two bias corrections. With SGD and dampening, out[1] is 0 at
 * step 1, which has no dampening. Values that an optimizer does not use are 1. If one is not finite
 * the run fails, and nothing is updated. */
void wf_optimizer_rates(const wf_optimizer_options *o, double rate, int64_t step, double out[3]);
/* The value to feed as average_rate for the k-th averaging, counted from 1: (1 - d) / (1 - d^k),
 * where d is the decay. It makes the average bias-corrected at every k. */
double wf_optimizer_average_rate(const wf_optimizer_options *o, int64_t k);
/* Exchange parameters and averages, in order to evaluate or save the averages. Call it again before
 * training goes on. False, with nothing exchanged, if there are no averages or no memory. Must not
 * be called while a plan is running. */
bool wf_optimizer_swap_averages(const wf_optimizer *o);

#endif
