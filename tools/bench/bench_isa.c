/* tools/bench/bench_isa.c - chooses the loops for the instruction set of the kernels. See
 * bench_loops.h. */
#include <stddef.h>
#include <string.h>

#include "bench_loops.h"
#include "ops/ops.h"

static const limit_loops *const all_loops[] = {
    &loops_base,
#if defined(__x86_64__)
    &loops_avx2,
    &loops_avx512,
#elif defined(__aarch64__)
    &loops_neon,
#endif
};

const limit_loops *limit_loops_here(void) {
    for (size_t i = 0; i < sizeof all_loops / sizeof *all_loops; i++)
        if (strcmp(all_loops[i]->isa, wf_isa()) == 0) return all_loops[i];
    return &loops_base;
}
