/* core/plan/run.c - bind, feed, run, fetch; the profile.
 *
 * A run allocates no memory and computes no shapes, unless it is the plan's first, an extent or the
 * position has changed, or the memory was released. */
#include "core/graph_internal.h"
#include "core/op_internal.h"
#include "core/run_internal.h"
#include "plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/sanitizer.h"
#include "core/lend.h"
#include "pool.h"

/* ---- data pointers --------------------------------------------------------------------------- */

/* Views of a binding point into the arena, leaves, feeds or a state, whose memory can move between
 * runs. */

static char *memory_of(const wf_plan *p, const storage *s, const wf_state *state) {
    if (s->place == IN_LEAF) return leaf_of(p->graph->nodes[s->index])->data;
    if (s->place == IN_FEED) return p->feeds[s->index].data;
    if (s->place == IN_STATE) return state ? state->slots[s->index].data : NULL;
    return p->arena ? (char *)p->arena + s->offset : NULL;
}

static void point(const wf_plan *p, const binding *b, const wf_state *state, location at,
                  wf_view *v) {
    const storage *s = at.storage < 0 ? NULL : &b->storages[at.storage];
    char *base = s ? memory_of(p, s, state) : NULL;
    v->data = base ? base + wf_view_bytes(v, at.offset) : NULL;
    v->row_index = s && s->place == IN_FEED ? p->feeds[s->index].row_index : NULL;
}

/* Sets the data pointers of all views. */
static void point_all(wf_plan *p, const wf_state *state) {
    binding *b = p->now;
    if (!state && b->feeds == p->feeds_generation && b->base == p->arena) return;
    for (int i = 0; i < p->n_nodes; i++) point(p, b, state, b->values[i].at, &b->values[i].view);
    for (int x = 0; x < b->n_execs; x++) {
        exec *e = &b->execs[x];
        for (int i = 0; i < e->call.n_in + e->call.n_out; i++) { /* results follow operands */
            point(p, b, state, e->in[i], &e->call.in[i]);
            assert(!e->call.in[i].row_index || kernel_of(e->call.op)->indexed >> i & 1);
        }
        e->call.work = e->work < 0 ? NULL : memory_of(p, &b->storages[e->work], state);
    }
    b->feeds = p->feeds_generation;
    b->base = p->arena;
}

bound_view *wf_plan_value(wf_plan *p, const wf_tensor *t) {
    if (!p->now || !t || t->graph != p->graph || t->id < 0 || t->id >= p->n_index) return NULL;
    return p->index[t->id] < 0 ? NULL : &p->now->values[p->index[t->id]];
}

/* ---- binding and feeding --------------------------------------------------------------------- */

bool wf_bind(wf_plan *p, const char *name, int64_t size) {
    if (!wf_plan_ok(p)) return false;
    const extent *e = NULL;
    int i = 0;
    for (; i < p->graph->n_extents && !e; i++)
        if (name && strcmp(p->graph->extents[i].name, name) == 0) e = &p->graph->extents[i];
    if (!e) return wf_plan_fail(p, "there is no extent '%s'", name ? name : "");
    int64_t least = e == p->graph->extents ? 0 : 1;
    if (size < least || size > e->max)
        return wf_plan_fail(p, "extent '%s' cannot be %lld: it was declared as %lld to %lld", name,
                            (long long)size, (long long)least, (long long)e->max);
    if (e == p->graph->extents && size && !p->with_state)
        return wf_plan_fail(p, "a plan without a state stays at position 0, not %lld",
                            (long long)size);
    if (p->size[i - 1] == size) return true;
    p->size[i - 1] = size;
    p->ran = false;
    if (i > 1) p->now = NULL;
    return true;
}

/* Sets *bytes to the size of v, the value of t in the plan. False, with the plan's error, if the
 * program's array is NULL, or its size `given` differs from *bytes. */
