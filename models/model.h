/* weft/models/model.h - what decoding, scoring, files and programs need of a model, whichever it
 * is.
 *
 * A model is one graph that was recorded once, and the tensors in it that everyone asks for. Its
 * makers fill the fields in (transformer.h, language_model.h); after that all is plans over the
 * graph, which are the same for every model. There are two ways to read a source:
 *
 *     apart          a tensor of its own, src: an encoder reads it once, a start computes what is
 *                    handed to every step
 *     in one row     src is NULL: the source, the start token and the output are one sequence,
 *                    tgt; what a step needs of the source stands in the caches. Or the start
 *                    stands before the source, and the output goes on from it: start_first
 *
 * Every parameter is found by its name in files, wf_find(m->graph, "output.weight"); the output of
 * a layer by the layer's, "transformer.decoder.layers.0"; and "logits".
 *
 * wf_model_bind, wf_model_feed and wf_model_room hide which it is. Every `message` has room for 256
 * bytes, or is NULL.
 * Axes: B batch, S source length, T target length, H heads, D model width, V vocabulary. */
#ifndef WEFT_MODELS_MODEL_H
#define WEFT_MODELS_MODEL_H

#include "../core/file.h"
#include "../nn/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { WF_IGNORE_LABEL = -1 }; /* a label where nothing is counted: padding, a source */

/* What a training changes of the forward pass and the loss; plans that do not train have no dropout. A
 * wf_trainer of m->graph, m->loss.loss and m->loss.count has the rest. */
typedef struct wf_training_config {
    double dropout; /* of residuals and of the sums of embeddings and positions */
    double attention_dropout, activation_dropout;
    double label_smoothing;
    /* wf_on_param of the model's graph, so that adapters get into it. Their parameters are added
     * ones to its file. NULL: none */
    wf_tensor *(*on_param)(void *user, wf_tensor *param);
    void *user;
} wf_training_config;

/* Which architecture a model is of: a row of the table in model.c. */
typedef struct wf_model_kind wf_model_kind;

/* The attention weights of a stack of layers. */
typedef struct wf_attention_map {
    const char *name;                 /* "encoder_self", "decoder_self", "cross"; "self" */
    bool source_queries, source_keys; /* rows and columns are tokens of src, or else of tgt */
    int64_t layers;
    wf_tensor **weights; /* [layers] of [B,H,queries,keys] */
} wf_attention_map;
enum { WF_MOST_MAPS = 4 };

typedef struct wf_model {
    const wf_model_kind *kind;
    const void *config; /* of its kind's type: wf_transformer_of, wf_language_model_of */
    wf_training_config training;
    int64_t src_vocab, tgt_vocab;
    int64_t max_len; /* of a source, and of a target with its start; in one row, of all of it */
    int32_t start_id, end_id;
    bool start_first; /* in one row: start, source, output; else source, start, output */
    wf_graph *graph;
    /* inputs, i32 */
    wf_tensor *src, *src_length; /* [B,S], right-padded; [B]. NULL: there is no source apart */
    wf_tensor *tgt;              /* [B,T], right-padded */
    wf_tensor *labels;           /* [B,T]: next tokens; WF_IGNORE_LABEL where nothing counts */
    /* values */
    wf_tensor **handed; /* [n_handed]: of a source, by a start; read by attention in each step */
    int n_handed;
    wf_tensor *hidden;            /* [B,T,D]: what the logits are made of */
    wf_tensor *logits;            /* [B,T,V] */
    wf_tensor *log_probs;         /* [B,T,V] */
    wf_tensor *token_log_probs;   /* [B,T]: log p of each label; 0 where it is not counted */
    wf_tensor *correct;           /* []: counted positions whose largest logit is the label */
    wf_cross_entropy_result loss; /* []: sums, and their count */
    wf_attention_map maps[WF_MOST_MAPS]; /* the last is what looks from an output */
    int n_maps;
    /* The names of one table that several modules share: the first is the parameter's. */
    const char *const *tied;
    int n_tied;
    int own_nodes; /* the ids of what a program records after the model begin here; before them,
                      only what a hook declared is not the model's own */
} wf_model;

/* What shares one table: nothing; decoder input and output; these and encoder input. */
typedef enum { WF_TIE_NONE, WF_TIE_DECODER, WF_TIE_ALL } wf_tie;

/* ---- a new model of any architecture: model.c ------------------------------------------------ */

/* What can be chosen of any model; an architecture takes what it has. */
typedef struct wf_model_sizes {
    int64_t src_vocab, tgt_vocab;
    int64_t longest; /* tokens of a source or an output, at most */
    int64_t d_model, num_heads, dim_feedforward;
    int64_t encoder_layers, decoder_layers; /* of one stack: the second */
    wf_activation activation;
    wf_positions positions;
    wf_tie tie;
    bool norm_first; /* and then a final norm on each stack */
    int32_t start_id, end_id;
    wf_norm_kind norm_kind;
    int64_t num_kv_heads; /* of keys and values; 0: num_heads */
    bool gated, no_bias;  /* feed-forward; in projections and norms */
    int64_t row;          /* in one row: tokens of all of it; 0: for a source and an output */
    bool start_first;     /* in one row: an output goes on from its source, as text does */
    bool embedding_norm;  /* of an encoder and a decoder: a norm behind their embeddings */
} wf_model_sizes;
/* In the order of WF_MODEL_NAMES (choices.h); NULL: there are no more. */
WF_API const wf_model_kind *wf_model_kind_at(int i);
/* "language_model", the word that files have; "Language model", for people. "" for NULL. */
WF_API const char *wf_model_kind_name(const wf_model_kind *kind);
WF_API const char *wf_model_kind_title(const wf_model_kind *kind);
/* Are a source and an output one sequence? */
WF_API bool wf_model_kind_in_one_row(const wf_model_kind *kind);
WF_API bool wf_model_sizes_ok(const wf_model_kind *kind, const wf_model_sizes *sizes,
                              char *message);
