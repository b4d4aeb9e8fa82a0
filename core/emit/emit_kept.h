/* core/emit/emit_kept.h - inside core: caches that keep the rounded input of a product in place of
 * the keys and values that it gives. Not installed. */
#ifndef WEFT_CORE_EMIT_EMIT_KEPT_H
#define WEFT_CORE_EMIT_EMIT_KEPT_H

#include "emit_steps.h"

/* Choose such caches among those of the parts, which are bound: at most as many as the caller
 * asks. */
bool wf_choose_kept(wf_emitter *e);
/* The steps of such caches, which are written otherwise; NULL: the step is none of them. */
const kept_cache *wf_kept_at(const wf_emitter *e, int step);
bool wf_describe_kept(wf_emitter *e, const kept_cache *k, int step, step_text *s);
/* Is the cache of the part one of these? */
bool wf_keeps_input(const wf_emitter *e, const part *of, int index);

#endif
