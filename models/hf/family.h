/* models/hf/family.h - inside models/hf: the keys and tensor names of a family. A family consists
 * of table rows, without code. */
#ifndef WEFT_MODELS_HF_FAMILY_H
#define WEFT_MODELS_HF_FAMILY_H

#include "models/transformer.h"

/* The configuration in config.json: that of the Transformer, and further values. */
typedef struct hf_config {
    wf_transformer_config c;
    int64_t decoder_heads, decoder_ffn, pad, start, end; /* pad, start, end: -1 if it has none */
    /* shared: encoder's and decoder's tables are one; tied: the output's and the decoder's are
     * one */
    bool shared, tied;
    bool decoder_only; /* of a search: the output continues the source */
} hf_config;

/* A key of config.json that weft uses. */
typedef struct hf_key {
    const char *name;
    /* what `at` is: int64_t, int64_t, int64_t, bool, activation, double. HF_FIRST_ID may be a list
     * of several ids, of which the first is read */
    enum { HF_COUNT, HF_ID, HF_FIRST_ID, HF_FLAG, HF_ACTIVATION, HF_REAL } type;
    size_t offset;      /* in an hf_config, or an hf_lm_config */
    const char *absent; /* the value if the key is missing; NULL: it must be present */
} hf_key;
extern const hf_key wf_hf_keys[];
extern const int wf_hf_n_keys;

/* A key that must have this value if it is present: JSON, or the value of another key, named in
 * `as`. */
typedef struct hf_constant {
    const char *name, *value, *as;
} hf_constant;

typedef struct hf_family {
    const char *name;         /* model_type */
    const char *architecture; /* the class of transformers that can generate */
    wf_positions positions;
    bool norm_first, final_norms, embedding_norm, output_bias;
    bool may_separate;        /* there may be two vocabularies: share_encoder_decoder_embeddings */
    int64_t pad;              /* required value of pad_token_id; -1: any */
    hf_constant constants[8]; /* ends at the first one without a name */
} hf_family;
const hf_family *wf_hf_family(const char *model_type); /* NULL: none */
/* the family that has models of this form */
const hf_family *wf_hf_family_of(const wf_transformer_config *c);
const char *wf_hf_family_names(void);

bool wf_hf_ignored_key(const char *name); /* true for a key of config.json that changes no result */

/* The names of an activation. The first is the one that is written. */
typedef struct hf_activation {
    const char *name;
    wf_activation activation;
} hf_activation;
extern const hf_activation wf_hf_activations[];
extern const int wf_hf_n_activations;

/* ---- names of tensors ------------------------------------------------------------------------ */

/* longest name; rows before position 0 in a learned table */
enum { HF_NAME = 128, HF_SKIPPED_ROWS = 2 };

/* The stem of a parameter's name in weft, and in these folders. # is a number, the same in both,
 * @ one of q, k, v, and & one of query, key, value. After the stem both names are equal. */
typedef struct hf_stem {
    const char *from, *to;
} hf_stem;
/* The name of part `part` of a parameter by a table of n stems. Returns how many parts the
 * parameter has: 3 if the name has an @ or &. 0: it is unknown. */
int wf_hf_name_by(const hf_stem *stems, int n, const char *parameter, int part, char name[HF_NAME]);

/* The name of part `part` of a parameter other than a token table. q, k and v are three parts of a
 * packed projection. Returns how many parts the parameter has; 0: it is unknown. */
int wf_hf_tensor_name(const char *parameter, int part, char name[HF_NAME]);
/* The names of the token tables of encoder, decoder and output, in this order, and of one shared by
 * all. */
extern const char *const wf_hf_tables[4];
enum { HF_SHARED = 3 };
#define HF_OUTPUT_BIAS "final_logits_bias"
/* True for a position table of a family that computes positions, which old files contain. */
bool wf_hf_is_positions(const char *tensor);
bool wf_hf_ignored_tensor(const char *tensor);

#endif
