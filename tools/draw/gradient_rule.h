/* tools/draw/gradient_rule.h - the gradient rule of an op as text, from the rule itself.
 *
 * The rule is recorded for a node, and its nodes are written down: "da = dy * b". So the text is what
 * the library does. */
#ifndef WEFT_TOOLS_DRAW_GRADIENT_RULE_H
#define WEFT_TOOLS_DRAW_GRADIENT_RULE_H

#include "models/model.h"

enum { RULE_TEXT = 1024 };

/* Writes the rule of y, result 0 of its op. It records nodes in its graph, which nobody else uses. Returns
 * text. */
const char *gradient_rule(wf_tensor *y, char text[RULE_TEXT]);

#endif
