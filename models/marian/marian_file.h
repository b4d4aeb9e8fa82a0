/* models/marian/marian_file.h - inside models/marian: a file's tensors and settings, and their
 * names. */
#ifndef WEFT_MODELS_MARIAN_MARIAN_FILE_H
#define WEFT_MODELS_MARIAN_MARIAN_FILE_H

#include "core/base/int8_row.h"
#include "core/emit/c_text.h"
#include "core/file/zip.h"
#include "models/marian_internal.h"
#include "models/transformer.h"

enum { MARIAN_NAME = 128, MARIAN_DIMS = 4 };
#define MARIAN_SETTINGS "special:model.yml"

typedef enum marian_type { MARIAN_F32, MARIAN_TEXT, MARIAN_INT8 } marian_type;

/* A tensor in the bytes of a file. Its data may be unaligned. */
typedef struct marian_item {
    const char *name;
    marian_type type;
    int ndim;
    int64_t shape[MARIAN_DIMS], count;
    const char *data;
    float multiplier; /* if int8: a value is its integer divided by this */
    bool used;
} marian_item;

typedef struct marian_file {
    marian_item *items;
    int n;
    /* the archive of a model.npz, which holds the items' names; empty for a binary file */
    wf_zip zip;
} marian_file;

/* ---- marian_file.c --------------------------------------------------------------------------- */

/* Read the list of tensors, and check that all their bytes are there. The bytes must live as long
 * as f. False with message; close it in either case. */
bool wf_marian_open(marian_file *f, const void *bytes, size_t size, char *message);
void wf_marian_close(marian_file *f);
/* Finds an item, and marks it as used. NULL: there is none. */
const marian_item *wf_marian_find(marian_file *f, const char *name);
/* Element i as a number; 0 for text. */
float wf_marian_value(const marian_item *item, int64_t i);

/* ---- marian_npz.c: numpy's arrays in ZIP archives -------------------------------------------- */

bool wf_marian_open_npz(marian_file *f, const void *bytes, size_t size, char *message);

/* ---- marian_settings.c ----------------------------------------------------------------------- */

/* Read the settings, whose text need not be terminated. Every key is used, must have a certain
 * value, or is known to change nothing; other keys are refused by name. */
bool wf_marian_read_settings(const char *text, size_t bytes, wf_transformer_config *c,
                             char *message);
/* Read the length penalty in a decoder's configuration; a word penalty is noted as not done. */
bool wf_marian_read_search(const char *text, size_t bytes, wf_generation *g, char *message);
/* The settings as Marian writes them, malloc'ed. NULL with message: Marian has no such model. */
char *wf_marian_write_settings(const wf_transformer_config *c, char *message);

/* ---- marian_names.c -------------------------------------------------------------------------- */

/* How the file stores a parameter. A matrix [out, in] of weft has the shape [in, out] there; its
 * numbers are transposed in f32, but not in int8. */
typedef enum marian_form { MARIAN_UNKNOWN, MARIAN_VECTOR, MARIAN_MATRIX, MARIAN_TABLE } marian_form;

/* Writes Marian's name of part `part` of a parameter of weft. *parts becomes the number of parts:
 * three for a packed projection of queries, keys and values, else one. Returns the form of the
 * part. */
marian_form wf_marian_name(const wf_transformer_config *c, const char *parameter, int part,
                           int *parts, char name[MARIAN_NAME]);

/* ---- marian_weights.c ------------------------------------------------------------------------ */

bool wf_marian_load_weights(marian_file *f, wf_model *m, char *message);

/* The items that hold one parameter: one item, or three for a packed projection. */
typedef struct marian_origin {
    const marian_item *items[3];
    marian_form form;
    int parts;
    int64_t rows, columns; /* of a part */
} marian_origin;
/* Finds a leaf's items and checks their shapes. Call it before taking memory for the leaf, whose
 * size only the file's settings determine. False with message. */
bool wf_marian_find_origin(marian_file *f, const wf_transformer_config *c, const wf_tensor *leaf,
                           marian_origin *origin, char *message);
/* True if every item was used, except for scales of activations, which a model in f32 does not
 * need. False with message. */
bool wf_marian_explain_rest(const marian_file *f, char *message);

/* ---- marian_binary.c ------------------------------------------------------------------------- */

/* Appends the lowest n bytes of a number, low byte first. */
void wf_marian_add_number(wf_text *to, uint64_t number, int n);
/* The multiplier of a matrix whose largest absolute value is `largest`. Each value is stored as the
 * integer nearest to value * multiplier, which is from -127 to 127. */
float wf_marian_multiplier(float largest);
static inline float wf_marian_integer(float value, float multiplier) {
    return wf_int8_nearest(value * multiplier);
}
/* Rounds n values to int8 with one multiplier, see wf_marian_multiplier. Writes the n integers, and
 * after them the multiplier as f32. */
void wf_marian_round(const float *values, int64_t n, char *to);

/* ---- marian_calibrate.c ---------------------------------------------------------------------- */

/* The scale of the activations that are multiplied with part `part` of a parameter. 0: no product
 * with it has been seen. */
float wf_marian_scale(const wf_marian_scales *s, const wf_tensor *weight, int part);

/* ---- marian_scales.c ------------------------------------------------------------------------- */

/* The parameter of scales, [matrices, 2]. */
wf_tensor *wf_marian_declare_scales(wf_model *m);
/* Declares the scales with a file's values if the file is in int8 and has them; otherwise it does
 * nothing. False with message: out of memory. */
bool wf_marian_keep_scales(marian_file *f, wf_model *m, char *message);
/* The row in the parameter of scales for part `part` of a weight. -1: no product has this part. */
int wf_marian_scale_index(const wf_model *m, const wf_tensor *weight, int part);

/* ---- marian_export.c ------------------------------------------------------------------------- */

/* True if a file of Marian can hold all parameters: those of a Transformer alone, in f32. False
 * with message. */
bool wf_marian_is_plain(const wf_model *m, char *message);

/* A parameter, or a part of one that Marian has in several. */
typedef struct marian_part {
    const wf_tensor *of;
    int number; /* of the part */
    char name[MARIAN_NAME];
    marian_form form;
    int64_t rows, columns;
    const float *values; /* [rows, columns] */
} marian_part;
/* Calls `add` for each part of each parameter. False with message: a parameter has no name in
 * Marian, or `add` has failed. */
bool wf_marian_each_part(const wf_model *m,
                         bool (*add)(void *user, const marian_part *p, char *message), void *user,
                         char *message);

#endif
