/* tools/bench/bench_loops.h - the loops that measure the machine's limits: one set for each
 * instruction set of the kernels. */
#ifndef WEFT_TOOLS_BENCH_BENCH_LOOPS_H
#define WEFT_TOOLS_BENCH_BENCH_LOOPS_H

#include <stdint.h>

typedef struct limit_loops {
    const char *isa;
    double (*multiply_add)(int64_t rounds); /* returns the number of flops that it did */
    void (*triad)(int64_t n, const float *a, const float *b, float *c); /* c = a + 3 b */
    float (*total)(int64_t n, const float *a);                          /* the sum: reads only */
} limit_loops;

#if defined(__x86_64__)
extern const limit_loops loops_base, loops_avx2, loops_avx512;
#elif defined(__aarch64__)
extern const limit_loops loops_base, loops_neon;
#else
extern const limit_loops loops_base;
#endif
/* The loops for the instruction set that the kernels use: bench_isa.c. */
const limit_loops *limit_loops_here(void);

#endif
