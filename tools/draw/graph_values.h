/* tools/draw/graph_values.h - a small graph with the numbers of its nodes: the value, the gradient of
 * the scalar behind it, and the second derivative; as Graphviz text, or as a table. */
#ifndef WEFT_TOOLS_DRAW_GRAPH_VALUES_H
#define WEFT_TOOLS_DRAW_GRAPH_VALUES_H

#include <stdio.h>

#include "core/picture.h"
#include "node_values.h"

enum { MOST_VALUED = 400 }; /* nodes: more can't be looked at */

typedef struct graph_values {
    node_list list;
    wf_tensor *loss;
    wf_tensor **node;               /* [n] of the forward pass, constants apart */
    wf_tensor **gradient, **second; /* [n], with NULLs: there is none */
    int n;
} graph_values;

/* Fetch the forward pass of a subject for the example. gradient: also d loss / d node. second: also the
 * gradient of the sum of that by the node. False: message[256]. */
bool graph_values_new(graph_values *v, const subject *s, const example *e, bool gradient,
                      bool second, char *message);
void graph_values_free(graph_values *v);

/* Graphviz text with these options, to be freed; NULL: message[256]. */
char *graph_values_dot(const graph_values *v, const subject *s, wf_dot_options options,
                       char *message);
void graph_values_table(const graph_values *v, FILE *out);

#endif
