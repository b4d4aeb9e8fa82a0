/* weft/core/picture.h - a graph, or a plan of it, as Graphviz text. */
#ifndef WEFT_CORE_PICTURE_H
#define WEFT_CORE_PICTURE_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers to draw in the box of a node: those of `value`, which is the node itself or its gradient.
 * Long axes are shortened as in wf_print. */
typedef struct wf_dot_value {
    const wf_tensor *at, *value;
    const char *label; /* text above the numbers, such as "gradient"; or NULL */
} wf_dot_value;

typedef struct wf_dot_options {
    const char *title;
    bool backward; /* draw gradient nodes too, their edges dashed */
    bool modules;  /* one box per module instead of one per op; repeated layers folded */
    int depth;     /* with modules: how many levels of the path to show; 0: all */
    /* the plan whose bound shapes, memory, tasks and measured times are shown; NULL: only what was
     * recorded */
    wf_plan *plan;
    bool force; /* draw even more than 5,000 nodes, which otherwise fails */
    /* the numbers to draw, in this order; `valued` is a plan that has run and fetches them */
    const wf_dot_value *values;
    int n_values;
    wf_plan *valued;
} wf_dot_options;

/* Graphviz text of the n tensors and of all tensors that they depend on. The same graph gives the
 * same bytes. malloc'ed; NULL on failure, with the reason in message[256] (message may be NULL). */
WF_API char *wf_dot(wf_tensor *const *fetch, int n, const wf_dot_options *options, char *message);

#ifdef __cplusplus
}
#endif
#endif
