/* models/decode/narrow.h - inside models: a search among the candidates of a shortlist. */
#ifndef WEFT_MODELS_DECODE_NARROW_H
#define WEFT_MODELS_DECODE_NARROW_H

#include "models/shortlist.h"
#include "search.h"

/* True if the list was made for vocabularies of the model's sizes. */
bool wf_shortlist_fits(const wf_shortlist *l, const wf_model *m);

/* ---- few_logits.c ---------------------------------------------------------------------------- */

typedef struct few_logits few_logits;

/* Make *few, which computes the logits of n ids alone (ids may be repeated), and make the decoder's
 * steps end at `hidden`, the last layer's output. *few stays NULL, and steps compute all logits, if
 * the ids are more than half of the vocabulary, or if the model's logits are no plain product.
 * False: see wf_decoder_error. Close *few in either case. */
bool wf_few_logits_open(search *q, const int32_t *ids, int64_t n, few_logits **few);
void wf_few_logits_close(few_logits *few);
/* Replaces d->logits, which points to the last layer's output [rows,D], by logits [rows,V]. Ids
 * without computed logits get minus infinity. */
bool wf_few_logits_compute(few_logits *few, wf_decoder *d, int rows);

#endif
