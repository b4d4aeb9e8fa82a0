/* tools/train/metadata.h - the metadata in a training's file: the settings, the vocabularies, the
 * training's identity, names of classes, the base of adapters, and metadata of other programs. */
#ifndef WEFT_TOOLS_TRAIN_METADATA_H
#define WEFT_TOOLS_TRAIN_METADATA_H

#include "session.h"

/* Keep the metadata of the model's file that neither weft nor train writes itself, such as search
 * settings. False: out of memory. */
bool metadata_carry(carried *c, const wf_file *f, const wf_model *m);
void metadata_drop(carried *c);

/* All metadata of the file, with room for one more pair; the caller frees them. NULL: out of
 * memory. */
wf_meta *metadata_new(session *s, settings_meta *kept, int *n);

#endif
