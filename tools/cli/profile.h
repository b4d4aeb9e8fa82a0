/* tools/cli/profile.h - the time of a plan, summed by op. */
#ifndef WEFT_TOOLS_CLI_PROFILE_H
#define WEFT_TOOLS_CLI_PROFILE_H

#include "core/graph.h"

typedef struct profile_row {
    const char *op;
    double seconds, flops, bytes;
    int64_t calls;
} profile_row;

/* The rows, slowest first; the caller frees them. NULL: out of memory. */
profile_row *profile_rows(wf_plan *plan, int *n);

#endif
