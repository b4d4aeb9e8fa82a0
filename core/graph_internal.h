/* core/graph_internal.h - inside the library and its programs: parts of leaves, buffers that are
 * not saved, sites of random ops, shapes as text. Not installed. */
#ifndef WEFT_CORE_GRAPH_INTERNAL_H
#define WEFT_CORE_GRAPH_INTERNAL_H

#include "core/graph.h"

/* Fail the graph as wf_poison does; returns false. */
bool wf_refuse(wf_graph *g, const char *format, ...) WF_PRINTF(2, 3);
/* True if the leaf was declared by a hook of wf_on_param, while the hook ran. */
bool wf_from_hook(const wf_tensor *leaf);
/* The seed of the graph's options. */
uint64_t wf_seed(const wf_graph *g);
/* A number that identifies a random op without a name: 0, 1, 2... in the current scope. */
uint32_t wf_next_site(wf_graph *g);
/* Nodes recorded between these two calls are a region. Gradients do not read their values, but
 * record copies of them and read those, so that a plan keeps no value of the region for its
 * backward pass, except those that nodes outside it read. This is gradient checkpointing (Chen et
 * al. 2016, "Training deep nets with sublinear memory cost"): less memory for one more forward
 * pass. All values have the same bits. A region within a region is a part of it. A plan must not be
 * fed a node of the region whose copy it computes. The graph fails if an end has no begin. */
void wf_recompute_begin(wf_graph *g);
void wf_recompute_end(wf_graph *g);
/* A buffer that wf_save leaves out and wf_load does not ask for, like one with PyTorch's
 * persistent=False. It is for values that can always be computed again, such as sums over
 * micro-batches. */
wf_tensor *wf_transient_buffer(wf_graph *g, const char *name, wf_dtype dtype, int ndim,
                               const int64_t *shape, wf_init init);
/* Write a shape as text, "[B,T,512]", with extents by name. Returns buffer. */
const char *wf_shape_text(const wf_graph *g, int ndim, const int64_t *shape, char *buffer,
                          size_t size);
/* True if t is a leaf that has values, now or from its first use on. Inputs and shapes (wf_shape)
 * have none. */
bool wf_has_values(const wf_tensor *t);
/* The layout of a parameter; WF_ROW_MAJOR for other tensors. */
wf_layout wf_layout_of(const wf_tensor *t);
/* Write or read n elements from index `first` on, in row-major order. False for a leaf in panels,
 * inputs and computed tensors, a range beyond the leaf's elements, a constant to be written, and
 * out of memory. */
bool wf_write_part(wf_tensor *leaf, int64_t first, int64_t n, const void *data);
bool wf_read_part(const wf_tensor *leaf, int64_t first, int64_t n, void *data);
/* The address of a row-major parameter's or buffer's values, without a copy. Later writes and
 * updates of the leaf change the values there. NULL: the leaf has no values yet, or is packed. */
const void *wf_leaf_lent(const wf_tensor *leaf);
/* Free the values of a parameter or buffer, which gets its initial values at its next use. Plans
 * that were made before, and read or update the leaf, must not run again. */
void wf_leaf_forget(wf_tensor *leaf);

#endif
