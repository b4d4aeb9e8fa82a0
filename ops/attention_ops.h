/* weft/ops/attention_ops.h - rotary positions and scaled dot-product attention. See ops.h. */
#ifndef WEFT_OPS_ATTENTION_OPS_H
#define WEFT_OPS_ATTENTION_OPS_H

#include "../core/graph.h"
#include "../core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- rotary positions: rotary.c -------------------------------------------------------------- */
/* How the angles of rotary positions are made smaller, so that a model reads longer texts than in
 * its first training. WF_ROTARY_LINEAR divides all angles by `factor` (Chen et al. 2023).
 * WF_ROTARY_LLAMA3 is Llama 3.1's: angles that turn more than `high` times in `original` positions
 * stay, and angles that turn less than `low` times are divided by `factor`. In between, the divisor
 * grows gradually. */
typedef enum { WF_ROTARY_PLAIN, WF_ROTARY_LINEAR, WF_ROTARY_LLAMA3 } wf_rotary_stretch;
typedef struct wf_rotary_scaling {
    wf_rotary_stretch kind;
    double factor;              /* 1 or more; unused for WF_ROTARY_PLAIN */
    double low, high, original; /* only for WF_ROTARY_LLAMA3: 0 < low < high, original > 0 */
} wf_rotary_scaling;

/* x [...,T,d] with pairs of its elements rotated by the angle id / base^(2i/d) (Su et al. 2021). A
 * pair is elements i and i + d/2, as in Hugging Face's Llama, or if interleaved 2i and 2i + 1, as
 * in the paper. ids [T], or any shape that broadcasts to [...,T]; [B,T] gets a head axis for x
 * [B,H,T,d]. */
WF_API wf_tensor *wf_rotary(wf_tensor *x, wf_tensor *ids, double base, bool interleaved);
/* wf_rotary in two steps, so that layers share the sines: ids [...] -> [...,2,dim], computed in
 * double. The second function rotates x by such a table, [T,2,d] or any that broadcasts to
 * [...,T,2,d]; [B,T,2,d] gets a head axis. Row 0 holds the cosines c, row 1 the sines s with their
 * signs:
 *     y[i] = x[i] c[i] + x[p] s[i]     p: the other element of i's pair
 * For an angle t of elements i < p this means c[i] = c[p] = cos t, s[i] = -sin t, s[p] = sin t. The
 * table may be any tensor, such as learned angles, and has its gradient. scaling NULL: angles as
 * they are. */
WF_API wf_tensor *wf_rotary_table(wf_tensor *ids, int64_t dim, double base, bool interleaved,
                                  const wf_rotary_scaling *scaling);
WF_API wf_tensor *wf_rotate(wf_tensor *x, wf_tensor *table, bool interleaved);

/* ---- attention: attention_op.c --------------------------------------------------------------- */
typedef struct wf_attention_options {
    bool causal; /* query i sees keys j <= i + (keys - queries) */
    /* true: the mask is added to the scores; false: a query sees the keys where it is not 0 */
    bool additive;
    /* query i sees only keys j > i + (keys - queries) - window; other keys cost no time. 0: no
     * limit */
    int64_t window;
    double scale;     /* 0: 1 / sqrt(d_k) */
    double dropout;   /* dropout rate of the weights, in training plans */
    const char *site; /* the dropout's name, as in wf_dropout */
} wf_attention_options;
/* q [B,H,T,d_k], k [B,G,S,d_k], v [B,G,S,d_v] -> [B,H,T,d_v]; or 3-D without heads. G must divide
 * H: H / G consecutive heads of q share a head of k and v (Ainslie et al. 2023). mask may be NULL.
 * Otherwise it must broadcast to [B,H,T,S], as [T,S] and [B,1,1,S] do; a mask [B,T,S] gets a head
 * axis. */
WF_API wf_tensor *wf_attention(wf_tensor *q, wf_tensor *k, wf_tensor *v, wf_tensor *mask,
                               const wf_attention_options *options);
/* Only the weights softmax(scale q k^T), without dropout: [B,H,T,S]. They are composed of other
 * ops. Rows sum to 1, or to 0 if all keys are masked. */
WF_API wf_tensor *wf_attention_weights(wf_tensor *q, wf_tensor *k, wf_tensor *mask,
                                       const wf_attention_options *options);

#ifdef __cplusplus
}
#endif
#endif
