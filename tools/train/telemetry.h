/* tools/train/telemetry.h - what a training leaves to be looked at while it runs: its report as a page, and
 * events for TensorBoard. Rank 0 alone does it.
 *
 * Nothing of a training depends on it: the checkpoint has the same bytes with it and without. */
#ifndef WEFT_TOOLS_TRAIN_TELEMETRY_H
#define WEFT_TOOLS_TRAIN_TELEMETRY_H

#include "evaluate.h"
#include "progress.h"
#include "tools/generate/attention_maps.h"
#include "tools/history/album.h"
#include "tools/history/history.h"
#include "tools/history/tensorboard.h"

struct session;

typedef struct telemetry {
    tensorboard *events; /* NULL: nobody asked for them */
    album album;         /* outputs and attention at the validations */
    /* The held-out example whose attention is looked at, cut to ALBUM_SIDE tokens of each side. */
    int32_t src[ALBUM_SIDE], answer[ALBUM_SIDE];
    int64_t n, length; /* length 0: there is none */
    language language;
    attention attention;
    bool lost; /* the page could not be written the last time */
} telemetry;

/* Open what was asked for; exits if it can't be written, or is of another training. */
void telemetry_open(struct session *s);
double telemetry_memory(struct session *s); /* bytes of its plan */
void telemetry_step(struct session *s, const progress *p);
/* A validation, while the weights that were judged are in place. */
void telemetry_validation(struct session *s, const evaluation *v);
/* Write the page, if one was asked for; a failure is told, and the training goes on. */
void telemetry_write(struct session *s, bool ended);
bool telemetry_close(struct session *s); /* false: events are missing, which is told */

/* "Learning to sort", "Learning from pairs.tsv". */
enum { RUN_TITLE = 100 };
void telemetry_title(const struct session *s, char title[RUN_TITLE]);

#endif
