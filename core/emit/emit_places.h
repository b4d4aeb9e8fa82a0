/* core/emit/emit_places.h - inside core: where values lie in the memory of an emitted file. Not
 * installed. */
#ifndef WEFT_CORE_EMIT_EMIT_PLACES_H
#define WEFT_CORE_EMIT_EMIT_PLACES_H

#include "writer.h"

/* The place of a value of the part, which a run of the part fetches or is fed; written: of an
 * operand that the step updates; read: only so many floats from there on are read; 0: all. */
bool wf_add_place(wf_emitter *e, location at, wf_dtype dtype, bool written, int64_t read,
                  wf_text *t);
/* The place of a leaf in int8, and the place of its scales behind a comma. */
bool wf_add_int8_place(wf_emitter *e, location at, bool with_scales, wf_text *t);
/* The value that an earlier part fetches and this one is fed; *of: that part. NULL: none does. */
const bound_view *wf_linked(const wf_emitter *e, const wf_tensor *t, const part **of);
/* A view of what this part is fed, `fed`, as a view of the linked value. indexed: attention reads
 * it, so that rows may share it. False: it is no such view. */
bool wf_link_view(wf_emitter *e, const wf_tensor *fed, int64_t offset, bool strided, bool indexed,
                  wf_view *v);
/* Compare where the fetches of a part lie with where they lay at the first position or size. */
bool wf_note_places(wf_emitter *e, bool first);
/* Describe the loops that clear what later parts read behind the size that is bound. */
bool wf_describe_rest(wf_emitter *e, wf_text *t);

/* The storage of node i of a part, if a later part reads it in the part's memory; else -1. */
int wf_storage_read_later(const wf_emitter *e, const part *q, int i);

/* The first floats, so many, that nothing has taken; and take them. */
int64_t wf_free_floats(const wf_emitter *e, int64_t n);
bool wf_take_floats(wf_emitter *e, int64_t from, int64_t n);
/* Find a place for the results of all runs of the part whose results are kept. */
bool wf_place_runs(wf_emitter *e, part *q);
/* The floats from one kept run to the next, of a storage of the part; 0: none are kept. */
int64_t wf_run_floats(const part *q, int storage);
/* Append the functions that keep the results of a run. */
void wf_write_keeps(const wf_emitter *e, wf_text *t);

/* The floats of a row of the batch in cache `index`; the first float of that cache, which after the
 * last one is that behind them. */
int64_t wf_slot_floats(const wf_emitter *e, const part *of, int index);
int64_t wf_slot_at(const wf_emitter *e, const part *of, int index);

#endif
