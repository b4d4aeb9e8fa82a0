/* weft/nn/nn.h - layers, optimizers, schedules: ordinary functions that record ops. Page of
 * contents.
 *
 * A layer is a small struct of parameters with PyTorch's field names. X_new declares its parameters
 * under a name in the current scope; X(&layer, x) records its use and may be called any number of
 * times:
 *
 *     struct wf_linear_layer hidden = wf_linear_new(g, "hidden", 784, 128, true);
 *     wf_tensor *y = wf_relu(wf_linear(&hidden, x));
 *
 * Structs are plain values: copy them, embed them, nothing to free. nn defines no ops or kernels.
 * Axes: B batch, T target length (queries), S source length (keys), H heads, D model width, d = D /
 * H width of a head, F inner width, V vocabulary. */
#ifndef WEFT_NN_NN_H
#define WEFT_NN_NN_H

#include "../ops/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- initial values: init.c ------------------------------------------------------------------ */

/* Uniform with bound sqrt(6 / (fan_in + fan_out)); normal with std sqrt(2 / (fan_in + fan_out)). */
WF_API wf_init wf_init_xavier_uniform(int64_t fan_in, int64_t fan_out);
WF_API wf_init wf_init_xavier_normal(int64_t fan_in, int64_t fan_out);
WF_API wf_init wf_init_kaiming_uniform(int64_t fan_in); /* bound sqrt(6 / fan_in), for relu */

/* ---- Linear and dropout: linear.c ------------------------------------------------------------ */

struct wf_linear_layer {
    wf_tensor *weight, *bias; /* [out, in]; [out] or NULL */
    const char *path;
};
/* Initial weight Xavier uniform, bias zeros. */
WF_API struct wf_linear_layer wf_linear_new(wf_graph *g, const char *name, int64_t in, int64_t out,
                                            bool bias);
/* [..., out]: x W^T + b */
WF_API wf_tensor *wf_linear(const struct wf_linear_layer *l, wf_tensor *x);

/* Dropout with a named site in the current scope. If the name is used again the site gets a number,
 * so every use of a layer drops other elements. rate 0: x. */
WF_API wf_tensor *wf_drop(wf_tensor *x, double rate, const char *name);

/* ---- Embedding and positions: embedding.c ---------------------------------------------------- */

struct wf_embedding_layer {
    wf_tensor *weight; /* [V, D] */
    double scale;      /* multiplies the rows: sqrt(D) or 1 */
    const char *path;
};
/* Initial values N(0, std = 1). scaled: std = 1/sqrt(D), and rows are multiplied by sqrt(D). */
WF_API struct wf_embedding_layer wf_embedding_new(wf_graph *g, const char *name, int64_t rows,
                                                  int64_t dim, bool scaled);
/* [...] -> [..., D] */
WF_API wf_tensor *wf_embed(const struct wf_embedding_layer *l, wf_tensor *ids);

typedef enum { WF_POSITIONS_NONE, WF_POSITIONS_SINUSOIDAL, WF_POSITIONS_LEARNED } wf_positions;
struct wf_position_layer {
    /* [max_len, D]: a parameter if learned, a buffer if sinusoidal; NULL for sinusoids of more than
     * 2^22 elements, which are computed in each run */
    wf_tensor *weight;
    wf_positions kind;
    int64_t dim;
    const char *path;
};
WF_API struct wf_position_layer wf_position_new(wf_graph *g, const char *name, wf_positions kind,
                                                int64_t max_len, int64_t dim);
/* [B,T,D] plus rows P..P+T-1, P the position: for the input of a decoder. */
WF_API wf_tensor *wf_add_positions(const struct wf_position_layer *l, wf_tensor *x);
/* [B,T,D] plus the rows of the given positions ids, [T] or [B,T]. The input of an encoder, in a
 * plan with a state, is at 0..T-1 at any position P: ids = wf_arange(x, 1). */
WF_API wf_tensor *wf_add_positions_at(const struct wf_position_layer *l, wf_tensor *x,
                                      wf_tensor *ids);

/* ---- LayerNorm: layer_norm.c ----------------------------------------------------------------- */

struct wf_norm_layer {
    wf_tensor *weight, *bias; /* [D]; [D] or NULL */
    double eps;
    const char *path;
};
/* Initial weight ones, bias zeros. Biased variance, eps inside the root. */
WF_API struct wf_norm_layer wf_norm_new(wf_graph *g, const char *name, int64_t dim, double eps,
                                        bool bias);
WF_API wf_tensor *wf_norm(const struct wf_norm_layer *l, wf_tensor *x);

/* ---- MultiHeadAttention: attention.c --------------------------------------------------------- */

