/* models/transformer/tied.h - inside models: the places that one table of a Transformer can be
 * in, as its files name them. */
#ifndef WEFT_MODELS_TRANSFORMER_TIED_H
#define WEFT_MODELS_TRANSFORMER_TIED_H

#include "models/transformer.h"

/* The first that is tied names the parameter. */
enum { WF_TABLES = 3 };
extern const char *const wf_tables[WF_TABLES]; /* of the encoder, of the decoder, of the output */
int wf_first_tied(wf_tie tie);                 /* WF_TABLES: none is */

#endif
