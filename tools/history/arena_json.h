/* tools/history/arena_json.h - writes the use of a plan's arena over its steps: which block is
 * where, and how long. */
#ifndef WEFT_TOOLS_HISTORY_ARENA_JSON_H
#define WEFT_TOOLS_HISTORY_ARENA_JSON_H

#include "core/graph.h"
#include "tools/cli/jsonl.h"

/* Writes the field "memory": the arena's bytes, its steps, and a block for each first result of a
 * step. A block has its offset, its size, the step that writes it, the last step that reads it, the
 * op, the part of a training step (0 forward, 1 backward, 2 update) and the module. */
void arena_put(jsonl *out, wf_plan *plan);

#endif
