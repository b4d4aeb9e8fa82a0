/* core/emit/emit.c - plans as one C file: what emit.h promises.
 *
 * Every step of a schedule is a call of a C function, whose body the op's kernel writes
 * (emitter.h). Steps with the same body call the same function. Consecutive calls of one module
 * path, at most 40, are one function, which is named after the path. Values have the offsets in
 * memory that the plan gave them.
 *
 * In a plan with a state, shapes and strides depend on the position; in a plan whose runs choose a
 * size, on that size. Such a plan is described at several positions or sizes. The texts must be
 * equal except for numbers that are linear in the position or size: these become a + b * position,
 * or a + b * size. Memory is laid out for the largest position or size. */
#include "core/emit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emit_kept.h"
#include "emit_places.h"
#include "emit_sections.h"
#include "emit_status.h"
#include "emit_steps.h"

enum { PASSES = 4, STATE_PASSES = 3 };

bool wf_emitter_fail(wf_emitter *e, const char *format, ...) {
    va_list arguments;
    if (e->message[0]) return false;
    va_start(arguments, format);
    vsnprintf(e->message, sizeof e->message, format, arguments);
    va_end(arguments);
    return false;
}

bool wf_emitter_fail_plan(wf_emitter *e) {
    e->lacks = e->lacks || e->now->plan->lacks;
    return wf_emitter_fail(e, "%s", e->now->plan->error);
}

bool wf_emitter_lacks(wf_emitter *e) {
    e->lacks = true;
    return wf_emitter_fail(e, "out of memory");
}

/* ---- a plan ---------------------------------------------------------------------------------- */

/* The texts of a plan at one position or size. */
typedef struct pass {
    step_text *steps;
    wf_text *getters, *members; /* one for each node; one for each feed */
    /* loops of C, which set the elements of results beyond a run's size to zero */
    wf_text rest;
} pass;

typedef struct passes {
    int n, n_steps;
    int64_t positions[PASSES];
    pass at[PASSES];
} passes;

static void free_passes(const wf_plan *p, passes *all) {
    for (int k = 0; k < all->n; k++) {
        pass *one = &all->at[k];
        for (int i = 0; one->steps && i < all->n_steps; i++) wf_step_free(&one->steps[i]);
        for (int i = 0; one->getters && i < p->n_nodes; i++) wf_text_free(&one->getters[i]);
        for (int i = 0; one->members && i < p->n_feeds; i++) wf_text_free(&one->members[i]);
        wf_text_free(&one->rest);
        free(one->steps);
        free(one->getters);
        free(one->members);
    }
}

static bool describe_all(wf_emitter *e, int n_steps, pass *one) {
    const wf_plan *p = e->now->plan;
    bool ok = true;
    one->steps = calloc((size_t)n_steps + 1, sizeof *one->steps);
    one->getters = calloc((size_t)p->n_nodes + 1, sizeof *one->getters);
    one->members = calloc((size_t)p->n_feeds + 1, sizeof *one->members);
    if (!one->steps || !one->getters || !one->members) return wf_emitter_lacks(e);
    for (int i = 0; ok && i < n_steps; i++) ok = wf_describe_step(e, i, &one->steps[i]);
    for (int i = 0; ok && i < p->n_nodes; i++)
        if (wf_has_getter(e, e->now, i)) ok = wf_describe_getter(e, i, &one->getters[i]);
    for (int i = 0; ok && i < p->n_feeds; i++)
        if (p->feeds[i].needed) ok = wf_describe_member(e, i, &one->members[i]);
    return ok && (!e->now->sized || wf_describe_rest(e, &one->rest));
}

/* Bind the current plan at a position or, if its runs choose a size, with this size. */
static bool move_to(wf_emitter *e, int64_t at) {
    wf_plan *p = e->now->plan;
    if (e->now->sized && !wf_bind(p, e->sized_by, at)) return wf_emitter_fail_plan(e);
    if (!wf_plan_prepare(p, e->now->sized ? 0 : at)) return wf_emitter_fail_plan(e);
    return true;
}

/* Describe the plan at each position or size of `all`. False: that fails, or the number of steps is
 * not the same at all of them. */
