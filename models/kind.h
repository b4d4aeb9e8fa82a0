/* models/kind.h - inside models: the interface of an architecture, and the parts that every model
 * is recorded from.
 *
 * To add an architecture, write a file that fills in a wf_model and defines a wf_model_kind, and
 * add its line to WF_MODEL_NAMES. */
#ifndef WEFT_MODELS_KIND_H
#define WEFT_MODELS_KIND_H

#include <stddef.h>

#include "choices.h"
#include "model.h"
#include "models/model_internal.h"

/* One field of a configuration. The same row writes and reads it, so that both agree. */
typedef struct wf_config_field {
    /* its key in a file's metadata */
    const char *key;
    enum {
        WF_FIELD_INT64,
        WF_FIELD_INT32,
        WF_FIELD_BOOL,
        WF_FIELD_CHOICE,
        WF_FIELD_REAL,
        WF_FIELD_BIT
    } type;
    size_t offset;
    /* WF_FIELD_CHOICE: all names in one string, as in "none|all" */
    const char *names;
    /* WF_FIELD_CHOICE: returns the name of a choice's number, or NULL if there is no such choice */
    const char *(*name)(int choice);
    /* the value for files without this field, as text; NULL: every file must have it */
    const char *before;
    /* WF_FIELD_BIT: the mask of this field's bit in an unsigned */
    unsigned bit;
} wf_config_field;

/* Rows of a table of fields; CONFIG_OF is the configuration's type. A choice is stored as int. */
#define WF_FIELD_TYPE(field)                                                                       \
    _Generic(((CONFIG_OF *)NULL)->field, int64_t                                                   \
             : WF_FIELD_INT64, int32_t                                                             \
             : WF_FIELD_INT32, bool                                                                \
             : WF_FIELD_BOOL, double                                                               \
             : WF_FIELD_REAL)
#define WF_FIELD_AS_SINCE(key, field, value)                                                       \
    { key, WF_FIELD_TYPE(field), offsetof(CONFIG_OF, field), NULL, NULL, value, 0 },
