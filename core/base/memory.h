/* core/base/memory.h - inside core: aligned memory, alone or in an arena. Not installed. */
#ifndef WEFT_CORE_BASE_MEMORY_H
#define WEFT_CORE_BASE_MEMORY_H

#include <stddef.h>

enum { ALIGN = 64 };
static inline size_t memory_aligned(size_t bytes) {
    return (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}
/* Zeroed, 64-byte aligned; huge pages asked for when large. NULL: no memory. To be freed. */
void *wf_memory_new(size_t bytes);

/* An arena: a block of memory that many share; a list of them grows. The first block has `first`
 * bytes, each further one twice as many as the one before, up to a limit: a small graph costs little,
 * and of many values even the small ones lie in huge pages. What nobody took is not touched. first 0:
 * a block for each. Who gives memory back alone says so by wf_arena_leave (data may be NULL); a block
 * that nobody uses is freed. */
typedef struct wf_arena wf_arena;
void *wf_arena_take(wf_arena **arenas, size_t bytes, size_t first); /* zeroed; NULL: no memory */
void wf_arena_leave(wf_arena **arenas, const void *data);
void wf_arenas_free(wf_arena *arenas);

#endif
