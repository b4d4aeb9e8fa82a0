/* core/plan/state.c - states: the rows cached during a generation, with one slot per cached tensor.
 *
 * A state belongs to the caller. Any plan of the same graph with the same caches can run with it.
 * Before each run its slots get the number of rows for which the plan was laid out. This number
 * depends only on the position and the run's number of new rows (bind.c), so the strides of views
 * of a state are known without the state. */
#include "core/op_internal.h"
#include "core/run_internal.h"
#include "plan.h"

#include <stdlib.h>
#include <string.h>

static size_t slot_bytes(const slot *s, int batch, size_t rows) {
    int64_t n = batch;
    bool ok = wf_mul_size(n, (int64_t)s->outer, &n) && wf_mul_size(n, (int64_t)rows, &n) &&
              wf_mul_size(n, (int64_t)s->inner, &n);
    return ok ? (size_t)n : SIZE_MAX;
}

wf_state *wf_state_new(wf_plan *p) {
    if (!wf_plan_ok(p)) return NULL;
    if (!p->with_state) return wf_plan_fail(p, "this plan was made without a state"), NULL;
    if (!wf_plan_prepare(p, p->size[0])) return NULL;
    wf_state *s = calloc(1, sizeof *s);
    bool ok = s && (s->slots = calloc((size_t)p->now->n_slots + 1, sizeof *s->slots));
    if (ok) {
        s->batch = (int)p->now->batch;
        s->n_slots = p->now->n_slots;
    }
    for (int i = 0; ok && i < s->n_slots; i++) {
        s->slots[i] = p->now->slots[i];
        s->slots[i].rows = s->slots[i].bytes = 0;
    }
    if (ok && wf_state_follow(p, s)) return s;
    wf_plan_fail(p, "out of memory for a state");
    wf_state_free(s);
    return NULL;
}

void wf_state_free(wf_state *s) {
    if (!s) return;
    for (int i = 0; s->slots && i < s->n_slots; i++)
        wf_memory_free(s->slots[i].data, s->slots[i].bytes);
    wf_memory_free(s->spare, s->spare_bytes);
    free(s->slots), free(s);
}

size_t wf_state_bytes(const wf_state *s) {
    size_t bytes = s ? s->spare_bytes : 0;
    for (int i = 0; s && i < s->n_slots; i++) bytes += s->slots[i].bytes;
    return bytes;
}

/* ---- growing --------------------------------------------------------------------------------- */

/* Copy the first `used` rows of every group to a layout with `rows` rows per group. Source and
 * destination may be the same memory: groups that move upwards are moved from the last to the
 * first. */
static void spread(const slot *s, char *to, size_t rows, size_t groups, size_t used) {
    for (size_t i = 0; used && i < groups; i++) {
        size_t group = rows > s->rows ? groups - 1 - i : i;
        memmove(to + group * rows * s->inner, s->data + group * s->rows * s->inner,
                used * s->inner);
    }
}

static bool change_rows(slot *s, int batch, size_t rows, size_t used) {
    size_t bytes = slot_bytes(s, batch, rows);
    char *data = bytes > s->bytes || !s->data ? wf_memory_new(bytes) : s->data;
    if (!data) return false;
    spread(s, data, rows, (size_t)batch * s->outer, used);
    if (data != s->data) {
        wf_memory_free(s->data, s->bytes);
        s->data = data;
        s->bytes = bytes;
    }
    s->rows = rows;
    return true;
}

static bool grow_spare(const binding *b, wf_state *s) {
    size_t most = 0;
    for (int i = 0; i < s->n_slots; i++) {
        size_t bytes = slot_bytes(&s->slots[i], s->batch, b->slots[i].rows);
        most = bytes > most ? bytes : most;
    }
    if (most <= s->spare_bytes && s->spare) return true;
    char *spare = wf_memory_new(most);
    if (!spare) return false;
    wf_memory_free(s->spare, s->spare_bytes);
    s->spare = spare;
    s->spare_bytes = most;
    return true;
}

/* Every slot has its own number of rows, so that the state stays valid if one slot grows and the
 * next cannot. */
bool wf_state_follow(wf_plan *p, wf_state *s) {
    const binding *b = p->now;
    bool ok = grow_spare(b, s);
    for (int i = 0; ok && i < s->n_slots; i++) {
        size_t rows = b->slots[i].rows;
        if (s->slots[i].rows == rows) continue;
        if ((size_t)s->used > rows) s->used = (int64_t)rows; /* the program set the position back */
        ok = change_rows(&s->slots[i], s->batch, rows, (size_t)s->used);
    }
    return ok || wf_plan_fail(p, "out of memory for a state");
}

/* ---- reordering ------------------------------------------------------------------------------ */

/* Move the used part of batch rows that change: directly if their source row does not change, else
 * through the spare memory. */
static void reorder(const slot *s, char *spare, const int32_t *index, int n, size_t used) {
    size_t group = s->rows * s->inner, row = s->outer * group;
    if (used > s->rows) used = s->rows; /* a recurrent state has one row */
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < n; i++) {
            size_t to = (size_t)i * row, from = (size_t)index[i] * row;
            bool stays = index[i] >= n || index[index[i]] == index[i];
            if (index[i] == i || (stays && pass == 0)) continue;
            char *y = pass == 0 ? spare + to : s->data + to;
            const char *x = stays || pass == 0 ? s->data + from : spare + to;
            for (size_t o = 0; o < s->outer; o++)
                memcpy(y + o * group, x + o * group, used * s->inner);
        }
}

bool wf_state_reorder(wf_state *s, const int32_t *index, int n) {
    if (!s || !index || n < 0) return false;
    if (s->n_slots == 0) return true; /* without caches there are no rows, and no batch */
    if (n > s->batch) return false;
    for (int i = 0; i < n; i++)
        if (index[i] < 0 || index[i] >= s->batch) return false;
    for (int i = 0; i < s->n_slots; i++) reorder(&s->slots[i], s->spare, index, n, (size_t)s->used);
    return true;
}
