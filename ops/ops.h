/* weft/ops/ops.h - the operations: page of contents. Each section is a header, which can be
 * included alone.
 *
 * Functions take tensors and return a tensor, which need not be freed. Broadcasting follows NumPy:
 * shapes are aligned on the right, and size 1 is repeated. Axes count from 0, or from the end: -1
 * is the last. Every op has a gradient, or states in its file why not. A function records the same
 * nodes for every size of a named extent (a symbolic dimension).
 *
 *     create_ops.h       constants, random tensors, initial values; ops of the engine itself
 *     elementwise_ops.h  ops on single elements, with broadcasting
 *     reduce_ops.h       sets of axes; reductions, scans and sorting along axes
 *     product_ops.h      matrix products
 *     shape_ops.h        reshape, slice, join, pad: ops that move elements
 *     index_ops.h        embedding, gather, scatter, positions and resizing: ops with ids
 *     convolution_ops.h  convolution and pooling
 *     norm_ops.h         softmax and normalisation
 *     attention_ops.h    rotary positions and scaled dot-product attention
 *     spectrum_ops.h     short-time Fourier transforms and mel filters
 *     training_ops.h     dropout, token losses, KV cache, and updates of parameters */
#ifndef WEFT_OPS_OPS_H
#define WEFT_OPS_OPS_H

#include "../core/file.h"
#include "../core/graph.h"
#include "../core/op.h"
#include "attention_ops.h"
#include "convolution_ops.h"
#include "create_ops.h"
#include "elementwise_ops.h"
#include "index_ops.h"
#include "norm_ops.h"
#include "product_ops.h"
#include "reduce_ops.h"
#include "shape_ops.h"
#include "spectrum_ops.h"
#include "training_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The kernels in use: "base" "avx2" "avx512" "neon". */
WF_API const char *wf_isa(void);

#ifdef __cplusplus
}
#endif
#endif
