/* core/base/caches.h - inside core: the processor's data caches, from which blocks are derived.
 *
 *     const wf_caches *c = wf_caches_here();
 *     int64_t mine = c->l2.bytes / c->l2.threads;
 *
 * They are found once, when first asked for: WEFT_CACHES=32K/8,512K/8,16M/16 gives others. Only
 * speed may depend on them, never a bit of a result. Not installed; wf_caches_text of graph.h tells them
 * as text. */
#ifndef WEFT_CORE_BASE_CACHES_H
#define WEFT_CORE_BASE_CACHES_H

#include <stdbool.h>
#include <stdint.h>

/* All above 0. Without a third level it is the second once more; no level is smaller than the one
 * before. */
typedef struct wf_cache_level {
    int64_t bytes;
    int ways;
    int threads; /* of the processor that share it */
} wf_cache_level;

typedef struct wf_caches {
    wf_cache_level l1, l2, l3;
} wf_caches;

const wf_caches *wf_caches_here(void);

/* ---- how they are found ---------------------------------------------------------------------- */

enum { CACHES_TEXT = 96 };

/* BYTES[K|M]/WAYS[/THREADS] of three levels, with commas between. Without THREADS the first two are
 * a core's own, and the third is shared by `processors`. False, and *c as it was: text is something
 * else, or what no processor has. */
bool wf_caches_parse(const char *text, int processors, wf_caches *c);

/* What Linux tells in a folder such as /sys/devices/system/cpu/cpu0/cache; 0 for what it does not. */
void wf_caches_read(const char *folder, wf_caches *c);

/* What was found, 0 for what was not, made fit for use; the machine has so many processors. */
void wf_caches_mend(wf_caches *c, int processors);

void wf_caches_print(const wf_caches *c, char text[CACHES_TEXT]); /* as wf_caches_parse reads */

#endif