/* softmax(Q K^T / sqrt(d)) V per head (Vaswani et al. 2017, 3.2.2). */
struct wf_mha_layer {
    wf_tensor *in_proj_weight, *in_proj_bias; /* [3D, D], [3D] or NULL: W_Q, W_K, W_V */
    struct wf_linear_layer out_proj;
    int64_t embed_dim, num_heads;
    double dropout; /* of the weights */
    const char *path;
};
typedef struct wf_mha_options {
    wf_tensor *mask;     /* 1 = may attend; [T,S], [B,T,S], [B,1,1,S] or [B,H,T,S]; or NULL */
    bool causal;         /* query i sees keys j <= i + (keys - queries) */
    bool cache;          /* self-attention: keys and values pass through wf_cache */
    wf_tensor **weights; /* out: [B,H,T,S] from primitives, before dropout; NULL: not recorded */
} wf_mha_options;
WF_API struct wf_mha_layer wf_mha_new(wf_graph *g, const char *name, int64_t embed_dim,
                                      int64_t num_heads, bool bias, double dropout);
/* [B,T,D], [B,S,D] -> [B,T,D]; key_value == query is self-attention. Options may be NULL. */
WF_API wf_tensor *wf_mha(const struct wf_mha_layer *l, wf_tensor *query, wf_tensor *key_value,
                         const wf_mha_options *o);
/* wf_mha in two steps, so that a decoder projects its memory only once: k and v are [B,H,S,d]. */
WF_API void wf_mha_keys_values(const struct wf_mha_layer *l, wf_tensor *memory, wf_tensor **k,
                               wf_tensor **v);
WF_API wf_tensor *wf_mha_attend(const struct wf_mha_layer *l, wf_tensor *query, wf_tensor *k,
                                wf_tensor *v, const wf_mha_options *o);
/* lengths [B] i32 -> [B,1,1,S]: 1 where j < length, j = 0..S-1, S the size of like's axis. For
 * self-attention with a cache use like = wf_cache(x, axis), which has the length of all keys so
 * far. */
WF_API wf_tensor *wf_key_mask(wf_tensor *lengths, wf_tensor *like, int axis);

/* ---- blocks of the Transformer: blocks.c ----------------------------------------------------- */

/* A row per activation: the enumerator, its name in options and files, the function. Old files hold
 * numbers instead of names, so add rows at the end. */
/* clang-format off */
#define WF_ACTIVATIONS(ROW)                                                                        \
    ROW(WF_RELU, "relu", wf_relu)                                                                  \
    ROW(WF_GELU, "gelu", wf_gelu)                                                                  \
    ROW(WF_GELU_TANH, "gelu-tanh", wf_gelu_tanh)                                                   \
    ROW(WF_SILU, "silu", wf_silu)                                                                  \
    /* and so on */
#define WF_ENUMERATOR(value, name, function) value,
#define WF_ONE_MORE(value, name, function) +1
typedef enum { WF_ACTIVATIONS(WF_ENUMERATOR) } wf_activation;
enum { WF_ACTIVATION_COUNT = WF_ACTIVATIONS(WF_ONE_MORE) };
/* clang-format on */
WF_API wf_tensor *wf_activate(wf_activation a, wf_tensor *x);

typedef struct wf_block_options {
    int64_t d_model, num_heads, dim_feedforward;
    wf_activation activation;
    bool norm_first; /* pre-norm: x + Dropout(f(LN(x))); else post-norm: LN(x + Dropout(f(x))) */
    bool bias;       /* in projections and norms, as in torch.nn.Transformer */
    double dropout, attention_dropout, activation_dropout, layer_norm_eps;
} wf_block_options;

struct wf_feed_forward_layer {
    struct wf_linear_layer linear1, linear2; /* named so in the current scope */
    wf_activation activation;
    double dropout;
};
WF_API struct wf_feed_forward_layer wf_feed_forward_new(wf_graph *g, const wf_block_options *o);
/* [..., D] */
WF_API wf_tensor *wf_feed_forward(const struct wf_feed_forward_layer *l, wf_tensor *x);

struct wf_encoder_block {
    struct wf_mha_layer self_attn;
    struct wf_feed_forward_layer ff;
    struct wf_norm_layer norm1, norm2;
    wf_block_options o;
    const char *path;
};
struct wf_decoder_block {
    struct wf_mha_layer self_attn, multihead_attn;
    struct wf_feed_forward_layer ff;
    struct wf_norm_layer norm1, norm2, norm3;
    wf_block_options o;
    const char *path;
};
WF_API struct wf_encoder_block wf_encoder_layer_new(wf_graph *g, const char *name,
                                                    const wf_block_options *o);
WF_API struct wf_decoder_block wf_decoder_layer_new(wf_graph *g, const char *name,
                                                    const wf_block_options *o);
/* [B,S,D] -> [B,S,D]. o->causal and o->cache make it a layer of a decoder-only stack. */
WF_API wf_tensor *wf_encoder_layer(const struct wf_encoder_block *l, wf_tensor *x,
                                   const wf_mha_options *o);
/* [B,T,D] -> [B,T,D]. cross_k and cross_v: wf_mha_keys_values of multihead_attn and the memory. */
WF_API wf_tensor *wf_decoder_layer(const struct wf_decoder_block *l, wf_tensor *x,
                                   wf_tensor *cross_k, wf_tensor *cross_v,
                                   const wf_mha_options *self, const wf_mha_options *cross);

