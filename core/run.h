/* weft/core/run.h - plans of a graph, and runs of them: thread pools, feeds and fetches, profiles,
 * and states for generations in progress. It is a part of graph.h, which explains how the parts fit
 * together. */
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

/* Make a pool of this many threads, the calling thread included, but at least 1 and at most 256. It
 * has fewer if one cannot be started. NULL: out of memory. */
WF_API wf_pool *wf_pool_new(int threads);
/* Free the plans that use it before. */
WF_API void wf_pool_free(wf_pool *pool);

/* ---- plans ----------------------------------------------------------------------------------- */

typedef struct wf_plan_options {
    /* values to read, and updates to perform */
    wf_tensor *const *fetch;
    int n_fetch;
    /* values given by the program: those of inputs or of any computed tensor. An op whose
     * result 0 is fed does not run. If it has several results, such as layer_norm and attention,
     * then each other one that the plan needs, as gradients may, must be fed, too */
    wf_tensor *const *feed;
    int n_feed;
    /* the pool whose threads run the tasks; NULL: the calling thread runs them */
    wf_pool *pool;
    /* dropout is on */
    bool training;
    /* apply no rewrite rules, so that every node runs as recorded. This is slower, and values may
     * differ by rounding */
    bool as_recorded;
    /* caches keep their rows in a wf_state; see wf_state_new */
    bool with_state;
} wf_plan_options;

/* Compile a plan. Never NULL; check wf_plan_ok. */
WF_API wf_plan *wf_plan_new(wf_graph *g, const wf_plan_options *options);
/* Free it before its graph. */
WF_API void wf_plan_free(wf_plan *p);
/* True if the plan was compiled. */
WF_API bool wf_plan_ok(const wf_plan *p);
/* The last failure of this plan since a run that succeeded, or "". */
WF_API const char *wf_plan_error(const wf_plan *p);
/* Give an extent its size, 1..max ("P": 0..max), for the runs that follow. False: wf_plan_error. */
WF_API bool wf_bind(wf_plan *p, const char *extent, int64_t size);
/* Copy values for t, one of the plan's feeds, into the plan. Bind the extents before. bytes must be
 * the exact size for the bound extents: wf_bound_bytes. */
WF_API bool wf_feed(wf_plan *p, const wf_tensor *t, const void *data, size_t bytes);
/* Compute the fetches, and perform the updates among them. False: wf_plan_error; no leaf has
 * changed. */
WF_API bool wf_run(wf_plan *p);
/* Run a plan that was made with_state. */
WF_API bool wf_run_state(wf_plan *p, wf_state *s);
/* Copy the value of t, one of the plan's fetches, from the last run to data, row-major. bytes as in
 * wf_feed. */
WF_API bool wf_fetch(wf_plan *p, const wf_tensor *t, void *data, size_t bytes);
/* Get the shape of t for the sizes bound now. Returns ndim, or -1 on error. */
WF_API int wf_bound_shape(wf_plan *p, const wf_tensor *t, int64_t shape[WF_MAX_DIMS]);
/* The bytes of t, row-major, for the sizes bound now; 0 on error. */
WF_API size_t wf_bound_bytes(wf_plan *p, const wf_tensor *t);
/* Set the step of the next run. Random bits are a function of the graph's seed, the site of the op,
 * the step and the micro-batch. That holds for dropout in training plans, and for wf_rand, wf_randn
 * and the ops composed of them in every plan. Every plan counts its own steps: its first run is
 * step 0 of micro-batch 0, and each successful run increments the step, so that two runs differ.
 * Counting goes on from a step set here. So a loop that resumes sets the step once. A program sets
 * it before every run if it needs the same bits again, or if several of its plans must draw
 * different bits. */
WF_API void wf_random_step(wf_plan *p, uint64_t step, uint32_t micro_batch);
/* Bytes of the plan's arena with the extents bound now; 0 on error. With a state they suffice for
 * positions up to a bound, which grows by a quarter at a time. */
WF_API size_t wf_plan_memory(wf_plan *p);
/* Write a tensor's values into buffer as nested brackets, with long axes shortened. p: a plan that
 * has run and fetches t, or NULL for a leaf. A wf_shape prints its shape. Returns the length that
 * the text needs, as snprintf does, or -1 on error. */
WF_API int wf_print(wf_plan *p, const wf_tensor *t, char *buffer, size_t size);

/* ---- schedules and profiles ------------------------------------------------------------------ */

/* One step of the schedule, for profiles and pictures of a plan. */
typedef struct wf_step {
    /* The node that runs: the recorded one, or a replacement with the same id that lives as long as
     * the plan. NULL: the step is a copy that the planner inserted */
    const wf_tensor *node;
    const wf_op *op;
    /* time and number of all runs since profiling was switched on */
    double seconds;
    int64_t runs;
    /* floating-point operations of one run, and the bytes of operands and results that it reads and
     * writes */
    double flops, bytes;
    /* number of tasks of the phase that has the most */
    int64_t tasks;
    /* offset and size of its first result in the arena, in bytes; size 0: the result is elsewhere,
     * as in a state */
    size_t offset, size;
} wf_step;
/* Switch profiling on or off. It is off at first; switching it on sets the counters to 0. */
WF_API void wf_profile(wf_plan *p, bool on);
/* The number of steps of the schedule, as bound now; and step i, 0..count-1, with its counters. */
WF_API int wf_step_count(wf_plan *p);
WF_API bool wf_step_at(wf_plan *p, int i, wf_step *out);

/* ---- states: the caller's memory for a generation in progress -------------------------------- */

/* Memory for the rows of every cache in the plan, for the batch bound now. It grows with the
 * positions that are run, a quarter at a time, not with P's maximum. A run fails if memory runs
 * out. All extents must be bound. NULL on failure: see wf_plan_error(p). */
WF_API wf_state *wf_state_new(wf_plan *p);
/* Free it before its plan. */
WF_API void wf_state_free(wf_state *s);
/* For i from 0 to n - 1, row i of the batch becomes the old row index[i]. False, with the state
 * unchanged, if n exceeds the state's number of batch rows, or an index is not one of these
 * rows. */
WF_API bool wf_state_reorder(wf_state *s, const int32_t *index, int n);

#ifdef __cplusplus
}
#endif
#endif
