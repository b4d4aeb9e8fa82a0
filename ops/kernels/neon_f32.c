/* neon_f32.c - the kernels for 64-bit ARM, float. */
#if defined(__aarch64__)
#define REAL_BITS 32
#define VECTOR_BYTES 16
#define TILE_ROWS 6
#define TILE_VECTORS 4
#define ISA "neon"
#define TABLE wf_neon_f32
#define DOUBLE_TABLE wf_neon_f64
#include "kernels.inc"
#else
typedef int no_neon_here; /* C requires a declaration */
#endif
