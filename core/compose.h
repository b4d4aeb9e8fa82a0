/* weft/core/compose.h - functions that record several ops: one name in messages, one graph. Not
 * installed.
 *
 *     wf_tensor *wf_lerp(wf_tensor *a, wf_tensor *b, wf_tensor *weight) {
 *         WF_COMPOSE("lerp", a, b, weight);
 *         return wf_composed(wf_add(a, wf_mul(weight, wf_sub(b, a))));
 *     }
 *
 * Errors then begin with the name that the caller knows, "lerp: sub: ...", while recording and in
 * runs. A tensor of another graph, or of a call that failed, makes the graph fail at once. A
 * function that other functions use keeps the name of the outermost. On the way to an error nothing
 * needs to be closed: the first error is the only one. */
#ifndef WEFT_CORE_COMPOSE_H
#define WEFT_CORE_COMPOSE_H

#include "graph.h"

/* Begin the function `name`, a literal. The graph fails if an operand is NULL: pass another operand
 * in the place of an optional one that is NULL. */
void wf_compose(const char *name, int n, wf_tensor *const *operands);
#define WF_COMPOSE(NAME, ...)                                                                      \
    wf_compose(NAME, sizeof((wf_tensor *[]){ __VA_ARGS__ }) / sizeof(wf_tensor *),                 \
               (wf_tensor *[]){ __VA_ARGS__ })
/* End the last function begun in the graph of its result y. Returns y. */
wf_tensor *wf_composed(wf_tensor *y);

#endif
