/* tools/train/metadata.h - what a file of a training says beside its model: the settings, the
 * vocabulary, which training it is, and what others have written of the model's use. */
#ifndef WEFT_TOOLS_TRAIN_METADATA_H
#define WEFT_TOOLS_TRAIN_METADATA_H

#include "session.h"

/* Keeps the metadata of the model's file that neither weft nor train writes itself, such as how to
 * search with it. False: out of memory. */
bool metadata_carry(carried *c, const wf_file *f, const wf_model *m);
void metadata_drop(carried *c);

/* All metadata of the file, to be freed; there is room for one pair more. NULL: out of memory. */
wf_meta *metadata_new(session *s, settings_meta *kept, int *n);

#endif
