/* weft/nn/layers.h - Linear, dropout, Embedding, positions, normalisation, and their initial
 * values. nn.h says what a layer is. */
#ifndef WEFT_NN_LAYERS_H
#define WEFT_NN_LAYERS_H

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
/* The initial weight is Xavier uniform; the bias begins as zeros. */
WF_API struct wf_linear_layer wf_linear_new(wf_graph *g, const char *name, int64_t in, int64_t out,
                                            bool bias);
/* [..., out]: x W^T + b */
WF_API wf_tensor *wf_linear(const struct wf_linear_layer *l, wf_tensor *x);

/* Dropout in the scope `name` within the current scope. Each call in a scope gets its own number,
 * and the random bits depend on it, so every use of a layer drops other elements. With rate 0 it
 * returns x. */
WF_API wf_tensor *wf_drop(wf_tensor *x, double rate, const char *name);

/* ---- Embedding and positions: embedding.c ---------------------------------------------------- */

struct wf_embedding_layer {
    wf_tensor *weight; /* [V, D] */
    double scale;      /* factor of the rows: sqrt(D) or 1 */
    const char *path;
};
/* Initial values are N(0, std = 1). With scaled, std = 1/sqrt(D), and rows are multiplied by
 * sqrt(D). */
WF_API struct wf_embedding_layer wf_embedding_new(wf_graph *g, const char *name, int64_t rows,
                                                  int64_t dim, bool scaled);
/* [...] -> [..., D] */
WF_API wf_tensor *wf_embed(const struct wf_embedding_layer *l, wf_tensor *ids);

typedef enum {
    WF_POSITIONS_NONE,
    WF_POSITIONS_SINUSOIDAL,
    WF_POSITIONS_LEARNED,
    /* nothing is added; attention rotates queries and keys by wf_rotary_positions */
    WF_POSITIONS_ROTARY,
    WF_POSITIONS_HALVES,  /* sinusoids in the order of WF_SINUSOID_HALVES */
    WF_POSITIONS_FAIRSEQ, /* sinusoids in the order of WF_SINUSOID_FAIRSEQ */
    /* sinusoids are added, and self-attention rotates queries and keys as well */
    WF_POSITIONS_SINUSOIDAL_ROTARY,
    WF_POSITIONS_TENSOR2TENSOR /* sinusoids in the order of WF_SINUSOID_TENSOR2TENSOR */
} wf_positions;
struct wf_position_layer {
    /* [max_len, D]: a parameter if learned, a buffer if sinusoidal; NULL if the kind has no table.
     * It is also NULL for sinusoids of more than 2^22 elements: each run then computes the rows
     * that it needs */
    wf_tensor *weight;
    wf_positions kind;
    int64_t dim;
    /* for rotary positions, see wf_rotary_table: base is initially 10000, interleaved false.
     * They and `scaling` may be changed before the layer is used */
    double base;
    bool interleaved;
    wf_rotary_scaling scaling; /* initially none */
    const char *path;
};
/* Make the layer, with a table of positions 0..max_len-1 if this kind of positions has one. */
WF_API struct wf_position_layer wf_position_new(wf_graph *g, const char *name, wf_positions kind,
                                                int64_t max_len, int64_t dim);
/* Add the rows of the positions ids, [T] or [B,T], to x [B,T,D]. ids NULL: P..P+T-1, for a decoder
 * that has already read P tokens. An encoder's input needs ids = wf_arange(x, 1): these are 0..T-1
 * for any P. If the kind is none or rotary, nothing is added, and the result is x. */
WF_API wf_tensor *wf_add_positions(const struct wf_position_layer *l, wf_tensor *x, wf_tensor *ids);

/* The table for wf_mha_options.rotary, for heads of width head_dim. x and ids determine the
 * positions as in wf_add_positions. All attention layers can share it. NULL: positions of this kind
 * do not rotate. */
WF_API wf_tensor *wf_rotary_positions(const struct wf_position_layer *l, wf_tensor *x,
                                      wf_tensor *ids, int64_t head_dim);

/* ---- LayerNorm and RMSNorm: norm.c ----------------------------------------------------------- */

/* A row per kind: the enumerator, and its name in options and files. */
/* clang-format off */
#define WF_NORM_KINDS(ROW)                                                                         \
    ROW(WF_LAYER_NORM, "layer")                                                                    \
    ROW(WF_RMS_NORM, "rms")                                                                        \
    /* and so on */
#define WF_NORM_ENUMERATOR(value, name) value,
typedef enum { WF_NORM_KINDS(WF_NORM_ENUMERATOR) } wf_norm_kind;
/* clang-format on */

struct wf_norm_layer {
    wf_tensor *weight, *bias; /* [D]; [D] or NULL */
    double eps;
    wf_norm_kind kind;
    const char *path;
};
/* The initial weight is ones, the bias zeros. LayerNorm: the variance is the biased one, and eps is
 * added inside the root. RMSNorm is x / sqrt(mean(x^2) + eps) * weight (Zhang & Sennrich 2019), and
 * has no bias. */
WF_API struct wf_norm_layer wf_norm_new(wf_graph *g, const char *name, wf_norm_kind kind,
                                        int64_t dim, double eps, bool bias);
/* Apply a LayerNorm or an RMSNorm. */
WF_API wf_tensor *wf_norm(const struct wf_norm_layer *l, wf_tensor *x);

/* ---- BatchNorm and GroupNorm of [N,C,...]: norm.c -------------------------------------------- */

struct wf_group_norm_layer {
    wf_tensor *weight, *bias; /* [C] */
    int64_t groups;
    double eps;
    const char *path;
};
/* The initial weight is ones, the bias zeros. The number of groups must divide the channels. */
WF_API struct wf_group_norm_layer wf_group_norm_new(wf_graph *g, const char *name, int64_t groups,
                                                    int64_t channels, double eps);
/* Normalise the groups of the channels of x [N,C,...]. */
WF_API wf_tensor *wf_norm_groups(const struct wf_group_norm_layer *l, wf_tensor *x);

/* Batch normalisation, as torch.nn.BatchNorm1d and 2d, whose usual eps is 1e-5 and momentum 0.1.
 * Plans made with `training` use the statistics of the batch. Other plans use the running
 * statistics, which are buffers and are saved with the parameters. */
struct wf_batch_norm_layer {
    wf_tensor *weight, *bias;              /* [C], parameters */
    wf_tensor *running_mean, *running_var; /* [C] each: buffers that begin as zeros and ones */
    /* eps is added to the variance; momentum is the weight of a new batch in the running
     * statistics */
    double eps, momentum;
    const char *path;
};
/* Initial weight ones, bias zeros; running mean zeros, variance ones. */
WF_API struct wf_batch_norm_layer wf_batch_norm_new(wf_graph *g, const char *name, int64_t channels,
                                                    double eps, double momentum);
/* updates [2] receives two nodes that update the running mean and the running (unbiased) variance.
 * A plan that trains must fetch them (wf_trainer_options.fetch). Its run fails if a new value is
 * not finite, as with one element per channel. NULL: the running statistics never change. Every
 * rank and every micro-batch is normalised by statistics of its own. */
WF_API wf_tensor *wf_norm_batch(const struct wf_batch_norm_layer *l, wf_tensor *x,
                                wf_tensor **updates);

#ifdef __cplusplus
}
#endif
#endif
