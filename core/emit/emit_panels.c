/* core/emit/emit_panels.c - weights in panels: each group of EMIT_PANEL rows of a matrix (the last
 * group may have fewer) is stored column by column. A product then reads weights in order, and
 * computes EMIT_PANEL columns of its result at a time. A leaf is packed in panels if all steps that
 * read it, in all plans, can read panels (kernel.h), one of them computes with it, and no plan
 * fetches it. A table that is only looked up stays row-major. */
#include <stdlib.h>

#include "emit_sections.h"

/* ---- which leaves ---------------------------------------------------------------------------- */

/* True if the step can read operand i, a view of the leaf, in whole panels. */
static bool reads_panels(const exec *x, int i, const wf_tensor *t) {
    const wf_kernel *run = kernel_of(x->call.op);
    const wf_view *v = &x->call.in[i];
    if (!run->panels || !run->emit || !(run->panels(&x->call) >> i & 1)) return false;
    if (t->ndim != 2 || v->ndim != 2 || t->shape[1] == 0) return false;
    int64_t width = t->shape[1], first = x->in[i].offset / width, n = v->shape[0];
    bool whole_rows = v->shape[1] == width && v->stride[0] == width && v->stride[1] == 1 &&
                      x->in[i].offset % width == 0;
    return whole_rows && first % EMIT_PANEL == 0 &&
           (n % EMIT_PANEL == 0 || first + n == t->shape[0]);
}

/* The f32 leaf in whose memory the data of operand i of step x lie. NULL: there is none, or only
 * the operand's shape is read. */
static const wf_tensor *leaf_read(const part *q, const exec *x, int i) {
    const binding *b = q->plan->now;
    int at = x->in[i].storage;
    if (at < 0 || b->storages[at].place != IN_LEAF || x->call.op->shape_only >> i & 1) return NULL;
    const wf_tensor *t = q->plan->graph->nodes[b->storages[at].index];
    return t->dtype == WF_F32 ? t : NULL;
}

static void note_readers(const part *q, panel_use *uses) {
    const binding *b = q->plan->now;
    for (int k = 0; k < b->n_execs; k++) {
        const exec *x = &b->execs[k];
        for (int i = 0; i < x->call.n_in; i++) {
            const wf_tensor *t = leaf_read(q, x, i);
            if (!t) continue;
            bool can = !(x->call.op->writes >> i & 1) && reads_panels(x, i, t);
            panel_use use = kernel_of(x->call.op)->flops ? IN_PANELS : EITHER_WAY;
            if (!can) use = BY_ROWS;
            if (use > uses[t->id]) uses[t->id] = use;
        }
    }
    for (int i = 0; i < q->plan->n_nodes; i++) {
        int at = b->values[i].at.storage;
        if (q->plan->nodes[i].fetched && at >= 0 && b->storages[at].place == IN_LEAF)
            uses[b->storages[at].index] = BY_ROWS;
    }
}

/* Plans that run one at a time (`alone`) are those of a training, whose program saves leaves as
 * they lie in memory. So no leaf is packed. */
void wf_choose_panels(wf_emitter *e) {
    if (e->alone) return;
    for (int i = 0; i < e->n_parts; i++) note_readers(&e->parts[i], e->panel_uses);
}

bool wf_set_panels(wf_emitter *e, const exec *x, int i, wf_view *v) {
    const wf_tensor *t = leaf_read(e->now, x, i);
    if (!t || v->layout == WF_PANELS_INT8) return true;
    bool packed = e->panel_uses[t->id] == IN_PANELS;
    if (packed && !reads_panels(x, i, t))
        return wf_emitter_fail(e, "'%s' is read otherwise at another position", called(t));
    v->layout = packed ? WF_PANELS : WF_ROW_MAJOR;
    return true;
}

/* ---- their values ---------------------------------------------------------------------------- */

bool wf_pack_panels(const wf_tensor *t, float *values) {
    int64_t n = t->shape[0], width = t->shape[1];
    float *packed = malloc((size_t)(n * width + 1) * sizeof *packed);
    if (!packed) return false;
    for (int64_t first = 0; first < n; first += EMIT_PANEL) {
        int64_t rows = n - first < EMIT_PANEL ? n - first : EMIT_PANEL;
        for (int64_t r = 0; r < rows; r++)
            for (int64_t k = 0; k < width; k++)
                packed[first * width + k * rows + r] = values[(first + r) * width + k];
    }
    for (int64_t i = 0; i < n * width; i++) values[i] = packed[i];
    free(packed);
    return true;
}
