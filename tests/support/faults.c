/* tests/support/faults.c - see faults.h. With the linker's --wrap=X, calls of X become calls of
 * __wrap_X, and __real_X is the real X. */
#include "faults.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
int __real_posix_memalign(void **block, size_t alignment, size_t size);
void __real_free(void *block);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
                          void *arg);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
int __wrap_posix_memalign(void **block, size_t alignment, size_t size);
void __wrap_free(void *block);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
                          void *arg);

enum {
    SEATS = 1 << 16
}; /* slots of the hash table of live blocks: a power of two, far more than a test allocates */

static struct {
    pthread_mutex_t lock;
    bool watching, paused, persistent;
    long at, asked, left;
    const void *seat[SEATS];
} faults = { .lock = PTHREAD_MUTEX_INITIALIZER };
static const char gone; /* marks a slot of the hash table whose block was freed */

void faults_begin(long at, bool persistent) {
    for (int i = 0; i < SEATS; i++) faults.seat[i] = NULL;
    faults.asked = faults.left = 0;
    faults.at = at, faults.persistent = persistent, faults.paused = false, faults.watching = true;
}

bool faults_pause(bool pause) {
    bool was = faults.paused;
    faults.paused = pause;
    return was;
}

long faults_end(long *left) {
    faults.watching = false;
    *left = faults.left;
    return faults.asked;
}

/* Is this the request that fails? */
static bool fails(void) {
    if (!faults.watching || faults.paused) return false;
    pthread_mutex_lock(&faults.lock);
    long n = ++faults.asked;
    pthread_mutex_unlock(&faults.lock);
    return faults.persistent ? n >= faults.at : n == faults.at;
}

static size_t first_seat(const void *block) {
    return (size_t)(((uintptr_t)block >> 4) * 0x9E3779B97F4A7C15u >> 20);
}

static void forget(const void *block) {
    if (!faults.watching || !block) return;
    pthread_mutex_lock(&faults.lock);
    size_t i = first_seat(block);
    while (faults.seat[i % SEATS] && faults.seat[i % SEATS] != block) i++;
    if (faults.seat[i % SEATS]) faults.seat[i % SEATS] = &gone, faults.left--;
    pthread_mutex_unlock(&faults.lock);
}

static void *remember(void *block) {
    if (!faults.watching || !block) return block;
    forget(block); /* in a static program the C library's calloc may ask the wrapped malloc */
    pthread_mutex_lock(&faults.lock);
    size_t i = first_seat(block);
    while (faults.seat[i % SEATS] && faults.seat[i % SEATS] != &gone) i++;
    faults.seat[i % SEATS] = block;
    faults.left++;
    pthread_mutex_unlock(&faults.lock);
    return block;
}

static size_t largest;

void faults_largest(size_t bytes) {
    largest = bytes;
}

static bool no_memory(size_t size) {
    bool none = fails() || (largest && size > largest);
    if (none) errno = ENOMEM;
    return none;
}

void *__wrap_malloc(size_t size) {
    return no_memory(size) ? NULL : remember(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size) {
    size_t bytes = n && size > SIZE_MAX / n ? SIZE_MAX : n * size;
    return no_memory(bytes) ? NULL : remember(__real_calloc(n, size));
}

void *__wrap_aligned_alloc(size_t alignment, size_t size) {
    return no_memory(size) ? NULL : remember(__real_aligned_alloc(alignment, size));
}

void *__wrap_realloc(void *block, size_t size) {
    if (no_memory(size)) return NULL;
    forget(block);
    return remember(__real_realloc(block, size));
}

int __wrap_posix_memalign(void **block, size_t alignment, size_t size) {
    if (no_memory(size)) return ENOMEM;
    int error = __real_posix_memalign(block, alignment, size);
    if (!error) remember(*block);
    return error;
}

void __wrap_free(void *block) {
    forget(block);
    __real_free(block);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
                          void *arg) {
    return fails() ? EAGAIN : __real_pthread_create(thread, attr, start, arg);
}

pid_t __real_fork(void);
pid_t __wrap_fork(void);

pid_t __wrap_fork(void) {
    if (!fails()) return __real_fork();
    errno = EAGAIN;
    return -1;
}

/* ---- the disk -------------------------------------------------------------------------------- */

static disk_fault disk;

void faults_disk(disk_fault fault) {
    disk = fault;
}

/* Is this the call that fails? errno then says why. */
static bool disk_fails(const char *call) {
    if (!disk.call || strcmp(disk.call, call) != 0 || disk.after-- > 0 || disk.times <= 0)
        return false;
    disk.times--;
    errno = disk.error;
    return true;
}

static int disk_answer(void) {
    return disk.error ? -1 : 0;
}

/* With 64-bit file offsets, glibc's name of pread is pread64. */
#if defined __GLIBC__ && defined __USE_FILE_OFFSET64
#define REAL_PREAD __real_pread64
#define WRAP_PREAD __wrap_pread64
#else
#define REAL_PREAD __real_pread
#define WRAP_PREAD __wrap_pread
#endif

ssize_t __real_write(int fd, const void *data, size_t n);
ssize_t REAL_PREAD(int fd, void *data, size_t n, off_t at);
int __real_fsync(int fd);
int __real_fchmod(int fd, mode_t mode);
int __real_close(int fd);
int __real_renameat(int from, const char *old, int to, const char *name);

ssize_t __wrap_write(int fd, const void *data, size_t n);
ssize_t WRAP_PREAD(int fd, void *data, size_t n, off_t at);
int __wrap_fsync(int fd);
int __wrap_fchmod(int fd, mode_t mode);
int __wrap_close(int fd);
int __wrap_renameat(int from, const char *old, int to, const char *name);

ssize_t __wrap_write(int fd, const void *data, size_t n) {
    return disk_fails("write") ? disk_answer() : __real_write(fd, data, n);
}

ssize_t WRAP_PREAD(int fd, void *data, size_t n, off_t at) {
    return disk_fails("pread") ? disk_answer() : REAL_PREAD(fd, data, n, at);
}

int __wrap_fsync(int fd) {
    return disk_fails("fsync") ? disk_answer() : __real_fsync(fd);
}

int __wrap_fchmod(int fd, mode_t mode) {
    return disk_fails("fchmod") ? disk_answer() : __real_fchmod(fd, mode);
}

/* The descriptor is closed even if the call is made to fail, as by the kernel. */
int __wrap_close(int fd) {
    int done = __real_close(fd);
    return disk_fails("close") ? disk_answer() : done;
}

int __wrap_renameat(int from, const char *old, int to, const char *name) {
    return disk_fails("renameat") ? disk_answer() : __real_renameat(from, old, to, name);
}
