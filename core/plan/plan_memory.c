/* core/plan/plan_memory.c - the memory planner: from lifetimes to offsets.
 *
 * Lifetimes are those of storages, which several views may share. If an op allows it, its result
 * overwrites an operand that is read for the last time. The remaining storages get offsets in
 * offsets.c. */
#include "core/op_internal.h"
#include "plan.h"

#include <assert.h>
#include <stdlib.h>

/* ---- overwriting an operand ------------------------------------------------------------------ */

static int root_of(const int *root, int s) {
    while (root[s] != s) s = root[s];
    return s;
}

static bool whole(const storage *s, const wf_view *v, int64_t offset) {
    size_t bytes;
    return offset == 0 && wf_view_dense(v) && wf_shape_bytes(v->dtype, v->ndim, v->shape, &bytes) &&
           bytes == s->bytes;
}

/* True if no other operand reads the memory to be overwritten, except element by element in an op
 * whose kernel is not `exclusive`. */
static bool alone(const binding *b, const exec *e, int i, const int *root) {
    for (int j = 0; j < e->call.n_in; j++) {
        int s = e->in[j].storage;
        if (j == i || s < 0 || root_of(root, s) != root_of(root, e->in[i].storage)) continue;
        if (kernel_of(e->call.op)->exclusive || !wf_same_shape(&e->call.in[i], &e->call.in[j]) ||
            !whole(&b->storages[s], &e->call.in[j], e->in[j].offset))
            return false;
    }
    return true;
}

static void merge(binding *b, int *root, int out, int r) {
    root[out] = r;
    b->storages[r].last = b->storages[out].last;
    b->storages[r].pinned = b->storages[out].pinned;
}

/* True if the elements have the same size. Equal byte counts are not enough: 4 elements of f64 and
 * 8 of i32 have the same number of bytes, but their elements do not lie at the same addresses. */
static bool same_elements(const wf_view *a, const wf_view *b) {
    return wf_dtype_size(a->dtype) == wf_dtype_size(b->dtype);
}

/* The storage of the operand that result 0 of step x may overwrite, or -1. */
static int overwritten(const binding *b, int x, const int *root) {
    const exec *e = &b->execs[x];
    const storage *out = e->out[0].storage >= 0 ? &b->storages[e->out[0].storage] : NULL;
    uint32_t in_place = kernel_of(e->call.op)->in_place;
    if (!in_place || !out || out->place != IN_ARENA) return -1;
    for (int i = 0; i < e->call.n_in; i++) {
        int s = e->in[i].storage;
        if (!(in_place >> i & 1) || s < 0) continue;
        const storage *in = &b->storages[root_of(root, s)];
        if (in->place == IN_ARENA && !in->pinned && in->last == x && in->bytes == out->bytes &&
            same_elements(&e->call.in[i], &e->call.out[0]) &&
            whole(&b->storages[s], &e->call.in[i], e->in[i].offset) &&
            whole(out, &e->call.out[0], 0) && alone(b, e, i, root))
            return root_of(root, s);
    }
    return -1;
}

static void reuse_storages(binding *b, int *root) {
    for (int x = 0; x < b->n_execs; x++) {
        int r = overwritten(b, x, root);
        if (r >= 0) merge(b, root, b->execs[x].out[0].storage, r);
    }
}

/* ---- lifetimes ------------------------------------------------------------------------------- */

typedef struct item {
    size_t bytes;
    int storage;
} item;

static int by_size(const void *a, const void *b) {
    const item *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x->storage - y->storage;
}

bool wf_assign_memory(binding *b) {
    size_t n = (size_t)b->n_storages + 1;
    int *root = malloc(n * sizeof *root), *list = malloc(n * sizeof *list), count = 0;
    item *items = malloc(n * sizeof *items);
    bool ok = root && list && items;
    if (ok) {
        for (int s = 0; s < b->n_storages; s++) {
            root[s] = s;
            if (b->storages[s].pinned) b->storages[s].last = b->n_execs;
        }
        reuse_storages(b, root);
        for (int s = 0; s < b->n_storages; s++)
            if (b->storages[s].place == IN_ARENA && root[s] == s && b->storages[s].bytes)
                items[count++] = (item){ b->storages[s].bytes, s };
        qsort(items, (size_t)count, sizeof *items, by_size);
        for (int i = 0; i < count; i++) list[i] = items[i].storage;
        ok = wf_assign_offsets(b, list, count);
        for (int s = 0; s < b->n_storages; s++)
            b->storages[s].offset = b->storages[root_of(root, s)].offset;
        for (const storage *s = b->storages; ok && s < b->storages + b->n_storages; s++)
            assert(s->place != IN_ARENA || (s->offset % ALIGN == 0 && s->offset <= b->arena &&
                                            s->bytes <= b->arena - s->offset));
    }
    free(root), free(list), free(items);
    return ok;
}
