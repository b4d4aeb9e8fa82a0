/* models/hf/lm/lm_family.h - inside models/hf: the families of language models, with their keys of
 * config.json and names of tensors. A family consists of table rows, without code. */
#ifndef WEFT_MODELS_HF_LM_LM_FAMILY_H
#define WEFT_MODELS_HF_LM_LM_FAMILY_H

#include "models/hf/folder.h"
#include "models/language_model.h"

/* Values of config.json: the language model's configuration, and values that are not in it. */
typedef struct hf_lm_config {
    wf_language_model_config c;
    int64_t start, end;          /* token ids; -1: none */
    bool attention_bias;         /* queries, keys, values and the output's projection have biases */
    bool ff_bias;                /* of feed-forward layers */
    bool slides;                 /* attention has a sliding window, unless `window` is 0 */
    int64_t window, window_from; /* window_from: the first layer that has it; -1: all have it */
} hf_lm_config;

enum { HF_LM_KEYS = 24, HF_LM_CONSTANTS = 16, HF_LM_STEMS = 12 };

/* A family of language models. Each of its arrays ends at the first element without a name. */
typedef struct hf_lm_family {
    const char *name;         /* model_type */
    const char *architecture; /* the class of transformers that can generate */
    wf_positions positions;
    wf_norm_kind norm;
    bool gated, bias, qkv_bias, qk_norm;
    int64_t kv_heads;     /* number of key-value heads, if the family fixes it; else 0 */
    bool from_one;        /* norms' weights are stored minus 1, and embeddings are scaled (Gemma) */
    bool slides;          /* the sliding window is on without a key of config.json for it */
    bool transposed;      /* the file has layers' matrices as [in, out], weft as [out, in] */
    const char *optional; /* prefix of most names, which some files leave out; or NULL */
    hf_key keys[HF_LM_KEYS];
    hf_constant constants[HF_LM_CONSTANTS];
    const char *ignored[HF_IGNORED]; /* keys that change no result */
    hf_stem stems[HF_LM_STEMS];
    /* endings of names of layers' tensors that old files have and that change nothing */
    const char *dropped[4];
} hf_lm_family;

const hf_lm_family *wf_hf_lm_family(const char *model_type); /* NULL: none */

/* The family whose models can have this configuration. NULL with message: there is none. */
const hf_lm_family *wf_hf_lm_family_of(const wf_language_model_config *c, char *message);

/* Writes the name of part `part` of a parameter. Returns how many parts the parameter has; 0: the
 * parameter is unknown. */
int wf_hf_lm_name(const hf_lm_family *family, const char *parameter, int part, char name[HF_NAME]);
/* True if the folder's tensor is the transposed parameter. */
bool wf_hf_lm_transposed(const hf_lm_family *family, const wf_tensor *parameter);
/* True if the folder's tensor is the parameter less 1. */
bool wf_hf_lm_from_one(const hf_lm_family *family, const wf_tensor *parameter);
bool wf_hf_lm_dropped(const hf_lm_family *family, const char *tensor);

/* The number of rows of part i of a parameter. If parts is 3, they are queries, keys and values. */
int64_t wf_hf_lm_rows(const wf_language_model_config *c, const wf_tensor *parameter, int i,
                      int parts);

/* ---- lm_tokenizer.c: tokenizer.json, tokenizer_config.json ----------------------------------- */

bool wf_hf_lm_read_tokenizer(const char *folder, const hf_lm_config *c, wf_hf *out, char *message);
bool wf_hf_lm_write_tokenizer(wf_hf *hf, const wf_hf_writer *to, char *message);

/* ---- lm_config.c ----------------------------------------------------------------------------- */

bool wf_hf_lm_read_config(const hf_object *o, const hf_lm_family **family, hf_lm_config *c,
                          char *message);
/* Sets the fields that the family determines, and checks the configuration. Call it after the ids
 * of generation_config.json were read. */
bool wf_hf_lm_complete(const hf_lm_family *family, hf_lm_config *c, char *message);

/* ---- lm_weights.c ---------------------------------------------------------------------------- */

bool wf_hf_lm_load_weights(const wf_file *f, const hf_lm_family *family, wf_model *m,
                           char *message);

#endif
