/* weft/nn/nn.h - layers, losses, optimizers: ordinary functions that record ops. Page of contents.
 *
 * A layer is a small struct of parameters with PyTorch's field names. X_new declares its parameters under
 * a name in the current scope; X(&layer, x) records its use and may be called any number of times:
 *
 *     struct wf_linear hidden = wf_linear_new(g, "hidden", 784, 128, true);
 *     wf_tensor *y = wf_relu(wf_linear(&hidden, x));
 *
 * Structs are plain values: copy them, embed them, nothing to free. nn has no kernel of its own.
 * Axes: B batch, T target length (queries), S source length (keys), H heads, D model width, F inner width, V vocabulary. */
#ifndef WEFT_NN_NN_H
#define WEFT_NN_NN_H

#include "../ops/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- initial values: init.c -------------------------------------------------------------------- */
WF_API wf_init wf_init_xavier_uniform(int64_t fan_in, int64_t fan_out);  /* uniform, bound sqrt(6 / (fan_in + fan_out)) */
WF_API wf_init wf_init_xavier_normal(int64_t fan_in, int64_t fan_out);   /* std sqrt(2 / (fan_in + fan_out)) */
WF_API wf_init wf_init_kaiming_uniform(int64_t fan_in);                  /* bound sqrt(6 / fan_in), for relu */
WF_API wf_init wf_init_sinusoid(void);    /* [L, D]: PE[p,2i] = sin(p / 10000^(2i/D)), PE[p,2i+1] = cos(same) */

/* ---- Linear: linear.c ---------------------------------------------------------------------------- */
struct wf_linear { wf_tensor *weight, *bias; const char *path; }; /* [out, in]; [out] or NULL */
WF_API struct wf_linear wf_linear_new(wf_graph *g, const char *name, int64_t in, int64_t out, bool bias); /* Xavier uniform, zeros */
WF_API wf_tensor *wf_linear(const struct wf_linear *l, wf_tensor *x);          /* [..., in] -> [..., out]: x W^T + b */
WF_API wf_tensor *wf_drop(wf_tensor *x, double rate, const char *name);        /* dropout under a name of its own in the current scope; rate 0: x */

/* ---- Embedding and positions: embedding.c ----------------------------------------------------------- */
struct wf_embedding_layer { wf_tensor *weight; double scale; const char *path; }; /* [V, D] */
WF_API struct wf_embedding_layer wf_embedding_new(wf_graph *g, const char *name, int64_t rows, int64_t dim, bool scaled);
                                                       /* N(0, 1/sqrt(D)) and times sqrt(D) when scaled, else N(0, 1) */
WF_API wf_tensor *wf_embed(const struct wf_embedding_layer *l, wf_tensor *ids); /* [...] i32 -> [..., D] */
typedef enum { WF_POSITIONS_NONE, WF_POSITIONS_SINUSOIDAL, WF_POSITIONS_LEARNED } wf_positions;
struct wf_position_layer { wf_tensor *weight; wf_positions kind; const char *path; }; /* [max_len, D]; a buffer when sinusoidal */
WF_API struct wf_position_layer wf_position_new(wf_graph *g, const char *name, wf_positions kind, int64_t max_len, int64_t dim);
WF_API wf_tensor *wf_add_positions(const struct wf_position_layer *l, wf_tensor *x); /* [B,T,D]: adds rows P..P+T-1 */

/* ---- LayerNorm: layer_norm.c ------------------------------------------------------------------------- */
struct wf_norm { wf_tensor *weight, *bias; double eps; const char *path; };
WF_API struct wf_norm wf_norm_new(wf_graph *g, const char *name, int64_t dim, double eps, bool bias); /* ones, zeros; biased variance, eps inside the root */
WF_API wf_tensor *wf_norm(const struct wf_norm *l, wf_tensor *x);

/* ---- MultiHeadAttention: attention.c -------------------------------------------------------------------- */
/* softmax(Q K^T / sqrt(d_head)) V per head (Vaswani et al. 2017, 3.2.2), packed as torch.nn.MultiheadAttention. */
struct wf_mha {
    wf_tensor *in_proj_weight, *in_proj_bias; /* [3D, D], [3D] or NULL */
    struct wf_linear out_proj;
    int64_t embed_dim, num_heads;
    double dropout;
    const char *path;
};
typedef struct wf_mha_options {
    wf_tensor *mask;   /* 1 = may attend; [T,S], [B,T,S], [B,1,1,S] or [B,H,T,S]; or NULL */
    bool causal;
    bool cache;        /* self-attention: keys and values pass through wf_cache */
    wf_tensor **weights; /* out: the weights [B,H,T,S] from primitives, before dropout; NULL: not recorded */
} wf_mha_options;
WF_API struct wf_mha wf_mha_new(wf_graph *g, const char *name, int64_t embed_dim, int64_t num_heads, bool bias, double dropout);
WF_API wf_tensor *wf_mha(const struct wf_mha *l, wf_tensor *query, wf_tensor *key_value, const wf_mha_options *o);
                                                       /* [B,T,D], [B,S,D] -> [B,T,D]; key_value == query: self-attention */
