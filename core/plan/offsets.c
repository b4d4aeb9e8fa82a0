/* core/plan/offsets.c - the offset of each storage in the arena: storages that live at the same
 * time do not overlap.
 *
 * Greedy by size (Pisarchyk & Lee 2020, arXiv:2001.03288): the largest storage first, each at the
 * lowest offset that is free for its lifetime. This looks at all pairs, so it is used only for the
 * 4096 largest storages (LARGEST), which decide how much memory a plan needs. The others get memory
 * at higher offsets, which is allocated and freed in the order of the schedule, as by malloc: free
 * pieces are in bins of similar sizes, and free neighbours are merged at once, O(1) each. If there
 * are more than LARGEST storages, the second method is also tried for all of them, and the better
 * result is used. */
#include "plan.h"

#include <stdlib.h>
#include <string.h>

enum { LARGEST = 4096, STEPS = 8, BINS = 64 * STEPS, TRIED = 16, TAKEN = -1 };

/* A free or taken piece of the arena. The pieces together cover the arena. */
typedef struct piece {
    size_t offset, bytes;
    int below, above; /* adjacent pieces; -1: none */
    /* index of its bin, or TAKEN; the pieces before and after it in the bin's list */
    int bin, before, next;
} piece;

typedef struct heap {
    piece *pieces;
    int n, top; /* number of pieces; index of the piece at the end of the arena, or -1 */
    int bins[BINS];
    uint64_t filled[BINS / 64];
} heap;

/* ---- the largest: every pair ----------------------------------------------------------------- */

static size_t end_of(const storage *s) {
    return s->offset + memory_aligned(s->bytes);
}

/* Set a storage's offset to the lowest that is free for its lifetime. placed: indices of n
 * storages, sorted by offset. Returns the position at which this storage belongs in `placed`. */
static int lowest_gap(const binding *b, const int *placed, int n, storage *s) {
    size_t offset = 0, bytes = memory_aligned(s->bytes);
    for (int i = 0; i < n; i++) {
        const storage *other = &b->storages[placed[i]];
        if (other->last < s->first || other->first > s->last) continue;
        if (other->offset >= offset + bytes) break;
        if (end_of(other) > offset) offset = end_of(other);
    }
    s->offset = offset;
    int at = 0;
    while (at < n && b->storages[placed[at]].offset <= offset) at++;
    return at;
}

/* Set the offsets of the n storages in `list`, which is sorted with the largest first. Returns the
 * bytes of arena that they need. */
static size_t place_by_size(binding *b, const int *list, int n, int *placed) {
    size_t arena = 0;
    for (int i = 0; i < n; i++) {
        storage *s = &b->storages[list[i]];
        int at = lowest_gap(b, placed, i, s);
        memmove(placed + at + 1, placed + at, (size_t)(i - at) * sizeof *placed);
        placed[at] = list[i];
        if (end_of(s) > arena) arena = end_of(s);
    }
    return arena;
}

/* ---- the others: by time --------------------------------------------------------------------- */

/* The bin for pieces of this size. The sizes in a bin differ by at most an eighth. */
static int bin_of(size_t bytes) {
    size_t units = bytes / ALIGN;
    int bin = 0;
    for (; units >= 2 * STEPS; units /= 2) bin += STEPS;
    return bin + (int)units;
}

static void add_to_bin(heap *h, int i) {
    piece *p = &h->pieces[i];
    p->bin = bin_of(p->bytes);
    p->before = -1;
    p->next = h->bins[p->bin];
    if (p->next >= 0) h->pieces[p->next].before = i;
    h->bins[p->bin] = i;
    h->filled[p->bin / 64] |= UINT64_C(1) << p->bin % 64;
}

static void remove_from_bin(heap *h, int i) {
    piece *p = &h->pieces[i];
    if (p->next >= 0) h->pieces[p->next].before = p->before;
    if (p->before >= 0)
        h->pieces[p->before].next = p->next;
    else if ((h->bins[p->bin] = p->next) < 0)
        h->filled[p->bin / 64] &= ~(UINT64_C(1) << p->bin % 64);
    p->bin = TAKEN;
}

/* Find a free piece of at least this size: the smallest among the first 16 (TRIED) of the bin for
 * this size, or else the first of the next bin that is not empty. -1: there is none. */
static int find_piece(const heap *h, size_t bytes) {
    int bin = bin_of(bytes), best = -1;
    for (int i = h->bins[bin], n = 0; i >= 0 && n < TRIED; i = h->pieces[i].next, n++) {
        bool fits = h->pieces[i].bytes >= bytes;
        if (fits && (best < 0 || h->pieces[i].bytes < h->pieces[best].bytes)) best = i;
    }
    while (best < 0 && ++bin < BINS) {
        if (h->filled[bin / 64] >> bin % 64 == 0)
            bin |= 63; /* the rest of this word of the bitmap has no bits set */
        else
            best = h->bins[bin];
    }
    return best;
}

