/* models/hf/folder.h - inside models/hf: reads and writes the parts of a Hugging Face folder. */
#ifndef WEFT_MODELS_HF_FOLDER_H
#define WEFT_MODELS_HF_FOLDER_H

#include "core/base/memory.h"
#include "core/emit/c_text.h"
#include "core/file_internal.h"
#include "family.h"
#include "models/hf.h"
#include "models/kind.h"
#include "models/text_formats.h"
#include "object.h"

/* The output bias of a banned token, which makes its probability 0. So log-probabilities of the
 * other tokens over the whole vocabulary equal those that renormalize_logits computes. */
#define HF_SHUT_OUT (-1e4f)

typedef struct hf_search {
    wf_generation g;
    bool renormalize;
} hf_search;

/* Passes the bytes of one file of an exported folder to the writer. False with message. */
static inline bool wf_hf_put_bytes(const wf_hf_writer *to, const char *name, const void *bytes,
                                   size_t size, char *message) {
    return to->put(to->user, name, bytes, size, message);
}

/* ---- hf_config.c: config.json ---------------------------------------------------------------- */

/* The most ids in a list of end tokens. */
enum { HF_MOST_ENDS = 16 };
/* Reads the value of row->name into the row's field of c, which is an hf_config, hf_lm_config or
 * hf_bert_config. A missing key has the value row->absent, and is an error if row->absent is NULL.
 * False with message. */
bool wf_hf_read_key(const hf_object *o, const hf_key *row, void *c, char *message);
bool wf_hf_check_constant(const hf_object *o, const hf_value *v, const hf_constant *c,
                          char *message);
/* Refuses unknown keys of config.json, and keys of `constants` with another value. Known keys are
 * those of these two tables, settings of generation such as num_beams, the names in `ignored` and
 * `own` (each may be NULL), and keys that no family uses: wf_hf_ignored_key. */
bool wf_hf_check_keys(const hf_object *o, const hf_key *keys, const hf_constant *constants,
                      const char *const *ignored, const char *const *own, char *message);
/* Copies the value of model_type, without allocating memory. False: it is missing, is no string, or
 * does not fit into `name`. */
enum { HF_TYPE = 32 };
bool wf_hf_model_type(const hf_object *o, char name[HF_TYPE]);
bool wf_hf_read_config(const hf_object *o, const hf_family **family, hf_config *c, char *message);
/* Sets the fields that the family determines, and checks the Transformer's configuration. Call it
 * after wf_hf_find_search, because generation_config.json may have the start id. */
bool wf_hf_complete(const hf_family *family, hf_config *c, char *message);

/* ---- lm/: language models -------------------------------------------------------------------- */

/* True if config.json is that of a family of language models, which wf_hf_import_lm imports. */
bool wf_hf_is_lm(const hf_object *config);
const char *wf_hf_lm_family_names(void);
/* wf_hf_lm_write makes the files other than the weights, and wf_hf_lm_save_weights writes the
 * weights. False with message: no family has such a model, or a file cannot be written. */
bool wf_hf_lm_write(wf_hf *hf, const wf_hf_writer *to, char *message);
bool wf_hf_lm_save_weights(const wf_model *m, const char *path, char *message);
bool wf_hf_import_lm(const char *folder, const hf_object *config, wf_hf *out, char *message);

/* ---- encoder/: encoders ---------------------------------------------------------------------- */

/* True if config.json is that of a family of encoders. The other functions here read and write such
 * a folder, as those above do for language models. */
bool wf_hf_is_encoder(const hf_object *config);
const char *wf_hf_bert_family_names(void);
bool wf_hf_import_encoder(const char *folder, const hf_object *config, wf_hf *out, char *message);
bool wf_hf_bert_write(wf_hf *hf, const wf_hf_writer *to, char *message);
bool wf_hf_bert_save_weights(const wf_model *m, const char *path, char *message);

/* ---- import.c -------------------------------------------------------------------------------- */