static bool array_fits(wf_plan *p, const wf_tensor *t, const wf_view *v, const void *data,
                       size_t given, size_t *bytes) {
    char shape[96];
    bool fits = wf_shape_bytes(v->dtype, v->ndim, v->shape, bytes);
    assert(fits);
    (void)fits; /* cannot fail: checked when it was bound */
    if (!data && *bytes) return wf_plan_fail(p, "the array for '%s' is NULL", called(t));
    if (given == *bytes) return true;
    return wf_plan_fail(p, "'%s' is bound as %s %s, which takes %zu bytes: %zu were given",
                        called(t), wf_dtype_name(v->dtype),
                        wf_shape_text(NULL, v->ndim, v->shape, shape, sizeof shape), *bytes, given);
}

/* Set *f to the feed of t, after checking the size of its data. If no run needs t, *f is NULL and
 * the result is true; after a failure *f is NULL and the result false. */
static bool find_feed(wf_plan *p, const wf_tensor *t, const void *data, size_t given, feed **f) {
    *f = NULL;
    if (!wf_plan_ok(p)) return false;
    int i = wf_feed_of(p, t);
    if (i < 0)
        return wf_plan_fail(p, "'%s' is not among the feeds of this plan", t ? called(t) : "NULL");
    if (!p->feeds[i].needed) return true;
    if (!wf_plan_prepare(p, p->size[0])) return false;
    const wf_view *v = &wf_plan_value(p, t)->view;
    size_t bytes;
    if (!array_fits(p, t, v, data, given, &bytes)) return false;
    *f = &p->feeds[i];
    (*f)->given = true;
    (*f)->ndim = v->ndim;
    memcpy((*f)->shape, v->shape, sizeof v->shape);
    return true;
}

static bool reserve_feed(wf_plan *p, feed *f, size_t bytes) {
    if (bytes <= f->capacity && f->data) return true;
    if (f->capacity) free(f->data);
    f->capacity = 0;
    f->row_index = NULL;
    f->data = wf_memory_new(bytes);
    f->given = f->data != NULL;
    if (!f->given)
        return wf_plan_fail(p, "out of memory: %zu bytes for '%s'", bytes, called(f->tensor));
    f->capacity = bytes ? bytes : 1;
    p->feeds_generation++;
    return true;
}

bool wf_feed(wf_plan *p, const wf_tensor *t, const void *data, size_t bytes) {
    feed *f;
    if (!find_feed(p, t, data, bytes, &f)) return false;
    if (!f || !reserve_feed(p, f, bytes)) return !f;
    if (bytes) memcpy(f->data, data, bytes);
    return true;
}

bool wf_feed_place(wf_plan *p, const wf_tensor *t, size_t bytes, void **place) {
    feed *f;
    if (place) *place = NULL;
    if (!wf_plan_ok(p)) return false;
    if (!place) return wf_plan_fail(p, "there is no place for the address of a feed");
    if (!find_feed(p, t, place, bytes, &f)) return false;
    if (!f || !reserve_feed(p, f, bytes)) return !f;
    *place = f->data;
    return true;
}

/* True if every op that reads t accepts a row index for it. */
static bool follows_index(const wf_plan *p, const wf_tensor *t) {
    for (int k = 0; k < p->n_nodes; k++) {
        const wf_tensor *node = p->nodes[k].node;
        for (int i = 0; i < node->n_in && p->nodes[k].data; i++) {
            const bool reads = node->in[i] == t && !(node->op->shape_only >> i & 1);
            if (reads && !(kernel_of(node->op)->indexed >> i & 1)) return false;
        }
    }
    return true;
}

bool wf_feed_lent(wf_plan *p, const wf_tensor *t, void *data, size_t bytes, const int32_t *row) {
    feed *f;
    if (!wf_plan_ok(p)) return false;
    if ((uintptr_t)data % ALIGN != 0)
        return wf_plan_fail(p, "data are lent that are not aligned to %d bytes", (int)ALIGN);
    if (t && row && !follows_index(p, t))
        return wf_plan_fail(p, "'%s' is read by an op that takes no index of rows", called(t));
    if (!find_feed(p, t, data, bytes, &f)) return false;
    if (!f) return true;
    if (f->capacity) free(f->data);
    f->data = data;
    f->capacity = 0;
    f->row_index = row;
    p->feeds_generation++;
    return true;
}

