/* tools/train/telemetry.h - output for watching a training while it runs: its report as a page, and
 * events for TensorBoard. Only rank 0 writes it.
 *
 * The training does not depend on it: the checkpoint has the same bytes with and without. */
#ifndef WEFT_TOOLS_TRAIN_TELEMETRY_H
#define WEFT_TOOLS_TRAIN_TELEMETRY_H

#include "evaluate.h"
#include "progress.h"
#include "settings/settings.h"
#include "tools/generate/attention_maps.h"
#include "tools/history/album.h"
#include "tools/history/history.h"
#include "tools/history/tensorboard.h"

struct session;

typedef struct telemetry {
    tensorboard *events; /* NULL: --tensorboard was not given */
    history history;     /* measured values */
    album album;         /* outputs and attention at each validation */
    /* The held-out example whose attention is shown, cut to ALBUM_SIDE tokens on each side. */
    int32_t src[ALBUM_SIDE], answer[ALBUM_SIDE];
    int64_t n, length; /* tokens of src and of answer; length 0: there is no example */
    language language;
    attention attention;
    bool lost; /* the last attempt to write the page failed */
} telemetry;

/* Open the outputs that options ask for. Exits if one cannot be written, or belongs to another
 * training. */
void telemetry_open(struct session *s);
double telemetry_memory(struct session *s); /* bytes of the plan for the example's attention */
void telemetry_step(struct session *s, const progress *p);
/* Record a validation. The model must still have the weights that were evaluated. */
void telemetry_validation(struct session *s, const evaluation *v);
/* Write the page, if one was requested. A failure is reported, and the training goes on. */
void telemetry_write(struct session *s, bool ended);
bool telemetry_close(struct session *s); /* false: events are missing, which has been reported */

/* A title such as "Learning to sort" or "Learning from pairs.tsv". */
enum { RUN_TITLE = 100 };
void telemetry_title(const settings *set, char title[RUN_TITLE]);

#endif
