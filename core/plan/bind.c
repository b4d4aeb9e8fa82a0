/* core/plan/bind.c - a plan with sizes for its extents: shapes, views, schedule.
 *
 * A binding belongs to one set of sizes; a plan keeps the bindings that were used last. With a
 * state, memory is planned for positions P up to a bound, which grows by a quarter at a time. For
 * each position up to that bound the schedule is built again, with the same memory offsets if they
 * fit. */
#include "core/basis.h"
#include "core/op_internal.h"
#include "core/run_internal.h"
#include "plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/sanitizer.h"
#include "pool.h"

enum { LEAST_ROWS = 16, LEAST_CHUNK = 1 << 15 };

/* The size of a chunk's header, padded so that the memory after it is aligned to 16 bytes. */
enum { CHUNK_HEADER = (sizeof(chunk) + 15) & ~(size_t)15 };

void wf_binding_free(binding *b) {
    if (!b) return;
    for (chunk *next; b->chunks; b->chunks = next) {
        next = b->chunks->next;
        free(b->chunks);
    }
    free(b->values), free(b->execs), free(b->storages);
    free(b->offsets), free(b->limits), free(b->slots);
    free(b);
}

/* ---- growing lists --------------------------------------------------------------------------- */

static int add_storage(wf_plan *p, binding *b, storage_place place, int index, size_t bytes) {
    if (!wf_grow(&b->storages, &b->cap_storages, (size_t)b->n_storages + 1, sizeof *b->storages))
        return wf_plan_lacks(p), -1;
    b->storages[b->n_storages] = (storage){ place, index, bytes, 0, b->n_execs, b->n_execs, false };
    return b->n_storages++;
}

/* Add a storage of the view's size. */
static bool add_view_storage(wf_plan *p, binding *b, const wf_view *v, location *at,
                             storage_place place, int index) {
    size_t bytes = 0;
    bool fits = wf_shape_bytes(v->dtype, v->ndim, v->shape, &bytes);
    assert(fits);
    (void)fits; /* cannot fail: checked when the shape was made */
    at->offset = 0;
    return (at->storage = add_storage(p, b, place, index, bytes)) >= 0;
}

/* Take memory from the binding's chunks; it lives until the schedule is laid out again. NULL: out
 * of memory, and the plan's error says so. */
static void *take(wf_plan *p, binding *b, size_t bytes) {
    bytes = (bytes + 15) & ~(size_t)15;
    while (*b->chunk && (*b->chunk)->size - (*b->chunk)->used < bytes)
        b->chunk = &(*b->chunk)->next;
    if (!*b->chunk) {
        size_t size = bytes < LEAST_CHUNK ? LEAST_CHUNK : bytes;
        if (!(*b->chunk = malloc(CHUNK_HEADER + size))) return wf_plan_lacks(p), NULL;
        **b->chunk = (chunk){ NULL, size, 0 };
    }
    void *taken = (char *)*b->chunk + CHUNK_HEADER + (*b->chunk)->used;
    (*b->chunk)->used += bytes;
    return taken;
}

static void forget_all(binding *b) {
    for (chunk *one = b->chunks; one; one = one->next) one->used = 0;
    b->chunk = &b->chunks;
    b->n_execs = b->n_storages = b->n_slots = 0;
}

static bool add_exec(wf_plan *p, binding *b, const exec *e) {
    if (!wf_grow(&b->execs, &b->cap_execs, (size_t)b->n_execs + 1, sizeof *b->execs))
        return wf_plan_lacks(p);
    for (int i = 0; i < e->call.n_in; i++)
        if (e->in[i].storage >= 0) b->storages[e->in[i].storage].last = b->n_execs;
    for (int i = 0; i < e->call.n_in + e->call.n_out; i++)
        assert(e->in[i].storage < b->n_storages && e->in[i].offset >= 0);
    if (e->call.scratch_bytes > b->scratch) b->scratch = e->call.scratch_bytes;
    b->execs[b->n_execs++] = *e;
    return true;
}

/* ---- leaves ---------------------------------------------------------------------------------- */

