/* core/base/memory.h - inside core: aligned memory, alone or in an arena. Not installed. */
#ifndef WEFT_CORE_BASE_MEMORY_H
#define WEFT_CORE_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

enum { ALIGN = 64 };
static inline size_t memory_aligned(size_t bytes) {
    return (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}
/* Returns zeroed memory, 64-byte aligned. For 4 MiB or more it asks the system for huge pages.
 * NULL: out of memory. Free it with free or wf_memory_free. */
void *wf_memory_new(size_t bytes);
/* Like wf_memory_new, but not zeroed: pages that are never touched take no memory. */
void *wf_memory_raw(size_t bytes);
/* Give the 2 MiB pages that lie wholly between two addresses of a block back to the system; their
 * bytes then read as zeros. Returns the end of the pages given back, or `from` if there are
 * none. */
char *wf_memory_drop(char *from, char *to);
/* Free a block of `bytes` bytes, and give the pages of a large one back to the system. */
void wf_memory_free(void *p, size_t bytes);

/* Grow an array, by doubling its capacity, until it has room for `need` elements of `size` bytes.
 * `array` is the address of the pointer to them. False, with the array unchanged: out of memory. */
bool wf_grow(void *array, size_t *capacity, size_t need, size_t size);

/* A copy of n bytes with a '\0' after them. The caller frees it. NULL: out of memory. */
char *wf_copy(const void *bytes, size_t n);

/* An arena: a list of blocks from which many pieces are allocated. The first block has `first`
 * bytes, and each further block twice as many as the one before, up to 32 MiB, or as many as a
 * larger piece needs. So a small graph takes little memory, and the small pieces of a large graph
 * share huge pages. With first = 0 every piece has its own block. wf_arena_release releases the
 * piece at `data` (NULL: nothing); a block is freed when its last piece is released. */
typedef struct wf_arena wf_arena;
void *wf_arena_alloc(wf_arena **arenas, size_t bytes, size_t first); /* zeroed; NULL: no memory */
void *wf_arena_raw(wf_arena **arenas, size_t bytes, size_t first);   /* not zeroed */
void wf_arena_release(wf_arena **arenas, const void *data);
void wf_arenas_free(wf_arena *arenas);

#endif
