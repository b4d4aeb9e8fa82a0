/* models/generation_internal.h - inside models, and for the programs: the settings for decoding as
 * metadata. Not installed. */
#ifndef WEFT_MODELS_GENERATION_INTERNAL_H
#define WEFT_MODELS_GENERATION_INTERNAL_H

#include "models/generation.h"

/* True if the file has any setting for decoding. */
bool wf_generation_in_file(const wf_file *f);
/* Write the settings as metadata pairs, whose values are stored in `text`. Returns how many pairs
 * there are. */
typedef struct wf_generation_text {
    char of[WF_GENERATION_META][WF_GENERATION_TEXT];
} wf_generation_text;
int wf_generation_to_meta(const wf_generation *g, wf_generation_text *text,
                          wf_meta pairs[WF_GENERATION_META]);

#endif
