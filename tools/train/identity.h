/* tools/train/identity.h - identifies the training that a model's file belongs to.
 *
 * The identity is a function of the training alone: its settings, its data, its vocabulary. It
 * contains no time, path or number of threads, so it is the same at every step and on every
 * machine. A resumed training keeps the identity in its file, even if settings have changed. */
#ifndef WEFT_TOOLS_TRAIN_IDENTITY_H
#define WEFT_TOOLS_TRAIN_IDENTITY_H

#include "core/file.h"

#define IDENTITY_KEY "weft.run" /* of the metadata */
enum { IDENTITY_TEXT = 17 };

/* The identity that n pairs of metadata give, in any order. Pairs of other programs are ignored. */
const char *identity_of(const wf_meta *pairs, int n, char text[IDENTITY_TEXT]);

/* The identity stored in a file, or else the one that its metadata give. */
const char *identity_in(const wf_file *f, char text[IDENTITY_TEXT]);

/* True if both files belong to the same training. */
bool identity_same(const wf_file *a, const wf_file *b);

#endif
