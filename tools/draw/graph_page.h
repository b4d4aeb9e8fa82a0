/* tools/draw/graph_page.h - a graph as a stand-alone page: as recorded, as a plan rewrites it, and as
 * it plans it: the order, and the memory. tools/page/graph.js draws it. */
#ifndef WEFT_TOOLS_DRAW_GRAPH_PAGE_H
#define WEFT_TOOLS_DRAW_GRAPH_PAGE_H

#include <stdio.h>

#include "subject.h"

/* The plan is the subject's and has run under the clock. Gradient rules are recorded in its graph, to
 * be written down. False: out of memory, or the stream failed: message[256]. */
bool graph_page_write(FILE *stream, const subject *s, wf_plan *plan, char *message);

#endif
