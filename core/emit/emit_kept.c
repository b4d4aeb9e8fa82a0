/* core/emit/emit_kept.c - KV caches that keep the int8 input of a product instead of the keys and
 * values that the product gives. A row takes width / 4 floats and a scale. Every run computes keys
 * and values from it again, for one row of the batch at a time, with the same bits.
 *
 * It applies to attention whose keys and values come unchanged from one int8 product, with one
 * token in a run. In the schedule these are four steps in a row: the product, the two caches,
 * attention. */
#include <string.h>

#include "emit_kept.h"
#include "emit_places.h"

enum { PRODUCT, KEYS, VALUES, ATTENTION, KEPT_STEPS };
enum { IN_ADDEND = 2, IN_MASK = 3 };

/* ---- which caches ---------------------------------------------------------------------------- */

static bool is_in(const part *q, location at, storage_place place) {
    return at.storage >= 0 && q->plan->now->storages[at.storage].place == place;
}

/* True if x multiplies one token of each batch row with an int8 matrix. A matrix in int8 as the
 * second operand shows that the op is a product. */
static bool is_product(const part *q, const exec *x) {
    const wf_call *c = &x->call;
    const wf_view *a = &c->in[0], *y = &c->out[0];
    if (!x->node || c->n_in < 2 || c->in[1].layout != WF_PANELS_INT8) return false;
    if (!is_in(q, x->in[1], IN_LEAF) || y->ndim != 3 || a->ndim != 3 || a->shape[1] != 1)
        return false;
    const wf_tensor *w = q->plan->graph->nodes[q->plan->now->storages[x->in[1].storage].index];
    bool has_addend = c->n_in > IN_ADDEND && c->in[IN_ADDEND].ndim >= 0;
    bool is_row = has_addend && c->in[IN_ADDEND].ndim == 1 && c->in[IN_ADDEND].stride[0] == 1 &&
                  is_in(q, x->in[IN_ADDEND], IN_LEAF);
    return w->shape[1] == a->shape[2] && a->shape[2] % 4 == 0 && a->stride[2] == 1 &&
           (is_row || !has_addend) && wf_view_dense(y);
}

/* True if x writes some columns of the product, such as the keys, to the state of a cache. The
 * columns of a head lie side by side. */
static bool is_cache(const part *q, const exec *product, const exec *x) {
    const wf_view *v = &x->call.in[0];
    int64_t columns = product->call.out[0].shape[2];
    return x->node && kernel_of(x->call.op)->cached &&
           x->in[0].storage == product->out[0].storage && is_in(q, x->out[0], IN_STATE) &&
           v->ndim == 4 && v->shape[2] == 1 && v->stride[3] == 1 && v->stride[1] == v->shape[3] &&
           (v->stride[0] == columns || v->shape[0] == 1);
}

static int64_t width_of(const exec *cache) {
    return cache->call.in[0].shape[1] * cache->call.in[0].shape[3];
}

/* True if the last of the four steps is attention without a mask that reads the product and both
 * caches. Attention is recognised by its operands 1 and 2, keys and values, whose rows may share
 * memory (`indexed`). */
static bool is_attention(const exec *x) {
    const wf_call *c = &x[ATTENTION].call;
    return x[ATTENTION].node && (kernel_of(c->op)->indexed & 6) == 6 && c->n_out == 2 &&
           (c->n_in <= IN_MASK || c->in[IN_MASK].ndim < 0) &&
           x[ATTENTION].in[0].storage == x[PRODUCT].out[0].storage &&
           x[ATTENTION].in[1].storage == x[KEYS].out[0].storage &&
           x[ATTENTION].in[2].storage == x[VALUES].out[0].storage && !c->training;
}

/* True if no step but `by` reads storage `at`, and no fetched value lies in it. */
static bool is_read_once(const part *q, int at, const exec *by) {
    const binding *b = q->plan->now;
    for (int k = 0; k < b->n_execs; k++)
        for (int i = 0; i < b->execs[k].call.n_in; i++)
            if (b->execs[k].in[i].storage == at && &b->execs[k] != by) return false;
    for (int i = 0; i < q->plan->n_nodes; i++)
        if (q->plan->nodes[i].fetched && b->values[i].at.storage == at) return false;
    return true;
}

static bool can_keep(const part *q, const exec *x) {
    return is_product(q, x) && is_cache(q, x, x + KEYS) && is_cache(q, x, x + VALUES) &&
           x[VALUES].in[0].offset == x[KEYS].in[0].offset + width_of(x + KEYS) && is_attention(x) &&
           is_read_once(q, x[KEYS].out[0].storage, x + ATTENTION) &&
           is_read_once(q, x[VALUES].out[0].storage, x + ATTENTION);
}