#define WF_FIELD_NAMED_AS_SINCE(key, of, field, rows, value)                                       \
    { key, WF_FIELD_CHOICE, offsetof(CONFIG_OF, field), WF_NAMES(rows), of##_name, value, 0 },
#define WF_FIELD_AS(key, field) WF_FIELD_AS_SINCE(key, field, NULL)
#define WF_FIELD_NAMED_AS(key, of, field, rows) WF_FIELD_NAMED_AS_SINCE(key, of, field, rows, NULL)
#define WF_FIELD(field) WF_FIELD_AS("weft.config." #field, field)
#define WF_FIELD_NAMED(of, field, rows) WF_FIELD_NAMED_AS("weft.config." #field, of, field, rows)
/* Fields that were added later. In files written before, their value is `value`. */
#define WF_FIELD_SINCE(field, value) WF_FIELD_AS_SINCE("weft.config." #field, field, value)
#define WF_FIELD_NAMED_SINCE(of, field, rows, value)                                               \
    WF_FIELD_NAMED_AS_SINCE("weft.config." #field, of, field, rows, value)
/* One bit of a set (an unsigned), which files store as a field of its own, 0 or 1. */
#define WF_FIELD_IN(key, field, bit)                                                               \
    { "weft.config." #key, WF_FIELD_BIT, offsetof(CONFIG_OF, field), NULL, NULL, NULL, bit },

struct wf_model_kind {
    /* the architecture's name in files */
    const char *name;
    /* its name for readers, in pictures and messages */
    const char *title;
    const wf_config_field *fields;
    int n_fields;
    /* the source and the output are one sequence, without an input src */
    bool decoder_only;
    /* fills a configuration from sizes, and sets its other fields to their defaults */
    void (*configure)(void *config, const wf_model_sizes *sizes);
    bool (*check)(const void *config, char *message);
    wf_model *(*record)(const void *config, const wf_training_config *training, wf_dtype real,
                        uint64_t seed, char *message);
    void (*describe)(const void *config, char text[256]);
    /* the options of its layers, without dropout */
    wf_block_options (*block)(const void *config);
};
/* The most fields, and the most bytes, of a configuration. */
enum { WF_MOST_FIELDS = 48, WF_MOST_CONFIG = 512 };
/* Memory for a configuration of any kind. */
typedef union wf_any_config {
    char bytes[WF_MOST_CONFIG];
    max_align_t aligned;
} wf_any_config;
/* Put this below a kind's table of fields. It checks, when compiled, that the configuration has at
 * most WF_MOST_CONFIG bytes and WF_MOST_FIELDS fields. */
#define WF_FIELDS_FIT(config, fields)                                                              \
    _Static_assert(sizeof(config) <= WF_MOST_CONFIG &&                                             \
                       sizeof(fields) / sizeof *(fields) <= WF_MOST_FIELDS,                        \
                   "too large for a configuration")

#define WF_EXTERN_KIND(id, word) extern const wf_model_kind wf_##id##_kind;
WF_MODEL_NAMES(WF_EXTERN_KIND)
WF_READER_NAMES(WF_EXTERN_KIND)

/* The kind with this name. If name is NULL, the kind of files that name none, wf_transformer_kind.
 * The result is NULL if no kind has this name. */
const wf_model_kind *wf_model_kind_of(const char *name);

/* ---- limits of configurations: limits.c ------------------------------------------------------ */

typedef struct wf_limit {
    const char *what;
    int64_t value, low, high;
} wf_limit;
bool wf_limits_ok(const wf_limit *limits, size_t n, char *message);
int64_t wf_last_id(int64_t vocab);

/* "relu, pre-norm, sinusoidal positions": text about the layers, for `describe`. */
enum { WF_STACK_TEXT = 96 };
const char *wf_stack_text(const wf_block_options *o, wf_positions positions,
                          char text[WF_STACK_TEXT]);

/* Check the options of layers and positions. False with message. */
bool wf_stack_ok(const wf_block_options *o, wf_positions positions, char *message);

/* ---- what is recorded alike: record_model.c -------------------------------------------------- */

/* A zeroed model of `bytes` bytes, which begin with a wf_model, with room for n_memory memory
 * tensors. wf_model_free frees it. NULL with message: out of memory. */
wf_model *wf_model_alloc(const wf_model_kind *kind, size_t bytes, int n_memory, char *message);
/* Add an attention map; the caller then records the weights of layer i into weights[i]. False: out
 * of memory. */
bool wf_model_add_map(wf_model *m, const char *name, bool source_queries, bool source_keys,
                      int64_t layers);
/* Make the model's graph, with the hooks that the training options ask for. */
void wf_model_begin_graph(wf_model *m, const wf_training_config *training, wf_dtype real,
                          uint64_t seed);
/* The options of the model's layers, with the dropout of training. */
wf_block_options wf_model_block(const wf_model *m);
/* Declare the symbolic size B, the rows of a batch. Returns the number that means B in shapes. */
int64_t wf_model_rows(wf_graph *g);
/* Declare the symbolic sizes B, T and P (the position), and the inputs tgt and labels. Returns
 * B. */
int64_t wf_model_inputs(wf_model *m);
/* Record an embedding table of tokens. scaled: embeddings are multiplied by sqrt(dim). shared: the
 * output uses the table, too. */
struct wf_embedding_layer wf_token_table(wf_graph *g, const char *name, int64_t rows, int64_t dim,
                                         bool scaled, bool shared);
/* Record logits [B,T,V] from m->hidden. If table is NULL, the output has a matrix of its own. */
void wf_model_output(wf_model *m, const struct wf_embedding_layer *table, bool bias);
/* Record scores and loss, from logits and labels. */
void wf_model_finish(wf_model *m);
/* Ends the model's own part of the graph: nodes recorded later belong to the program. Also records
 * the loss of guided alignment. wf_model_finish calls this function last. */
void wf_model_end_graph(wf_model *m);
/* Round each matrix that m declares from now on, as training.quantize_aware says
 * (quantize_aware.c). */
void wf_quantize_begin(wf_model *m);
/* "layers.0" */
const char *wf_layer_name(int64_t i, char name[32]);
/* True if this parameter is no part of the architecture: it is an adapter, or a program or its hook
 * added it. */
bool wf_is_added(const wf_model *m, const wf_tensor *t);
/* True if wf_model_save writes this parameter. A model with adapters saves these alone. */
bool wf_is_saved(const wf_model *m, const wf_tensor *param);

#endif
