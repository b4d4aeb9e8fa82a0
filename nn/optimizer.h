/* weft/nn/optimizer.h - optimizers and schedules of the learning rate. A trainer (trainer.h) uses one
 * of each; a program that makes its own plans can use them alone.
 *
 * An optimizer records the gradients of a loss and one update per parameter. A plan that fetches
 * the updates makes a step; the rate of the step is fed:
 *
 *     wf_optimizer_options adam = wf_optimizer_defaults(WF_ADAM);
 *     wf_optimizer o = wf_optimizer_new(g, loss_sum, count, params, n, &adam);
 *     wf_plan *p = wf_plan_new(g, ...);                  feeds x and o.rates, fetches o.updates
 *     double rates[3];
 *     wf_optimizer_rates(&adam, 1e-3, step, rates);
 *     wf_feed_reals(p, o.rates, rates, 3) && wf_run(p); */
#ifndef WEFT_NN_OPTIMIZER_H
#define WEFT_NN_OPTIMIZER_H

#include "../ops/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- optimizers: train/optimizer.c ----------------------------------------------------------------- */

/* Formulas and names of options are torch.optim's; Lion is Chen et al. 2023. */
typedef enum { WF_SGD, WF_ADAM, WF_ADAMW, WF_RMSPROP, WF_ADAGRAD, WF_LION } wf_optimizer_kind;
/* Parameters with numbers of their own, by name: '*' stands for any characters, a '!' in front for
 * all other names. "encoder.*", "*.bias", "!*.weight". */
typedef struct wf_parameter_group {
    const char *names;   /* the graph fails if no parameter has such a name */
    double rate;         /* the rate that is fed is multiplied by this; above 0 */
    double weight_decay; /* in the place of the options' */
} wf_parameter_group;
typedef struct wf_optimizer_options {
    wf_optimizer_kind kind;
    const char *name;         /* scope of its input and buffers; NULL: "optimizer". Must differ
                                 between optimizers of one graph */
    double momentum;          /* SGD, RMSprop */
    double beta1, beta2, eps; /* of Adam and AdamW; Lion has no eps, RMSprop and Adagrad no betas.
                                 Betas in [0, 1), eps above 0, or the graph fails */
    double weight_decay;      /* AdamW and Lion decay matrices only, unless decay_all */
    double clip_norm;         /* of the gradient of the mean loss; 0: no clipping */
    bool unguarded; /* no clipping and no check for NaN: each update runs as soon as its gradient is
                       computed, which takes less memory. But a NaN gets into the model */
    double average_decay; /* also record a moving average of the weights, e.g. 0.999; 0: none */
    double dampening;     /* SGD */
    bool nesterov;        /* SGD: needs a momentum and no dampening */
    double alpha;         /* RMSprop: in [0, 1) */
    bool centered;        /* RMSprop: divides by the deviation of the gradients */
    bool decay_all;       /* AdamW, Lion: biases and norm weights decay too, as in PyTorch */
    const wf_parameter_group *groups; /* n_groups; the first that has a parameter's name counts */
    int n_groups;
} wf_optimizer_options;
/* PyTorch's: betas 0.9 and 0.999 (Lion 0.99), eps 1e-8 (Adagrad 1e-10), alpha 0.99; all else 0. */
WF_API wf_optimizer_options wf_optimizer_defaults(wf_optimizer_kind kind);
enum { WF_MOST_MOMENTS = 3 };
typedef struct wf_optimizer {
    wf_optimizer_kind kind;
    /* the input [3] fed at every update: wf_optimizer_rates */
    wf_tensor *rates;
    /* global norm of the mean gradient, []; the run fails if it is not finite. NULL if unguarded */
    wf_tensor *norm;
    /* parameters that it trains; each list below has one entry for each of them */
    int n;
    wf_tensor **params;
    /* gradients of loss_sum, before clipping */
    wf_tensor **grads;
    /* fetch all to perform a step */
    wf_tensor **updates;
    /* moments[i][k], k < n_moments: buffers "<name>.<parameter>.m" (averages of gradients), ".v" (of
     * their squares) and ".momentum", as the kind and its options need them */
    wf_tensor *(*moments)[WF_MOST_MOMENTS];
    int n_moments;
    /* Exponential moving averages of the parameters; NULL if the option average_decay is 0. After
     * each update run a plan that feeds average_rate, the input [1] (wf_optimizer_average_rate), and
     * fetches average_updates. The first run sets the averages to the parameters, so their initial
     * zeros have no effect. averages: buffers "<name>.<parameter>.average" */
    wf_tensor *average_rate;
    wf_tensor **averages;
    wf_tensor **average_updates;
} wf_optimizer;
/* Record the gradients of loss_sum / count and one update per parameter. What is not among params
 * is frozen. Free the arrays with wf_optimizer_free; the tensors are the graph's. */
