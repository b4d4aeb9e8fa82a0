/* tools/history/run_page.h - a training as a stand-alone page: curves, outputs, attention, time, memory.
 *
 * The page is written whole at each validation: whoever reloads it sees the run as it is. Its data are
 * the history, too: a resumed training reads them back and goes on with them. So nothing of it is in
 * the checkpoint, whose bytes are the same with a report and without. */
#ifndef WEFT_TOOLS_HISTORY_RUN_PAGE_H
#define WEFT_TOOLS_HISTORY_RUN_PAGE_H

#include "album.h"
#include "core/graph.h"
#include "history.h"

/* A line about the training: "model", "a Transformer of width 64 ...". */
typedef struct run_fact {
    const char *name, *text;
} run_fact;

typedef struct run_page {
    const char *title;
    const char *run; /* which training it is */
    const run_fact *facts;
    int n_facts;
    int64_t step, total;
    double elapsed; /* seconds of this process */
    bool ended;
    const history *history;
    const album *album;
    wf_plan *plan; /* a training step's; its profile says where the time went */
} run_page;

/* False with message[256]: nothing is written, and what was there is as it was. */
bool run_page_write(const run_page *p, const char *path, char *message);

typedef enum { RUN_PAGE_NONE, RUN_PAGE_OWN, RUN_PAGE_BAD } run_page_found;
/* Reads back the history of this training up to a step. NONE: there is no file; BAD with message[256]:
 * it can't be read, or is of something else. */
run_page_found run_page_read(const char *path, const char *run, int64_t step, history *h, album *a,
                             char *message);

#endif
