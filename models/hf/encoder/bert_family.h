/* models/hf/encoder/bert_family.h - inside models/hf: the families of encoders, with their keys of
 * config.json and names of tensors. A family consists of table rows, without code. */
#ifndef WEFT_MODELS_HF_ENCODER_BERT_FAMILY_H
#define WEFT_MODELS_HF_ENCODER_BERT_FAMILY_H

#include "models/encoder.h"
#include "models/hf/folder.h"

/* Values of config.json: the encoder's configuration, and values that are not in it. */
typedef struct hf_bert_config {
    wf_encoder_config c;
    int64_t pad, start, end; /* token ids; -1: none */
    /* most tokens of a line: max_seq_length of sentence_bert_config.json, or else model_max_length
     * of tokenizer_config.json; 0: neither sets a limit */
    int64_t longest;
} hf_bert_config;

enum { HF_BERT_KEYS = 16, HF_BERT_CONSTANTS = 8, HF_BERT_STEMS = 18 };

/* Constants in MPNet's code: the buckets and the largest distance of its relative position bias,
 * and the padding id. */
enum { MPNET_BUCKETS = 32, MPNET_DISTANCE = 128, MPNET_PAD = 1 };

/* A family of encoders. Each of its tables ends at the first row without a name. */
typedef struct hf_bert_family {
    const char *name; /* model_type */
    /* the classes of transformers that are read: without a head, with one that predicts masked
     * tokens, with one that classifies, and perhaps another, which is only read */
    const char *architectures[4];
    bool counted_positions;
    bool relative;            /* MPNet: a relative position bias, and padding id 1 */
    bool relu_pooler;         /* the pooler's function is relu, not tanh */
    const char *class_pooler; /* the pooler's name in a model that classifies, if it differs */
    bool head_gelu;           /* the head's activation is gelu, whatever that of the layers is */
    double eps;               /* epsilon of norms, if config.json has no key for it; else 0 */
    const char *body;         /* prefix of tensor names that files without a head leave out */
    hf_key keys[HF_BERT_KEYS];
    hf_constant constants[HF_BERT_CONSTANTS];
    const char *ignored[HF_IGNORED]; /* keys that change no result */
    hf_stem stems[HF_BERT_STEMS];
    /* bias_copy: another name of the output's bias; dropped: prefixes of names of tensors that have
     * no effect here */
    const char *bias_copy;
    const char *dropped[4];
} hf_bert_family;

const hf_bert_family *wf_hf_bert_family(const char *model_type); /* NULL: none */
/* The family whose models can have this configuration. NULL: there is none. */
const hf_bert_family *wf_hf_bert_family_of(const wf_encoder_config *c);

/* Writes the name of part `part` of a parameter. Returns how many parts the parameter has; 0: the
 * parameter is unknown. */
int wf_hf_bert_name(const hf_bert_family *family, const char *parameter, int part,
                    char name[HF_NAME]);

/* ---- bert_config.c --------------------------------------------------------------------------- */

/* True if config.json names this class of transformers. */
bool wf_hf_bert_names_class(const hf_object *o, const char *class);
/* Reads config.json, except for the heads: wf_hf_bert_find_heads finds them by the tensors. */
bool wf_hf_bert_read_config(const hf_object *o, const hf_bert_family **family, hf_bert_config *c,
                            char *message);
bool wf_hf_bert_write_config(const wf_hf *hf, const wf_hf_writer *to, char *message);

/* ---- bert_classes.c -------------------------------------------------------------------------- */

/* Reads the labels of the classification head into out->class_names. With 0 classes it does nothing
 * and returns true. */
bool wf_hf_bert_read_classes(const hf_object *o, int64_t classes, wf_hf *out, char *message);
/* Adds the keys about the classes to config.json. */
bool wf_hf_bert_put_classes(wf_text *t, const char *names, int64_t classes, char *message);

/* ---- bert_weights.c -------------------------------------------------------------------------- */

/* Finds the model's heads by the folder's tensors, and sets them in c: a classifier with a pooler;
 * or else the prediction of masked tokens, without a pooler; or else a pooler alone; or none. */
void wf_hf_bert_find_heads(const wf_file *f, const hf_bert_family *family, wf_encoder_config *c);
/* wf_hf_bert_load_weights loads all parameters but those of the layer after pooling, which
 * wf_hf_bert_load_dense loads from a file of their own. */
bool wf_hf_bert_load_weights(const wf_file *f, const hf_bert_family *family, wf_model *m,
                             char *message);
bool wf_hf_bert_load_dense(const wf_file *f, wf_model *m, char *message);
/* Writes the file of the layer after pooling, if the model has one. */
bool wf_hf_bert_write_dense(const wf_model *m, const wf_hf_writer *to, char *message);

/* ---- sentence.c: the files of sentence-transformers ------------------------------------------ */

/* If the folder has modules.json, reads it, the files of its modules, sentence_bert_config.json and
 * config_sentence_transformers.json. */
bool wf_hf_read_sentence(const char *folder, hf_bert_config *c, wf_hf *out, char *message);
bool wf_hf_write_sentence(const wf_encoder_config *c, const wf_hf_writer *to, char *message);
/* Opens the weights of the layer after pooling. *name becomes the name of the file. NULL with
 * message. */
wf_file *wf_hf_open_dense(const char *folder, const char **name, char *message);

/* ---- bert_tokenizer.c ------------------------------------------------------------------------ */

/* Sets c->longest from tokenizer_config.json unless it is set, and then lowers c->c.max_len to
 * it. */
bool wf_hf_bert_read_longest(const char *folder, hf_bert_config *c, char *message);
/* Reads tokenizer.json, or else vocab.txt, and finds the ids that it puts around a line. The
 * tokenizer truncates lines at c->c.max_len tokens, whatever the file says. */
bool wf_hf_bert_read_tokenizer(const char *folder, hf_bert_config *c, wf_hf *out, char *message);
/* Makes the text of a tokenizer.json out of the folder's vocab.txt, in memory that the caller
 * frees, with a '\0'. NULL with message. (bert_vocabulary.c) */
char *wf_hf_bert_vocabulary(const char *folder, size_t *bytes, char *message);
bool wf_hf_bert_has_vocabulary(const char *folder);
/* True for a vocabulary of words, characters or byte-pair encoding that was learned here, which
 * wf_hf_bert_write_lines writes as a tokenizer.json with the same ids. (bert_lines.c) */
bool wf_hf_bert_has_lines(const wf_tokenizer *from);
bool wf_hf_bert_write_lines(const wf_tokenizer *from, const wf_hf_writer *to, char *message);
bool wf_hf_bert_write_tokenizer(wf_hf *hf, const wf_hf_writer *to, char *message);

#endif
