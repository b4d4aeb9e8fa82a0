/* tools/draw/step_debugger.h - a walk through the nodes of one example, in the order in which they run.
 *
 * It reads commands line by line, and writes plain lines: any terminal will do. */
#ifndef WEFT_TOOLS_DRAW_STEP_DEBUGGER_H
#define WEFT_TOOLS_DRAW_STEP_DEBUGGER_H

#include <stdio.h>

#include "node_values.h"

#define STEP_KEYS                                                                                  \
    "n next  p previous  g N  /WORD search  f not finite  z row of zeros  v all  q quit"

/* Reads commands until `q` or the end of in, and shows what they ask for. */
void step_interactively(const node_list *l, FILE *in, FILE *out);
/* Does what the commands say, which semicolons separate. False: one of them is none, or finds nothing. */
bool step_commands(const node_list *l, const char *commands, FILE *out);
/* Shows every node. True: each is finite, or an infinity was an operand. */
bool step_all(const node_list *l, FILE *out);

#endif
