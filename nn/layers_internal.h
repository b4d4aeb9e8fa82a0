/* nn/layers_internal.h - inside the library and its programs: what kinds of positions do. Not
 * installed. */
#ifndef WEFT_NN_LAYERS_INTERNAL_H
#define WEFT_NN_LAYERS_INTERNAL_H

#include "nn/layers.h"

/* True if positions of this kind rotate queries and keys. */
bool wf_rotates(wf_positions kind);

#endif
