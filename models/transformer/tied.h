/* models/transformer/tied.h - inside models: the embedding tables of a Transformer that may be
 * tied, under their names in files. */
#ifndef WEFT_MODELS_TRANSFORMER_TIED_H
#define WEFT_MODELS_TRANSFORMER_TIED_H

#include "models/transformer.h"

/* The number of tables. A parameter that several tables share has the name of the first of them. */
enum { WF_TABLES = 3 };
extern const char *const wf_tables[WF_TABLES]; /* encoder, decoder, output */
/* wf_first_tied: the index of the first table that is tied; WF_TABLES: none is. wf_n_tied: how many
 * tables are tied, from that one on. */
int wf_first_tied(wf_tie tie);
int wf_n_tied(wf_tie tie);

#endif