static bool bind_leaf(wf_plan *p, binding *b, int i) {
    const planned *pl = &p->nodes[i];
    const wf_tensor *t = pl->node;
    bound_view *v = &b->values[i];
    wf_set_shape(&v->view, t->dtype, t->ndim, t->shape);
    v->view.layout = leaf_of(t)->layout;
    for (int a = 0; a < t->ndim; a++) {
        int e = leaf_of(t)->extent[a];
        if (e < 0) continue;
        if (!b->size[e])
            return wf_plan_fail(p, "extent '%s' of input '%s' is not bound",
                                p->graph->extents[e].name, t->name);
        v->view.shape[a] = b->size[e];
    }
    size_t bytes;
    if (!wf_shape_bytes(t->dtype, t->ndim, v->view.shape, &bytes))
        return wf_plan_fail(p, "'%s' is too large as bound", t->name);
    wf_dense_strides(t->ndim, v->view.shape, v->view.stride);
    v->at.storage = -1;
    if (!pl->data) return true;
    return pl->feed >= 0 ? add_view_storage(p, b, &v->view, &v->at, IN_FEED, pl->feed)
                         : add_view_storage(p, b, &v->view, &v->at, IN_LEAF, t->id);
}

/* ---- computed nodes -------------------------------------------------------------------------- */

/* Make a step for n_in operands and n_out results, all of them absent so far. */
static bool new_exec(wf_plan *p, binding *b, const wf_op *op, int n_in, int n_out, int count_at,
                     exec *e) {
    *e = (exec){ .work = -1, .counter = count_at };
    e->call = (wf_call){ .op = op, .graph = p->graph, .n_in = n_in, .n_out = n_out };
    e->call.report = &p->report;
    int n = n_in + n_out;
    wf_view *views = take(p, b, (size_t)n * sizeof *views);
    location *locations = take(p, b, (size_t)n * sizeof *locations);
    if (!views || !locations) return false;
    for (int i = 0; i < n; i++) {
        locations[i] = (location){ -1, 0 };
        views[i] = (wf_view){ .ndim = -1 };
    }
    e->call.in = views;
    e->call.out = views + n_in;
    e->in = locations;
    e->out = locations + n_in;
    return true;
}

static bool start_exec(wf_plan *p, binding *b, int index, int64_t position, exec *e) {
    const wf_tensor *t = p->nodes[index].node;
    if (!new_exec(p, b, t->op, t->n_in, result_count(t->op), p->nodes[index].counter, e))
        return false;
    e->node = t;
    e->call.attrs = t->attrs;
    e->call.position = position;
    e->call.training = p->training;
    e->call.with_state = p->with_state;
    for (int i = 0; i < t->n_in; i++) {
        if (!t->in[i]) continue;
        const bound_view *v = &b->values[p->index[t->in[i]->id]];
        e->call.in[i] = v->view;
        if (!(t->op->shape_only >> i & 1)) e->in[i] = v->at;
    }
    return true;
}

static bool run_shape_rule(wf_plan *p, exec *e) {
    wf_call *c = &e->call;
    wf_report_reset(&p->report, true);
    for (int k = 0; k < c->n_out; k++) c->out[k] = (wf_view){ 0 };
    if (!c->op->shape(c)) return wf_plan_fail_at(p, e->node, c->op);
    /* only the kernel's plan function may set these sizes */
    assert(!c->work_bytes && !c->scratch_bytes);
    for (int k = 0; k < c->n_out; k++) {
        bool chosen = false;
        size_t bytes;
        if (!wf_shape_bytes(c->out[k].dtype, c->out[k].ndim, c->out[k].shape, &bytes))
            return wf_plan_fail(p, "%s: the result %s is too large", c->op->name,
                                wf_show(c, &c->out[k]));
        for (int a = 0; a < c->out[k].ndim; a++) chosen |= c->out[k].stride[a] != 0;
        if (!chosen) wf_dense_strides(c->out[k].ndim, c->out[k].shape, c->out[k].stride);
    }
    return true;
}

/* Call the kernel's plan function, and add a storage for its work memory. */
static bool plan_call(wf_plan *p, binding *b, exec *e) {
    const wf_kernel *run = kernel_of(e->call.op);
    if (!run->eval)
        return wf_plan_fail(p, "%s: its result is not a view, and it has no eval",
                            e->call.op->name);
    if (run->plan) {
        void *plan = take(p, b, run->plan_bytes);
        if (!plan) return false;
        if (!run->plan(&e->call, plan)) return wf_plan_fail_at(p, e->node, e->call.op);
        e->call.plan = plan;
    }
    if (!e->call.work_bytes) return true;
    return (e->work = add_storage(p, b, IN_ARENA, 0, e->call.work_bytes)) >= 0;
}

