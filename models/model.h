/* weft/models/model.h - a model of any architecture. model_io.h saves and loads one.
 *
 * A model is one graph that was recorded once, with pointers to the tensors that its users need.
 * transformer.h, language_model.h and encoder.h make models; plans over the graph are then the same
 * for every model. There are three architectures:
 *
 *     encoder-decoder   the source is a tensor of its own, src. An encoder reads it once; what
 *                       cross-attention reads in every step is the memory
 *     decoder-only      src is NULL. The source (the prompt), the start token and the output are
 *                       one sequence, tgt; a step reads the prompt from the KV cache. With
 *                       start_first, the order is the start token, the prompt, the output
 *     encoder-only      src becomes vectors. tgt is NULL, or other lines with the same meaning;
 *                       nothing decodes
 *
 * wf_model_feed works for all of them, and wf_model_room for those that decode. wf_find finds every
 * parameter by its name in files, as in wf_find(m->graph, "output.weight"). It also finds the
 * output of a layer by the layer's name, "transformer.decoder.layers.0", and "logits". Every
 * `message` has room for 256 bytes, or is NULL. Axes: B batch, S source length, T target length,
 * H heads, D model width, V vocabulary. */
#ifndef WEFT_MODELS_MODEL_H
#define WEFT_MODELS_MODEL_H

#include "model_io.h"

