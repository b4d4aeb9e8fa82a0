/* tools/draw/graph_page.h - writes a graph as a stand-alone page. It shows the graph as recorded
 * and as a plan rewrites it, and the plan's order and memory. tools/page/graph.js draws it. */
#ifndef WEFT_TOOLS_DRAW_GRAPH_PAGE_H
#define WEFT_TOOLS_DRAW_GRAPH_PAGE_H

#include <stdio.h>

#include "subject.h"

/* Write the page of s, the graph to show. plan: a plan of s that has run with wf_profile, for the
 * times. It also records the gradient rule of each op into the graph of s, to show them. False with
 * message[256]: out of memory, or the stream failed. */
bool graph_page_write(FILE *stream, const subject *s, wf_plan *plan, char *message);

#endif
