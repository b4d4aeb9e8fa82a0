/* core/emit/emit_places.h - inside core: where values lie in the memory of an emitted file. Not
 * installed. */
#ifndef WEFT_CORE_EMIT_EMIT_PLACES_H
#define WEFT_CORE_EMIT_EMIT_PLACES_H

#include "writer.h"

/* Write the address of a value of the current plan as C. written: the step updates this operand;
 * read: only this many floats from there on are read; 0: all of them. */
bool wf_add_place(wf_emitter *e, location at, wf_dtype dtype, bool written, int64_t read,
                  wf_text *t);
/* Write the address of an int8 leaf as C and, if asked, a comma and the address of its scales. */
bool wf_add_int8_place(wf_emitter *e, location at, bool with_scales, wf_text *t);
/* The value of tensor t in the last earlier plan that computes and fetches it; *of is set to that
 * plan. NULL: there is none, or the plans run one at a time, in the same memory. */
const bound_view *wf_linked(const wf_emitter *e, const wf_tensor *t, const part **of);
/* v is a view of a fed tensor. If an earlier plan fetches that tensor, make v a view of the value
 * in the memory of the earlier plan. strided: the op reads any strides; indexed: attention reads v,
 * so batch rows may share one row. False: this is not possible. */
bool wf_link_view(wf_emitter *e, const wf_tensor *fed, int64_t offset, bool strided, bool indexed,
                  wf_view *v);
/* For each fetch of the current plan, note where the value lies in memory. The first call (`first`)
 * is at the largest position or size; later calls, at others, note if the value lies elsewhere.
 * False: out of memory. */
bool wf_note_places(wf_emitter *e, bool first);
/* Write the loops that set elements behind a run's size, up to the largest size, to zero where
 * later plans read them. */
bool wf_describe_rest(wf_emitter *e, wf_text *t);

/* The storage of node i of plan q, if a later plan reads the node's value in q's memory; else
 * -1. */
int wf_storage_read_later(const wf_emitter *e, const part *q, int i);

/* wf_free_floats returns the start of the first n consecutive floats that are not taken;
 * wf_take_floats marks n floats from `from` on as taken. */
int64_t wf_free_floats(const wf_emitter *e, int64_t n);
bool wf_take_floats(wf_emitter *e, int64_t from, int64_t n);
/* Take memory for the results of e->kept_runs runs of plan q: those results that later plans
 * read. */
bool wf_place_runs(wf_emitter *e, part *q);
/* The distance in floats between the kept copies of a storage from run i and from run i + 1; 0: the
 * storage is not kept. */
int64_t wf_run_floats(const part *q, int storage);
/* Write the functions model_RUN_keep, which copy the results of a run to the memory of kept
 * runs. */
void wf_write_keeps(const wf_emitter *e, wf_text *t);

/* wf_slot_floats: the floats that a batch row takes in cache `index`. wf_slot_at: the first float
 * of that cache; if index is the number of caches, the first float behind all caches. */
int64_t wf_slot_floats(const wf_emitter *e, const part *of, int index);
int64_t wf_slot_at(const wf_emitter *e, const part *of, int index);

#endif
