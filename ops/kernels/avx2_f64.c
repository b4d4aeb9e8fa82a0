/* avx2_f64.c - the kernels for AVX2 with FMA, double. */
#if defined(__x86_64__)
#define REAL_BITS 64
#define VECTOR_BYTES 32
#define TILE_ROWS 6
#define TILE_VECTORS 2
#define ISA "avx2"
#define TABLE wf_avx2_f64
#define DOUBLE_TABLE wf_avx2_f64
#include "kernels.inc"
#else
typedef int no_avx2_here; /* C requires a declaration */
#endif
