/* models/encoder/encoder_pool.h - inside models/encoder: the vector of a line from those of its
 * tokens. B batch, S length, D model width, E width of vectors. */
#ifndef WEFT_MODELS_ENCODER_ENCODER_POOL_H
#define WEFT_MODELS_ENCODER_ENCODER_POOL_H

#include "models/encoder.h"

/* Record the vectors [B,E] of lines from the vectors x [B,S,D] of their tokens; valid [B,S] is 1
 * for tokens and 0 for padding. `dense` is the layer after pooling, which is used only if the
 * configuration has one. */
wf_tensor *wf_encoder_pool(const wf_encoder_config *c, const struct wf_linear_layer *dense,
                           wf_tensor *x, wf_tensor *valid);
/* Applies to x the activation of the layer after pooling, or of the pooler. */
wf_tensor *wf_dense_activate(wf_dense_activation a, wf_tensor *x);
/* The rows of x [B,E], each divided by its Euclidean length, but not by less than 1e-12. */
wf_tensor *wf_unit_rows(wf_tensor *x);

#endif
