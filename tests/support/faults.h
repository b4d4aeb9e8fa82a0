/* tests/support/faults.h - allocations, threads and calls of the system that fail on request, and
 * what is left allocated.
 *
 * The test program is linked with --wrap, so that every malloc, calloc, realloc, aligned_alloc,
 * posix_memalign, free, pthread_create and fork of the library and of the tests passes through
 * faults.c. Until faults_begin it only passes on.
 *
 *     faults_begin(3, false);     the third request fails, the next succeed (true: fail too)
 *     ... what is tested; faults_pause(true) ... faults_pause(false) around what must not fail
 *     long asked = faults_end(&left);      requests in all; blocks allocated since and not freed */
#ifndef WEFT_TESTS_SUPPORT_FAULTS_H
#define WEFT_TESTS_SUPPORT_FAULTS_H

#include <stdbool.h>
#include <stddef.h>

void faults_begin(long at, bool persistent);
bool faults_pause(bool pause); /* returns what it was */
long faults_end(long *left);

/* Requests of more bytes than that fail; 0: any may succeed. */
void faults_largest(size_t bytes);

/* Failures of disk calls: after so many calls of this name, this many fail, with this errno; 0:
 * they do nothing and say so. A name of NULL: none fails. */
typedef struct disk_fault {
    const char *call; /* write, pread, fsync, fchmod, close or renameat */
    int error, after, times;
} disk_fault;

void faults_disk(disk_fault fault);

#endif
