/* weft/core/lend.h - memory that a plan and its program share, instead of copies: zero-copy feeds
 * and fetches.
 *
 * wf_feed and wf_fetch (run.h) copy, and are right nearly always. The functions of this header are
 * for programs that pass much data from plan to plan, such as an encoder's outputs to a decoder. A
 * pointer is valid only as long as the function's comment says. */
#ifndef WEFT_CORE_LEND_H
#define WEFT_CORE_LEND_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A feed without a copy: *place becomes the address to which the caller writes the values of t,
 * after this call and before the run. The values stay fed until t is fed again. bytes: as in
 * wf_feed. *place is NULL after a failure, or if no run needs t. */
WF_API bool wf_feed_place(wf_plan *p, const wf_tensor *t, size_t bytes, void **place);

/* wf_feed without a copy: each run reads the 64-byte aligned data, which must stay valid until t is
 * fed again or the plan is freed. row: NULL, or an array that stays valid as long: index i of t's
 * first axis is row row[i] of data, so that rows of a batch can share memory. Only attention can
 * read its keys, values and mask so; if another op reads t, the call fails. */
WF_API bool wf_feed_lent(wf_plan *p, const wf_tensor *t, void *data, size_t bytes,
                         const int32_t *row);

/* wf_fetch without a copy: a row-major view, valid until p runs again, is bound to other extents,
 * is released or freed. NULL: see wf_plan_error. */
WF_API const void *wf_fetched(wf_plan *p, const wf_tensor *t);

#ifdef __cplusplus
}
#endif
#endif
