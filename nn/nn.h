/* weft/nn/nn.h - layers, optimizers, schedules: ordinary functions that record ops. This is the
 * table of contents.
 *
 * A layer is a small struct of parameters with PyTorch's field names. X_new declares its parameters
 * under a name in the current scope; X(&layer, x) records its use and may be called any number of
 * times:
 *
 *     struct wf_linear_layer hidden = wf_linear_new(g, "hidden", 784, 128, true);
 *     wf_tensor *y = wf_relu(wf_linear(&hidden, x));
 *
 * The structs are plain values: they can be copied and embedded, and need not be freed. nn defines
 * no ops or kernels. Axes: B batch, T target length (queries), S source length (keys), H heads, D
 * model width, d = D / H width of a head, F inner width, V vocabulary. */
#ifndef WEFT_NN_NN_H
#define WEFT_NN_NN_H

#include "attention.h" /* MultiHeadAttention */
#include "blocks.h"    /* feed-forward, encoder layer, decoder layer */
#include "conv.h"      /* convolutions and their transposes */
#include "layers.h"    /* Linear, dropout, Embedding, positions, norms */
#include "loss.h"      /* mean squares, cross entropies and other losses */
#include "optimizer.h" /* optimizers, schedules of the learning rate */
#include "recurrent.h" /* GRU, LSTM */
#include "trainer.h"   /* the loop of a training: steps, saving, resuming */

#endif
