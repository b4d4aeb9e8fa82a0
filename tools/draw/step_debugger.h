/* tools/draw/step_debugger.h - a debugger that shows the nodes of one example one by one, in the
 * order in which they run.
 *
 * It reads commands line by line and writes plain lines, so any terminal will do. */
#ifndef WEFT_TOOLS_DRAW_STEP_DEBUGGER_H
#define WEFT_TOOLS_DRAW_STEP_DEBUGGER_H

#include <stdio.h>

#include "node_values.h"

#define STEP_KEYS                                                                                  \
    "n next  p previous  g N  /WORD search  f not finite  z row of zeros  v all  q quit"

/* The three functions below end early if memory runs out, and set l->failed. */

/* Read commands until `q` or the end of `in`, and print their results. */
void step_interactively(node_list *l, FILE *in, FILE *out);
/* Run all commands, which are separated by semicolons. False: one is unknown, or finds nothing. */
bool step_commands(node_list *l, const char *commands, FILE *out);
/* Print every node. True: no node has a NaN or an infinity that none of its operands has. */
bool step_all(node_list *l, FILE *out);

#endif
