/* tools/learn/lesson_blocks.h - the blocks of a Transformer in double, correct or with known
 * mistakes. Also their weights, as arrays of a task, as the learner's structs and as weft's layers.
 *
 * Exercises 3 and 4 ask for single blocks. Later exercises combine blocks, and use these without
 * mistakes, but for the last linear layer of exercise 7. */
#ifndef WEFT_TOOLS_LEARN_LESSON_BLOCKS_H
#define WEFT_TOOLS_LEARN_LESSON_BLOCKS_H

#include "decoder_task.h"
#include "lesson.h"
#include "nn/blocks.h"

/* ---- the blocks ------------------------------------------------------------------------------ */

/* y [rows, out] = x [rows, in] w^T + b, w [out, in] */
enum {
    LINEAR_TURNED,
    LINEAR_NO_BIAS,
    LINEAR_BIAS_OF_ROW,
    LINEAR_BIAS_EACH,
    LINEAR_LAST,
    LINEAR_BIAS_TWICE,
    LINEAR_FIRST_BIAS
};
void block_linear(const double *x, int rows, int in, const float *w, const float *b, int out,
                  uint64_t m, double *y);

enum {
    HEADS_OF_MODEL,
    HEADS_UNSCALED,
    HEADS_TURNED,
    HEADS_OUT_TURNED,
    HEADS_ROWS,
    HEADS_INTERLEAVED,
    HEADS_NOT_REJOINED,
    HEADS_NO_OUT,
    HEADS_NO_BIAS,
    HEADS_NO_OUT_BIAS,
    HEADS_Q_OF_KEYS,
    HEADS_KV_OF_QUERIES,
    HEADS_K_FOR_V,
    HEADS_FIRST_ONLY,
    HEADS_NO_MASK,
    HEADS_FIRST_MASKED,
    HEADS_ONE_PLACE,
    HEADS_K_OF_QUERIES,
    HEADS_V_OF_QUERIES,
    HEADS_CUT_BY_ROWS,
    HEADS_OUT_TWICE,
    HEADS_MISTAKES
};
/* x [T, D], kv [S, D], mask [T, S] or NULL -> weights [H, T, S] or NULL, out [T, D]. */
void block_heads(const struct attention_weights *w, const double *x, int T, const double *kv, int S,
                 const float *mask, int D, int H, uint64_t m, double *weights, double *out);

enum {
    NORM_NO_EPS,
    NORM_EPS_OUTSIDE,
    NORM_UNBIASED,
    NORM_NO_ROOT,
    NORM_NO_MEAN,
    NORM_MEAN_STAYS,
    NORM_AXIS,
    NORM_NO_GAMMA,
    NORM_NO_BETA,
    NORM_BETA_FIRST,
    NORM_ALL_ROWS,
    NORM_RUNNING,
    NORM_RUNNING_MEAN,
    NORM_RUNNING_VARIANCE,
    NORM_GAMMA_OF_ROW,
    NORM_NOT_DIVIDED,
    NORM_RAW_VARIANCE,
    NORM_ABSOLUTE,
    NORM_GAMMA_PLUS_1,
    NORM_MISTAKES
};
void block_norm(const struct norm_weights *w, const double *x, int rows, int D, uint64_t m,
                double *y);

enum {
    FF_NO_RELU,
    FF_RELU_LAST,
    FF_RELU_FIRST,
    FF_NO_B1,
    FF_NO_B2,
    FF_W1_TURNED,
    FF_W2_TURNED,
    FF_RESIDUAL,
    FF_ABSOLUTE,
    FF_RELU_TWICE,
    FF_RELU_TURNED,
    FF_B1_TWICE,
    FF_LEAKY,
    FF_MISTAKES
};
void block_ff(const struct ff_weights *w, const double *x, int rows, int D, int F, uint64_t m,
              double *y);

/* ---- layers ---------------------------------------------------------------------------------- */