/* Add a step that copies a view row-major, and make *view and *at those of the copy. */
static bool push_copy(wf_plan *p, binding *b, int count_at, wf_view *view, location *at) {
    exec e;
    if (!new_exec(p, b, wf_basis.copy, 1, 1, count_at, &e)) return false;
    e.call.in[0] = *view;
    e.in[0] = *at;
    if (!run_shape_rule(p, &e) || !add_view_storage(p, b, e.call.out, e.out, IN_ARENA, 0) ||
        !plan_call(p, b, &e))
        return false;
    *view = e.call.out[0];
    *at = e.out[0];
    return add_exec(p, b, &e);
}

/* The axis along which a cached result grows: the one whose size depends on the position. -1: the
 * plan has failed, for instance because there is none. */
static int growing_axis(wf_plan *p, const exec *e) {
    wf_view out[2][WF_MAX_RESULTS];
    for (int position = 0; position < 2; position++) {
        exec at = *e;
        at.call.position = position;
        at.call.out = out[position];
        if (!run_shape_rule(p, &at)) return -1;
    }
    for (int a = 0; a < e->call.out[0].ndim; a++)
        if (out[0][0].shape[a] != out[1][0].shape[a]) return a;
    wf_plan_fail(p, "%s: its result does not grow with the position", e->call.op->name);
    return -1;
}

/* The number of rows to reserve in a cache when n are needed: p->reserves if that is set, but at
 * least n. Otherwise 16 (LEAST_ROWS), increased by a quarter until it suffices, but not beyond what
 * P allows: a cache that grows row by row is then seldom moved. */
static int64_t reserved(const wf_plan *p, int64_t n) {
    int64_t enough = LEAST_ROWS, most = p->graph->extents[0].max + 1;
    if (p->reserves) return p->reserves > n ? p->reserves : n;
    while (enough < n) enough += enough / 4;
    return enough < most ? enough : most;
}

/* The number of positions that a call of a recurrence computes. Result 1 is the state after the
 * last position; result 0 has the values of all positions. */
static int64_t positions_of(const wf_call *c) {
    int64_t carried = wf_view_count(&c->out[1]);
    return carried ? wf_view_count(&c->out[0]) / carried : 0;
}

/* Give result k of step e a slot in the state. A cache has one row more than can be used: a view of
 * the used rows is then never contiguous, and the layout is the same at every position. Before a
 * run the state gets the same number of rows. */
static bool add_slot(wf_plan *p, binding *b, exec *e, int k) {
    wf_view *out = &e->call.out[k];
    bool first = b->n_slots == 0, known = b->n_slots < b->known_slots;
    if (!wf_grow(&b->slots, &b->cap_slots, (size_t)b->n_slots + 1, sizeof *b->slots))
        return wf_plan_lacks(p);
    slot *s = &b->slots[b->n_slots];
    int axis = 0;
    int64_t shape[WF_MAX_DIMS];
    if (k == 0) axis = known ? s->axis : growing_axis(p, e);
    if (k == 0 && axis < 1)
        return axis == 0 ? wf_plan_fail(p, "a cache cannot grow along the batch") : false;
    memcpy(shape, out->shape, sizeof shape);
    if (axis) shape[axis] = reserved(p, shape[axis]) + 1;
    wf_dense_strides(out->ndim, shape, out->stride);
    if (first) b->batch = shape[0];
    if (shape[0] != b->batch || shape[0] > INT32_MAX)
        return wf_plan_fail(p, "caches of %lld and of %lld rows: a state has one batch",
                            (long long)b->batch, (long long)shape[0]);
    *s = (slot){ .outer = 1, .rows = 1, .inner = wf_dtype_size(out->dtype), .axis = axis };
    if (axis) s->rows = (size_t)shape[axis];
    s->used = (size_t)(axis ? out->shape[axis] : e->call.position + positions_of(&e->call));
    for (int a = 1; a < axis; a++) s->outer *= (size_t)shape[a];
    for (int a = axis + 1; a < out->ndim; a++) s->inner *= (size_t)shape[a];
    e->out[k] = (location){ add_storage(p, b, IN_STATE, b->n_slots++, 0), 0 };
    if (b->n_slots > b->known_slots) b->known_slots = b->n_slots;
    return e->out[k].storage >= 0;
}

/* Add steps that copy packed operands row-major, if the op can neither read panels nor make a view
 * of them. */
static bool unpack(wf_plan *p, binding *b, exec *e) {
    const wf_op *op = e->call.op;
    for (int i = 0; i < e->call.n_in; i++) {
        wf_view *v = &e->call.in[i];
        if (v->ndim < 0 || !v->layout || op->shape_only >> i & 1) continue;
        if (kernel_of(op)->panels && kernel_of(op)->panels(&e->call) >> i & 1) continue;
        if (op->writes >> i & 1)
            return wf_plan_fail(p, "%s: a parameter in panels is not updated: wf_set_layout",
                                op->name);
        if (!push_copy(p, b, e->counter + 1 + i, v, &e->in[i])) return false;
    }
    return true;
}

