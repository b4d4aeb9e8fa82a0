/* models/hf/family.h - inside models/hf: the families of encoder-decoders, with their keys of
 * config.json and names of tensors. A family consists of table rows, without code. */
#ifndef WEFT_MODELS_HF_FAMILY_H
#define WEFT_MODELS_HF_FAMILY_H

#include "models/transformer.h"

/* Values of config.json: the Transformer's configuration, and values that are not in it. */
typedef struct hf_config {
    wf_transformer_config c;
    int64_t decoder_heads, decoder_ffn, pad, start, end; /* pad, start, end: token ids; -1: none */
    /* shared: encoder and decoder share one table of token embeddings; tied: the output layer and
     * the decoder share one */
    bool shared, tied;
    bool scaled;       /* T5: the input of the output layer is divided by sqrt(d_model) */
    bool decoder_only; /* a language model, read or written: its output continues the prompt */
} hf_config;

/* A key of config.json that weft uses. */
typedef struct hf_key {
    const char *name;
    /* the type of the value, which determines the type of the field at `offset`, in this order:
     * int64_t, int64_t, int64_t, bool, wf_activation, double, wf_activation. HF_FIRST_ID may be a
     * list of several ids, of which the first is read. HF_FEED_FORWARD is a text such as "relu" or
     * "gated-gelu", and also sets c.gated */
    enum { HF_COUNT, HF_ID, HF_FIRST_ID, HF_FLAG, HF_ACTIVATION, HF_REAL, HF_FEED_FORWARD } type;
    size_t offset;      /* in an hf_config, hf_lm_config or hf_bert_config */
    const char *absent; /* the JSON value if the key is missing; NULL: it must be present */
} hf_key;

/* A key that must have a certain value if it is present: `value`, as JSON, or else the value of the
 * key named in `as`. */
typedef struct hf_constant {
    const char *name, *value, *as;
} hf_constant;

/* A parameter's name begins with `from` in weft, and with `to` in a folder of Hugging Face. The
 * rest of the name is the same in both. # stands for a number, which is also the same in both. In
 * `to`, @ stands for q, k or v and & for query, key or value, because weft packs these three
 * tensors in one. */
typedef struct hf_stem {
    const char *from, *to;
} hf_stem;

enum {
    HF_NAME = 128,       /* bytes of a buffer for a tensor's name, with the zero byte at its end */
    HF_SKIPPED_ROWS = 2, /* a learned table of positions has 2 rows before that of position 0 */
    HF_IGNORED = 24      /* most keys of config.json in a family's list of ignored keys */
};

/* A family of encoder-decoders. Its arrays keys, constants, ignored and stems end at the first row
 * without a name. */
typedef struct hf_family {
    const char *name;         /* model_type */
    const char *architecture; /* the class of transformers that can generate */
    const char *older;        /* the class's name in older files; or NULL */
    wf_positions positions;
    bool norm_first, final_norms, embedding_norm, output_bias;
    bool may_separate; /* encoder and decoder may have vocabularies of their own */
    /* t5: a form of T5 with relative position biases, RMSNorm and no other biases. per_layer: each
     * layer has its own position biases. unscaled: hf_config.scaled has no effect, as in mT5 */
    bool t5, per_layer, unscaled;
    int64_t pad; /* required value of pad_token_id; -1: any */
    const hf_key *keys;
    hf_constant constants[12];
    const char *const *ignored; /* keys that change no result, beside those of all families */
    const hf_stem *stems, *gated_stems;
    /* [4] the names of the token tables of encoder, decoder and output, and of the table that all
     * of them share */
    const char *const *tables;
} hf_family;
const hf_family *wf_hf_family(const char *model_type); /* NULL: none */
/* The family whose models can have this configuration; NULL: there is none. */
const hf_family *wf_hf_family_of(const wf_transformer_config *c);
const char *wf_hf_family_names(void);

bool wf_hf_ignored_key(const char *name); /* true for a key of config.json that changes no result */

/* A name of an activation in config.json. If several names mean the same activation, the first in
 * the table is written. */
typedef struct hf_activation {
    const char *name;
    wf_activation activation;
} hf_activation;
extern const hf_activation wf_hf_activations[];
extern const int wf_hf_n_activations;
bool wf_hf_find_activation(const char *name, wf_activation *out); /* false: no such name */

/* ---- names of tensors ------------------------------------------------------------------------ */

/* Writes the name of part `part` of a parameter, by a table of n stems. Returns how many parts the
 * parameter has: 3 if the stem has an @ or &, else 1. 0: it is unknown. */
int wf_hf_name_by(const hf_stem *stems, int n, const char *parameter, int part, char name[HF_NAME]);

/* Writes the name of part `part` of a parameter other than a token table. q, k and v are three
 * parts of a packed projection. Returns how many parts the parameter has; 0: it is unknown. */
int wf_hf_tensor_name(const hf_family *family, bool gated, const char *parameter, int part,
                      char name[HF_NAME]);
enum { HF_OUTPUT = 2, HF_SHARED }; /* indices in hf_family.tables */
#define HF_OUTPUT_BIAS "final_logits_bias"
/* True for the name of a position table. Old files contain one even if the family computes
 * sinusoids. */
bool wf_hf_is_positions(const char *tensor);
bool wf_hf_ignored_tensor(const char *tensor);

/* ---- t5_family.c: the tables of T5, mT5 and UMT5 --------------------------------------------- */

/* Files of T5 may leave out the form of the feed-forward layers, which is then relu. Those of mT5
 * and UMT5 must name it. */
extern const hf_key wf_hf_t5_keys[], wf_hf_umt5_keys[], wf_hf_mt5_keys[];
extern const hf_stem wf_hf_t5_stems[], wf_hf_t5_gated_stems[];
extern const char *const wf_hf_t5_tables[4], *const wf_hf_t5_ignored[];
/* Reads a form such as "relu" or "gated-gelu". With "gated-", "gelu" means its tanh approximation.
 * False: the text is no such form. */
bool wf_hf_t5_feed_forward(const char *text, bool *gated, wf_activation *activation);
/* Writes the name of such a form, as config.json has it. False: transformers has no name for it. */
bool wf_hf_t5_feed_forward_name(bool gated, wf_activation activation, char text[32]);
/* True if the Transformer has a form of T5. */
bool wf_hf_is_t5(const wf_transformer_config *c);

#endif
