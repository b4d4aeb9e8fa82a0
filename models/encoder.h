/* weft/models/encoder.h - an encoder-only Transformer as one graph, in the form of BERT (Devlin et
 * al. 2018): each token sees the whole line. It makes no text, but vectors.
 *
 * Pooling makes the vector of a line from those of its tokens: their mean, or the first one, for
 * instance. A linear layer and a division by the vector's length may follow (Reimers & Gurevych
 * 2019). So lines of one meaning can be found by the angle between their vectors.
 *
 *     wf_plan *p = wf_encoder_plan(m, NULL);
 *     if (!wf_encoder_run(m, p, B, S, ids, lengths, vectors)) puts(wf_plan_error(p));
 *
 * The model's src and src_length are its inputs, and hidden has the tokens' vectors. It is trained
 * on one of three objectives:
 *
 *     masked_lm   predicts the tokens that were masked: logits [B,S,V], labels [B,S]
 *     classes     predicts the class of a line: logits and log_probs [B,1,C], labels [B,1]
 *     else        finds each line's partner, in pairs of lines of one meaning, src and tgt: logits
 *                 [B,B] are the cosines of all sources and targets times similarity_scale, and the
 *                 loss is the cross-entropy of each line's own partner in the batch, both ways. tgt
 *                 and labels are as in wf_batch; the start and the end are not part of a line
 *
 * Axes: B batch, S length of the lines, D model width, E width of the vectors, V vocabulary, C
 * classes. */
#ifndef WEFT_MODELS_ENCODER_H
#define WEFT_MODELS_ENCODER_H

#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Activations of the linear layer after pooling, and of the pooler. Each row has an enumerator and
 * its name. */
/* clang-format off */
#define WF_DENSE_ACTIVATIONS(ROW) \
    ROW(WF_DENSE_IDENTITY, "identity") ROW(WF_DENSE_TANH, "tanh") ROW(WF_DENSE_RELU, "relu") \
    ROW(WF_DENSE_GELU, "gelu") ROW(WF_DENSE_SILU, "silu")
#define WF_DENSE_ENUMERATOR(value, name) value,
typedef enum { WF_DENSE_ACTIVATIONS(WF_DENSE_ENUMERATOR) } wf_dense_activation;
/* clang-format on */

/* How the vectors of tokens are pooled to that of the line: the first token's vector; the maximum
 * of each element; the mean; the sum divided by the square root of the length; the mean with
 * weights 1, 2, 3, ...; the last token's vector. */
typedef enum {
    WF_POOLING_FIRST = 1 << 0,
    WF_POOLING_MAX = 1 << 1,
    WF_POOLING_MEAN = 1 << 2,
    WF_POOLING_ROOT = 1 << 3,
    WF_POOLING_WEIGHTED = 1 << 4,
    WF_POOLING_LAST = 1 << 5
} wf_pooling;

/* The architecture, which is stored in the model's file. */
typedef struct wf_encoder_config {
    int64_t vocab;
    int64_t max_len;   /* most tokens of a line */
    int64_t positions; /* rows of the table of positions; 0: as many as lines need */
    int64_t d_model, num_heads, dim_feedforward, layers;
    /* relative position bias, as in MPNet: number of buckets, and the distance from which all share
     * the last one; 0: no bias */
    int64_t relative_buckets, relative_distance;
    int64_t types; /* rows of the table of token types, of which the first is used; 0: no table */
    wf_activation activation;
    double layer_norm_eps;
    /* as in RoBERTa: positions count the tokens other than pad_id, from pad_id + 1 on, so the table
     * has pad_id + 1 more rows. Padding inside a line has the position pad_id */
    bool counted_positions;
    int32_t pad_id, start_id, end_id;
    /* a layer f(W x + b) of the first token's vector x, which classes read; vectors of lines do not
     * depend on it. f is pooler_activation: tanh by default and in BERT and RoBERTa, relu in
     * DistilBERT, and the identity in a zeroed struct */
    bool pooler;
    wf_dense_activation pooler_activation;
    /* number of classes of the classification head, which is a linear layer on the pooler's output;
     * 0: there is no such head */
    int64_t classes;
    /* the head of masked language models: a linear layer, an activation, a norm, and the product
     * with the table of embeddings, or with a matrix of its own if tied is false */
    bool masked_lm, tied;
    wf_activation head_activation;
    /* a set of wf_pooling bits, at least one. The vectors of several are concatenated in the order
     * of the bits */
    unsigned pooling;
    /* width of a linear layer after the pooling; 0: there is none */
    int64_t dense;
    bool dense_bias;
    wf_dense_activation dense_activation;
    bool normalize; /* vectors of length 1 */
    double similarity_scale;
} wf_encoder_config;

/* MiniLM's sizes: D 384, 12 heads, 6 layers, F 1536, gelu, up to 512 tokens; the mean, and vectors
 * of length 1; similarities times 20. Set the vocabulary. */
WF_API wf_encoder_config wf_encoder_defaults(void);

typedef struct wf_encoder {
    wf_model model;
    wf_encoder_config config;
    wf_tensor *vectors; /* [B,E] of src; E is vectors->shape[1] */
    wf_tensor *pooled;  /* [B,D]: the pooler's output; NULL: there is no pooler */
} wf_encoder;

/* Record the model's graph. The result is the wf_model at the beginning of a wf_encoder. Arguments
 * and errors are those of wf_transformer_new. */
WF_API wf_model *wf_encoder_new(const wf_encoder_config *c, const wf_training_config *training,
                                wf_dtype real, uint64_t seed, char *message);
/* The wf_encoder that m belongs to. NULL: m is of another kind, or NULL. */
WF_API const wf_encoder *wf_encoder_of(const wf_model *m);

/* A plan that makes vectors of lines. If m is no encoder, wf_plan_ok of the plan is false. */
WF_API wf_plan *wf_encoder_plan(wf_model *m, wf_pool *pool);
/* Run such a plan on lines src [B,S], padded on the right, of the given lengths [B]: writes vectors
 * [B,E] in the model's real type. They do not depend on the other lines of the batch. For an empty
 * line, all poolings but the first token's and the maximum give zeros. False: see wf_plan_error. */
WF_API bool wf_encoder_run(const wf_model *m, wf_plan *p, int64_t B, int64_t S, const int32_t *src,
                           const int32_t *src_length, void *vectors);

#ifdef __cplusplus
}
#endif
#endif