static bool give_memory(wf_plan *p, binding *b, exec *e) {
    for (int i = 0; i < e->call.n_in; i++) {
        wf_view *v = &e->call.in[i];
        bool any = (kernel_of(e->call.op)->strided | e->call.op->shape_only) >> i & 1;
        if (v->ndim < 0 || any || wf_view_dense(v)) continue;
        if (!push_copy(p, b, e->counter + 1 + i, v, &e->in[i])) return false;
    }
    const wf_kernel *run = kernel_of(e->call.op);
    bool kept = p->with_state && (run->cached || run->carried);
    for (int k = 0; k < e->call.n_out; k++)
        if (kept && k == run->carried
                ? !add_slot(p, b, e, k)
                : !add_view_storage(p, b, &e->call.out[k], &e->out[k], IN_ARENA, 0))
            return false;
    return plan_call(p, b, e) && add_exec(p, b, e);
}

/* A fetched view of a leaf, a feed or a state is copied: it must not change when the leaf is
 * updated, or a new value is fed. */
static bool keep_fetched(wf_plan *p, binding *b, int i) {
    bound_view *v = &b->values[i];
    if (!p->nodes[i].fetched || v->at.storage < 0 || p->nodes[i].node->kind != WF_COMPUTED)
        return true;
    if (b->storages[v->at.storage].place != IN_ARENA && p->nodes[i].feed < 0 &&
        !push_copy(p, b, p->nodes[i].counter, &v->view, &v->at))
        return false;
    b->storages[v->at.storage].pinned |= b->storages[v->at.storage].place == IN_ARENA;
    return true;
}

/* Ask the op for a view; *offset -1: there is none, and its kernel computes the result. If an op
 * without eval refuses, a view without elements, such as a flipped axis of size 0, gets offset 0.
 * For other views the op is asked again with a row-major copy of its operand. */
static bool find_view(wf_plan *p, binding *b, exec *e, int64_t *offset) {
    const wf_op *op = e->call.op;
    *offset = op->view ? op->view(&e->call) : -1;
    if (*offset >= 0 || !op->view || kernel_of(op)->eval) return true;
    if (wf_view_count(&e->call.out[0]) == 0) *offset = 0;
    if (*offset == 0 || wf_view_dense(&e->call.in[0])) return true;
    if (!push_copy(p, b, e->counter + 1, &e->call.in[0], &e->in[0])) return false;
    *offset = op->view(&e->call);
    return true;
}

static bool bind_computed(wf_plan *p, binding *b, int i, int64_t position) {
    const wf_tensor *t = p->nodes[i].node;
    exec e;
    if (!start_exec(p, b, i, position, &e) || !run_shape_rule(p, &e)) return false;
    bool run = p->nodes[i].data && p->nodes[i].feed < 0;
    if (run && !unpack(p, b, &e)) return false;
    int64_t offset = -1;
    if (run && !find_view(p, b, &e, &offset)) return false;
    if (run && offset < 0 && !give_memory(p, b, &e)) return false;
    for (int k = 0; k < e.call.n_out; k++) {
        int at = p->index[t[k].id];
        if (at < 0) continue;
        bound_view *v = &b->values[at];
        *v = (bound_view){ e.call.out[k], e.out[k] };
        if (k == 0 && offset >= 0) {
            v->at = (location){ e.in[0].storage, e.in[0].offset + offset };
            v->view.layout = e.call.in[0].layout;
        }
        if (p->nodes[at].feed >= 0) {
            wf_dense_strides(v->view.ndim, v->view.shape, v->view.stride);
            if (!add_view_storage(p, b, &v->view, &v->at, IN_FEED, p->nodes[at].feed)) return false;
        }
        if (p->nodes[at].data && v->at.storage < 0)
            return wf_plan_fail(p,
                                "%s: result %d of a node whose result 0 is fed: nothing computes "
                                "the one without the other",
                                t->op->name, k);
        if (!keep_fetched(p, b, at)) return false;
    }
    return true;
}

static bool lay_out(wf_plan *p, binding *b, int64_t position) {
    forget_all(b);
    b->position = -1;
    b->feeds = 0;
    for (int i = 0; i < p->n_nodes; i++) {
        const wf_tensor *t = p->nodes[i].node;
        if (t->kind == WF_COMPUTED && t->result) continue;
        if (t->kind == WF_COMPUTED ? !bind_computed(p, b, i, position) : !bind_leaf(p, b, i))
            return false;
    }
    b->position = position;
    return true;
}

