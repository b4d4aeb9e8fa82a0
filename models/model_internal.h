/* models/model_internal.h - inside the library and its programs: models of any kind, the plans that
 * a decoder is made of, parts of loading. Every `message` has room for 256 bytes, or is NULL. Not
 * installed. */
#ifndef WEFT_MODELS_MODEL_INTERNAL_H
#define WEFT_MODELS_MODEL_INTERNAL_H

#include "models/decode.h"
#include "models/encoder.h"
#include "models/language_model.h"
#include "models/model_emit.h"
#include "models/transformer.h"

/* ---- a new model of any architecture: kinds.c ------------------------------------------------ */

/* Sizes and choices for any model. An architecture uses those that it has. */
typedef struct wf_model_sizes {
    int64_t src_vocab, tgt_vocab;
    /* most tokens of a source or of an output */
    int64_t longest;
    int64_t d_model, num_heads, dim_feedforward;
    /* number of layers in each stack; a decoder-only model has decoder layers alone */
    int64_t encoder_layers, decoder_layers;
    wf_activation activation;
    wf_positions positions;
    wf_tie tie;
    /* pre-norm, and a final norm on each stack; false: post-norm */
    bool norm_first;
    int32_t start_id, end_id;
    wf_norm_kind norm_kind;
    /* heads of keys and values; 0: num_heads */
    int64_t num_kv_heads;
    /* gated: feed-forward layers are; no_bias: projections and norms have no biases */
    bool gated, no_bias;
    /* decoder-only: most tokens of a whole sequence, which is a prompt with its output. 0: twice
     * the field `longest`, plus 1, but at least 128 */
    int64_t row;
    /* decoder-only: an output continues its prompt directly, as running text does */
    bool start_first;
    /* with start_first: a sequence with a prompt begins with it, without a start token */
    bool start_if_empty;
    /* encoder-decoder: a norm after the embeddings of each stack */
    bool embedding_norm;
    /* encoder-decoder: the form of T5 1.1 (Raffel et al. 2020; Shazeer 2020), which determines
     * positions, norms and biases. If all tables are one, the output is scaled as in T5 1.0 */
    bool t5;
    /* encoder-decoder: the first sublayer of decoder layers */
    wf_decoder_kind decoder;
    /* encoder-decoder: the form of Marian's models: zeros in place of the start token, no final
     * norms, and in pre-norm keys without a norm */
    bool marian;
    /* encoder in the form of BERT. masked: it predicts masked tokens; classes: the number of
     * classes of lines, 0 if it classifies none; pad_id: the padding */
    bool masked;
    int64_t classes;
    int32_t pad_id;
} wf_model_sizes;
/* The i-th kind, in the order of WF_MODEL_NAMES (choices.h). NULL: there are no more. */
const wf_model_kind *wf_model_kind_at(int i);
/* The kind of encoders. wf_model_kind_at leaves it out, because an encoder writes no text. */
extern const wf_model_kind wf_encoder_kind;
/* A kind's name in files, "language_model"; and for readers, "Language model". "" for NULL. */
const char *wf_model_kind_name(const wf_model_kind *kind);
const char *wf_model_kind_title(const wf_model_kind *kind);
/* True for a decoder-only kind, in which a source and its output are one sequence. */
bool wf_model_kind_decoder_only(const wf_model_kind *kind);
/* True if a model of this kind can have these sizes. False with message[256]. */
bool wf_model_sizes_ok(const wf_model_kind *kind, const wf_model_sizes *sizes, char *message);
/* Makes a model of these sizes. training NULL: no dropout, smoothing or hook. NULL with a message;
 * else check wf_ok(m->graph). */
wf_model *wf_model_new(const wf_model_kind *kind, const wf_model_sizes *sizes,
                       const wf_training_config *training, wf_dtype real, uint64_t seed,
                       char *message);
/* Most tokens of a model with relative positions, because such positions set no limit. */
enum { WF_RELATIVE_MAX_LEN = 1 << 14 };
/* True if the sizes of a configuration fit each other. False with message[256]. */
bool wf_transformer_check(const wf_transformer_config *c, char *message);
bool wf_encoder_check(const wf_encoder_config *c, char *message);
/* The number of rows that the table of positions needs for lines of max_len tokens. 0: c is NULL,
 * or max_len is not valid. */
int64_t wf_encoder_positions(const wf_encoder_config *c);
/* The width of a line's vector before the layer after pooling: the model's width times the number
 * of poolings. 0: there is no pooling, c is NULL, or its width is too large. */
int64_t wf_encoder_pooled_width(const wf_encoder_config *c);
/* most classes; most bytes of a label (labels: encoder/class_labels.c) */
enum { WF_MOST_CLASSES = 1 << 12, WF_MOST_LABEL = 255 };
/* The key of the labels in a model's file: one text with a label on each line. */
#define WF_CLASS_NAMES "classify.labels"
/* True if this can be a label: 1 to WF_MOST_LABEL bytes without line breaks and TABs. */
bool wf_class_name_ok(const char *line, size_t bytes);
/* The label after the label `name` in a text with a label on each line; the first one if name is
 * NULL. It ends at a line break or with the text. NULL: there is none. */
const char *wf_class_next(const char *text, const char *name);
/* True if the text has `classes` labels, and each may be a label. False with message. */
bool wf_class_names_fit(const char *text, int64_t classes, char *message);
/* True if a model's file has as many labels as classes, or no labels, or a model without classes.
 * False with message. */