static bool describe(wf_emitter *e, passes *all) {
    wf_plan *p = e->now->plan;
    int n_storages = 0;
    for (int k = 0; k < all->n; k++) {
        if (!move_to(e, all->positions[k])) return false;
        if (k == 0) all->n_steps = p->now->n_execs;
        if (k == 0) n_storages = p->now->n_storages;
        if (p->now->n_execs != all->n_steps || (e->now->sized && p->now->n_storages != n_storages))
            return wf_emitter_fail(e, "the plan has other steps at other positions or sizes");
        if (!wf_note_places(e, k == 0) || !describe_all(e, all->n_steps, &all->at[k])) return false;
    }
    return true;
}

static bool write_steps(wf_emitter *e, const passes *all) {
    bool ok = true;
    for (int i = 0; ok && i < all->n_steps; i++) {
        step_text *one[PASSES];
        for (int k = 0; k < all->n; k++) one[k] = &all->at[k].steps[i];
        ok = wf_write_step(e, all->n, one, all->positions);
    }
    return ok && wf_end_module(e);
}

static bool write_rest(wf_emitter *e, const passes *all) {
    const wf_text *one[PASSES];
    bool moves = false;
    for (int k = 0; k < all->n; k++) one[k] = &all->at[k].rest;
    if (!wf_merge_numbers(e->now, all->n, one, all->positions, NULL, &e->now->run, &moves))
        return wf_emitter_fail(e, "'%s' leaves other results at other sizes", e->now->name);
    return !e->now->run.lacks || wf_emitter_lacks(e);
}

static bool write_results(wf_emitter *e, const passes *all) {
    const wf_plan *p = e->now->plan;
    const wf_text *one[PASSES];
    bool ok = true;
    for (int i = 0; ok && i < p->n_nodes; i++) {
        for (int k = 0; k < all->n; k++) one[k] = &all->at[k].getters[i];
        if (one[0]->length) ok = wf_write_getter(e, i, all->n, one, all->positions);
    }
    for (int i = 0; ok && i < p->n_feeds; i++) {
        for (int k = 0; k < all->n; k++) one[k] = &all->at[k].members[i];
        if (one[0]->length) ok = wf_write_member(e, i, all->n, one, all->positions);
    }
    return ok;
}

