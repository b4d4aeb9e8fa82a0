/* tests/walls/disk.h - what a disk may hold after the power was cut.
 *
 * From a recording: the power is cut before each of its operations and after the last. What was
 * flushed by then is there; of the rest a file system may have kept anything that its kind allows:
 *
 *   MODEL_PREFIX   all of it, in order, the last write torn at any byte
 *   MODEL_ORDERED  as ext4 with ordered data: names and sizes up to a moment (every fsync of
 *                  anything commits them all), of the data any pages; what is missing is zeros or
 *                  what was there before
 *   MODEL_FREE     anything: every name by itself old or new or between (a rename may show both
 *                  names, or neither), every sector of every write by itself there or not, any size
 *                  the file ever had, and in new sectors zeros or what the disk held before
 *
 * Where there are too many states to name them all, the edges (nothing, all, all but one write, one
 * alone, a torn one) are taken and others drawn; the same seed draws the same. */
#ifndef WEFT_TESTS_WALLS_DISK_H
#define WEFT_TESTS_WALLS_DISK_H

#include "recording.h"

typedef enum disk_model { MODEL_PREFIX, MODEL_ORDERED, MODEL_FREE, DISK_MODELS } disk_model;

typedef struct state {
    const recording *r;
    disk_model model;
    int cut;                        /* operations that had been begun */
    bool torn;                      /* the last write is there in part */
    const int *names;               /* the inode of each name, or NO_INODE */
    const content *const *contents; /* of each inode */
} state;

typedef void judge(void *context, const state *s);

/* Calls the judge with every state that is taken; some states are taken twice. `draws` is the
 * number of random states for each moment and disk model. Only every `stride`-th moment of writing
 * is looked at, but each moment around a rename, a removal or a flush. */
void cut_power(const recording *r, int draws, int stride, uint64_t seed, judge *j, void *context);

/* The state when the first `ops` operations are all there. To be freed. */
typedef struct folder_state {
    int names[MAX_NAMES];
    content contents[MAX_INODES];
} folder_state;
folder_state *state_after(const recording *r, int ops);
void folder_state_free(folder_state *s);

/* A number that states with the same names and contents share. */
uint64_t state_key(const state *s);

#endif
