/* tools/train/identity.h - which training a model's file is of.
 *
 * The identity is a function of the training alone: its settings, its data, its vocabulary. It is
 * the same at every step and on every machine: no time, path or number of threads is in it. A
 * training that is resumed keeps the one in its file, whatever settings there are by then. */
#ifndef WEFT_TOOLS_TRAIN_IDENTITY_H
#define WEFT_TOOLS_TRAIN_IDENTITY_H

#include "core/file.h"

#define IDENTITY_KEY "weft.run" /* of the metadata */
enum { IDENTITY_TEXT = 17 };

/* The identity that n pairs of metadata give, in any order; pairs of other programs do not count. */
const char *identity_of(const wf_meta *pairs, int n, char text[IDENTITY_TEXT]);

/* The identity in a file, or else the one that its metadata give. */
const char *identity_in(const wf_file *f, char text[IDENTITY_TEXT]);

/* Are both files of one training? */
bool identity_same(const wf_file *a, const wf_file *b);

#endif
