/* core/plan/fuse.c - small calls in groups that share their barriers: these would cost as much as they.
 *
 * Row by row: steps of the first axis are rows. Where each of several calls needs, for some rows of
 * its results, the same rows of what those before it made, and nothing else of that, a worker can
 * take its rows through all of them, and what one call wrote is in its cache when the next reads
 * it. Others that stand between two such calls, and that neither of them needs, come after:
 * gradients of weights. Side by side: of calls that need nothing of each other, all tasks of a
 * phase are one job; a call that could go row by row is left to a group of that kind, and ends
 * this one. Nothing passes an update, and updates are grouped with updates alone. Not here: the
 * ops' word on rows (by_rows in kernel.h), and what a group means for memory (memory.c). */
#include "plan.h"

#include <stdlib.h>
#include <string.h>

/* Tasks of a call that fills the machine by itself; calls in a group of rows, and looked at for a
 * group. */
enum { MANY_TASKS = 17, MOST_FUSED = 8, WINDOW = 128 };
#define MUCH_WORK 1e7 /* flops of a call whose barrier costs nothing */

enum { ELSEWHERE, HERE, LATER }; /* where a storage is made, seen from a group */

/* ---- which ----------------------------------------------------------------------------------- */

static int64_t tasks_of(const wf_call *c) {
    const wf_kernel *run = kernel_of(c->op);
    return run->tasks ? run->tasks(c, 0) : 1;
}

/* Rows of a call that may be in a group, or 0. */
static int64_t rows_of(const exec *e) {
    const wf_call *c = &e->call;
    const wf_kernel *run = kernel_of(c->op);
    if (!run->by_rows || c->out[0].ndim < 1 || c->out[0].shape[0] < FUSED_BLOCKS || c->work_bytes)
        return 0;
    bool small = tasks_of(c) < MANY_TASKS && (!run->tasks || run->tasks(c, 1) <= 0);
    return small && run->by_rows(c) ? c->out[0].shape[0] : 0;
}

/* Does row r of the view lie in the r-th of as many equal parts of the storage? */
static bool in_own_part(const storage *s, const wf_view *v, int64_t offset, int64_t rows) {
    if (v->ndim < 1 || v->shape[0] != rows) return false;
    int64_t last = offset;
    for (int i = 1; i < v->ndim; i++) {
        if (v->stride[i] < 0) return false;
        last += v->shape[i] ? (v->shape[i] - 1) * v->stride[i] : 0;
    }
    size_t part = s->bytes / (size_t)rows;
    return s->bytes == part * (size_t)rows && last < v->stride[0] &&
           (size_t)v->stride[0] * wf_view_unit(v) == part;
}

static bool joins_rows(const binding *b, const exec *e, const unsigned char *made, int64_t rows) {
    if (rows_of(e) != rows) return false;
    uint32_t by_rows = kernel_of(e->call.op)->by_rows(&e->call);
    for (int i = 0; i < e->call.n_in; i++) {
        int s = e->in[i].storage;
        if (s < 0 || made[s] == ELSEWHERE) continue;
        if (made[s] == LATER || !(by_rows >> i & 1)) return false;
        if (!in_own_part(&b->storages[s], &e->call.in[i], e->in[i].offset, rows)) return false;
    }
    for (int k = 0; k < e->call.n_out; k++)
        if (!in_own_part(&b->storages[e->out[k].storage], &e->call.out[k], 0, rows)) return false;
    return true;
}

/* Leaves that updates touch are marked like what they make. */
static bool shares_nothing(const exec *e, const unsigned char *made) {
    for (int i = 0; i < e->call.n_in; i++)
        if (e->in[i].storage >= 0 && made[e->in[i].storage] != ELSEWHERE) return false;
    return true;
}

static bool joins_beside(const exec *e, const unsigned char *made, bool updates) {
    const wf_kernel *run = kernel_of(e->call.op);
    bool light = !run->flops || run->flops(&e->call) < MUCH_WORK;
    return light && tasks_of(&e->call) < MANY_TASKS && (e->call.op->writes != 0) == updates &&
           shares_nothing(e, made);
}

/* What the call makes; of an update, every leaf that it touches. */
static void mark(const binding *b, const exec *e, unsigned char *made, int where) {
    for (int k = 0; k < e->call.n_out; k++)
        if (e->out[k].storage >= 0) made[e->out[k].storage] = (unsigned char)where;
    for (int i = 0; e->call.op->writes && i < e->call.n_in; i++) {
        const storage *s = e->in[i].storage < 0 ? NULL : &b->storages[e->in[i].storage];
        if (s && s->place == IN_LEAF && is_stored(e->call.graph->nodes[s->index]))
            made[e->in[i].storage] = (unsigned char)where;
    }
}

/* ---- putting together ------------------------------------------------------------------------ */

/* A group that begins with exec `first`: marks what its members make, and what is made by those
 * that will come after. It ends before exec *end; *seen: where the looking ended. Returns how many
 * members there are. */
static int find_members(const binding *b, int first, bool beside, unsigned char *made, int *end,
                        int *seen) {
    int64_t rows = rows_of(&b->execs[first]), tasks = 0;
    bool updates = b->execs[first].call.op->writes != 0;
    int n = 0, x = *end = first, most = beside ? MOST_BESIDE : MOST_FUSED;
    for (; x < b->n_execs && x < first + WINDOW && n < most && beside == !rows; x++) {
        const exec *e = &b->execs[x];
        if ((e->call.op->writes != 0) != updates || (beside && rows_of(e))) break;
        bool here = beside ? joins_beside(e, made, updates) : joins_rows(b, e, made, rows);
        if (!here && x == first) break;
        mark(b, e, made, here ? HERE : LATER);
        if (here) *end = x + 1, n++, tasks += tasks_of(&e->call);
    }
    *seen = x;
    bool worth = beside || tasks >= 2 * n; /* few tasks have few barriers */
    return n > 1 && worth ? n : 1;
}

