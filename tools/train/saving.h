/* tools/train/saving.h - the files of a training: its checkpoint, and the best weights. Checks at
 * the start whether they may be written, takes over what a resumed training had, and writes them.
 * Their metadata are the settings, the vocabulary, the training's identity, and metadata about the
 * model's use that came from elsewhere.
 *
 * The identity is a function of the training alone: its settings, its data, its vocabulary. It
 * contains no time, path or number of threads, so it is the same at every step and on every
 * machine. A resumed training keeps the identity in its file, even if settings have changed. */
#ifndef WEFT_TOOLS_TRAIN_SAVING_H
#define WEFT_TOOLS_TRAIN_SAVING_H

#include "settings/settings_file.h"

struct session;

enum { IDENTITY_TEXT = 17 }; /* bytes of an identity, with '\0' */

/* Metadata copied unchanged from the model that the training started from. */
typedef struct carried {
    wf_meta *pairs;
    int n;
} carried;

/* The files in which a training is kept. */
typedef struct kept {
    char run[IDENTITY_TEXT]; /* identity of the training; "" until it is first needed */
    carried carried;
    int64_t step;         /* the step in the file --model; -1: nothing was saved */
    char best_path[4096]; /* file of the weights with the lowest loss, or "" */
    double best;          /* loss of the weights in best_path; infinite: none were written */
    bool best_lost;       /* the last weights that should have been kept could not be written */
} kept;

/* Finds which files the training will write. Exits if one of them cannot or must not be written.
 * This is checked at the start, because a training may take hours. */
void saving_check(struct session *s);
/* Takes the progress and the identity of a resumed training from its files, and the metadata that
 * saves carry on. Exits if the training is over, or if the file of best weights belongs to another
 * training, because it would be replaced. */
void saving_open(struct session *s);
void saving_close(kept *k);
/* The identity of the training; NULL: out of memory. */
const char *saving_identity(struct session *s);

/* Writes the checkpoint to `path`, or with `checkpoint` false the weights alone, as the best ones.
 * All ranks must call it, and rank 0 writes. False: it was not written, and rank 0 has printed
 * why. */
bool write_model(struct session *s, const char *path, bool checkpoint);
/* Saves this step to --model, unless there is no --model or it has this step already. False: a
 * warning has said why not. */
bool save(struct session *s);

#endif
