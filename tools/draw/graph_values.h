/* tools/draw/graph_values.h - shows a small graph with the numbers of its nodes: each value, the
 * gradient of the graph's loss (subject.h), and the second derivative. The output is Graphviz text
 * or a table. */
#ifndef WEFT_TOOLS_DRAW_GRAPH_VALUES_H
#define WEFT_TOOLS_DRAW_GRAPH_VALUES_H

#include <stdio.h>

#include "core/picture.h"
#include "node_values.h"

enum { MOST_VALUED = 400 }; /* most nodes that can be shown */

/* The contribution of one consumer to a node's gradient. The gradient is the sum of its shares. */
typedef struct share {
    const wf_tensor *of, *by; /* the node, and the consumer */
    wf_tensor *value;
    double size; /* the sum of |value|, once the plan has run */
} share;

typedef struct graph_values {
    node_list list;
    wf_tensor *loss;
    wf_tensor **node;               /* [n] nodes of the forward pass, without constants */
    wf_tensor **gradient, **second; /* [n]; NULL where there is none */
    struct share *share;            /* [n_shares], of all nodes, the largest first */
    int n, n_shares;
} graph_values;

/* Fetch the values of all nodes of a subject (subject.h) for the example. gradient: also fetch each
 * node's gradient, d loss / d node. second: also fetch the gradient of the sum of these numbers
 * with respect to the same node. False: message[256]. */
bool graph_values_new(graph_values *v, const subject *s, const example *e, bool gradient,
                      bool second, char *message);
void graph_values_free(graph_values *v);

/* Graphviz text with these options, which the caller frees. NULL: message[256]. */
char *graph_values_dot(const graph_values *v, const subject *s, wf_dot_options options,
                       char *message);
/* Write a table of the numbers. A gradient with more than one share is followed by its shares, the
 * largest first. False: out of memory, and the table is not complete. */
bool graph_values_table(graph_values *v, FILE *out);

#endif
