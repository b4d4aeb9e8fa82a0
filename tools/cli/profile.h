/* tools/cli/profile.h - where the time of a plan went, summed by op. */
#ifndef WEFT_TOOLS_CLI_PROFILE_H
#define WEFT_TOOLS_CLI_PROFILE_H

#include "core/graph.h"

typedef struct profile_row {
    const char *op;
    double seconds, flops, bytes;
    int64_t calls;
} profile_row;

/* The rows, to be freed, slowest first; NULL: out of memory. */
profile_row *profile_rows(wf_plan *plan, int *n);

#endif