void wf_plan_release(wf_plan *p) {
    if (!wf_plan_ok(p)) return;
    wf_memory_free(p->arena, p->arena_bytes);
    p->arena = NULL;
    p->arena_bytes = 0;
    p->ran = false;
}

static bool feeds_given(wf_plan *p) {
    for (int i = 0; i < p->n_feeds; i++) {
        const feed *f = &p->feeds[i];
        if (!f->needed) continue;
        if (!f->given) return wf_plan_fail(p, "'%s' was not fed", called(f->tensor));
        const wf_view *v = &wf_plan_value(p, f->tensor)->view;
        char was[96], is[96];
        if (memcmp(f->shape, v->shape, (size_t)f->ndim * sizeof f->shape[0]) == 0) continue;
        return wf_plan_fail(p, "'%s' was fed as %s and is bound as %s now", called(f->tensor),
                            wf_shape_text(NULL, f->ndim, f->shape, was, sizeof was),
                            wf_shape_text(NULL, v->ndim, v->shape, is, sizeof is));
    }
    return true;
}

void wf_plan_watch(wf_plan *p, void (*computed)(void *user, const wf_tensor *node), void *user) {
    if (wf_plan_ok(p)) {
        p->computed = computed;
        p->watcher = user;
    }
}

void wf_random_step(wf_plan *p, uint64_t step, uint32_t micro_batch) {
    if (wf_plan_ok(p)) {
        p->step = step;
        p->micro_batch = micro_batch;
    }
}

/* ---- running --------------------------------------------------------------------------------- */

typedef struct job {
    const wf_call *call;
    int phase;
    char *scratch;
    size_t stride;
} job;

/* All ops of a plan share the scratch memory. AddressSanitizer finds writes beyond the size that an
 * op has asked for, because the bytes behind it are forbidden while a task of the op runs. */
static bool run_task(void *arg, int64_t index, int worker) {
    const job *j = arg;
    size_t own = j->call->scratch_bytes;
    char *scratch = j->stride ? j->scratch + (size_t)worker * j->stride : NULL;
    assert((uintptr_t)scratch % ALIGN == 0 && own <= j->stride);
    if (scratch) ASAN_POISON_MEMORY_REGION(scratch + own, WF_GUARD_BYTES);
    bool ok = kernel_of(j->call->op)->eval(j->call, j->phase, index, scratch);
    if (scratch) ASAN_UNPOISON_MEMORY_REGION(scratch + own, WF_GUARD_BYTES);
    return ok;
}

static bool run_call(wf_plan *p, const wf_call *c) {
    job j = { c, 0, p->scratch, wf_scratch_stride(p->now->scratch) };
    const wf_kernel *run = kernel_of(c->op);
    if (!run->tasks) return run_task(&j, 0, 0);
    for (;; j.phase++) {
        int64_t n = run->tasks(c, j.phase);
        if (n <= 0) return true;
        if (n == 1 ? !run_task(&j, 0, 0) : !wf_pool_run(p->pool, n, run_task, &j)) return false;
    }
}

static double flops_of(const wf_call *c) {
    const wf_kernel *run = kernel_of(c->op);
    return run->flops ? run->flops(c) : (double)wf_view_count(&c->out[0]);
}

static double bytes_of(const wf_call *c) {
    double bytes = 0;
    for (int i = 0; i < c->n_in; i++)
        if (c->in[i].ndim >= 0 && !(c->op->shape_only >> i & 1))
            bytes += (double)wf_view_bytes(&c->in[i], wf_view_count(&c->in[i]));
    for (int k = 0; k < c->n_out; k++)
        bytes += (double)wf_view_count(&c->out[k]) * (double)wf_dtype_size(c->out[k].dtype);
    return bytes;
}