/* Reads the settings of a search from generation_config.json, or config.json in older folders. */
bool wf_hf_find_search(const char *folder, const hf_object *config, hf_config *c, hf_search *s,
                       wf_hf *out, char *message);
/* Puts the file's name before the message, unless ok is true. Returns ok. */
bool wf_hf_of_file(const char *name, bool ok, char *message);

/* ---- hf_search.c: generation_config.json, or config.json in old folders ---------------------- */

bool wf_hf_read_search(const hf_object *o, hf_config *c, hf_search *s, char *notes, char *message);
bool wf_hf_is_search_key(const char *name);
/* True if wf_generation.not_done, the list of unsupported settings, may have this one. sample: the
 * search draws its tokens. */
bool wf_hf_may_be_not_done(const char *name, bool sample);
/* hf_not_done.c: parses g->not_done, the settings that weft's search does not support, into the
 * pairs of o. Free o in either case. False with message: it is no list of such settings, or out of
 * memory. */
bool wf_hf_not_done(hf_object *o, const wf_generation *g, char *message);

/* ---- shards.c: the files of weights ---------------------------------------------------------- */

#define HF_WEIGHTS "model.safetensors"
#define HF_INDEX "model.safetensors.index.json"
#define HF_TORCH "pytorch_model.bin"
#define HF_TORCH_INDEX "pytorch_model.bin.index.json"

/* Opens the weights. *name becomes the name of the file, or of the index. NULL with message. */
wf_file *wf_hf_open_weights(const char *folder, const char **name, char *message);

/* Tensors with their names, which are gathered before they are written. It begins as { 0 }. */
typedef struct hf_tensors {
    wf_entry *entries; /* [n] */
    int n;
} hf_tensors;
/* Adds a tensor of f32. Returns its values, zeros, for the caller to fill. NULL: out of memory. */
float *wf_hf_add_tensor(hf_tensors *t, const char *name, int ndim, const int64_t *shape);
/* wf_hf_save_tensors writes a file, as transformers does. wf_hf_tensor_bytes returns the bytes of
 * that file, which the caller frees. False or NULL with message. */
bool wf_hf_save_tensors(const hf_tensors *t, const char *path, char *message);
char *wf_hf_tensor_bytes(const hf_tensors *t, size_t *bytes, char *message);
void wf_hf_tensors_free(hf_tensors *t);

/* ---- weights.c: their tensors ---------------------------------------------------------------- */

/* True if all values of a tensor are finite. wf_hf_is_plain: and it is not quantised. False with
 * message. */
bool wf_hf_is_finite(const wf_entry *e, char *message);
bool wf_hf_is_plain(const wf_file *f, const wf_entry *e, char *message);
bool wf_hf_load_weights(const wf_file *f, const hf_family *family, wf_model *m, char *message);
/* True if the weights have a table of the output and one of the embeddings, and the two differ. */
bool wf_hf_own_output(const wf_file *f, const hf_family *family);
bool wf_hf_save_weights(const wf_model *m, const hf_family *family, const int32_t *shut_out, int n,
                        const char *path, char *message);

/* ---- export.c: the files of a folder are made first, and then written ------------------------ */

bool wf_hf_write_search(const hf_config *c, const wf_generation *g, int n_shut_out,
                        const wf_hf_writer *to, char *message);
/* The name in transformers; NULL: it has no such activation. */
const char *wf_hf_activation_name(wf_activation activation);

/* ---- tokenizer/: tokenizers.c (Marian), multilingual.c (M2M100, NLLB, mBART), hf_byte_level.c
 * (BART), t5_tokenizer.c */

bool wf_hf_read_tokenizers(const char *folder, const hf_family *family, const hf_config *c,
                           wf_hf *out, char *message);
bool wf_hf_write_tokenizers(wf_hf *hf, const hf_family *family, const hf_config *c,
                            const wf_hf_writer *to, char *message);

bool wf_hf_read_multilingual(const char *folder, const hf_family *family, const hf_config *c,
                             wf_hf *out, char *message);