static bool write_part(wf_emitter *e) {
    wf_plan *p = e->now->plan;
    passes all = { .n = p->with_state ? STATE_PASSES : 1 };
    if (e->now->sized) all.n = PASSES;
    if (p->with_state && e->now->last < STATE_PASSES)
        return wf_emitter_fail(e, "a state of %lld positions has no form in C",
                               (long long)e->now->last + 1);
    int first = p->with_state ? 1 : LEAST_SIZE;
    all.positions[0] = e->now->last;
    for (int k = 1; k < PASSES; k++) all.positions[k] = first + k - 1;
    bool ok = describe(e, &all) && (!e->now->sized || move_to(e, e->now->last)) &&
              write_steps(e, &all) && write_rest(e, &all) && write_results(e, &all);
    free_passes(p, &all);
    return ok;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Make a plan with a state reserve this many rows in its KV caches when it is bound next, so that
 * their layout is the same for every position. */
static void reserve_rows(wf_plan *p, int64_t rows) {
    if (!p->with_state) return;
    for (int i = 0; i < MAX_BINDINGS; i++) {
        wf_binding_free(p->bindings[i]);
        p->bindings[i] = NULL;
    }
    p->now = NULL;
    p->ran = false;
    p->reserves = rows;
}

/* The last position at which the caches have room for the rows of a run. */
static int64_t last_position(const wf_plan *p) {
    int64_t last = p->graph->extents[0].max;
    for (int i = 0; i < p->now->n_slots; i++) {
        const slot *s = &p->now->slots[i];
        if (s->axis == 0) continue;
        int64_t room = (int64_t)s->rows - 1 - ((int64_t)s->used - p->now->position);
        if (room < last) last = room;
    }
    return last;
}

static bool same_slots(const binding *a, const binding *b) {
    bool same = a->n_slots == b->n_slots && a->batch == b->batch;
    for (int i = 0; same && i < a->n_slots; i++) {
        const slot *x = &a->slots[i], *y = &b->slots[i];
        same = x->outer == y->outer && x->rows == y->rows && x->inner == y->inner &&
               x->axis == y->axis;
    }
    return same;
}

/* Set the offset of a plan's KV caches. Plans with a state share the caches of the first such plan,
 * which begin at float *at; *at then moves behind them. */
static bool place_state(wf_emitter *e, part *q, int64_t *at) {
    if (!q->plan->with_state) return true;
    q->last = last_position(q->plan);
    for (const part *other = e->parts; other < q; other++) {
        if (!other->plan->with_state) continue;
        if (!same_slots(other->plan->now, q->plan->now))
            return wf_emitter_fail(e, "plans '%s' and '%s' have other caches", other->name,
                                   q->name);
        q->state = other->state;
        return true;
    }
    q->state = *at;
    *at = wf_slot_at(e, q, q->plan->now->n_slots);
    return true;
}

/* If runs of the plan choose a size: remember the offset and bytes of each storage at the largest
 * size, which is bound now. */
static bool keep_rooms(wf_emitter *e, part *q) {
    const wf_plan *p = q->plan;
    const binding *b = p->now;
    if (!e->sized_by || p->with_state) return true;
    for (int i = 0; i < p->graph->n_extents; i++)
        if (strcmp(p->graph->extents[i].name, e->sized_by) == 0) q->last = p->size[i];
    if (q->last < LEAST_SIZE + PASSES - 1)
        return wf_emitter_fail(e, "%lld of extent '%s' have no form in C: at least %d",
                               (long long)q->last, e->sized_by, LEAST_SIZE + PASSES - 1);
    q->rooms = malloc(((size_t)b->n_storages + 1) * sizeof *q->rooms);
    if (!q->rooms) return wf_emitter_lacks(e);
    for (int i = 0; i < b->n_storages; i++)
        q->rooms[i] = (storage_room){ b->storages[i].offset, b->storages[i].bytes };
    q->sized = true;
    return true;
}

/* ---- memory that later plans use again ------------------------------------------------------- */

/* The lowest offset at which n consecutive floats are free. */
int64_t wf_free_floats(const wf_emitter *e, int64_t n) {
    int64_t at = 0;
    for (int k = 0; k < e->n_spans; k++) {
        const span *s = &e->spans[k];
        if (at >= s->to || at + n <= s->from) continue;
        at = (s->to + LEAF_UNIT - 1) / LEAF_UNIT * LEAF_UNIT;
        k = -1;
    }
    return at;
}

bool wf_take_floats(wf_emitter *e, int64_t from, int64_t n) {
    if (!wf_grow(&e->spans, &e->cap_spans, (size_t)e->n_spans + 1, sizeof *e->spans))
        return wf_emitter_lacks(e);
    e->spans[e->n_spans++] = (span){ from, from + n };
    if (from + n > e->memory) e->memory = from + n;
    return true;
}

/* Mark the memory of the values that a plan without a state fetches as taken. Later plans may use
 * the rest of its arena. Values that model_RUN_keep copies to other memory (emit_runs.c) are not
 * marked. */
static bool keep_fetches(wf_emitter *e, const part *q) {
    const binding *b = q->plan->now;
    bool ok = true;
    for (int i = 0; ok && i < q->plan->n_nodes; i++) {
        int at = b->values[i].at.storage;
        if (!q->plan->nodes[i].fetched || at < 0 || b->storages[at].place != IN_ARENA) continue;
        if (e->kept_runs > 1 && wf_storage_read_later(e, q, i) >= 0) continue;
        ok = wf_take_floats(e, q->arena + (int64_t)(b->storages[at].offset / 4),
                            (int64_t)(b->storages[at].bytes + 3) / 4);
    }
    return ok;
}

/* Find memory for the results of several runs of a plan, outside of its arena: the arena counts as
 * taken meanwhile. */
static bool keep_runs(wf_emitter *e, part *q, int64_t floats) {
    int own = e->n_spans;
    if (!wf_take_floats(e, q->arena, floats) || !wf_place_runs(e, q)) return false;
    e->spans[own] = e->spans[--e->n_spans];
    return true;
}

/* Place each plan's arena, and then its caches, in the first gap that is large enough. */
static bool lay_out_in_order(wf_emitter *e) {
    int64_t ends = 0;
    for (int i = 0; i < e->n_parts; i++) {
        part *q = e->now = &e->parts[i];
        int64_t n = (int64_t)(q->plan->now->arena + 63) / 64 * 16, state = 0;
        q->arena = wf_free_floats(e, n);
        if (q->arena + n > ends) ends = q->arena + n;
        bool ok = q->plan->with_state ? wf_take_floats(e, q->arena, n) : keep_fetches(e, q);
        if (e->kept_runs > 1 && !q->plan->with_state) ok = ok && keep_runs(e, q, n);
        if (!ok || !keep_rooms(e, q) || !place_state(e, q, &state)) return false;
        if (!state) continue; /* the plan has no caches, or shares those of an earlier plan */
        q->state = wf_free_floats(e, state);
        if (!wf_take_floats(e, q->state, state)) return false;
    }
    if (ends > e->memory) e->memory = ends;
    return true;
}

/* ---- all memory ------------------------------------------------------------------------------ */

/* Bind the plan. A plan with a state is bound at its last position, because at the first one it may
 * have fewer storages and need less memory. */
static bool bind_last(wf_emitter *e, wf_plan *p) {
    if (!wf_plan_prepare(p, 0)) return wf_emitter_fail_plan(e);
    int64_t last = p->with_state ? last_position(p) : 0;
    return last <= 0 || wf_plan_prepare(p, last) || wf_emitter_fail_plan(e);
}

/* Bind the plans. Place their arenas one after the other, or all at 0 if they run one at a time,
 * and then the KV caches. Plans in order are placed by lay_out_in_order. */
static bool lay_out(wf_emitter *e) {
    int64_t at = 0, rows = e->parts[0].plan->graph->extents[0].max + 1;
    if (e->positions && e->positions < rows) rows = e->positions;
    for (int i = 0; i < e->n_parts; i++) {
        part *q = e->now = &e->parts[i];
        reserve_rows(q->plan, rows);
        if (!bind_last(e, q->plan)) return false;
        int64_t arena = (int64_t)(q->plan->now->arena + 63) / 64 * 16;
        q->arena = e->alone ? 0 : at;
        if (!e->alone)
            at += arena;
        else if (arena > at)
            at = arena;
    }
    if (!wf_choose_kept(e)) return false;
    if (e->in_order) return lay_out_in_order(e);
    for (int i = 0; i < e->n_parts; i++) {
        e->now = &e->parts[i];
        if (!place_state(e, e->now, &at) || !keep_rooms(e, e->now)) return false;
    }
    e->memory = at;
    return true;
}

static bool is_identifier(const char *name) {
    char same[MOST_PREFIX];
    return name && wf_identifier(name, same, sizeof same) < sizeof same &&
           strcmp(name, same) == 0 && name[0];
}

static bool can_be_emitted(wf_emitter *e) {
    if (!is_identifier(e->prefix))
        return wf_emitter_fail(e, "'%s' is no identifier of C", e->prefix);
    if (e->positions < 0)
        return wf_emitter_fail(e, "%lld positions of the caches", (long long)e->positions);
    if (e->kept_runs < 0 || e->kept_runs > INT32_MAX)
        return wf_emitter_fail(e, "results of %lld runs", (long long)e->kept_runs);
    if (e->kept_runs > 1 && !e->in_order)
        return wf_emitter_fail(e, "the results of several runs are kept only of plans in order");
    for (int i = 0; i < e->n_parts; i++) {
        wf_plan *p = e->parts[i].plan;
        e->now = &e->parts[i];
        if (!p || !wf_plan_ok(p))
            return p ? wf_emitter_fail_plan(e) : wf_emitter_fail(e, "no plan");
        if (!is_identifier(e->parts[i].name))
            return wf_emitter_fail(e, "'%s' is no identifier of C",
                                   e->parts[i].name ? e->parts[i].name : "");
        if (p->graph != e->parts[0].plan->graph)
            return wf_emitter_fail(e, "the plans are of several graphs");
        if (p->graph->real != WF_F32) return wf_emitter_fail(e, "a graph of f64 has no form in C");
    }
    return true;
}

static bool write_all(wf_emitter *e) {
    size_t n = (size_t)e->parts[0].plan->graph->n_nodes + 1;
    e->is_placed = calloc(n, sizeof *e->is_placed);
    e->leaves = malloc(n * sizeof *e->leaves);
    e->panel_uses = calloc(n, sizeof *e->panel_uses);
    e->rows = calloc(n, sizeof *e->rows);
    if (!e->is_placed || !e->leaves || !e->panel_uses || !e->rows) return wf_emitter_lacks(e);
    if (!wf_claim_public(e) || !lay_out(e) || !wf_name_members(e)) return false;
    wf_choose_panels(e);
    for (int i = 0; i < e->n_parts; i++) {
        e->now = &e->parts[i];
        if (!write_part(e)) return false;
    }
    return wf_write_weights(e);
}

static void free_emitter(wf_emitter *e) {
    for (int i = 0; i < e->n_parts; i++) {
        wf_text_free(&e->parts[i].run);
        if (e->parts[i].sized) wf_bind(e->parts[i].plan, e->sized_by, e->parts[i].last);
        free(e->parts[i].resting);
        free(e->parts[i].rooms);
        free(e->parts[i].keeps);
        if (e->parts[i].plan && wf_plan_ok(e->parts[i].plan)) reserve_rows(e->parts[i].plan, 0);
    }
    wf_text *const texts[] = { &e->body,    &e->codes,   &e->functions, &e->modules,
                               &e->weights, &e->names,   &e->tables,    &e->getters,
                               &e->calls,   &e->members, &e->taken,     &e->int8_text };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) wf_text_free(texts[i]);
    free(e->inputs);
    free(e->forms);
    free(e->is_placed);
    free(e->leaves);
    free(e->places);
    free(e->panel_uses);
    free(e->rows);
    free(e->values);
    free(e->int8);
    free(e->spans);
    free(e->kept);
}

