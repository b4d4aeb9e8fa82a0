/* avx512_f64.c - the kernels for AVX-512 F, VL, BW, DQ, double. */
#if defined(__x86_64__)
#define REAL_BITS 64
#define VECTOR_BYTES 64
#define TILE_ROWS 6
#define TILE_VECTORS 4
#define ISA "avx512"
#define TABLE wf_avx512_f64
#define DOUBLE_TABLE wf_avx512_f64
#include "kernels.inc"
#else
typedef int no_avx512_here; /* C requires a declaration */
#endif
