/* tools/train/session.h - a training in progress: what train opens once and every part of it
 * uses. */
#ifndef WEFT_TOOLS_TRAIN_SESSION_H
#define WEFT_TOOLS_TRAIN_SESSION_H

#include "evaluate.h"
#include "identity.h"
#include "progress.h"
#include "settings/settings.h"
#include "telemetry.h"

/* Sums over the steps since the last line. */
typedef struct interval {
    double loss, nll, tokens, correct, seconds;
    double exchanging; /* of the seconds, with other ranks; waiting for them is in it */
    int64_t steps;
} interval;

/* Metadata copied unchanged from the model that the training started from: metadata.h. */
typedef struct carried {
    wf_meta *pairs;
    int n;
} carried;

/* Work of this process in one step. */
typedef struct step_work {
    int64_t batches, parts; /* of its own; of all */
    int64_t sent, received; /* bytes */
    double seconds, exchanging;
} step_work;

typedef struct session {
    settings *set;
    wf_file *from, *init;    /* the checkpoint of a resume; the model to start from; or NULL */
    wf_transport *transport; /* between the ranks that train together; NULL: alone */
    int signalled;           /* by this signal; all ranks know it after the same step */
    bool late;               /* the time is up, by rank 0's clock */
    int here;                /* ranks on this machine */
    bool leads;              /* rank 0, or alone: it writes the files and speaks */
    wf_pool *pool;
    wf_model *model;
    wf_trainer *trainer;
    step_work did; /* in the last step */
    evaluator evaluator;
    dataset dataset;
    batch batch;
    wf_schedule schedule;
    training_state at;       /* the steps that are done, and how good they were */
    char run[IDENTITY_TEXT]; /* which training it is; "" until it is first written down */
    carried carried;
    int64_t saved_step; /* in the file (-1: none) */
    double norm;
    interval recent;
    double started, trained_seconds; /* clock at the first step; of steps alone */
    double exchanged;                /* of these, with other ranks */
    int64_t first_step;
    char best_path[4096]; /* where the weights with the lowest loss are kept, or "" */
    double best_kept;     /* their loss; infinite: there are none */
    bool best_lost;       /* the last that should have been kept could not be written */
    evaluation judged;    /* the last validation, after this step */
    int64_t judged_step;
    report report;
    history history;
    telemetry telemetry;
} session;

/* Refusals come first: these functions print a sentence on stderr and exit. session_read reads
 * settings and data, which forked processes share. */
void session_read(session *s);
void session_open(session *s);  /* the model, its plans, and the first lines */
bool session_close(session *s); /* false: events are missing */

bool session_evaluates(const session *s); /* is there anything that was held back? */

#endif
