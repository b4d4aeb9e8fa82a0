/* tools/train/session.h - a training in progress: the objects that all parts of train use. */
#ifndef WEFT_TOOLS_TRAIN_SESSION_H
#define WEFT_TOOLS_TRAIN_SESSION_H

#include "evaluate.h"
#include "progress.h"
#include "saving.h"
#include "telemetry.h"

/* Sums over the steps since the last line of progress. */
typedef struct interval {
    double loss, nll, alignment, tokens, correct, seconds;
    /* the part of `seconds` spent in exchanges with other ranks, including waiting for them */
    double exchanging;
    int64_t steps;
} interval;

/* The work of this process in one step. */
typedef struct step_work {
    int64_t batches, parts; /* its own batches; batches of all ranks */
    int64_t sent, received; /* bytes */
    double seconds, exchanging;
} step_work;

/* The work of this process since its first step. */
typedef struct work {
    int64_t first_step;      /* the number of steps done before */
    double started, seconds; /* clock at the first step; seconds of steps alone */
    double exchanged;        /* the part of `seconds` that exchanges with other ranks took */
    interval recent;
    step_work last;
    double norm; /* of the last gradient */
} work;

typedef struct session {
    settings *set;
    wf_file *from, *init;    /* the checkpoint of a resume; the model to start from; or NULL */
    wf_transport *transport; /* connects the ranks that train together; NULL: a single process */
    int signalled;           /* with ranks: a signal of any rank, agreed on after each step; or 0 */
    bool late;               /* --max-time is over, with ranks by the clock of rank 0 */
    int here;                /* ranks on this machine */
    /* this is rank 0 or a single process: it writes the files and prints */
    bool leads;
    dataset dataset;
    batch batch;
    wf_pool *pool;
    wf_model *model;
    wf_trainer *trainer;
    wf_schedule schedule;
    evaluator evaluator;
    training_state at; /* the number of steps done, and the best loss */
    work work;
    kept kept;
    evaluation judged; /* the last validation, and the step after which it was made */
    int64_t judged_step;
    report report;
    telemetry telemetry;
} session;

/* session_read and session_open print a sentence on stderr and exit if something is wrong.
 * session_read reads settings and data, which forked processes share. */
void session_read(session *s);
void session_open(session *s);  /* opens the model and its plans, and prints the first lines */
bool session_close(session *s); /* false: events are missing */

#endif