bool wf_class_names_check(const wf_file *f, char *message);
/* Load the encoder in a file as wf_model_load does, but without its head. It gets a new head of
 * `classes` classes, or no head if this is 0, and can then be trained for another objective. NULL
 * with message. */
wf_model *wf_encoder_with_head(const wf_file *f, int64_t classes,
                               const wf_training_config *training, wf_dtype real, uint64_t seed,
                               char *message);
bool wf_language_model_check(const wf_language_model_config *c, char *message);

/* ---- pairs: model.c -------------------------------------------------------------------------- */

/* Bind a plan to B pairs of at most S and T tokens. False: see wf_plan_error. */
bool wf_model_bind(const wf_model *m, wf_plan *p, int64_t B, int64_t S, int64_t T);
/* The column of tgt where the target of a source of n tokens begins. Encoder-decoder: 0.
 * Decoder-only: n, or n - 1 if no start token stands between them (start_if_empty and n > 0). */
int64_t wf_model_begin(const wf_model *m, int64_t n);

/* ---- plans of a decoder: plans.c ------------------------------------------------------------- */

/* Encodes: feeds src and src_length; fetches the memory. Fails for a decoder-only model. */
wf_plan *wf_model_encode_plan(wf_model *m, wf_pool *pool);
/* Decodes a step: feeds the encoder's output, and tgt [B,n], whose first token has the bound
 * position "P"; fetches logits. It runs with a state, which holds the caches. */
wf_plan *wf_model_step_plan(wf_model *m, wf_pool *pool);
/* Runs a prompt: like a step, but fetches the last layer's output (m->hidden) instead of logits. It
 * uses the same state (KV cache) as the steps. */
wf_plan *wf_model_prompt_plan(wf_model *m, wf_pool *pool);
/* The bytes needed to decode b sentences of s tokens, with one row each, into outputs of at most n
 * tokens. 0: see wf_decoder_error. */
size_t wf_decoder_memory(wf_decoder *d, int b, int s, int64_t n);

/* ---- shortlists: decode/shortlist.c ---------------------------------------------------------- */

/* The candidates for a source of n tokens, in ascending order: the most frequent tokens, the tokens
 * that the list has for each source token, and with a shared vocabulary the source tokens
 * themselves. As in Marian, further frequent tokens make their number a multiple of eight. The
 * first `capacity` are written to ids; returns how many there are. -1: out of memory, or there is
 * no list, or a source token is not in the vocabulary. */
int64_t wf_shortlist_candidates(const wf_shortlist *l, const int32_t *src, int64_t n, int32_t *ids,
                                int64_t capacity);

/* ---- values of lines: encoder/encoder.c ------------------------------------------------------ */

/* Like wf_encoder_plan and wf_encoder_run. With `classes` they compute the log-probabilities
 * [B,1,C] of the lines' classes instead of vectors. */
wf_plan *wf_encoder_plan_for(wf_model *m, bool classes, wf_pool *pool);
bool wf_encoder_run_for(const wf_model *m, bool classes, wf_plan *p, int64_t B, int64_t S,
                        const int32_t *src, const int32_t *src_length, void *out);

/* ---- a training as C: emit/emit_training.c --------------------------------------------------- */

/* Like wf_model_emit_training. batches: lines of C, NULL at the end, with a function next_update as
 * in emit/program/plain_stdin.c, from which the program gets its batches; NULL: those of that
 * file. */
char *wf_model_emit_training_on(wf_model *m, wf_trainer *t, const wf_training_emit_options *options,
                                const char *const *batches, char *message);

/* ---- files: file/model_file.c ---------------------------------------------------------------- */

/* The first half of wf_model_load: records the model, with initial weights. */
wf_model *wf_model_record(const wf_file *f, const wf_training_config *training, wf_dtype real,
                          uint64_t seed, char *message);
/* True if m keeps at least one matrix as WF_PANELS_INT8, and the file has each such matrix as I8.
 * If the file has one in another type, loading rounds it. */
bool wf_model_rounded(const wf_model *m, const wf_file *f);
/* Load a model in f32 with matrices in the number format `format`, a wf_weight_format (choices.h);
 * -1: int8 if the file has them so, else f32. The parameter f32 is the layout of matrices in f32.
 * training may be NULL. NULL with message[256]. */
wf_model *wf_model_load_packed(const wf_file *f, const wf_training_config *training, int format,
                               wf_layout f32, char *message);
/* The second step of wf_model_load_packed: changes the layout of a recorded model's matrices before
 * its weights are loaded. */
bool wf_model_pack(wf_model *m, const wf_file *f, int format, wf_layout f32, char *message);
/* Compute a hash of a file's configuration and weights, which identifies the model. Moments and
 * other metadata do not count, so a checkpoint has the hash of a file with the same weights
 * alone. */
enum { WF_MODEL_HASH = 17 };
void wf_model_hash(const wf_file *f, char text[WF_MODEL_HASH]);
/* Metadata of a file of adapters: the hash of the model that they belong to, and its file. */
#define WF_ADAPTER_BASE "weft.adapters.base"
#define WF_ADAPTER_BASE_FILE "weft.adapters.base_file"
/* Describe a file's model in text [256], such as "a Transformer of width 64, 4 heads, ...". */
bool wf_model_describe(const wf_file *f, char *text, char *message);
/* Read from a model's file the options with which its layers are made. */
bool wf_model_read_block(const wf_file *f, wf_block_options *o, char *message);

#endif