bool wf_choose_kept(wf_emitter *e) {
    part *of = NULL;
    int with_state = 0;
    for (part *q = e->parts; q < e->parts + e->n_parts; q++) {
        if (!q->plan->with_state) continue;
        of = q;
        with_state++;
    }
    const binding *b = with_state == 1 ? of->plan->now : NULL;
    for (int k = 0; b && k + KEPT_STEPS <= b->n_execs && e->n_kept < e->recomputed; k++) {
        const exec *x = &b->execs[k];
        if (!can_keep(of, x)) continue;
        if (!wf_grow(&e->kept, &e->cap_kept, (size_t)e->n_kept + 1, sizeof *e->kept))
            return wf_emitter_lacks(e);
        e->kept[e->n_kept++] =
            (kept_cache){ of, k, b->storages[x[KEYS].out[0].storage].index,
                          b->storages[x[VALUES].out[0].storage].index, x->call.in[0].shape[2] };
    }
    return true;
}

const kept_cache *wf_kept_at(const wf_emitter *e, int step) {
    for (int i = 0; i < e->n_kept; i++) {
        const kept_cache *k = &e->kept[i];
        if (k->of == e->now && step > k->step && step < k->step + KEPT_STEPS) return k;
    }
    return NULL;
}

bool wf_keeps_input(const wf_emitter *e, const part *of, int index) {
    for (int i = 0; i < e->n_kept; i++)
        if (e->kept[i].of == of && (e->kept[i].keys == index || e->kept[i].values == index))
            return true;
    return false;
}

int64_t wf_slot_floats(const wf_emitter *e, const part *of, int index) {
    const slot *s = &of->plan->now->slots[index];
    for (int i = 0; i < e->n_kept; i++) {
        const kept_cache *k = &e->kept[i];
        if (k->of != of) continue;
        if (k->keys == index) return (int64_t)s->rows * (k->width / 4 + 1);
        if (k->values == index) return 0;
    }
    return (int64_t)(s->outer * s->rows * s->inner / sizeof(float));
}

/* ---- their steps ----------------------------------------------------------------------------- */

/* Write `before`, and the address of floats as an argument. */
static bool add_place(wf_emitter *e, const char *before, location at, wf_text *t) {
    wf_text_puts(t, before);
    return wf_add_place(e, at, WF_F32, false, 0, t);
}

static bool describe_keeping(wf_emitter *e, const kept_cache *k, const exec *x, step_text *s) {
    const wf_view *a = &x->call.in[0];
    int64_t rows = (int64_t)e->now->plan->now->slots[k->keys].rows;
    s->formula = "the rounded input of keys and values, from which they are computed in every run";
    wf_text_marked(&s->name, "keep_input_%nx%n", a->shape[0], k->width);
    wf_text_marked(&s->code,
                   "(const float *x, float *kept, void *work) {\n"
                   "for (int b = 0; b < %n; b++)\n"
                   "keep_input(%n, x + b * %n, kept + b * %n, %n, %n, work);\n}\n",
                   a->shape[0], k->width, a->stride[0], wf_slot_floats(e, k->of, k->keys), rows,
                   e->now->plan->now->position);
    if (!add_place(e, "(", x->in[0], &s->arguments) ||
        !add_place(e, ", ", x[KEYS].out[0], &s->arguments) ||
        !add_place(e, ", ", (location){ x->work, 0 }, &s->arguments))
        return false;
    wf_text_puts(&s->arguments, ")");
    wf_text_marked(&s->results, "[%n, %n, %n]", a->shape[0], e->now->plan->now->position + 1,
                   k->width);
    return true;
}

/* Make v the view of the keys or values of one batch row. They lie side by side in rows of
 * `columns` floats, one for each position. */
static void view_row(const exec *cache, int64_t columns, wf_view *v) {
    v->shape[0] = 1;
    v->stride[0] = 0;
    v->stride[1] = cache->call.in[0].stride[1];
    v->stride[2] = columns;
    v->stride[3] = 1;
}

/* Write the body of attention for one row of the batch. */
static bool write_row(wf_emitter *e, const exec *x, int64_t columns) {
    exec row = x[ATTENTION];
    wf_view in[WF_MAX_OPERANDS], out[WF_MAX_RESULTS];
    memcpy(in, row.call.in, (size_t)row.call.n_in * sizeof *in);
    memcpy(out, row.call.out, (size_t)row.call.n_out * sizeof *out);
    row.call.in = in;
    row.call.out = out;
    in[0].shape[0] = out[0].shape[0] = out[1].shape[0] = 1;
    view_row(x + KEYS, columns, &in[1]);
    view_row(x + VALUES, columns, &in[2]);
    return wf_write_body(e, &row);
}

