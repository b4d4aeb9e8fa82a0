/* avx512_f32.c - the kernels for AVX-512 F, VL, BW, DQ, float; and the same with large products on
 * AMX, if the compiler knows it. */
#if defined(__x86_64__)
#define REAL_BITS 32
#define VECTOR_BYTES 64
#define TILE_ROWS 6
#define TILE_VECTORS 4
#define ISA "avx512"
#define TABLE wf_avx512_f32
#include "kernels.inc"

#if defined(__AMX_BF16__)
#include "gemm_parts.inc"
#define LARGER(a, b) ((a) > (b) ? (a) : (b))
#undef ISA
#undef TABLE
#undef GEMM_SCRATCH
#undef GEMM_ADAM_SCRATCH
#define ISA "amx"
#define TABLE wf_amx_f32
#define PREPARED STEP_BYTES
#define GEMM_SCRATCH LARGER(GEMM_ELEMENTS * sizeof(real), PARTS_SCRATCH)
#define GEMM_ADAM_SCRATCH \
    LARGER(GEMM_ADAM_ELEMENTS * sizeof(real), PARTS_SCRATCH + UPDATE_ELEMENTS * sizeof(real))
#include "table.inc"
#endif
#else
typedef int no_avx512_here; /* C wants a declaration */
#endif
