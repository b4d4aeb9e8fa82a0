/* tools/history/arena_json.h - the arena of a plan over its steps: what lies where, from when to when. */
#ifndef WEFT_TOOLS_HISTORY_ARENA_JSON_H
#define WEFT_TOOLS_HISTORY_ARENA_JSON_H

#include "core/graph.h"
#include "tools/cli/jsonl.h"

/* Writes the field "memory": the arena's bytes, its steps, and a block for each first result. A block is
 * its offset, its size, the step that writes it, the last step that reads it, the op, the part of a
 * training step (0 forward, 1 backward, 2 update) and the module. */
void arena_put(jsonl *out, wf_plan *plan);

#endif
