/* avx512_f32.c - the kernels for AVX-512 F, VL, BW, DQ, float. */
#if defined(__x86_64__)
#define REAL_BITS 32
#define VECTOR_BYTES 64
#define TILE_ROWS 6
#define TILE_VECTORS 4
#define ISA "avx512"
#define TABLE wf_avx512_f32
#define DOUBLE_TABLE wf_avx512_f64
#include "kernels.inc"
#else
typedef int no_avx512_here; /* C requires a declaration */
#endif
