/* tools/bench/bench_loops.c - loops that only compute, or only move memory.
 *
 * The file is compiled like the kernels: once per instruction set, named ISA, with its flags. The
 * loops reach what a kernel for that instruction set could reach at best. n is a multiple of 64
 * elements, and arrays are aligned to 64 bytes. */
#include "bench_loops.h"

#define NAME_OF(isa) #isa
#define TEXT_OF(isa) NAME_OF(isa)
#define JOIN(a, b) a##b
#define LOOPS_OF(isa) JOIN(loops_, isa)

/* Independent chains: enough to cover the latency of a multiply-add, and few enough to fit in the
 * registers beside two operands. */
#if defined(__AVX512F__)
enum { VECTOR_BYTES = 64, CHAINS = 24 };
#elif defined(__AVX2__)
enum { VECTOR_BYTES = 32, CHAINS = 12 };
#elif defined(__aarch64__)
enum { VECTOR_BYTES = 16, CHAINS = 24 };
#else
enum { VECTOR_BYTES = 16, CHAINS = 12 };
#endif
enum { LANES = VECTOR_BYTES / sizeof(float), STREAMS = 8 };

typedef float vec __attribute__((vector_size(VECTOR_BYTES), may_alias));

/* Unrolls a loop. Compilers keep an array of vectors in registers only if its loop is unrolled. */
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 24")
#endif

/* Keep the compiler from removing the loop: it does not know the start value, or that the result is
 * unused. */
static volatile float half = 0.5f, sink;

static double multiply_add(int64_t rounds) {
    vec factor = half - (vec){ 0 }, chain[CHAINS];
    UNROLL
    for (int i = 0; i < CHAINS; i++) chain[i] = half - (vec){ 0 };
    for (int64_t r = 0; r < rounds; r++) {
        UNROLL
        for (int i = 0; i < CHAINS; i++) chain[i] = chain[i] * factor + factor; /* stays near 1 */
    }
    UNROLL
    for (int i = 1; i < CHAINS; i++) chain[0] += chain[i];
    sink = chain[0][0];
    return 2.0 * CHAINS * LANES * (double)rounds;
}

static void triad(int64_t n, const float *a, const float *b, float *c) {
    for (int64_t i = 0; i < n; i += LANES)
        *(vec *)(c + i) = *(const vec *)(a + i) + 3 * *(const vec *)(b + i);
}

static float total(int64_t n, const float *a) {
    vec sum[STREAMS] = { 0 };
    /* several separate streams use more of the memory's bandwidth */
    int64_t part = n / STREAMS / LANES * LANES;
    for (int64_t i = 0; i < part; i += LANES) {
        UNROLL
        for (int s = 0; s < STREAMS; s++) sum[s] += *(const vec *)(a + s * part + i);
    }
    UNROLL
    for (int s = 1; s < STREAMS; s++) sum[0] += sum[s];
    return sink = sum[0][0];
}

const limit_loops LOOPS_OF(ISA) = { TEXT_OF(ISA), multiply_add, triad, total };
