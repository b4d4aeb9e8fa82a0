/* models/transformer/tied.h - inside models: the embedding tables of a Transformer that may be
 * tied, under their names in files. */
#ifndef WEFT_MODELS_TRANSFORMER_TIED_H
#define WEFT_MODELS_TRANSFORMER_TIED_H

#include "models/transformer.h"

/* The first table of a tied group gives the parameter its name. */
enum { WF_TABLES = 3 };
extern const char *const wf_tables[WF_TABLES]; /* encoder, decoder, output */
/* The first table of the tied group, or WF_TABLES; and how many tables follow it in the group, with
 * it. */
int wf_first_tied(wf_tie tie);
int wf_n_tied(wf_tie tie);

#endif