static bool run_measured(wf_plan *p, const exec *e) {
    double start = wf_seconds_now();
    bool ok = run_call(p, &e->call);
    counter *s = &p->counters[e->counter];
    s->seconds += wf_seconds_now() - start;
    s->runs++;
    s->flops += flops_of(&e->call);
    s->bytes += bytes_of(&e->call);
    return ok;
}

/* Prefetch the views of a later step while this one is computed, because the caches do not hold the
 * views of a long schedule. */
static void fetch_ahead(const exec *e) {
    const char *views = (const char *)e->call.in;
    size_t bytes = (size_t)(e->call.n_in + e->call.n_out) * sizeof(wf_view);
    for (size_t at = 0; at < bytes; at += 64) __builtin_prefetch(views + at);
}

static bool run_all(wf_plan *p) {
    wf_report_reset(&p->report, true);
    for (int i = 0; i < p->now->n_execs; i++) {
        exec *e = &p->now->execs[i];
        if (i + 2 < p->now->n_execs) fetch_ahead(e + 2);
        e->call.step = p->step;
        e->call.micro_batch = p->micro_batch;
        if (!(p->profile ? run_measured(p, e) : run_call(p, &e->call)))
            return wf_plan_fail_at(p, e->node, e->call.op);
        if (p->computed && e->node) p->computed(p->watcher, e->node);
    }
    return p->ran = true;
}

static bool run(wf_plan *p, wf_state *s) {
    p->ran = false;
    if (!feeds_given(p) || (s && !wf_state_follow(p, s))) return false;
    point_all(p, s);
    unsigned mode = wf_float_mode_enter();
    bool ok = run_all(p);
    wf_float_mode_leave(mode);
    if (!ok) return false;
    p->error[0] = '\0';
    p->step++;
    return true;
}

bool wf_run(wf_plan *p) {
    if (!wf_plan_ok(p)) return false;
    if (p->with_state) return wf_plan_fail(p, "a plan made with_state runs with one: wf_run_state");
    return wf_plan_prepare(p, 0) && run(p, NULL);
}

static bool state_fits(wf_plan *p, const wf_state *s) {
    const binding *b = p->now;
    if (s->n_slots != b->n_slots) return wf_plan_fail(p, "the state was made for another plan");
    if (b->batch > s->batch)
        return wf_plan_fail(p, "a batch of %lld, but the state was made for %d",
                            (long long)b->batch, s->batch);
    if (s->n_slots > 0 && p->size[0] > s->used)
        return wf_plan_fail(p, "position %lld, but the state holds %lld rows",
                            (long long)p->size[0], (long long)s->used);
    for (int i = 0; i < b->n_slots; i++) {
        const slot *have = &s->slots[i], *need = &b->slots[i];
        if (have->outer != need->outer || have->axis != need->axis || have->inner != need->inner)
            return wf_plan_fail(p, "the state was made for another plan");
        if (!need->axis && p->size[0] && p->size[0] < s->used)
            return wf_plan_fail(p, "a recurrence cannot go back to position %lld",
                                (long long)p->size[0]);
        if (need->axis && need->used >= need->rows)
            return wf_plan_fail(p, "%zu cached rows, but P was declared with a maximum of %zu",
                                need->used, need->rows - 2);
    }
    return true;
}

