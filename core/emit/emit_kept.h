/* core/emit/emit_kept.h - inside core: KV caches that keep the int8 input of a product instead of
 * the keys and values that the product gives. Not installed. */
#ifndef WEFT_CORE_EMIT_EMIT_KEPT_H
#define WEFT_CORE_EMIT_EMIT_KEPT_H

#include "emit_steps.h"

/* Choose the attentions whose caches keep inputs, at most as many as the caller of wf_emit allows.
 * The plans must be bound. False: out of memory. */
bool wf_choose_kept(wf_emitter *e);
/* The cache of inputs to which this step of the current plan belongs; wf_describe_kept writes such
 * a step. NULL: none. */
const kept_cache *wf_kept_at(const wf_emitter *e, int step);
bool wf_describe_kept(wf_emitter *e, const kept_cache *k, int step, step_text *s);
/* True if a cache of inputs replaces cache `index` of the plan, which is one of keys or of
 * values. */
bool wf_keeps_input(const wf_emitter *e, const part *of, int index);

#endif