/* Add a piece directly above piece i, or the first one if i is -1. */
static int add_piece(heap *h, int i, size_t bytes) {
    piece *p = &h->pieces[h->n];
    *p = (piece){ 0, bytes, i, -1, TAKEN, -1, -1 };
    if (i >= 0) {
        p->offset = h->pieces[i].offset + h->pieces[i].bytes;
        p->above = h->pieces[i].above;
    }
    if (p->above >= 0) h->pieces[p->above].below = h->n;
    if (i >= 0) h->pieces[i].above = h->n;
    if (h->top == i) h->top = h->n;
    return h->n++;
}

static int allocate(heap *h, size_t bytes) {
    int i = find_piece(h, bytes);
    if (i < 0 && h->top >= 0 && h->pieces[h->top].bin != TAKEN) i = h->top;
    if (i < 0) return add_piece(h, h->top, bytes);
    remove_from_bin(h, i);
    size_t rest = h->pieces[i].bytes > bytes ? h->pieces[i].bytes - bytes : 0;
    h->pieces[i].bytes = bytes; /* a top piece that is too small grows here */
    if (rest) add_to_bin(h, add_piece(h, i, rest));
    return i;
}

static void merge_above(heap *h, int i) {
    piece *p = &h->pieces[i], *gone = &h->pieces[p->above];
    p->bytes += gone->bytes;
    if (h->top == p->above) h->top = i;
    p->above = gone->above;
    if (p->above >= 0) h->pieces[p->above].below = i;
}

static void release(heap *h, int i) {
    int above = h->pieces[i].above, below = h->pieces[i].below;
    if (above >= 0 && h->pieces[above].bin != TAKEN) {
        remove_from_bin(h, above);
        merge_above(h, i);
    }
    if (below >= 0 && h->pieces[below].bin != TAKEN) {
        remove_from_bin(h, below);
        merge_above(h, below);
        i = below;
    }
    add_to_bin(h, i);
}

typedef struct event { /* a storage; events are sorted by the step at which it is first used */
    /* next: index of the next event in the list of the storages that are used last in the same
     * step */
    int storage, first, next;
    size_t bytes; /* the storage's size; once it has memory, the index of its piece */
} event;

static int by_time(const void *a, const void *b) {
    const event *x = a, *y = b;
    if (x->first != y->first) return x->first - y->first;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x->storage - y->storage;
}

/* Set the offsets of the storages in `list`, from `base` on, in the order in which they are first
 * used. Returns the end of the arena, or SIZE_MAX if out of memory. */
static size_t place_by_time(binding *b, const int *list, int n, size_t base) {
    heap h = { .pieces = malloc(((size_t)n + 1) * sizeof *h.pieces), .top = -1 };
    event *events = malloc(((size_t)n + 1) * sizeof *events);
    int *ends = malloc(((size_t)b->n_execs + 1) * sizeof *ends), now = 0;
    bool ok = h.pieces && events && ends;
    for (int i = 0; i < BINS; i++) h.bins[i] = -1;
    for (int x = 0; ok && x <= b->n_execs; x++) ends[x] = -1;
    for (int i = 0; ok && i < n; i++)
        events[i] = (event){ list[i], b->storages[list[i]].first, 0, b->storages[list[i]].bytes };
    if (ok) qsort(events, (size_t)n, sizeof *events, by_time);
    for (int i = 0; ok && i < n; i++) {
        storage *s = &b->storages[events[i].storage];
        for (; now < s->first; now++)
            for (int x = ends[now]; x >= 0; x = events[x].next)
                release(&h, (int)events[x].bytes); /* its piece */
        int given = allocate(&h, memory_aligned(s->bytes));
        s->offset = base + h.pieces[given].offset;
        events[i].bytes = (size_t)given;
        events[i].next = ends[s->last];
        ends[s->last] = i;
    }
    size_t end = h.top < 0 ? 0 : h.pieces[ok ? h.top : 0].offset + h.pieces[ok ? h.top : 0].bytes;
    free(h.pieces), free(events), free(ends);
    return ok ? base + end : SIZE_MAX;
}

/* ---- both ------------------------------------------------------------------------------------ */

static size_t place_both(binding *b, const int *list, int n, int most, int *placed) {
    int largest = n < most ? n : most;
    size_t arena = place_by_size(b, list, largest, placed);
    return n > largest ? place_by_time(b, list + largest, n - largest, arena) : arena;
}

bool wf_assign_offsets(binding *b, const int *list, int n) {
    int *placed = malloc(((size_t)(n < LARGEST ? n : LARGEST) + 1) * sizeof *placed);
    if (!placed) return false;
    size_t by_time = n > LARGEST ? place_both(b, list, n, 0, placed) : SIZE_MAX;
    b->arena = place_both(b, list, n, LARGEST, placed);
    if (by_time < b->arena) b->arena = place_both(b, list, n, 0, placed);
    free(placed);
    return b->arena != SIZE_MAX;
}
