/* models/decode/narrow.h - inside models: a search among the candidates of a shortlist. */
#ifndef WEFT_MODELS_DECODE_NARROW_H
#define WEFT_MODELS_DECODE_NARROW_H

#include "models/shortlist.h"
#include "search.h"

/* Was the list made for vocabularies of these sizes? */
bool wf_shortlist_fits(const wf_shortlist *l, const wf_model *m);

/* ---- few_logits.c ---------------------------------------------------------------------------- */

typedef struct few_logits few_logits;

/* Make *few, which computes the logits of n ids alone, some of them perhaps repeated, and let the
 * decoder's steps end with hidden. *few stays NULL if the ids are too many, or if the model's
 * logits are no plain product. False: an error of the decoder. Close *few in either case. */
bool wf_few_logits_open(search *q, const int32_t *ids, int64_t n, few_logits **few);
void wf_few_logits_close(few_logits *few);
/* Computes logits [rows,V] from the hidden [rows,D] that d->logits points to, and points d->logits
 * to them. Ids without a logit here have minus infinity. */
bool wf_few_logits_compute(few_logits *few, wf_decoder *d, int rows);

#endif