/* ---- optimizers: optim.c --------------------------------------------------------------------- */

typedef enum { WF_SGD, WF_ADAM, WF_ADAMW } wf_optimizer_kind;
typedef struct wf_optimizer_options {
    wf_optimizer_kind kind;
    const char *name;         /* scope of its input and buffers; NULL: "optimizer". Must differ
                                 between optimizers of one graph */
    double momentum;          /* SGD */
    double beta1, beta2, eps; /* Adam, AdamW: betas in [0, 1), eps above 0, or the graph fails */
    double weight_decay;      /* AdamW decays matrices only */
    double clip_norm;         /* of the gradient of the mean loss; 0: no clipping */
    bool unguarded; /* no clipping and no check for NaN: each update runs as soon as its gradient is
                       computed, which takes less memory. But a NaN gets into the model */
    bool accumulates;     /* also record the accumulation of micro-batches: wf_accumulation */
    double average_decay; /* also record a moving average of the weights, e.g. 0.999; 0: none */
} wf_optimizer_options;
/* beta1 0.9, beta2 0.999, eps 1e-8, all else zero. */
WF_API wf_optimizer_options wf_optimizer_defaults(wf_optimizer_kind kind);
/* Gradient accumulation: an update from several micro-batches, equal up to rounding to that from
 * all of them at once. Gradients and counts are summed in buffers. For each micro-batch run a plan
 * that feeds `more` and fetches `adds`, then one that feeds the rates and fetches `updates`. The
 * first micro-batch overwrites the sums. All NULL unless the option `accumulates` is set. */
typedef struct wf_accumulation {
    wf_tensor *more;     /* the input []: 0 for the first micro-batch of an update, 1 for others */
    wf_tensor **sums;    /* n + 1 buffers "<name>.<parameter>.sum" and "<name>.count" */
    wf_tensor **adds;    /* n + 1: fetch all to add a micro-batch */
    wf_tensor *norm;     /* as wf_optimizer.norm, for the sums */
    wf_tensor **updates; /* n: fetch all to perform a step with the sums */
} wf_accumulation;
/* The exponential moving average of the parameters. After each update run a plan that feeds the
 * rate and fetches `updates`. The first run sets the average to the parameters, so its initial
 * zeros have no effect. */
typedef struct wf_averages {
    wf_tensor *rate;     /* the input [1]: wf_optimizer_average_rate */
    wf_tensor **params;  /* n of them */
    wf_tensor **values;  /* n buffers "<name>.<parameter>.average" */
    wf_tensor **updates; /* n: fetch all */
    int n;               /* 0: the option average_decay is 0 */
} wf_averages;
typedef struct wf_optimizer {
    wf_optimizer_kind kind;
    wf_tensor *rates;    /* the input [3] fed at every update: wf_optimizer_rates */
    wf_tensor *norm;     /* global norm of the mean gradient, []; the run fails if it is not
                            finite. NULL if unguarded */
    wf_tensor **updates; /* n of them: fetch all to perform a step */
    int n;
    wf_tensor **grads;   /* n: gradients of loss_sum, before clipping */
    wf_tensor **moments; /* buffers "<name>.<parameter>.m" and ".v", or ".momentum" */
    int n_moments;
    wf_accumulation accumulation;
    wf_averages averages;
} wf_optimizer;
/* Record the gradients of loss_sum / count and one update per parameter. Free the arrays with
 * wf_optimizer_free; the tensors are the graph's. */
WF_API wf_optimizer wf_optimizer_new(wf_graph *g, wf_tensor *loss_sum, wf_tensor *count,
                                     wf_tensor *const *params, int n,
                                     const wf_optimizer_options *o);
WF_API void wf_optimizer_free(wf_optimizer *o);
/* The values to feed as rates at this step, counted from 1 (less counts as 1): the learning rate
 * and the two bias corrections of Adam. If one is not finite the run fails, and nothing is
 * updated. */
WF_API void wf_optimizer_rates(const wf_optimizer_options *o, double rate, int64_t step,
                               double out[3]);
/* The value to feed as the rate of the k-th averaging, from 1: (1 - d) / (1 - d^k) with d the
 * decay, which makes the average bias-corrected at every k. */
WF_API double wf_optimizer_average_rate(const wf_optimizer_options *o, int64_t k);
/* Exchange parameters and averages, to evaluate or save the averages; call it again to go on
 * training. False, with nothing exchanged, if there are no averages or no memory. Must not be
 * called while a plan is running. */
WF_API bool wf_optimizer_swap_averages(const wf_optimizer *o);
/* Feed n doubles to a real tensor with n elements, converted to its type. False on failure. */
WF_API bool wf_feed_reals(wf_plan *p, const wf_tensor *t, const double *values, int n);
/* Write the first `capacity` parameters, in recording order, to out (may be NULL). Returns the
 * number of all parameters. */
WF_API int wf_parameters(const wf_graph *g, wf_tensor **out, int capacity);

/* ---- schedules: schedule.c ------------------------------------------------------------------- */

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