bool wf_hf_write_multilingual(wf_hf *hf, const hf_family *family, const hf_config *c,
                              const wf_hf_writer *to, char *message);
bool wf_hf_read_t5_tokenizer(const char *folder, const hf_config *c, wf_hf *out, char *message);
bool wf_hf_write_t5_tokenizer(wf_hf *hf, const hf_config *c, const wf_hf_writer *to, char *message);
bool wf_hf_read_byte_level(const char *folder, const hf_config *c, wf_hf *out, char *message);
bool wf_hf_write_byte_level(wf_hf *hf, const hf_config *c, const wf_hf_writer *to, char *message);

/* ---- hf_text.c: texts of JSON ---------------------------------------------------------------- */

void wf_hf_put_string(wf_text *t, const char *s); /* in quotes */
/* Appends formatted text, which must have at most 255 bytes. */
WF_PRINTF(2, 3) void wf_hf_put_as(wf_text *t, const char *format, ...);
/* Starts a pair of a JSON object: writes a comma (before the first pair a brace) and the key. */
void wf_hf_put_key(wf_text *t, const char *name);
void wf_hf_put_name(wf_text *t, const char *name, const char *value); /* a string */
void wf_hf_put_int(wf_text *t, const char *name, int64_t value);
void wf_hf_put_flag(wf_text *t, const char *name, bool value);
void wf_hf_put_real(wf_text *t, const char *name, double value);
/* The first pairs of config.json: the model's class and type. */
void wf_hf_put_type(wf_text *t, const char *architecture, const char *type);
/* The row's key with its value in c, an hf_config, hf_lm_config or hf_bert_config. activation: the
 * name of an activation; NULL: its usual one. */
void wf_hf_put_row(wf_text *t, const hf_key *row, const void *c, const char *activation);
/* A number with the fewest digits that read back as the same number; returns text. */
const char *wf_hf_real_text(double value, char text[WF_REAL_TEXT]);
/* wf_hf_put_file passes the text to the writer as a file with this name, and frees it.
 * wf_hf_put_object ends the text's object before. */
bool wf_hf_put_file(wf_text *t, const char *name, const wf_hf_writer *to, char *message);
bool wf_hf_put_object(wf_text *t, const char *name, const wf_hf_writer *to, char *message);

/* Adds a sentence to the notes, unless there is no room for it. */
WF_PRINTF(2, 3) void wf_hf_note(char notes[WF_HF_NOTES], const char *format, ...);

/* ---- tokenizer/pieces.c: parts of tokenizers' files ------------------------------------------ */

/* Writes the first n pieces and their ids as a file with a JSON object, such as vocab.json. */
bool wf_hf_put_vocabulary(const wf_tokenizer *t, int64_t n, const char *name,
                          const wf_hf_writer *to, char *message);
bool wf_hf_same_pieces(const wf_tokenizer *a, const wf_tokenizer *b);
/* True if the first ids of a have the pieces of b. */
bool wf_hf_begins_with(const wf_tokenizer *a, const wf_tokenizer *b);
/* Reads an object that maps pieces to ids, which are 0 to n - 1, each once. Returns the pieces by
 * id, in an array to be freed; the texts belong to the object. NULL with message. */
const char **wf_hf_pieces(const hf_object *o, int64_t *n, char *message);
/* Returns `rows` pieces by id, in an array to be freed. A piece is NULL for a row of the embeddings
 * without one. NULL with message. */
const char **wf_hf_pieces_in(const hf_object *vocabulary, int64_t rows, char *message);
/* Reads a token's text, also if the value is an object that holds it as "content". Without the key
 * it is `absent`. False: the value is no text, or has 80 bytes or more. */
bool wf_hf_token_text(const hf_object *o, const char *key, const char *absent, char text[80]);
/* Makes a tokenizer of a .spm file alone, with its options in *o. NULL with message. */
wf_tokenizer *wf_hf_open_spm(const char *name, const void *model, size_t bytes,
                             wf_sentencepiece_options *o, char *message);

#endif
