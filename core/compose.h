/* weft/core/compose.h - functions that record several ops of one graph, and appear in messages
 * under one name. Not installed.
 *
 *     wf_tensor *wf_lerp(wf_tensor *a, wf_tensor *b, wf_tensor *weight) {
 *         WF_COMPOSE("lerp", a, b, weight);
 *         return wf_composed(wf_add(a, wf_mul(weight, wf_sub(b, a))));
 *     }
 *
 * Errors then begin with the name that the caller knows, "lerp: sub: ...", while recording and in
 * runs. A tensor of another graph, or of a call that failed, makes the graph fail at once. If such
 * functions call each other, the name is that of the outermost. A function that returns early
 * because of an error need not call wf_composed: only the first error is reported. */
#ifndef WEFT_CORE_COMPOSE_H
#define WEFT_CORE_COMPOSE_H

#include "graph.h"

/* Begin a composed function. `name` is a string literal. The graph fails if an operand is NULL, so
 * where an optional operand is NULL, pass another operand a second time. */
void wf_compose(const char *name, int n, wf_tensor *const *operands);
#define WF_COMPOSE(NAME, ...)                                                                      \
    wf_compose(NAME, sizeof((wf_tensor *[]){ __VA_ARGS__ }) / sizeof(wf_tensor *),                 \
               (wf_tensor *[]){ __VA_ARGS__ })
/* End the composed function that was begun last. y is its result; wf_composed returns y. */
wf_tensor *wf_composed(wf_tensor *y);

#endif