/* The two halves, so that a decoder can project its memory once: k and v are [B,H,S,d] */
WF_API void wf_mha_keys_values(const struct wf_mha *l, wf_tensor *memory, wf_tensor **k, wf_tensor **v);
WF_API wf_tensor *wf_mha_attend(const struct wf_mha *l, wf_tensor *query, wf_tensor *k, wf_tensor *v, const wf_mha_options *o);
WF_API wf_tensor *wf_key_mask(wf_tensor *lengths, wf_tensor *like, int axis); /* [B] i32 -> [B,1,1,S]: 1 where j < length; S: the size of like's axis */

/* ---- blocks of the Transformer: blocks.c ------------------------------------------------------------------ */
typedef enum { WF_RELU, WF_GELU, WF_GELU_TANH, WF_SILU } wf_activation;
WF_API wf_tensor *wf_activate(wf_activation a, wf_tensor *x);
typedef struct wf_block_options {
    int64_t d_model, num_heads, dim_feedforward;
    wf_activation activation;
    bool norm_first; /* pre-norm: x + Dropout(f(LN(x))); else post-norm: LN(x + Dropout(f(x))) */
    bool bias;       /* of projections and norms, as torch.nn.Transformer's */
    double dropout, attention_dropout, activation_dropout, layer_norm_eps;
} wf_block_options;
struct wf_feed_forward { struct wf_linear linear1, linear2; wf_activation activation; double dropout; };
WF_API struct wf_feed_forward wf_feed_forward_new(wf_graph *g, const wf_block_options *o); /* names "linear1", "linear2" in the current scope */
WF_API wf_tensor *wf_feed_forward(const struct wf_feed_forward *l, wf_tensor *x);
struct wf_encoder_layer { struct wf_mha self_attn; struct wf_feed_forward ff; struct wf_norm norm1, norm2; wf_block_options o; const char *path; };
struct wf_decoder_layer { struct wf_mha self_attn, multihead_attn; struct wf_feed_forward ff; struct wf_norm norm1, norm2, norm3; wf_block_options o; const char *path; };
WF_API struct wf_encoder_layer wf_encoder_layer_new(wf_graph *g, const char *name, const wf_block_options *o);
WF_API struct wf_decoder_layer wf_decoder_layer_new(wf_graph *g, const char *name, const wf_block_options *o);
WF_API wf_tensor *wf_encoder_layer(const struct wf_encoder_layer *l, wf_tensor *x, const wf_mha_options *o); /* [B,S,D]; o->causal and o->cache make it a decoder-only layer */
WF_API wf_tensor *wf_decoder_layer(const struct wf_decoder_layer *l, wf_tensor *x, wf_tensor *cross_k, wf_tensor *cross_v,
                                   const wf_mha_options *self, const wf_mha_options *cross);

/* ---- training: optim.c, schedule.c -------------------------------------------------------------------------- */
typedef enum { WF_SGD, WF_ADAM, WF_ADAMW } wf_optimizer_kind;
typedef struct wf_optimizer_options {
    wf_optimizer_kind kind;
    double momentum;              /* SGD */
    double beta1, beta2, eps;     /* Adam, AdamW; 0 in all three: 0.9, 0.999, 1e-8 */
    double weight_decay;          /* AdamW decays matrices only */
    double clip_norm;             /* of the gradient of the mean loss; 0: no clipping */
} wf_optimizer_options;
typedef struct wf_optimizer {
    wf_optimizer_kind kind;
    wf_tensor *rates;             /* the input that the caller feeds at every update: wf_optimizer_rates */
    wf_tensor *norm;              /* global norm of the mean gradient, shape []; not finite fails the run */
    wf_tensor **updates; int n;   /* fetch them all to perform a step */
    wf_tensor **grads;            /* the n gradients of the sum, before clipping */
    wf_tensor **moments; int n_moments; /* buffers "optimizer.<parameter>.m" and ".v" (or ".momentum") */
} wf_optimizer;
/* Record gradients of loss_sum / count and one update node per parameter. The arrays belong to the graph's caller:
 * wf_optimizer_free. */
WF_API wf_optimizer wf_optimizer_new(wf_graph *g, wf_tensor *loss_sum, wf_tensor *count, wf_tensor *const *params, int n, const wf_optimizer_options *o);
WF_API void wf_optimizer_free(wf_optimizer *o);
WF_API void wf_optimizer_rates(const wf_optimizer_options *o, double rate, int64_t step, double out[3]); /* step counts from 1; in double, then converted by wf_feed_reals */
WF_API bool wf_feed_reals(wf_plan *p, const wf_tensor *t, const double *values, int n); /* feed doubles to a real input of either type */
WF_API int wf_parameters(const wf_graph *g, wf_tensor **out, int capacity);  /* all parameters in recording order; returns how many there are */

typedef enum { WF_CONSTANT_RATE, WF_LINEAR_DECAY, WF_COSINE, WF_INVERSE_SQRT, WF_NOAM } wf_schedule_kind;
typedef struct wf_schedule {
    wf_schedule_kind kind;
    double peak;      /* the rate at the end of the warm-up */
    int64_t warmup;   /* steps of linear warm-up; noam and inverse-sqrt, two names of one curve, decay as sqrt(warmup / step) after it */
    int64_t steps;    /* horizon of linear and cosine, from which on the rate is `floor` */
    double floor;
} wf_schedule;
WF_API double wf_schedule_rate(const wf_schedule *s, int64_t step); /* step counts from 1 */

#ifdef __cplusplus
}
#endif
#endif