#ifdef __cplusplus
extern "C" {
#endif

/* the label of a position that the loss does not count, such as padding or a source token */
enum { WF_IGNORE_LABEL = -1 };

/* Low-rank adapters beside matrices of a model (LoRA, Hu et al. 2021): y = x W^T + b + alpha / rank
 * (x A^T) B^T, with A [rank,in] and B [out,rank]. A starts as random numbers and B as zeros, so
 * that at first nothing changes. W may be kept as bf16 or int8 (wf_pack_weights). A trainer whose
 * params are the adapters alone computes no gradient of W. The matrices A and B are named by their
 * module, as "transformer.layers.0.linear1.lora_A.weight". */
typedef struct wf_adapters {
    /* 0: no adapters */
    int64_t rank;
    /* the product is multiplied by alpha / rank; 0: alpha is the rank, so the factor is 1 */
    double alpha;
    /* Names of modules, separated by commas: whole names, or their ends, as "self_attn.out_proj"
     * or "linear1". A packed projection is the module in_proj, or its parts q_proj, k_proj and
     * v_proj. "all-linear" is every matrix of the layers, in these parts. NULL: "q_proj,v_proj".
     * The model keeps a copy. */
    const char *targets;
} wf_adapters;

/* How matrices are rounded while a model is trained. */
typedef enum {
    WF_QUANTIZE_NONE,
    /* to int8 with a scale for each row, as WF_PANELS_INT8 */
    WF_QUANTIZE_INT8,
    /* to int8 with one scale for each matrix, as Marian's files in int8 have them */
    WF_QUANTIZE_MARIAN
} wf_quantize;

/* Options of the forward pass and the loss in training; plans that do not train have no dropout.
 * The other settings of training are those of a wf_trainer for m->graph, m->objective and
 * m->loss.count. */
typedef struct wf_training_config {
    /* dropout of residuals and of the sums of embeddings and positions */
    double dropout;
    double attention_dropout, activation_dropout, label_smoothing;
    /* gradient checkpointing of each layer: wf_block_options.recompute */
    bool recompute;
    /* hook that is passed to wf_on_param of the model's graph, to add adapters. Files store the
     * hook's parameters as added ones. NULL: no hook */
    wf_tensor *(*on_param)(void *user, wf_tensor *param);
    void *user;
    /* adapters; not together with on_param */
    wf_adapters adapters;
    /* factor of the loss of guided alignment, which teaches head 0 of the last layer's
     * cross-attention to follow given alignments, at most 1e6; 0: there is no such loss */
    double alignment_weight;
    /* quantisation-aware training: every plan of the graph rounds the matrices that a file in int8
     * would hold, and gradients pass straight through to the weights, which stay in f32. Graphs in
     * f32 only; not together with adapters or on_param */
    wf_quantize quantize_aware;
} wf_training_config;

/* The architecture of a model: a row of the table in kinds.c. */
typedef struct wf_model_kind wf_model_kind;

/* The attention weights of a stack of layers. */
typedef struct wf_attention_map {
    /* "encoder_self", "decoder_self", "cross", or "self" if decoder-only */
    const char *name;
    /* true: queries (keys) are tokens of src; false: they are tokens of tgt */
    bool source_queries, source_keys;
    int64_t layers;
    /* [layers] the weights of each layer, [B,H,queries,keys] */
    wf_tensor **weights;
} wf_attention_map;
enum { WF_MOST_MAPS = 4 };

typedef struct wf_model {
    const wf_model_kind *kind;
    /* the configuration, of the kind's type: see wf_transformer_of, wf_language_model_of */
    const void *config;
    wf_training_config training;
    int64_t src_vocab, tgt_vocab;
    /* longest source, and longest target with its start; if decoder-only, longest whole sequence */
    int64_t max_len;
    int32_t start_id, end_id;
    /* decoder-only: the order is start, prompt, output, not prompt, start, output */
    bool start_first;
    /* decoder-only: a prompt has no start token before it; an output without a prompt has one */
    bool start_if_empty;
    wf_graph *graph;
    /* inputs, i32: src [B,S], right-padded, and src_length [B]. NULL if decoder-only */
    wf_tensor *src, *src_length;
    /* input, i32: [B,T], right-padded */
    wf_tensor *tgt;
    /* input [B,T]: the next tokens, or what an encoder predicts (encoder.h); WF_IGNORE_LABEL where
     * nothing is counted */
    wf_tensor *labels;
    /* [n_memory] encoded sources, in the form in which cross-attention reads them in each step */
    wf_tensor **memory;
    int n_memory;
    /* [B,T,D], for an encoder [B,S,D]: the last layer's output, before the logits */
    wf_tensor *hidden;
    /* [B,T,V] */
    wf_tensor *logits, *log_probs;
    /* The logits are hidden W^T + b, with W [V,D] and b [V] or NULL. Both are NULL if the model has
     * adapters or computes in Marian's arithmetic. */
    wf_tensor *output_weight, *output_bias;
    /* [B,T]: log-probability of each label; 0 where it is not counted */
    wf_tensor *token_log_probs;
    /* []: number of counted positions where the largest logit is that of the label */
    wf_tensor *correct;
    /* []: the losses summed over the counted labels, and the number of these labels */
    wf_cross_entropy_result loss;
    /* alignment: input [B,T,S], i32, for wf_feed after wf_model_feed: 1 where the label of a target
     * position is linked to a source token, else 0. alignment_loss: []: sum of the losses of guided
     * alignment. Both are NULL without an alignment_weight */
    wf_tensor *alignment, *alignment_loss;
    /* []: sum of all that is trained: loss.loss, and alignment_loss times its weight */
    wf_tensor *objective;
    /* [n_maps]. In a model that decodes, the queries of the last map are the tokens of tgt: it is
     * the cross-attention, or in a decoder-only model the self-attention */
    wf_attention_map maps[WF_MOST_MAPS];
    int n_maps;
    /* The names of a table that several modules share. The first is the parameter's own. */
    const char *const *tied;
    int n_tied;
    /* Nodes with ids below this belong to the model or its hooks, later ones to the program. */
    int own_nodes;
} wf_model;

/* Modules that share one embedding table: none; decoder input and output; these two and encoder
 * input; both inputs, but not the output. */
typedef enum { WF_TIE_NONE, WF_TIE_DECODER, WF_TIE_ALL, WF_TIE_INPUTS } wf_tie;

/* Frees the model and its graph. NULL is allowed. */
WF_API void wf_model_free(wf_model *m);
/* The number of elements of all parameters. */
WF_API int64_t wf_model_parameter_count(const wf_model *m);
/* Writes a sentence about the model's sizes. */
WF_API void wf_model_text(const wf_model *m, char text[256]);

/* ---- pairs: model.c -------------------------------------------------------------------------- */

/* A padded mini-batch on the host: sources, and targets that begin with the start token. A
 * decoder-only model joins them into one sequence, and counts only the labels of the target. */
typedef struct wf_batch {
    /* batch size and lengths; S may be 0 for a decoder-only model */
    int64_t B, S, T;
    /* [B,S], right-padded */
    const int32_t *src;
    /* [B]: lengths of the sources; all 0 if S is 0 */
    const int32_t *src_length;
    /* [B,T]: the start token, then an output */
    const int32_t *tgt;
    /* [B,T]; NULL: labels are not fed */
    const int32_t *labels;
} wf_batch;
/* Bind a plan to these pairs, and feed them. If decoder-only, T is bound to the longest pair. */
WF_API bool wf_model_feed(const wf_model *m, wf_plan *p, const wf_batch *pairs);
/* The number of tokens that the longest source may have. */
WF_API int64_t wf_model_longest_source(const wf_model *m);
/* The most tokens of an output for a source of n tokens. Below 0: a decoder-only model has no room
 * for this source. */
WF_API int64_t wf_model_room(const wf_model *m, int64_t n);

/* ---- plans over the one graph: plans.c ------------------------------------------------------- */

typedef enum {
    WF_PLAN_EVALUATE, /* feeds pairs; fetches loss.* and correct */
    WF_PLAN_SCORE,    /* feeds pairs; fetches token_log_probs and logits */
    WF_PLAN_ATTENTION /* feeds pairs without labels; fetches the weights of all maps */
} wf_model_use;
/* A plan for pairs, which wf_model_feed feeds. pool NULL: one thread. If m is NULL or there is no
 * such use, wf_plan_ok of the plan is false. */
WF_API wf_plan *wf_model_plan(wf_model *m, wf_model_use use, wf_pool *pool);

#ifdef __cplusplus
}
#endif
#endif
