/* core/base/memory.c - aligned memory from the system, and arenas. */
#define _GNU_SOURCE /* madvise's MADV_HUGEPAGE */
#include "memory.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 1 << 21 };

/* ---- the system's memory --------------------------------------------------------------------- */

void *wf_memory_raw(size_t bytes) {
    if (bytes > SIZE_MAX - HUGE_PAGE) return NULL;
    bool large = bytes >= 2 * HUGE_PAGE;
    size_t size = memory_aligned(bytes ? bytes : 1);
    void *p;
    if (posix_memalign(&p, large ? HUGE_PAGE : ALIGN, size) != 0) return NULL;
#ifdef MADV_HUGEPAGE
    if (large) madvise(p, size & ~((size_t)HUGE_PAGE - 1), MADV_HUGEPAGE);
#endif
    return p;
}

void *wf_memory_new(size_t bytes) {
    void *p = wf_memory_raw(bytes);
    return p ? memset(p, 0, bytes) : NULL;
}

/* The C library may keep a freed block for later use. The pages of a large block are therefore
 * given back to the system first. Otherwise a buffer that grows step by step would keep its
 * earlier, smaller blocks resident. */
void wf_memory_free(void *p, size_t bytes) {
#ifdef MADV_DONTNEED
    if (p && bytes >= 2 * HUGE_PAGE) madvise(p, bytes & ~((size_t)HUGE_PAGE - 1), MADV_DONTNEED);
#endif
    free(p);
}

char *wf_memory_drop(char *from, char *to) {
#ifdef MADV_DONTNEED
    char *first = from + (HUGE_PAGE - (uintptr_t)from % HUGE_PAGE) % HUGE_PAGE;
    char *end = to - (uintptr_t)to % HUGE_PAGE;
    if (from < to && first < end && madvise(first, (size_t)(end - first), MADV_DONTNEED) == 0)
        return end;
#endif
    (void)to;
    return from;
}

/* ---- arrays that grow ------------------------------------------------------------------------ */

bool wf_grow(void *array, size_t *capacity, size_t need, size_t size) {
    void *data;
    size_t larger = *capacity ? *capacity : 16;
    if (need <= *capacity) return true;
    while (larger < need && larger <= SIZE_MAX / 4) larger *= 2;
    if (larger < need || larger > SIZE_MAX / 2 / size) return false;
    memcpy(&data, array, sizeof data);
    data = realloc(data, larger * size);
    if (!data) return false;
    memcpy(array, &data, sizeof data);
    *capacity = larger;
    return true;
}

char *wf_copy(const void *bytes, size_t n) {
    char *copy = malloc(n + 1);
    if (!copy) return NULL;
    if (n) memcpy(copy, bytes, n);
    copy[n] = '\0';
    return copy;
}

/* ---- arenas ---------------------------------------------------------------------------------- */

#define LARGEST_BLOCK ((size_t)1 << 25)

struct wf_arena {
    wf_arena *next;
    size_t used, size;
    int pieces;
    char *data;
};

/* The oldest of the last 8 blocks (TRIED) that has room for `need` bytes, or NULL. So a small
 * matrix fills the end of a block that was too short for a large one. */
static wf_arena *with_room(wf_arena *r, size_t need) {
    enum { TRIED = 8 };
    wf_arena *found = NULL;
    for (int i = 0; r && i < TRIED; i++, r = r->next)
        if (r->size - r->used >= need) found = r;
    return found;
}

void *wf_arena_raw(wf_arena **arenas, size_t bytes, size_t first) {
    if (bytes > SIZE_MAX - ALIGN) return NULL;
    size_t need = memory_aligned(bytes ? bytes : 1);
    wf_arena *r = with_room(*arenas, need);
    if (!r) {
        r = *arenas;
        size_t size = !r || !first ? first : r->size < LARGEST_BLOCK ? 2 * r->size : LARGEST_BLOCK;
        if (size < need) size = need;
        if (!(r = malloc(sizeof *r))) return NULL;
        *r = (wf_arena){ *arenas, 0, size, 0, wf_memory_raw(size) };
        if (!r->data) return free(r), NULL;
        *arenas = r;
    }
    void *p = r->data + r->used;
    r->used += need;
    r->pieces++;
    return p;
}

void *wf_arena_alloc(wf_arena **arenas, size_t bytes, size_t first) {
    void *p = wf_arena_raw(arenas, bytes, first);
    return p ? memset(p, 0, bytes) : NULL;
}

void wf_arena_release(wf_arena **arenas, const void *data) {
    wf_arena **at = arenas, *r;
    while ((r = *at) && (uintptr_t)data - (uintptr_t)r->data >= r->used) at = &r->next;
    if (!r || --r->pieces > 0) return;
    *at = r->next;
    wf_memory_free(r->data, r->size), free(r);
}

void wf_arenas_free(wf_arena *r) {
    for (wf_arena *next; r; r = next) {
        next = r->next;
        wf_memory_free(r->data, r->size);
        free(r);
    }
}
