/* models/hf/family.h - inside models/hf: what the files of a family say. All of it is rows: a
 * family is a table and not a program. */
#ifndef WEFT_MODELS_HF_FAMILY_H
#define WEFT_MODELS_HF_FAMILY_H

#include "models/transformer.h"

/* The configuration in config.json: the Transformer's, and values beside it. */
typedef struct hf_config {
    wf_transformer_config c;
    int64_t decoder_heads, decoder_ffn, pad, start, end; /* pad.. -1: it does not say */
    bool shared, tied; /* encoder's and decoder's tables; the output's with the decoder's */
} hf_config;

/* A key of config.json that means something. */
typedef struct hf_key {
    const char *name;
    enum { HF_COUNT, HF_ID, HF_FLAG, HF_ACTIVATION } type; /* int64_t, int64_t, bool; activation */
    size_t offset;                                         /* in an hf_config */
    const char *absent; /* what it is if it is not there; NULL: it must be there */
} hf_key;
extern const hf_key wf_hf_keys[];
extern const int wf_hf_n_keys;

/* A key whose value must be this one if it is there: JSON, or another key's in `as`. */
typedef struct hf_constant {
    const char *name, *value, *as;
} hf_constant;

typedef struct hf_family {
    const char *name;         /* model_type */
    const char *architecture; /* the class that can generate */
    wf_positions positions;
    bool norm_first, final_norms, embedding_norm, output_bias;
    bool may_separate;        /* two vocabularies: share_encoder_decoder_embeddings */
    int64_t pad;              /* what pad_token_id must be; -1: any */
    hf_constant constants[8]; /* up to one without a name */
} hf_family;
const hf_family *wf_hf_family(const char *model_type);            /* NULL: none */
const hf_family *wf_hf_family_of(const wf_transformer_config *c); /* that has models of this form */
const char *wf_hf_family_names(void);

bool wf_hf_ignored_key(const char *name); /* of config.json: it changes no result */

/* The names of activations, the one that is written first. */
typedef struct hf_activation {
    const char *name;
    wf_activation activation;
} hf_activation;
extern const hf_activation wf_hf_activations[];
extern const int wf_hf_n_activations;

/* ---- names of tensors ------------------------------------------------------------------------ */

enum { HF_NAME = 128, HF_SKIPPED_ROWS = 2 }; /* rows before position 0 in a learned table */

/* The name of part `part` of a parameter that is no table of tokens: q, k and v are three parts of a
 * packed projection. Returns how many parts it has; 0: there is no such name. */
int wf_hf_tensor_name(const char *parameter, int part, char name[HF_NAME]);
/* The tables of encoder, decoder and output, in this order; and the one for all. */
extern const char *const wf_hf_tables[4];
enum { HF_SHARED = 3 };
#define HF_OUTPUT_BIAS "final_logits_bias"
/* Position tables of a family that computes them: what old files have. */
bool wf_hf_is_positions(const char *tensor);
bool wf_hf_ignored_tensor(const char *tensor);

#endif
