/* models/file/model_file.h - inside models: what reading a model's file and a state_dict share. */
#ifndef WEFT_MODELS_FILE_MODEL_FILE_H
#define WEFT_MODELS_FILE_MODEL_FILE_H

#include "models/transformer.h"

/* The places that one table can be in. The first that is tied names the parameter. */
enum { WF_TABLES = 3 };
extern const char *const wf_tables[WF_TABLES]; /* of the encoder, of the decoder, of the output */
int wf_first_tied(wf_tie tie);                 /* WF_TABLES: none is */
bool wf_same_table(const wf_entry *a, const wf_entry *b); /* in type, shape and values */

/* wf_transformer_load_weights of the tensors `prefix` + name; each of the file must be one. */
bool wf_transformer_load_prefixed(wf_transformer *m, const wf_file *f, const char *prefix,
                                  char *message);

#endif