/* Members of a group before others, both in their order. */
static void part(exec *execs, int n, const unsigned char *made, exec *others) {
    int members = 0, n_others = 0;
    for (int x = 0; x < n; x++) {
        if (made[execs[x].out[0].storage] != HERE)
            others[n_others++] = execs[x];
        else if (x == members++)
            continue;
        else
            execs[members - 1] = execs[x];
    }
    memcpy(execs + members, others, (size_t)n_others * sizeof *others);
}

/* Makes exec `first` the first of a group if it can be, whose members then follow it. */
static void gather(binding *b, int first, bool beside, unsigned char *made, exec *others) {
    int end, seen, n = find_members(b, first, beside, made, &end, &seen);
    if (n > 1) part(b->execs + first, end - first, made, others);
    for (int x = first; x < seen; x++) mark(b, &b->execs[x], made, ELSEWHERE);
    b->execs[first].fused = n, b->execs[first].beside = beside && n > 1;
}

static void touch(storage *s, int x) {
    if (s->last < 0) s->first = x;
    s->last = x;
}

static void find_lifetimes(binding *b) {
    for (int s = 0; s < b->n_storages; s++) b->storages[s].first = b->storages[s].last = -1;
    for (int x = 0; x < b->n_execs; x++) {
        const exec *e = &b->execs[x];
        for (int i = 0; i < e->call.n_in; i++)
            if (e->in[i].storage >= 0) touch(&b->storages[e->in[i].storage], x);
        for (int k = 0; k < e->call.n_out; k++)
            if (e->out[k].storage >= 0) touch(&b->storages[e->out[k].storage], x);
        if (e->work >= 0) touch(&b->storages[e->work], x);
    }
}

bool wf_fuse(binding *b) {
    unsigned char *made = calloc((size_t)b->n_storages + 1, 1);
    exec *others = malloc(WINDOW * sizeof *others);
    bool ok = made && others;
    for (int x = 0; ok && x < b->n_execs; x += b->execs[x].fused) {
        gather(b, x, false, made, others);
        if (b->execs[x].fused == 1) gather(b, x, true, made, others);
    }
    if (ok) find_lifetimes(b);
    free(made), free(others);
    return ok;
}

/* ---- running --------------------------------------------------------------------------------- */

static void cut_view(wf_view *to, const wf_view *v, bool by_rows, int64_t row, int64_t rows) {
    to->data = v->data, to->dtype = v->dtype, to->ndim = v->ndim, to->layout = v->layout;
    for (int i = 0; i < v->ndim; i++) to->shape[i] = v->shape[i], to->stride[i] = v->stride[i];
    if (!by_rows) return;
    to->shape[0] = rows;
    if (v->data) to->data = (char *)v->data + row * v->stride[0] * (int64_t)wf_view_unit(v);
}

/* Rows [row, row + rows) of a call, planned anew. */
typedef struct cut_call {
    wf_call call;
    wf_view in[WF_MAX_OPERANDS], out[WF_MAX_RESULTS];
    _Alignas(16) char plan[WF_MAX_PLAN];
} cut_call;

static bool cut(cut_call *to, const wf_call *c, int64_t row, int64_t rows) {
    const wf_kernel *run = kernel_of(c->op);
    uint32_t by_rows = run->by_rows(c);
    to->call = *c;
    to->call.in = to->in, to->call.out = to->out, to->call.row = row;
    for (int i = 0; i < c->n_in; i++) cut_view(&to->in[i], &c->in[i], by_rows >> i & 1, row, rows);
    for (int k = 0; k < c->n_out; k++) cut_view(&to->out[k], &c->out[k], true, row, rows);
    if (!run->plan) return true;
    to->call.plan = to->plan;
    bool ok = run->plan(&to->call, to->plan);
    bool fits = to->call.scratch_bytes <= c->scratch_bytes && !to->call.work_bytes;
    return ok && (fits || wf_fail(c, "%s wants more memory for some rows than for all of them",
                                  c->op->name));
}

bool wf_run_rows(const exec *e, int64_t block, void *scratch) {
    int64_t n = e->call.out[0].shape[0], row = n * block / FUSED_BLOCKS;
    const wf_kernel *run = kernel_of(e->call.op);
    cut_call c;
    if (!cut(&c, &e->call, row, n * (block + 1) / FUSED_BLOCKS - row)) return false;
    for (int64_t i = 0, tasks = tasks_of(&c.call); i < tasks; i++)
        if (!run->eval(&c.call, 0, i, scratch)) return false;
    return true;
}

/* Task t of n of member i is in slice (t + a shift of i's own) / n of all: the same part of every
 * call, as when it runs alone, and single tasks all over. */
static int64_t first_task(int64_t slice, int64_t n, int i) {
    return (slice * n - i * 5 % BESIDE_SLICES + BESIDE_SLICES - 1) / BESIDE_SLICES;
}

bool wf_run_slice(const exec *e, int i, int phase, int64_t tasks, int64_t slice, void *scratch) {
    int64_t end = first_task(slice + 1, tasks, i);
    for (int64_t t = first_task(slice, tasks, i); t < end; t++)
        if (!kernel_of(e->call.op)->eval(&e->call, phase, t, scratch)) return false;
    return true;
}