bool wf_run_state(wf_plan *p, wf_state *s) {
    if (!wf_plan_ok(p)) return false;
    if (!p->with_state) return wf_plan_fail(p, "this plan was made without a state: wf_run");
    if (!s) return wf_plan_fail(p, "the state is NULL");
    if (!wf_plan_prepare(p, p->size[0]) || !state_fits(p, s) || !run(p, s)) return false;
    for (int i = 0; i < p->now->n_slots; i++) s->used = (int64_t)p->now->slots[i].used;
    return true;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The value of t after a run; NULL: it cannot be fetched. */
static const bound_view *computed(wf_plan *p, const wf_tensor *t) {
    if (!wf_plan_ok(p)) return NULL;
    bool here = t && t->graph == p->graph && t->id >= 0 && t->id < p->n_index;
    if (!here || p->index[t->id] < 0 || !p->nodes[p->index[t->id]].fetched)
        return wf_plan_fail(p, "'%s' is not among the fetches of this plan",
                            t ? called(t) : "NULL"),
               NULL;
    const bound_view *v = p->ran ? wf_plan_value(p, t) : NULL;
    if (!v) wf_plan_fail(p, "'%s' is fetched before a run", called(t));
    return v;
}

const void *wf_fetched(wf_plan *p, const wf_tensor *t) {
    const bound_view *v = computed(p, t);
    if (!v) return NULL;
    if (wf_view_dense(&v->view)) return v->view.data;
    return wf_plan_fail(p, "'%s' does not lie in one piece", called(t)), NULL;
}

bool wf_fetch(wf_plan *p, const wf_tensor *t, void *data, size_t bytes) {
    const bound_view *v = computed(p, t);
    if (!v) return false;
    if (!array_fits(p, t, &v->view, data, bytes, &bytes)) return false;
    if (bytes == 0) return true;
    wf_view to;
    wf_set_shape(&to, v->view.dtype, v->view.ndim, v->view.shape);
    wf_dense_strides(to.ndim, to.shape, to.stride);
    to.data = data;
    wf_copy_view(&v->view, &to);
    return true;
}

int wf_bound_shape(wf_plan *p, const wf_tensor *t, int64_t shape[WF_MAX_DIMS]) {
    if (!wf_plan_ok(p) || !shape || !wf_plan_prepare(p, p->size[0])) return -1;
    const bound_view *v = wf_plan_value(p, t);
    if (!v) return wf_plan_fail(p, "'%s' is not in this plan", t ? called(t) : "NULL"), -1;
    memcpy(shape, v->view.shape, sizeof v->view.shape);
    return v->view.ndim;
}

size_t wf_bound_bytes(wf_plan *p, const wf_tensor *t) {
    int64_t shape[WF_MAX_DIMS];
    size_t bytes;
    int ndim = wf_bound_shape(p, t, shape);
    return ndim >= 0 && wf_shape_bytes(t->dtype, ndim, shape, &bytes) ? bytes : 0;
}

size_t wf_plan_memory(wf_plan *p) {
    return wf_plan_ok(p) && wf_plan_prepare(p, p->size[0]) ? p->now->arena : 0;
}

/* ---- profile --------------------------------------------------------------------------------- */

void wf_profile(wf_plan *p, bool on) {
    if (!wf_plan_ok(p)) return;
    if (on && !p->profile) memset(p->counters, 0, (size_t)p->n_counters * sizeof *p->counters);
    p->profile = on;
}

int wf_step_count(wf_plan *p) {
    return wf_plan_ok(p) && wf_plan_prepare(p, p->size[0]) ? p->now->n_execs : 0;
}

static int64_t widest_phase(const wf_call *c) {
    int64_t widest = 1;
    const wf_kernel *run = kernel_of(c->op);
    for (int phase = 0; run->tasks; phase++) {
        int64_t n = run->tasks(c, phase);
        if (n <= 0) break;
        if (n > widest) widest = n;
    }
    return widest;
}

bool wf_step_at(wf_plan *p, int i, wf_step *out) {
    if (!out || i < 0 || i >= wf_step_count(p)) return false;
    const exec *e = &p->now->execs[i];
    const counter *s = &p->counters[e->counter];
    *out = (wf_step){ .node = e->node,
                      .op = e->call.op,
                      .seconds = s->seconds,
                      .runs = s->runs,
                      .flops = s->runs ? s->flops / (double)s->runs : flops_of(&e->call),
                      .bytes = s->runs ? s->bytes / (double)s->runs : bytes_of(&e->call),
                      .tasks = widest_phase(&e->call) };
    const storage *in = e->out[0].storage < 0 ? NULL : &p->now->storages[e->out[0].storage];
    if (in && in->place == IN_ARENA) {
        out->offset = in->offset;
        out->size = in->bytes;
    }
    return true;
}