/* ---- bindings -------------------------------------------------------------------------------- */

static binding *remembered(wf_plan *p) {
    for (int i = 0; i < MAX_BINDINGS; i++) {
        binding *b = p->bindings[i];
        if (b && memcmp(b->size + 1, p->size + 1, sizeof b->size - sizeof b->size[0]) == 0)
            return b;
    }
    return NULL;
}

static void remember(wf_plan *p, binding *b) {
    int oldest = 0;
    for (int i = 0; i < MAX_BINDINGS && p->bindings[oldest]; i++)
        if (!p->bindings[i] || p->bindings[i]->used < p->bindings[oldest]->used) oldest = i;
    wf_binding_free(p->bindings[oldest]);
    p->bindings[oldest] = b;
}

static bool plan_offsets(binding *b) {
    size_t n = (size_t)b->n_storages + 1;
    size_t *offsets = malloc(n * sizeof *offsets), *limits = malloc(n * sizeof *limits);
    if (!offsets || !limits || !wf_assign_memory(b)) {
        free(offsets);
        free(limits);
        return false;
    }
    free(b->offsets), free(b->limits);
    b->offsets = offsets;
    b->limits = limits;
    b->n_offsets = b->n_storages;
    for (int s = 0; s < b->n_storages; s++) {
        b->offsets[s] = b->storages[s].offset;
        b->limits[s] = b->storages[s].bytes;
    }
    return true;
}

/* Use the offsets that were planned for a larger position. False: they are not valid, because the
 * number of storages has changed, or one is larger than planned. */
static bool reuse_offsets(binding *b) {
    if (b->n_storages != b->n_offsets) return false;
    for (int s = 0; s < b->n_storages; s++) {
        if (b->storages[s].bytes > b->limits[s]) return false;
        b->storages[s].offset = b->offsets[s];
    }
    return true;
}

/* Plan memory for this position and for all others with the same number of reserved rows. */
static bool plan_up_to(wf_plan *p, binding *b, int64_t position) {
    int64_t last = p->with_state ? reserved(p, position + 1) - 1 : 0;
    if (!lay_out(p, b, last)) return false;
    if (!plan_offsets(b)) return wf_plan_lacks(p);
    b->planned = last;
    return true;
}

static binding *new_binding(wf_plan *p, int64_t position) {
    binding *b = calloc(1, sizeof *b);
    if (b) b->values = calloc((size_t)p->n_nodes + 1, sizeof *b->values);
    if (!b || !b->values) {
        wf_plan_lacks(p);
        wf_binding_free(b);
        return NULL;
    }
    memcpy(b->size, p->size, sizeof b->size);
    if (!plan_up_to(p, b, position)) return wf_binding_free(b), NULL;
    remember(p, b);
    return b;
}

static bool move_to(wf_plan *p, binding *b, int64_t position) {
    if (position > b->planned && !plan_up_to(p, b, position)) return false;
    if (b->position == position) return true;
    return lay_out(p, b, position) && (reuse_offsets(b) || plan_offsets(b) || wf_plan_lacks(p));
}

static bool grow(wf_plan *p, void **memory, size_t *have, size_t need, const char *what) {
    if (need <= *have) return true;
    wf_memory_free(*memory, *have);
    *memory = wf_memory_new(need);
    *have = 0;
    p->lacks = !*memory;
    if (!*memory) return wf_plan_fail(p, "out of memory: %zu bytes of %s", need, what);
    *have = need;
    return true;
}

bool wf_plan_prepare(wf_plan *p, int64_t position) {
    if (!p->ok) return false;
    binding *b = p->now ? p->now : remembered(p);
    if (!b) b = new_binding(p, position);
    if (!b) return false;
    p->now = b;
    b->used = ++p->clock;
    if (!move_to(p, b, position)) {
        b->position = -1; /* a failed binding must not be used */
        p->now = NULL;
        return false;
    }
    size_t scratch =
        wf_scratch_stride(b->scratch) * (size_t)(p->pool ? wf_pool_threads(p->pool) : 1);
    /* The arena has at least 1 byte: memcpy needs valid pointers for empty tensors, too. */
    size_t arena = b->arena ? b->arena : 1;
    return grow(p, &p->arena, &p->arena_bytes, arena, "arena") &&
           grow(p, &p->scratch, &p->scratch_bytes, scratch, "scratch");
}
