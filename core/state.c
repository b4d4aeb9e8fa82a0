/* core/state.c - states: the rows that the caches of a generation hold, one slot per cached tensor.
 *
 * A state belongs to its caller. Any plan of the same graph with the same caches can run with it.
 */
#include "engine.h"

#include <stdlib.h>
#include <string.h>

static size_t slot_bytes(const slot *s, int batch) {
    int64_t n = batch;
    bool ok = wf_mul_size(n, (int64_t)s->outer, &n) && wf_mul_size(n, (int64_t)s->rows, &n) &&
              wf_mul_size(n, (int64_t)s->inner, &n);
    return ok ? (size_t)n : SIZE_MAX;
}

wf_state *wf_state_new(wf_plan *p) {
    if (!wf_plan_ok(p)) return NULL;
    if (!p->with_state) return plan_fail(p, "this plan was made without a state"), NULL;
    if (!plan_prepare(p, p->size[0])) return NULL;
    wf_state *s = calloc(1, sizeof *s);
    bool ok = s && (s->slots = calloc((size_t)p->now->n_slots + 1, sizeof *s->slots));
    if (ok) s->batch = (int)p->now->batch, s->n_slots = p->now->n_slots;
    for (int i = 0; ok && i < s->n_slots; i++) {
        s->slots[i] = p->now->slots[i];
        size_t bytes = slot_bytes(&s->slots[i], s->batch);
        s->slots[i].data = memory_new(bytes), s->slots[i].spare = memory_new(bytes);
        ok = s->slots[i].data && s->slots[i].spare;
    }
    if (ok) return s;
    return plan_fail(p, "out of memory for a state"), wf_state_free(s), NULL;
}

void wf_state_free(wf_state *s) {
    if (!s) return;
    for (int i = 0; s->slots && i < s->n_slots; i++)
        free(s->slots[i].data), free(s->slots[i].spare);
    free(s->slots), free(s);
}

/* Of the rows that change, what holds something is moved: at once where the source stays as it is,
 * else by way of the spare memory. */
static void reorder(slot *s, const int32_t *index, int n, size_t used) {
    size_t group = s->rows * s->inner, row = s->outer * group;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < n; i++) {
            size_t to = (size_t)i * row, from = (size_t)index[i] * row;
            bool stays = index[i] >= n || index[index[i]] == index[i];
            if (index[i] == i || (stays && pass == 0)) continue;
            char *y = pass == 0 ? s->spare + to : s->data + to;
            const char *x = stays || pass == 0 ? s->data + from : s->spare + to;
            for (size_t o = 0; o < s->outer; o++)
                memcpy(y + o * group, x + o * group, used * s->inner);
        }
}

bool wf_state_reorder(wf_state *s, const int32_t *index, int n) {
    if (!s || !index || n < 0 || n > s->batch) return false;
    for (int i = 0; i < n; i++)
        if (index[i] < 0 || index[i] >= s->batch) return false;
    for (int i = 0; i < s->n_slots; i++) reorder(&s->slots[i], index, n, (size_t)s->used);
    return true;
}