char *wf_emit_or_lack(wf_plan *const *plans, int n, const wf_emit_options *options, char *message,
                      bool *lacks) {
    static const wf_emit_options defaults = { 0 };
    const wf_emit_options *o = options ? options : &defaults;
    wf_emitter e = { .prefix = o->name ? o->name : "model",
                     .n_parts = n,
                     .positions = o->positions,
                     .recomputed = o->recomputed,
                     .sized_by = o->sized_by,
                     .kept_runs = o->kept_runs ? o->kept_runs : 1,
                     .alone = o->one_at_a_time,
                     .in_order = o->in_order,
                     .file = o->weights_file };
    char *text = NULL;
    if (o->weights_file) *o->weights_file = (wf_emit_weights){ 0 };
    if (n < 1 || n > MOST_PARTS || !plans) {
        e.n_parts = 0;
        wf_emitter_fail(&e, "%d plans, not 1 to %d", n, MOST_PARTS);
    }
    for (int i = 0; i < e.n_parts; i++)
        e.parts[i] = (part){ .plan = plans[i], .name = o->runs ? o->runs[i] : "run" };
    if (e.n_parts && can_be_emitted(&e) && write_all(&e)) text = wf_join_file(&e);
    *lacks = !text && e.lacks;
    if (text && o->arena_bytes) *o->arena_bytes = wf_arena_bytes(&e);
    if (text && o->n_weights) *o->n_weights = e.n_weights;
    if (text && o->n_int8) *o->n_int8 = e.n_int8;
    if (!text && o->weights_file) {
        free(o->weights_file->bytes);
        *o->weights_file = (wf_emit_weights){ 0 };
    }
    if (message) snprintf(message, WF_MESSAGE, "%.255s", text ? "" : e.message);
    free_emitter(&e);
    return text;
}

char *wf_emit(wf_plan *const *plans, int n, const wf_emit_options *options, char *message) {
    bool lacks;
    return wf_emit_or_lack(plans, n, options, message, &lacks);
}
