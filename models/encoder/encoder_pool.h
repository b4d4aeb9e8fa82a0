/* models/encoder/encoder_pool.h - inside models/encoder: the vector of a line from those of its tokens;
 * the limits of a configuration. B batch, S length, D model width, P width of what is joined. */
#ifndef WEFT_MODELS_ENCODER_ENCODER_POOL_H
#define WEFT_MODELS_ENCODER_ENCODER_POOL_H

#include "models/encoder.h"

/* The positions that lines of max_len tokens need. */
int64_t wf_encoder_positions(const wf_encoder_config *c);
/* P: the model's width times the number of poolings. */
int64_t wf_encoder_pooled_width(const wf_encoder_config *c);
/* Record the vectors [B,E] of lines whose tokens x [B,S,D] are those where valid [B,S] is 1. dense
 * is used if the configuration has one. */
wf_tensor *wf_encoder_pool(const wf_encoder_config *c, const struct wf_linear_layer *dense,
                           wf_tensor *x, wf_tensor *valid);
/* The rows of x [B,E], each divided by its length, but not by less than 1e-12. */
wf_tensor *wf_unit_rows(wf_tensor *x);

#endif
