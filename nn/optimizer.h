/* weft/nn/optimizer.h - options of optimizers, and schedules of the learning rate. A trainer
 * (trainer.h) is made with one of each. It records the gradients of a loss and one update per
 * parameter.
 *
 * A program that makes its own updates uses wf_grad and the ops of ops/training_ops.h, such as
 * wf_adam_step. */
#ifndef WEFT_NN_OPTIMIZER_H
#define WEFT_NN_OPTIMIZER_H

#include "../ops/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- optimizers: train/optimizer.c ----------------------------------------------------------- */

/* Formulas and names of options are torch.optim's; Lion is Chen et al. 2023. */
typedef enum { WF_SGD, WF_ADAM, WF_ADAMW, WF_RMSPROP, WF_ADAGRAD, WF_LION } wf_optimizer_kind;
/* Parameters that have their own rate or weight decay, chosen by name. '*' stands for any
 * characters; '!' at the beginning means all other names: "encoder.*", "*.bias", "!*.weight". */
typedef struct wf_parameter_group {
    const char *names;   /* the graph fails if no parameter has such a name */
    double rate;         /* factor of the rate that is fed; above 0 */
    double weight_decay; /* replaces the weight decay of the options */
} wf_parameter_group;
typedef struct wf_optimizer_options {
    wf_optimizer_kind kind;
    /* scope of the optimizer's input and buffers; NULL: "optimizer". The optimizers of one graph
     * need different names */
    const char *name;
    double momentum; /* SGD, RMSprop */
    /* betas: Adam, AdamW and Lion, in [0, 1); eps: all but SGD and Lion, above 0. Otherwise the
     * graph fails */
    double beta1, beta2, eps;
    /* weight decay, which AdamW and Lion apply only to parameters with two axes or more, unless
     * decay_all */
    double weight_decay;
    double clip_norm; /* limit for the norm of the mean loss's gradient; 0: no clipping */
    /* true: no clipping and no check for NaN. Each update can run as soon as its gradient is
     * computed, which takes less memory. But a NaN then gets into the model */
    bool unguarded;
    /* also record a moving average of the weights with this decay, such as 0.999; 0: no average */
    double average_decay;
    double dampening; /* SGD */
    bool nesterov;    /* for SGD: it needs a momentum and no dampening */
    double alpha;     /* RMSprop: in [0, 1) */
    bool centered;    /* for RMSprop: divides by the standard deviation of the gradients */
    bool decay_all;   /* for AdamW and Lion: biases and norm weights decay too, as in PyTorch */
    /* [n_groups]; a parameter belongs to the first group whose `names` fit its name */
    const wf_parameter_group *groups;
    int n_groups;
} wf_optimizer_options;
/* PyTorch's defaults: betas 0.9 and 0.999 (Lion 0.99), eps 1e-8 (Adagrad 1e-10), alpha 0.99.
 * Everything else is 0, also AdamW's weight decay (PyTorch: 0.01). */
WF_API wf_optimizer_options wf_optimizer_defaults(wf_optimizer_kind kind);
enum { WF_MOST_MOMENTS = 3 };
typedef struct wf_optimizer {
    wf_optimizer_kind kind;
    /* the input [3] fed at every update: the learning rate and two factors (Adam's bias
     * corrections) */
    wf_tensor *rates;
    /* global norm of the mean gradient, []. If it is not finite the run fails. NULL if unguarded */
    wf_tensor *norm;
    /* number of trained parameters; each list below has one entry per parameter */
    int n;
    wf_tensor **params;
    /* gradients of loss_sum, before clipping */
    wf_tensor **grads;
    /* update nodes: a plan that fetches all of them makes a step */
    wf_tensor **updates;
    /* moments[i][k] for k < n_moments: buffers "<name>.<parameter>.m" (averages of gradients), ".v"
     * (averages, for Adagrad sums, of their squares) and ".momentum", depending on the kind and its
     * options */
    wf_tensor *(*moments)[WF_MOST_MOMENTS];
    int n_moments;
    /* Exponential moving averages of the parameters; NULL if the option average_decay is 0. After
     * each update the trainer runs a plan that fetches average_updates and feeds average_rate, an
     * input [1]. The first run sets the averages to the parameters, so their initial zeros have no
     * effect. averages: buffers "<name>.<parameter>.average" */
    wf_tensor *average_rate;
    wf_tensor **averages;
    wf_tensor **average_updates;
} wf_optimizer;

/* ---- parameters: parameters.c ---------------------------------------------------------------- */

/* Feed n doubles to a real tensor with n elements, converted to its type. False on failure. */
WF_API bool wf_feed_reals(wf_plan *p, const wf_tensor *t, const double *values, int n);
/* List the parameters of a graph whose names fit a pattern as in wf_parameter_group.names: NULL for
 * all, "head.*" to train a head alone, "!encoder.*" to freeze an encoder. out (may be NULL)
 * receives the first `capacity` of them, in recording order. Returns how many names fit. */
WF_API int wf_parameters(const wf_graph *g, const char *names, wf_tensor **out, int capacity);
/* True if the name fits the pattern: * stands for any characters, and a leading ! negates the
 * answer. */
WF_API bool wf_name_fits(const char *names, const char *name);

/* ---- schedules: train/schedule.c ------------------------------------------------------------- */

typedef enum {
    WF_CONSTANT_RATE,
    WF_LINEAR_DECAY,
    WF_COSINE,
    WF_INVERSE_SQRT, /* peak * sqrt(warmup / step) */
    /* the curve of Vaswani et al. 2017, scaled to this peak; it equals WF_INVERSE_SQRT */
    WF_NOAM
} wf_schedule_kind;
typedef struct wf_schedule {
    wf_schedule_kind kind;
    double peak;    /* the rate at the end of the warm-up */
    int64_t warmup; /* number of steps in which the rate rises linearly; 0 or less: none */
    int64_t steps;  /* for linear decay and cosine: from this step on the rate is `floor` */
    double floor;
} wf_schedule;
/* The learning rate of a step, counted from 1. If s is NULL, it is 0. */
WF_API double wf_schedule_rate(const wf_schedule *s, int64_t step);

#ifdef __cplusplus
}
#endif
#endif
