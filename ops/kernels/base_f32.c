/* base_f32.c - the kernels for any processor, float: the specification that the other tables answer
 * to. */
#define REAL_BITS 32
#define VECTOR_BYTES 16
#define TILE_ROWS 4
#define TILE_VECTORS 2
#define ISA "base"
#define TABLE wf_base_f32
#define DOUBLE_TABLE wf_base_f64
#include "kernels.inc"
