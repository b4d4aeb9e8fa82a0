/* tools/train/saving.h - writes the files of a training: its checkpoint, and the best weights.
 * Their metadata are the settings, the vocabulary, the training's identity, and metadata about the
 * model's use that came from elsewhere.
 *
 * The identity is a function of the training alone: its settings, its data, its vocabulary. It
 * contains no time, path or number of threads, so it is the same at every step and on every
 * machine. A resumed training keeps the identity in its file, even if settings have changed. */
#ifndef WEFT_TOOLS_TRAIN_SAVING_H
#define WEFT_TOOLS_TRAIN_SAVING_H

#include "session.h"

/* The identity stored in a file. If it has none, it is computed from the metadata. */
const char *identity_in(const wf_file *f, char text[IDENTITY_TEXT]);

/* True if both files can be read and belong to the same training. */
bool identity_same(const wf_file *a, const wf_file *b);

/* Keep the metadata of the model's file that neither weft nor train writes itself, such as search
 * settings. False: out of memory. */
bool metadata_carry(carried *c, const wf_file *f, const wf_model *m);
void metadata_drop(carried *c);

/* All metadata of the file, with room for one more pair; the caller frees the array. Its texts are
 * in `kept` and in s. NULL: out of memory. */
wf_meta *metadata_new(session *s, settings_meta *kept, int *n);

/* Writes the checkpoint to `path`, or with `checkpoint` false the weights alone, as the best ones.
 * All ranks must call it, and rank 0 writes. False: it was not written, and rank 0 has printed
 * why. */
bool write_model(session *s, const char *path, bool checkpoint);
/* Saves this step to --model, unless there is no --model or it has this step already. False: a
 * warning has said why not. */
bool save(session *s);

#endif
