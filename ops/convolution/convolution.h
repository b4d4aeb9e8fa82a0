/* ops/convolution/convolution.h - shared declarations of the convolution ops. Not installed.
 *
 * Letters: N images, C channels, O output channels, H and W height and width, G groups. Along an
 * axis of kernel size K, stride s, padding p and dilation d,
 *
 *     y_i = sum over k of w_k x_(s i + d k - p)
 *
 * The three ops of convolution.c are the three products of such a sum: y from x and w
 * (convolution), x from y and w (transposed convolution), and w from x and y (the gradient of the
 * weight). Each is the gradient of the two others. */
#ifndef WEFT_OPS_CONVOLUTION_CONVOLUTION_H
#define WEFT_OPS_CONVOLUTION_CONVOLUTION_H

#include "core/emit/emitter.h"
#include "ops/base/op_base.h"

typedef struct conv { /* arrays [2]: one number for the rows (H), one for the columns (W) */
    int64_t stride[2], padding[2], dilation[2], output_padding[2], groups;
} conv;

/* How a convolution or a transposed convolution runs: see layout.c. Its operand is the source, its
 * result the target. Target element r + D a, of phase r < D, is the sum over taps of the source
 * elements Q a + e, where e is a function of the tap and r: (Q, D) is (s, 1), transposed (1, s). */
typedef struct conv_side { /* along one axis */
    int64_t source, target, kernel, stride, padding, dilation;
    bool transposed;
    int64_t gather, scatter; /* Q, D */
    int64_t first, reach;    /* the smallest e; the largest e minus the smallest */
    int64_t count;           /* number of elements in the longest phase */
} conv_side;

typedef struct conv_layout {
    conv_side side[2];
    int64_t images, groups, sources, targets; /* channels of a group */
    /* taps of a target channel: sources * K_h * K_w. All phases together have at most as many */
    int64_t taps;
    wf_planes planes;      /* planes of one channel for one chunk of rows */
    int64_t channel;       /* elements of all planes of a channel */
    int64_t chunk, chunks; /* rows of each phase in a chunk; number of chunks in an image */
    wf_dtype type;
} conv_layout;

/* x, y: the source and the target; w [..., ..., K_h, K_w]. False after wf_fail if the layout would
 * be too large. */
bool wf_conv_lay_out(wf_call *c, conv_layout *l, const conv *a, bool transposed, const wf_view *x,
                     const wf_view *y, const wf_view *w);
/* For each tap of each phase, write to `offset` the place in the planes of the first element that
 * it multiplies. */
void wf_conv_offsets(const conv_layout *l, int64_t *offset);
/* True if tap k belongs to phase r. *e becomes the e of this tap, minus the smallest e. */
bool wf_conv_tap(const conv_side *side, int64_t r, int64_t k, int64_t *e);
int64_t wf_conv_taps(const conv_side *side, int64_t r); /* number of taps of phase r */
int64_t wf_conv_phases(const conv_side *side);          /* how many have results */
/* Make the planes of n channels of an image, from `channel` on, for the rows of a chunk. */
void wf_conv_fill(const conv_layout *l, const wf_view *x, int64_t image, int64_t channel, int64_t n,
                  int64_t chunk, void *planes);
/* The number of rows of each phase in this chunk. *from becomes the first of them. */
int64_t wf_conv_chunk(const conv_layout *l, int64_t chunk, int64_t *from);

bool wf_conv_options_fit(wf_call *c, const conv *a); /* false after wf_fail: a bad option */
/* The number of an option for the rows (i = 0) or the columns (i = 1). If number[1] is 0, number[0]
 * is for both. WF_NO_PADDING gives 0. */
static inline int64_t wf_given(const int64_t number[2], int i) {
    int64_t n = i && !number[1] ? number[0] : number[i];
    return n == WF_NO_PADDING ? 0 : n;
}
/* Sets *n to the number of results along the rows (axis 0) or the columns (axis 1). False after
 * wf_fail: there are none, or a size is too large. */
bool wf_conv_count(wf_call *c, const conv *a, int axis, int64_t size, int64_t kernel, int64_t *n);

/* Write C that declares `convolution c` and sets its members, for the functions of
 * ops/emit/plain_convolution.c. Its numbers of channels are those of a group. False after wf_fail:
 * a number is too large for int. */
bool wf_emit_convolution(wf_emitter *e, const wf_call *c, const conv *a, const wf_view *x,
                         const wf_view *y, const int64_t kernel[2], bool transposed);

extern const wf_kernel wf_conv2d_kernel, wf_conv_transpose2d_kernel, wf_conv2d_weight_kernel;

static inline int64_t round_up(int64_t n, int64_t to) {
    return (n + to - 1) / to * to;
}

#endif
