/* ops/shape/index.h - ids of rows of a table, and the gradient of the table. Not installed. */
#ifndef WEFT_OPS_SHAPE_INDEX_H
#define WEFT_OPS_SHAPE_INDEX_H

#include "core/op.h"

/* zeros like the table, and dy[i, :] added to row ids[i] */
wf_tensor *wf_embedding_backward(wf_tensor *dy, wf_tensor *ids, wf_tensor *table);

/* Fails the call unless operands i, i + 1, i + 2 are dy, ids and a table, as in
 * embedding_backward. */
bool wf_rows_fit(wf_call *c, int i);

/* Element i of ids; false, after wf_fail with its value and place, unless in 0..below - 1. */
bool wf_id_at(const wf_call *c, const wf_view *ids, int64_t i, int64_t below, int64_t *id);

#endif
