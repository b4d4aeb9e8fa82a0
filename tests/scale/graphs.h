/* tests/scale/graphs.h - graphs of any number of nodes, leaves or layers, to measure how time and
 * memory grow with it.
 *
 * Each recipe records from n to about 4 n nodes, without gradients; differentiate() adds the
 * gradients. */
#ifndef WEFT_TESTS_SCALE_GRAPHS_H
#define WEFT_TESTS_SCALE_GRAPHS_H

#include "nn/nn.h"
#include "ops/ops.h"

typedef struct scaled {
    wf_graph *g;
    wf_tensor *loss, **wanted, **params; /* wanted: to be fetched */
    int n_wanted, n_params;
} scaled;

typedef struct recipe {
    const char *name;
    void (*record)(scaled *s, int n);
} recipe;

extern const recipe recipes[];
extern const int n_recipes;

bool record_scaled(scaled *s, const recipe *r, int n); /* false: the graph's error, or no memory */
bool differentiate(scaled *s);                         /* the gradients are wanted, too */
wf_plan *plan_scaled(const scaled *s);
void scaled_free(scaled *s);

#endif