static void write_code(wf_emitter *e, const kept_cache *k, const exec *x, int64_t columns,
                       bool has_addend, wf_text *t) {
    const wf_call *c = &x[ATTENTION].call;
    int64_t rows = (int64_t)e->now->plan->now->slots[k->keys].rows;
    wf_text_puts(t, "(const float *queries, const float *kept, const signed char *w, "
                    "const float *w_scales");
    wf_text_puts(t, has_addend ? ", const float *addend" : "");
    wf_text_puts(t, ", float *results, float *sums, float *room) {\n");
    wf_text_marked(t, "float *k = room, *v = k + %n, *work = k + %n, *scratch = work + %n;\n",
                   width_of(x + KEYS), rows * columns, 2 * k->width);
    wf_text_marked(t, "for (int row = 0; row < %n; row++) {\n", c->in[0].shape[0]);
    wf_text_marked(t, "const float *q = queries + row * %n;\n", c->in[0].stride[0]);
    wf_text_marked(t, "float *out = results + row * %n, *stats = sums + row * %n;\n",
                   c->out[0].stride[0], c->out[1].stride[0]);
    wf_text_marked(t, "product_of_kept(%n, %n, %n, kept + row * %n, %n, w, w_scales, ",
                   c->in[1].shape[2], columns, k->width, wf_slot_floats(e, k->of, k->keys), rows);
    wf_text_puts(t, has_addend ? "addend, 0, k, (void *)work);\n" : "0, -1, k, (void *)work);\n");
    wf_text_puts(t, wf_text_of(&e->body));
    wf_text_puts(t, "}\n}\n");
}

static bool add_places(wf_emitter *e, const kept_cache *k, const exec *x, bool has_addend,
                       wf_text *t) {
    int64_t first = x[KEYS].in[0].offset - x->out[0].offset;
    location w = { x->in[1].storage, x->in[1].offset + first * k->width };
    if (!add_place(e, "(", x[ATTENTION].in[0], t) || !add_place(e, ", ", x[KEYS].out[0], t))
        return false;
    wf_text_puts(t, ", ");
    if (!wf_add_int8_place(e, w, true, t)) return false;
    location d = { x->in[IN_ADDEND].storage, x->in[IN_ADDEND].offset + first };
    if (has_addend && !add_place(e, ", ", d, t)) return false;
    for (int i = 0; i < 2; i++)
        if (!add_place(e, ", ", x[ATTENTION].out[i], t)) return false;
    wf_text_puts(t, ", floats(m, SCRATCH))");
    return true;
}

static bool describe_attention(wf_emitter *e, const kept_cache *k, const exec *x, step_text *s) {
    const wf_view *y = &x[ATTENTION].call.out[0];
    int64_t rows = (int64_t)e->now->plan->now->slots[k->keys].rows, before = e->scratch;
    int64_t columns = width_of(x + KEYS) + width_of(x + VALUES);
    bool has_addend = x->call.n_in > IN_ADDEND && x->call.in[IN_ADDEND].ndim >= 0;
    e->scratch = 0;
    if (!write_row(e, x, columns)) return false;
    int64_t own = e->scratch;
    e->scratch = before;
    wf_emit_scratch(e, own + rows * columns + 2 * k->width);
    s->formula = x[ATTENTION].call.op->formula;
    wf_text_puts(&s->name, "attention_of_kept");
    for (int i = 0; i < y->ndim; i++) wf_text_marked(&s->name, i ? "x%n" : "_%n", y->shape[i]);
    write_code(e, k, x, columns, has_addend, &s->code);
    wf_text_puts(&s->results, "out ");
    for (int i = 0; i < y->ndim; i++) wf_text_marked(&s->results, i ? ", %n" : "[%n", y->shape[i]);
    wf_text_puts(&s->results, "]");
    return add_places(e, k, x, has_addend, &s->arguments);
}

bool wf_describe_kept(wf_emitter *e, const kept_cache *k, int step, step_text *s) {
    const exec *x = &e->now->plan->now->execs[k->step];
    bool ok = true;
    if (step == k->step + KEYS) ok = describe_keeping(e, k, x, s);
    if (step == k->step + ATTENTION) ok = describe_attention(e, k, x, s);
    return ok && ((!s->name.lacks && !s->code.lacks && !s->arguments.lacks && !s->results.lacks) ||
                  wf_emitter_lacks(e));
}
