/* tests/walls/disk.h - what a disk may hold after the power was cut.
 *
 * The power is cut before each operation of a recording and after the last. Operations that were
 * flushed by then have reached the disk. Three models say which of the others may have:
 *
 *   MODEL_PREFIX   all, in order; the last write may be torn at any byte
 *   MODEL_ORDERED  as in ext4 with ordered data: changes of names and sizes up to a moment (an
 *                  fsync of any file commits them all), and any pages of the data; a missing page
 *                  holds zeros or its old contents
 *   MODEL_FREE     any: each name is old, new or between (after a rename both names may be there,
 *                  or neither), each sector of each write is there or not, a file has any size that
 *                  it ever had, and a new sector holds zeros or old contents of the disk
 *
 * If there are too many states, the extreme ones (no write, all, all but one, one alone, a torn
 * one) are judged, and random others; the same seed gives the same ones. */
#ifndef WEFT_TESTS_WALLS_DISK_H
#define WEFT_TESTS_WALLS_DISK_H

#include "recording.h"

typedef enum disk_model { MODEL_PREFIX, MODEL_ORDERED, MODEL_FREE, DISK_MODELS } disk_model;

typedef struct state {
    const recording *r;
    disk_model model;
    int cut;                        /* number of operations that had begun before the cut */
    bool torn;                      /* only a part of the last write has reached the disk */
    const int *names;               /* the inode of each name, or NO_INODE */
    const content *const *contents; /* of each inode */
} state;

typedef void judge(void *context, const state *s);

/* Calls the judge with every chosen state, with some twice. The number of random states of each
 * moment grows with `draws`. Of the moments between writes only every `stride`-th is judged; each
 * moment before or after a change of names or a flush is. */
void cut_power(const recording *r, int draws, int stride, uint64_t seed, judge *j, void *context);

/* The state after the first `ops` operations, all of them on the disk. The caller frees it. */
typedef struct folder_state {
    int names[MAX_NAMES];
    content contents[MAX_INODES];
} folder_state;
folder_state *state_after(const recording *r, int ops);
void folder_state_free(folder_state *s);

/* A hash of the names and contents of a state. */
uint64_t state_key(const state *s);

#endif
