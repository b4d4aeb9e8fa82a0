/* weft/nn/recurrent.h - GRU and LSTM, unrolled: recurrent.c. Axes: B batch, T steps, I inputs, H
 * hidden units, G gates.
 *
 * Parameters are named and laid out as those of torch.nn.GRU and LSTM; x is [B,T,I], as with
 * batch_first. The steps are recorded one by one, so T must be a fixed number: recording fails if
 * it is a symbolic size (wf_extent). Shorter rows are marked by `lengths`. */
#ifndef WEFT_NN_RECURRENT_H
#define WEFT_NN_RECURRENT_H

#include "layers.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { WF_GRU, WF_LSTM } wf_recurrent_kind;
typedef struct wf_recurrent_options {
    wf_recurrent_kind kind;
    int64_t input_size, hidden_size;
    int num_layers; /* 1 to WF_MAX_RECURRENT_LAYERS; 0 counts as 1 */
    bool bias, bidirectional;
    double dropout; /* dropout rate of the output of every layer but the last */
} wf_recurrent_options;

/* A layer in one direction. Its parameters have H rows for each gate: reset, update, new (GRU);
 * input, forget, cell, output (LSTM). */
struct wf_recurrent_cell {
    wf_tensor *weight_ih, *weight_hh, *bias_ih, *bias_hh; /* [G H, I], [G H, H]; [G H] or NULL */
    wf_recurrent_kind kind;
    int64_t hidden_size;
    const char *path;
};
enum { WF_MAX_RECURRENT_LAYERS = 8 };
struct wf_recurrent_layer {
    /* [layer][0: forward, 1: backward], with names weight_ih_l0 ..., weight_ih_l0_reverse ... */
    struct wf_recurrent_cell cell[WF_MAX_RECURRENT_LAYERS][2];
    wf_recurrent_options o;
    const char *path;
};
/* Initial values uniform, with bound 1 / sqrt(H). */
WF_API struct wf_recurrent_layer wf_recurrent_new(wf_graph *g, const char *name,
                                                  const wf_recurrent_options *o);

typedef struct wf_recurrent_result {
    wf_tensor *output; /* [B,T,H], or [B,T,2H] with both directions; zeros beyond a row's length */
    /* [layers (times 2),B,H]: the states after the last step of each row, which for the backward
     * direction is the row's first position; c is NULL for GRU */
    wf_tensor *h, *c;
} wf_recurrent_result;
/* lengths: [B] i32, NULL: all rows have T steps. h, c: the initial states, with the shapes of the
 * result's h and c; NULL: zeros. */
WF_API wf_recurrent_result wf_recurrent(const struct wf_recurrent_layer *l, wf_tensor *x,
                                        wf_tensor *lengths, wf_tensor *h, wf_tensor *c);
/* One step, as torch.nn.GRUCell and LSTMCell: x [B,I], h [B,H] -> the next h. *c is LSTM's cell
 * state [B,H], and is replaced by the next one. GRU has none, so c may be NULL. */
WF_API wf_tensor *wf_recurrent_step(const struct wf_recurrent_cell *l, wf_tensor *x, wf_tensor *h,
                                    wf_tensor **c);

#ifdef __cplusplus
}
#endif
#endif
