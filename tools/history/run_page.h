/* tools/history/run_page.h - a training as a stand-alone page: curves, outputs, attention, time,
 * memory.
 *
 * The whole page is written again at each validation, or without validations at each save, so
 * reloading it shows the state at that time. A resumed training reads the history back from the
 * page and continues it. So the history is not in the checkpoint, whose bytes are the same with and
 * without a report. */
#ifndef WEFT_TOOLS_HISTORY_RUN_PAGE_H
#define WEFT_TOOLS_HISTORY_RUN_PAGE_H

#include "album.h"
#include "core/graph.h"
#include "history.h"

/* A line about the training, such as "model" and "a Transformer of width 64 ...". */
typedef struct run_fact {
    const char *name, *text;
} run_fact;

typedef struct run_page {
    const char *title;
    const char *run; /* identifies the training */
    const run_fact *facts;
    int n_facts;
    int64_t step, total;
    double elapsed; /* seconds of this process */
    bool ended;
    const history *history;
    const album *album;
    wf_plan *plan; /* plan of a training step, whose profile is shown */
} run_page;

/* Write the page. False with message[256]: nothing is written, and an old page is unchanged. */
bool run_page_write(const run_page *p, const char *path, char *message);

typedef enum { RUN_PAGE_NONE, RUN_PAGE_OWN, RUN_PAGE_BAD } run_page_found;
/* Read back the history of this training up to a step: RUN_PAGE_OWN. RUN_PAGE_NONE: there is no
 * file. RUN_PAGE_BAD with message[256]: it cannot be read, or belongs to another training. */
run_page_found run_page_read(const char *path, const char *run, int64_t step, history *h, album *a,
                             char *message);

#endif
