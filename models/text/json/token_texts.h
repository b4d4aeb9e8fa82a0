/* models/text/json/token_texts.h - inside models: the list of texts that decoders change. A decoder
 * writes the next list from the list now, and then swaps both. */
#ifndef WEFT_MODELS_TEXT_TOKEN_TEXTS_H
#define WEFT_MODELS_TEXT_TOKEN_TEXTS_H

#include <stdlib.h>

#include "text_steps.h"

bool wf_texts_put(wf_parts *p, wf_span s); /* appends to the unfinished text */
bool wf_texts_end(wf_parts *p);            /* finishes it: the next put begins another */
void wf_texts_swap(wf_parts *p);

static inline void wf_texts_release(wf_spm_text *t) {
    free(t->at);
}

#endif
