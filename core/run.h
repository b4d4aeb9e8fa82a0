/* weft/core/run.h - plans of a graph, and runs of them: thread pools, feeds and fetches, profiles,
 * and states for generations in progress. Part of graph.h, which says how it all fits together. */
#ifndef WEFT_CORE_RUN_H
#define WEFT_CORE_RUN_H

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wf_plan wf_plan;
typedef struct wf_state wf_state;
typedef struct wf_pool wf_pool;

/* ---- pools ----------------------------------------------------------------------------------- */

/* 1..256 threads; NULL only if out of memory. If a thread cannot be started there are fewer. */
WF_API wf_pool *wf_pool_new(int threads);
/* Its threads, the caller included. */
WF_API int wf_pool_threads(const wf_pool *pool);
/* Free the plans that use it before. */
WF_API void wf_pool_free(wf_pool *pool);

/* ---- plans ----------------------------------------------------------------------------------- */

typedef struct wf_plan_options {
    /* values to read, updates to perform */
    wf_tensor *const *fetch;
    int n_fetch;
    /* values given by the program: of inputs, or of any computed tensor. Of an op with several
     * results, such as layer_norm and attention, only where the plan needs no other result of it: a
     * gradient behind it may */
    wf_tensor *const *feed;
    int n_feed;
    /* NULL: the calling thread only */
    wf_pool *pool;
    /* dropout is on */
    bool training;
    /* apply no rewrite rules: every node runs as recorded. Slower; values may differ by rounding */
    bool as_recorded;
    /* caches keep their rows in a wf_state; see wf_state_new */
    bool with_state;
} wf_plan_options;

/* Compile a plan. Never NULL; check wf_plan_ok. */
WF_API wf_plan *wf_plan_new(wf_graph *g, const wf_plan_options *options);
/* Free it before its graph. */
WF_API void wf_plan_free(wf_plan *p);
/* False for a plan that could not be compiled. */
WF_API bool wf_plan_ok(const wf_plan *p);
/* The last failure of this plan, or "". */
WF_API const char *wf_plan_error(const wf_plan *p);
/* Give an extent its size, 1..max, for the runs that follow. False: wf_plan_error. */
WF_API bool wf_bind(wf_plan *p, const char *extent, int64_t size);
/* Data are copied by this call; bind the extents before. bytes must be the exact size, as bound:
 * wf_bound_bytes. */
WF_API bool wf_feed(wf_plan *p, const wf_tensor *t, const void *data, size_t bytes);
/* Compute what is fetched, and perform the updates among it. False: wf_plan_error; no leaf has
 * changed. */
WF_API bool wf_run(wf_plan *p);
/* For a plan made with_state. */
WF_API bool wf_run_state(wf_plan *p, wf_state *s);
/* Copies the value of the last run, row-major, to data; bytes as in wf_feed. */
WF_API bool wf_fetch(wf_plan *p, const wf_tensor *t, void *data, size_t bytes);
/* Returns ndim, or -1 on error. */
WF_API int wf_bound_shape(wf_plan *p, const wf_tensor *t, int64_t shape[WF_MAX_DIMS]);
/* 0 on error. */
WF_API size_t wf_bound_bytes(wf_plan *p, const wf_tensor *t);
/* Set the step of the next run. Random bits are a function of the graph's seed, the site of
 * the op, and these two numbers: those of dropout in training plans, and those of wf_rand, wf_randn
 * and the ops composed of them in every plan. Every plan counts its own steps: its first run is step
 * 0 of micro-batch 0, and each successful run increments the step, so that two runs differ. Counting
 * goes on from a step set here. So a loop that resumes sets it once; one that needs the same bits
 * again, or has several plans that shall differ, sets it before every run. */
WF_API void wf_random_step(wf_plan *p, uint64_t step, uint32_t micro_batch);
/* Bytes of its arena, as bound now; with a state, for positions up to a bound that grows by
 * quarters, or the furthest that was run. 0 on error. */
WF_API size_t wf_plan_memory(wf_plan *p);
/* A tensor's values as nested brackets, long axes shortened, into buffer; p: the plan that has run
 * (NULL for a leaf; of wf_shape its shape is printed). Returns the length it needed, as snprintf
 * does, or -1. */
WF_API int wf_print(wf_plan *p, const wf_tensor *t, char *buffer, size_t size);

/* ---- schedules and profiles ------------------------------------------------------------------ */

/* One step of the schedule, for profiles and pictures of a plan. */
typedef struct wf_step {
    /* The node that runs: the recorded one, or the plan's replacement with the same id, which lives
     * as long as the plan. NULL: a copy that the planner inserted */
    const wf_tensor *node;
    const wf_op *op;
    /* summed over runs since profiling was switched on */
    double seconds;
    int64_t runs;
    /* of one run; bytes: operands read + results written */
    double flops, bytes;
    /* of its widest phase */
    int64_t tasks;
    /* of its first result in the arena; size 0: a view or a leaf */
    size_t offset, size;
} wf_step;
/* The profile is off at first; switching it on sets the counters to 0. */
WF_API void wf_profile(wf_plan *p, bool on);
/* Steps of the schedule, as bound now; and step i, 0..count-1, with its counters. */
WF_API int wf_step_count(wf_plan *p);
WF_API bool wf_step_at(wf_plan *p, int i, wf_step *out);
/* The recorded node that computes t in this plan: t's own, or the one into which a rewrite rule
 * fused it. NULL: the plan does not compute it. */
WF_API const wf_tensor *wf_computed_in(const wf_plan *p, const wf_tensor *t);

/* ---- states: the caller's memory for a generation in progress -------------------------------- */

/* Memory for the rows of every cache in the plan, for the batch bound now. It grows in powers of
 * two with the positions that are run, not with P's maximum; a run fails if it cannot grow. All
 * extents must be bound. NULL on failure: wf_plan_error(p). */
WF_API wf_state *wf_state_new(wf_plan *p);
/* Free it before its plan. */
WF_API void wf_state_free(wf_state *s);
/* Bytes that are allocated now. */
WF_API size_t wf_state_bytes(const wf_state *s);
/* Batch row i becomes the old row index[i]; n <= rows at creation. */
WF_API bool wf_state_reorder(wf_state *s, const int32_t *index, int n);

#ifdef __cplusplus
}
#endif
#endif
