/* core/base/caches.h - inside the library and its programs: the processor's data caches, from which
 * the sizes of blocks are derived.
 *
 *     const wf_caches *c = wf_caches_here();
 *     int64_t mine = c->l2.bytes / c->l2.threads;
 *
 * The first call finds the caches' sizes; WEFT_CACHES=32K/8,512K/8,16M/16 overrides them. Only
 * speed may depend on them, never a bit of a result. Not installed. */
#ifndef WEFT_CORE_BASE_CACHES_H
#define WEFT_CORE_BASE_CACHES_H

#include <stdbool.h>
#include <stdint.h>

/* The data cache of one level. In wf_caches_here all numbers are above 0, and no level is smaller
 * than the one before. For a processor without a third-level cache, l3 is a copy of l2. */
typedef struct wf_cache_level {
    int64_t bytes;
    int ways;
    int threads; /* hardware threads that share the cache */
} wf_cache_level;

typedef struct wf_caches {
    wf_cache_level l1, l2, l3;
} wf_caches;

const wf_caches *wf_caches_here(void);
/* The caches from which block sizes are derived, as bytes/ways/threads of three levels:
 * "32K/8/1,512K/8/1,16M/16/2". They are those of the processor, or those of the environment
 * variable WEFT_CACHES, where the threads may be left out. */
const char *wf_caches_text(void);

/* ---- how they are found ---------------------------------------------------------------------- */

enum { CACHES_TEXT = 96 };

/* Reads BYTES[K|M]/WAYS[/THREADS] of three levels, separated by commas. THREADS defaults to 1 for
 * the first two levels and to `processors` for the third. False, with *c unchanged, if the text is
 * malformed or no processor has such caches. */
bool wf_caches_parse(const char *text, int processors, wf_caches *c);

/* Reads the caches from a folder such as /sys/devices/system/cpu/cpu0/cache. A number whose file is
 * missing becomes 0. */
void wf_caches_read(const char *folder, wf_caches *c);

/* Complete the numbers that were found on a machine with this many processors: missing ones (0) and
 * implausible sizes get defaults, and counts of threads are limited to `processors`. */
void wf_caches_mend(wf_caches *c, int processors);

/* Writes the caches of three levels as text, in the form that wf_caches_parse reads. */
void wf_caches_print(const wf_caches *c, char text[CACHES_TEXT]);

#endif
