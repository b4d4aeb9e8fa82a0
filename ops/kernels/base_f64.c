/* base_f64.c - the kernels for any processor, double: the specification that the other tables
 * answer to. */
#define REAL_BITS 64
#define VECTOR_BYTES 16
#define TILE_ROWS 4
#define TILE_VECTORS 2
#define ISA "base"
#define TABLE wf_base_f64
#define DOUBLE_TABLE wf_base_f64
#include "kernels.inc"