/* training NULL: no dropout, no smoothing, no hook. NULL with a message on bad sizes; else check
 * wf_ok(m->graph). */
WF_API wf_model *wf_model_new(const wf_model_kind *kind, const wf_model_sizes *sizes,
                              const wf_training_config *training, wf_dtype real, uint64_t seed,
                              char *message);
WF_API void wf_model_free(wf_model *m); /* with its graph */
WF_API int64_t wf_model_parameter_count(const wf_model *m);
WF_API void wf_model_text(const wf_model *m, char text[256]); /* its sizes, in a sentence */

/* ---- pairs: model.c -------------------------------------------------------------------------- */

/* A batch as programs have it, on the host: sources, and targets that begin with the start. Where a
 * row is its source and its target, it is made of them, and its labels are those of the target. */
typedef struct wf_batch {
    int64_t B, S, T;           /* S may be 0 where there is no source apart */
    const int32_t *src;        /* [B,S], right-padded */
    const int32_t *src_length; /* [B]; all 0 where S is 0 */
    const int32_t *tgt;        /* [B,T]: the start, then an output */
    const int32_t *labels;     /* [B,T]; NULL: they are not fed */
} wf_batch;
/* Bind a plan to B pairs of at most S and T tokens; false: wf_plan_error. */
WF_API bool wf_model_bind(const wf_model *m, wf_plan *p, int64_t B, int64_t S, int64_t T);
/* Bind a plan to these pairs, and feed them. Rows of both are bound to the longest. */
WF_API bool wf_model_feed(const wf_model *m, wf_plan *p, const wf_batch *pairs);
/* Where the target of a source of n tokens begins in a row of tgt: n in one row, else 0. */
WF_API int64_t wf_model_begin(const wf_model *m, int64_t n);
/* How many tokens the longest source may have. */
WF_API int64_t wf_model_longest_source(const wf_model *m);
/* How many tokens an output may have after a source of n; below 0: the source is too long. */
WF_API int64_t wf_model_room(const wf_model *m, int64_t n);

/* ---- plans over the one graph: plans.c ------------------------------------------------------- */

/* Feeds pairs; fetches loss.* and correct. */
WF_API wf_plan *wf_model_eval_plan(wf_model *m, wf_pool *pool);
/* The same feeds; fetches token_log_probs and logits. */
WF_API wf_plan *wf_model_score_plan(wf_model *m, wf_pool *pool);
/* Feeds pairs without labels; fetches the weights of all maps. */
WF_API wf_plan *wf_model_attention_plan(wf_model *m, wf_pool *pool);

/* A start: feeds src and src_length; fetches what is handed. Fails if there is no source apart. */
WF_API wf_plan *wf_model_encode_plan(wf_model *m, wf_pool *pool);
/* A step: feeds what was handed, and tgt [B,n] from position "P" on; runs with a state; fetches
 * logits. */
WF_API wf_plan *wf_model_step_plan(wf_model *m, wf_pool *pool);
/* A step whose logits nobody wants, as of a source in one row: fetches hidden. Its state is that of
 * the steps. */
WF_API wf_plan *wf_model_prompt_plan(wf_model *m, wf_pool *pool);

/* ---- the model's file: file/model_file.c ----------------------------------------------------- */

/* The configuration, the weights, meta; with a trainer, which is then the model's, also its moments
 * and averages, and the call is collective: wf_trainer_write. The metadata's "weft.kind" says which it
 * is, "checkpoint" or "model", or what meta has for it; "weft.model" is the model's name. Parameters
 * that a program has added to the graph are stored, too, under their names. */
WF_API bool wf_model_save(const wf_model *m, const char *path, wf_trainer *trainer,
                          const wf_meta *meta, int n_meta, char *message);
/* Read the configuration, record the model, load the weights. A training goes on by
 * wf_trainer_resume with the same file. A file that names no model is a Transformer's. NULL with a
 * message. */
WF_API wf_model *wf_model_load(const wf_file *f, const wf_training_config *training, wf_dtype real,
                               uint64_t seed, char *message);
/* The first half of it: with initial weights. */
WF_API wf_model *wf_model_record(const wf_file *f, const wf_training_config *training,
                                 wf_dtype real, uint64_t seed, char *message);
/* And the second. Names of torch.nn.Transformer; packed or separate q, k, v; tied tables under any
 * of their names. A file that does not fit leaves the model as it was. Added parameters are loaded
 * if the file and the graph have them: record them after wf_model_load, then load the weights
 * again; one that the file lacks keeps its values, one that the graph lacks stays in the file. */
WF_API bool wf_model_load_weights(wf_model *m, const wf_file *f, char *message);
/* Has the file, as I8, every matrix that m keeps as WF_PANELS_INT8, and is there one? Else to load them
 * would round what is not rounded yet. */
WF_API bool wf_model_rounded(const wf_model *m, const wf_file *f);
/* What a file holds, e.g. "a Transformer of width 64, 4 heads, ...", in text [256]. */
WF_API bool wf_model_describe(const wf_file *f, char *text, char *message);
/* What the layers of the model in a file are. */
WF_API bool wf_model_read_block(const wf_file *f, wf_block_options *o, char *message);

#ifdef __cplusplus
}
#endif
#endif