/* A part of a layer: an attention or a feed-forward, with a residual and a norm around it. */
typedef struct layer_part {
    const struct attention_weights *attention; /* NULL: the part is `ff` */
    const struct ff_weights *ff;
    const struct norm_weights *norm; /* NULL: there is none */
    /* Queries of an attention, and its keys and values [keys, D]. NULL: the input of the part,
     * whose rows are repeated if there are more keys than rows. */
    const double *queries, *from;
    int keys;
    const float *mask; /* [rows, keys] */
    double *weights;   /* [H, rows, keys], or NULL */
    enum { PART_INPUT, LAYER_INPUT, NO_INPUT } residual;
} layer_part;

/* norm(x + f(x)), x + f(norm(x)), x + norm(f(x)) */
typedef enum { NORM_AFTER, NORM_BEFORE, NORM_OF_RESULT } norm_order;

/* x [rows, D] -> y, by the parts one after another; the sizes D, H and F are those of s. y may be
 * x. */
void block_layer(const sample *s, const layer_part *parts, int n, norm_order order, const double *x,
                 int rows, double *y);

/* ---- their weights --------------------------------------------------------------------------- */

/* Arrays of a task, from index `at` on. A layer of a stack of L layers uses its part of each array.
 * L is "" or "L". */
enum {
    ATTENTION_ARRAYS = 4,
    NORM_ARRAYS = 2,
    FF_ARRAYS = 4,
    ENCODER_ARRAYS = 12,
    DECODER_ARRAYS = 18
};
#define ATTENTION_ROWS(at, L, name)                                                                \
    [at] = { name " wq, wk, wv", L "3DD", ARRAY_WEIGHTS, 0 },                                      \
    [(at) + 1] = { name " bq, bk, bv", L "3D", ARRAY_VALUES, 0 },                                  \
    [(at) + 2] = { name " wo", L "DD", ARRAY_WEIGHTS, 0 },                                         \
    [(at) + 3] = { name " bo", L "D", ARRAY_VALUES, 0 }
#define NORM_ROWS(at, L, name)                                                                     \
    [at] = { name " gamma", L "D", ARRAY_NEAR_1, 0 },                                              \
    [(at) + 1] = { name " beta", L "D", ARRAY_WEIGHTS, 0 }
#define FF_ROWS(at, L, name)                                                                       \
    [at] = { name " w1", L "FD", ARRAY_WEIGHTS, 0 },                                               \
    [(at) + 1] = { name " b1", L "F", ARRAY_WEIGHTS, 0 },                                          \
    [(at) + 2] = { name " w2", L "DF", ARRAY_WEIGHTS, 0 },                                         \
    [(at) + 3] = { name " b2", L "D", ARRAY_WEIGHTS, 0 }
#define ENCODER_ROWS(at, L)                                                                        \
    ATTENTION_ROWS(at, L, "encoder"), NORM_ROWS((at) + 4, L, "encoder norm1"),                     \
        FF_ROWS((at) + 6, L, "encoder"), NORM_ROWS((at) + 10, L, "encoder norm2")
#define DECODER_ROWS(at, L)                                                                        \
    ATTENTION_ROWS(at, L, "decoder"), NORM_ROWS((at) + 4, L, "decoder norm1"),                     \
        ATTENTION_ROWS((at) + 6, L, "cross"), NORM_ROWS((at) + 10, L, "decoder norm2"),            \
        FF_ROWS((at) + 12, L, "decoder"), NORM_ROWS((at) + 16, L, "decoder norm3")

/* The learner's structs of layer number `layer`, which is 0 if there is only one. */
struct attention_weights attention_of(const sample *s, int at, int layer);
struct norm_weights norm_of(const sample *s, int at, int layer);
struct ff_weights ff_of(const sample *s, int at, int layer);
struct encoder_weights encoder_of(const sample *s, int at, int layer);
struct decoder_weights decoder_of(const sample *s, int at, int layer);

/* Layers of weft with the same weights. */
struct wf_mha_layer weft_heads(const sample *s, wf_graph *g, const char *name, int at);
wf_block_options weft_sizes(const sample *s);
struct wf_encoder_block weft_encoder(const sample *s, wf_graph *g, const char *name, int at,
                                     int layer);
struct wf_decoder_block weft_decoder(const sample *s, wf_graph *g, const char *name, int at,
                                     int layer);

/* These floats as doubles, in new memory; and new memory for n doubles, all 0. The caller frees
 * both. */
double *doubles_of(const float *x, int64_t n);
double *room(int64_t n);

#endif
