/* tools/draw/gradient_rule.h - the gradient rule of an op as text, from the rule itself.
 *
 * The rule is recorded for a node, and the recorded nodes are written as a formula: "da = dy * b".
 * So the text shows what the library does. */
#ifndef WEFT_TOOLS_DRAW_GRADIENT_RULE_H
#define WEFT_TOOLS_DRAW_GRADIENT_RULE_H

#include "models/model.h"

enum { RULE_TEXT = 1024 };

/* Write the rule of y, which is result 0 of its op. It records nodes in y's graph, which must not
 * be used at the same time. Returns text; NULL: out of memory. */
const char *gradient_rule(wf_tensor *y, char text[RULE_TEXT]);

/* Find the operands of y for which its op has gradients, each once, and their indices. Returns how
 * many there are. */
int operands_with_gradient(const wf_tensor *y, wf_tensor **x, int *place);

#endif
