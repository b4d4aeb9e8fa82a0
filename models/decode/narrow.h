/* models/decode/narrow.h - inside models: a search among the candidates of a shortlist. */
#ifndef WEFT_MODELS_DECODE_NARROW_H
#define WEFT_MODELS_DECODE_NARROW_H

#include "models/shortlist.h"
#include "search.h"

/* Was the list made for vocabularies of these sizes? */
bool wf_shortlist_fits(const wf_shortlist *l, const wf_model *m);

#endif
