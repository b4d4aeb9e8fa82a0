/* models/transformer/tied.h - inside models: the embedding tables of a Transformer that may be
 * tied, under their names in files. */
#ifndef WEFT_MODELS_TRANSFORMER_TIED_H
#define WEFT_MODELS_TRANSFORMER_TIED_H

#include "models/transformer.h"

/* The number of tables. A parameter that several tables share has the name of the first of them. */
enum { WF_TABLES = 3 };
extern const char *const wf_tables[WF_TABLES]; /* encoder, decoder, output */
/* wf_first_tied returns the index of the first table that is tied, or WF_TABLES if none is.
 * wf_n_tied returns how many tables from that one on are tied. */
int wf_first_tied(wf_tie tie);
int wf_n_tied(wf_tie tie);

#endif
