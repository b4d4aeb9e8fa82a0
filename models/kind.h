/* models/kind.h - inside models: what an architecture is to those who know none by name, and what
 * every model is recorded from alike.
 *
 * Another architecture is a file of its own that fills in a wf_model and has a row of this kind,
 * and its line in WF_MODEL_NAMES. */
#ifndef WEFT_MODELS_KIND_H
#define WEFT_MODELS_KIND_H

#include <stddef.h>

#include "choices.h"
#include "model.h"

/* One field of a configuration: writing and reading can't differ. */
typedef struct wf_config_field {
    /* in the metadata */
    const char *key;
    enum { WF_FIELD_INT64, WF_FIELD_INT32, WF_FIELD_BOOL, WF_FIELD_CHOICE, WF_FIELD_REAL } type;
    size_t offset;
    /* those of a choice, "none|all" */
    const char *names;
    /* NULL: no choice has this number */
    const char *(*name)(int choice);
    /* what files without it are; NULL: all have it */
    const char *before;
} wf_config_field;

/* Rows of a table of fields; CONFIG_OF is the configuration's type. A choice is stored as int. */
#define WF_FIELD_TYPE(field)                                                                       \
    _Generic(((CONFIG_OF *)NULL)->field, int64_t                                                   \
             : WF_FIELD_INT64, int32_t                                                             \
             : WF_FIELD_INT32, bool                                                                \
             : WF_FIELD_BOOL, double                                                               \
             : WF_FIELD_REAL)
#define WF_FIELD_AS(key, field)                                                                    \
    { key, WF_FIELD_TYPE(field), offsetof(CONFIG_OF, field), NULL, NULL, NULL },
#define WF_FIELD_AS_SINCE(key, field, value)                                                       \
    { key, WF_FIELD_TYPE(field), offsetof(CONFIG_OF, field), NULL, NULL, value },
#define WF_FIELD_NAMED_AS(key, of, field, rows)                                                    \
    { key, WF_FIELD_CHOICE, offsetof(CONFIG_OF, field), WF_NAMES(rows), of##_name, NULL },
#define WF_FIELD(field)                                                                            \
    { "weft.config." #field, WF_FIELD_TYPE(field), offsetof(CONFIG_OF, field), NULL, NULL, NULL },
#define WF_FIELD_NAMED_SINCE(of, field, rows, value)                                               \
    { "weft.config." #field, WF_FIELD_CHOICE, offsetof(CONFIG_OF, field),                          \
      WF_NAMES(rows),        of##_name,       value },
/* A field that came later: files without it were written when it was `value`. */
#define WF_FIELD_SINCE(field, value)                                                               \
    { "weft.config." #field, WF_FIELD_TYPE(field), offsetof(CONFIG_OF, field), NULL, NULL, value },
#define WF_FIELD_NAMED(of, field, rows)                                                            \
    { "weft.config." #field, WF_FIELD_CHOICE, offsetof(CONFIG_OF, field),                          \
      WF_NAMES(rows),        of##_name,       NULL },

struct wf_model_kind {
    /* in files */
    const char *name;
    /* in pictures */
    const char *title;
    const wf_config_field *fields;
    int n_fields;
    /* a source and an output are one sequence; there is no src */
    bool decoder_only;
    /* the rest by default */
    void (*configure)(void *config, const wf_model_sizes *sizes);
    bool (*check)(const void *config, char *message);
    wf_model *(*record)(const void *config, const wf_training_config *training, wf_dtype real,
                        uint64_t seed, char *message);
    void (*describe)(const void *config, char text[256]);
    /* its layers, without dropout */
    wf_block_options (*block)(const void *config);
};
/* bytes */
enum { WF_MOST_FIELDS = 32, WF_MOST_CONFIG = 512 };
/* Room for a configuration of any kind. */
typedef union wf_any_config {
    char bytes[WF_MOST_CONFIG];
    max_align_t aligned;
} wf_any_config;
/* Below the table of a kind's fields: there is room for its configuration, and for its text. */
#define WF_FIELDS_FIT(config, fields)                                                              \
    _Static_assert(sizeof(config) <= WF_MOST_CONFIG &&                                             \
                       sizeof(fields) / sizeof *(fields) <= WF_MOST_FIELDS,                        \
                   "too large for a configuration")

#define WF_EXTERN_KIND(id, word) extern const wf_model_kind wf_##id##_kind;
WF_MODEL_NAMES(WF_EXTERN_KIND)

/* By its name, NULL: of a file that does not say; NULL: there is none. */
const wf_model_kind *wf_model_kind_of(const char *name);

/* ---- what a configuration may be: limits.c --------------------------------------------------- */

typedef struct wf_limit {
    const char *what;
    int64_t value, low, high;
} wf_limit;
bool wf_limits_ok(const wf_limit *limits, size_t n, char *message);
int64_t wf_last_id(int64_t vocab);

/* "relu, pre-norm, sinusoidal positions": of the same, for describe. */
enum { WF_STACK_TEXT = 96 };
const char *wf_stack_text(const wf_block_options *o, wf_positions positions,
                          char text[WF_STACK_TEXT]);

/* The layers of a stack and the positions of its tokens. */
bool wf_stack_ok(const wf_block_options *o, wf_positions positions, char *message);

/* ---- what is recorded alike: record_model.c -------------------------------------------------------- */

/* Zeroed, with room for n_memory tensors of the memory. wf_model_free frees the
 * `bytes`, which begin with a wf_model. NULL with message. */
wf_model *wf_model_alloc(const wf_model_kind *kind, size_t bytes, int n_memory, char *message);
/* One more map, whose weights are to be recorded into its weights[i]. False: out of memory. */
bool wf_model_add_map(wf_model *m, const char *name, bool source_queries, bool source_keys,
                      int64_t layers);
/* The graph, and what training says. */
void wf_model_begin_graph(wf_model *m, const wf_training_config *training, wf_dtype real,
                          uint64_t seed);
/* Its layers, with the dropout that training says. */
wf_block_options wf_model_block(const wf_model *m);
/* The extents B, T and P, tgt and labels; returns B. */
int64_t wf_model_inputs(wf_model *m);
/* A table of tokens; shared: it is the output's as well. */
struct wf_embedding_layer wf_token_table(wf_graph *g, const char *name, int64_t rows, int64_t dim,
                                         bool scaled, bool shared);
/* hidden -> logits [B,T,V]; table NULL: by a matrix of its own. */
void wf_model_output(wf_model *m, const struct wf_embedding_layer *table, bool bias);
/* Record scores and loss, from logits and labels. */
void wf_model_finish(wf_model *m);
/* "layers.0" */
const char *wf_layer_name(int64_t i, char name[32]);
/* Is this a parameter that a program has added to the recorded model, or a hook to it? */
bool wf_is_added(const wf_model *m, const wf_tensor *t);

#endif
