/* tests/support/faults.h - makes chosen allocations, thread starts and system calls fail, and
 * counts blocks that are not freed.
 *
 * The test program is linked with --wrap. Every malloc, calloc, realloc, aligned_alloc,
 * posix_memalign, free, pthread_create and fork of the library and of the tests is then a call of
 * faults.c, as are the system calls of disk_fault. Before faults_begin, faults_largest and
 * faults_disk all of them call the real functions.
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

/* Makes all allocations of more than `bytes` fail; 0: none because of its size. */
void faults_largest(size_t bytes);

/* After `after` calls of this name, the next `times` calls fail with errno `error`; error 0: they
 * return 0 and do nothing. call NULL: none fails. */
typedef struct disk_fault {
    const char *call; /* write, pread, fsync, fchmod, close or renameat */
    int error, after, times;
} disk_fault;

void faults_disk(disk_fault fault);

#endif
