/* tools/draw/graph_page.h - writes a graph as a stand-alone page. It shows the graph as recorded
 * and as a plan rewrites it, and the plan's order and memory. tools/page/graph.js draws it. */
#ifndef WEFT_TOOLS_DRAW_GRAPH_PAGE_H
#define WEFT_TOOLS_DRAW_GRAPH_PAGE_H

#include <stdio.h>

#include "subject.h"

/* Write the page. The plan must be the subject's, and have been timed. Gradient rules are recorded
 * in its graph, to be shown. False with message[256]: out of memory, or the stream failed. */
bool graph_page_write(FILE *stream, const subject *s, wf_plan *plan, char *message);

#endif
