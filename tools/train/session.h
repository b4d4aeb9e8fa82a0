/* tools/train/session.h - a training in progress: the objects that all parts of train use. */
#ifndef WEFT_TOOLS_TRAIN_SESSION_H
#define WEFT_TOOLS_TRAIN_SESSION_H

#include "evaluate.h"
#include "progress.h"
#include "settings/settings_file.h"
#include "telemetry.h"

enum { IDENTITY_TEXT = 17 }; /* bytes of a training's identity, with '\0': saving.h */

/* Sums over the steps since the last line of progress. */
typedef struct interval {
    double loss, nll, alignment, tokens, correct, seconds;
    /* the part of `seconds` spent in exchanges with other ranks, including waiting for them */
    double exchanging;
    int64_t steps;
} interval;

/* Metadata copied unchanged from the model that the training started from: saving.h. */
typedef struct carried {
    wf_meta *pairs;
    int n;
} carried;

/* The work of this process in one step. */
typedef struct step_work {
    int64_t batches, parts; /* its own batches; batches of all ranks */
    int64_t sent, received; /* bytes */
    double seconds, exchanging;
} step_work;

typedef struct session {
    settings *set;
    wf_file *from, *init;    /* the checkpoint of a resume; the model to start from; or NULL */
    wf_transport *transport; /* connects the ranks that train together; NULL: a single process */
    int signalled;           /* with ranks: a signal of any rank, agreed on after each step; or 0 */
    bool late;               /* --max-time is over, with ranks by the clock of rank 0 */
    int here;                /* ranks on this machine */
    /* this is rank 0 or a single process: it writes the files and prints */
    bool leads;
    wf_pool *pool;
    wf_model *model;
    wf_trainer *trainer;
    step_work did; /* the work of the last step */
    evaluator evaluator;
    dataset dataset;
    batch batch;
    wf_schedule schedule;
    training_state at;       /* the number of steps done, and the best loss */
    char run[IDENTITY_TEXT]; /* identity of the training; "" until it is first written */
    carried carried;
    int64_t saved_step; /* the step in the file --model; -1: nothing was saved */
    double norm;
    interval recent;
    double started, trained_seconds; /* clock at the first step; seconds of steps alone */
    /* the part of trained_seconds that exchanges with other ranks took */
    double exchanged;
    int64_t first_step;
    char best_path[4096]; /* file of the weights with the lowest loss, or "" */
    double best_kept;     /* loss of the weights in best_path; infinite: none were written */
    bool best_lost;       /* the last weights that should have been kept could not be written */
    evaluation judged;    /* the last validation, and the step after which it was made */
    int64_t judged_step;
    report report;
    history history;
    telemetry telemetry;
} session;

/* session_read and session_open print a sentence on stderr and exit if something is wrong.
 * session_read reads settings and data, which forked processes share. */
void session_read(session *s);
void session_open(session *s);  /* opens the model and its plans, and prints the first lines */
bool session_close(session *s); /* false: events are missing */

bool session_evaluates(const session *s); /* true if anything was held out */

#endif