WF_API wf_optimizer wf_optimizer_new(wf_graph *g, wf_tensor *loss_sum, wf_tensor *count,
                                     wf_tensor *const *params, int n,
                                     const wf_optimizer_options *o);
/* An optimizer with gradients that the caller has recorded, or inputs: grads[i] is that of params[i],
 * for a sum of `count` losses. */
WF_API wf_optimizer wf_optimizer_from_gradients(wf_graph *g, wf_tensor *const *grads,
                                                wf_tensor *count, wf_tensor *const *params, int n,
                                                const wf_optimizer_options *o);
/* Frees its memory; its nodes are the graph's. */
WF_API void wf_optimizer_free(wf_optimizer *o);
/* The values to feed as rates at this step, counted from 1 (less counts as 1): the learning rate
 * and the two bias corrections of Adam, or for the dampening of SGD whether this is the first step.
 * If one is not finite the run fails, and nothing is updated. */
WF_API void wf_optimizer_rates(const wf_optimizer_options *o, double rate, int64_t step,
                               double out[3]);
/* The value to feed as the rate of the k-th averaging, from 1: (1 - d) / (1 - d^k) with d the
 * decay, which makes the average bias-corrected at every k. */
WF_API double wf_optimizer_average_rate(const wf_optimizer_options *o, int64_t k);
/* Exchange parameters and averages, to evaluate or save the averages; call it again to go on
 * training. False, with nothing exchanged, if there are no averages or no memory. Must not be
 * called while a plan is running. */
WF_API bool wf_optimizer_swap_averages(const wf_optimizer *o);

/* ---- parameters: parameters.c ---------------------------------------------------------------- */

/* Feed n doubles to a real tensor with n elements, converted to its type. False on failure. */
WF_API bool wf_feed_reals(wf_plan *p, const wf_tensor *t, const double *values, int n);
/* Write the first `capacity` parameters, in recording order, to out (may be NULL). Returns the
 * number of all parameters. */
WF_API int wf_parameters(const wf_graph *g, wf_tensor **out, int capacity);
/* The parameters whose names fit, as in wf_parameter_group.names: to train only the "head.*", or
 * all but the "!encoder.*". */
WF_API int wf_parameters_named(const wf_graph *g, const char *names, wf_tensor **out, int capacity);
/* One such pattern: * stands for any characters, and a leading ! turns the answer round. */
WF_API bool wf_name_fits(const char *names, const char *name);

/* ---- schedules: train/schedule.c ------------------------------------------------------------------- */

typedef enum {
    WF_CONSTANT_RATE,
    WF_LINEAR_DECAY,
    WF_COSINE,
    WF_INVERSE_SQRT, /* peak * sqrt(warmup / step) */
    WF_NOAM          /* the same: the curve of Vaswani et al. 2017, given by its peak */
} wf_schedule_kind;
typedef struct wf_schedule {
    wf_schedule_kind kind;
    double peak;    /* the rate at the end of the warm-up */
    int64_t warmup; /* steps in which the rate rises linearly; 0 or less: none */
    int64_t steps;  /* of linear decay and cosine: from this step on the rate is `floor` */
    double floor;
} wf_schedule;
/* step counts from 1; 0 for NULL */
WF_API double wf_schedule_rate(const wf_schedule *s, int64_t step);

#ifdef __cplusplus
}
#endif
#endif
