/* core/plan/point.c - sets the data pointers of a binding's views. They point into the arena,
 * leaves, feeds or a state, whose memory can move between runs. */
#include <assert.h>

#include "core/op_internal.h"
#include "plan.h"

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

void wf_plan_point(wf_plan *p, const wf_state *state) {
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
