/* tests/walls/inject.c - a preloaded library that makes the N-th allocation or system call of a
 * program fail.
 *
 *     INJECT=space:17:from INJECT_REPORT=file LD_PRELOAD=inject.so train ...
 *
 * Allocations and thread starts fail in functions of the C library that are replaced here, also for
 * its own requests, such as those of stdio and realpath. All else fails as system calls, whoever
 * makes them: a seccomp filter turns each call listed below into a signal. The signal's handler
 * counts the call, and makes it or returns an error. So fclose can meet a full disk as write can.
 *
 * INJECT is KIND:N:MODE. Kinds are listed below. Modes: `count` (nothing fails, but the origin of
 * each call is recorded), `at` (only call N fails), `from` (call N and all later ones), `each`
 * (every second call). INJECT_REPORT is a file of sizeof(struct report) bytes or more, which the
 * judging program maps, too.
 *
 * A program that is linked with this (api.c) can pause it, and ask how many blocks are allocated.
 *
 * A program with coverage counters writes them at its exit: with -DCOVERAGE nothing fails from then
 * on.
 *
 * This runs on Linux on x86-64, with glibc or musl. faults.py says what programs may do about a
 * failure. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#define API __attribute__((visibility("default")))
#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

enum { FRAMES = 48, SITE_FRAMES = 12, MODULES = 16 };

/* The origin of a call: its callers inside the program, as addresses relative to its start. */
struct site {
    char name[16];
    uint64_t frame[SITE_FRAMES];
};

/* The report for the judging program, in shared memory: a process that is killed does not lose
 * it. */
struct report {
    int64_t calls;  /* of the kind */
    int64_t failed; /* of these */
    /* The call that failed first, and where it came from, the innermost first. */
    int64_t frames;
    char name[16];
    uint64_t frame[FRAMES];
    /* Where the program (0) and its libraries lie in memory. */
    uint64_t start[MODULES], end[MODULES];
    char module[MODULES][64];
    struct site site[]; /* of each call, when counting */
};

/* ---- what fails, and how --------------------------------------------------------------------- */

enum {
    MEMORY = 1 << 0,
    THREADS = 1 << 1,
    FILES = 1 << 2,
    DENIED = 1 << 3,
    SPACE = 1 << 4,
    BROKEN = 1 << 5,
    FORBIDDEN = 1 << 6,
    INTERRUPTED = 1 << 7,
    SHORT = 1 << 8,
    MUTE = 1 << 9
};

static const struct kind {
    const char *name;
    int bit, error;
} kinds[] = {
    { "memory", MEMORY, ENOMEM },          /* none left */
    { "threads", THREADS, EAGAIN },        /* no more of them */
    { "files", FILES, EMFILE },            /* no more may be open */
    { "denied", DENIED, EACCES },          /* someone else's */
    { "space", SPACE, ENOSPC },            /* a full disk */
    { "broken", BROKEN, EIO },             /* a broken one */
    { "forbidden", FORBIDDEN, EPERM },     /* a call that a sandbox forbids */
    { "interrupted", INTERRUPTED, EINTR }, /* to be tried again */
    { "short", SHORT, 0 },                 /* fewer bytes than asked for */
    { "mute", MUTE, EIO },                 /* writes to stderr fail */
};

#define WRITES (SPACE | BROKEN | INTERRUPTED | SHORT)
#define READS (BROKEN | INTERRUPTED | SHORT)
#define NAMES (BROKEN | DENIED)

static const struct call {
    int number;
    const char *name;
    int kinds;
} calls[] = {
    { SYS_read, "read", READS },
    { SYS_pread64, "pread", READS },
    { SYS_readv, "readv", READS },
    { SYS_write, "write", WRITES },
    { SYS_pwrite64, "pwrite", WRITES },
    { SYS_writev, "writev", WRITES },
    { SYS_open, "open", NAMES | FILES | INTERRUPTED },
    { SYS_openat, "openat", NAMES | FILES | INTERRUPTED },
    { SYS_close, "close", BROKEN | INTERRUPTED },
    { SYS_fsync, "fsync", SPACE | BROKEN | INTERRUPTED },
    { SYS_fdatasync, "fdatasync", SPACE | BROKEN | INTERRUPTED },
    { SYS_ftruncate, "ftruncate", SPACE | BROKEN | INTERRUPTED },
    { SYS_fallocate, "fallocate", SPACE | BROKEN | FORBIDDEN | INTERRUPTED },
    { SYS_rename, "rename", NAMES | SPACE },
    { SYS_renameat, "renameat", NAMES | SPACE },
    { SYS_renameat2, "renameat2", NAMES | SPACE | FORBIDDEN },
    { SYS_link, "link", NAMES | SPACE },
    { SYS_linkat, "linkat", NAMES | SPACE },
    { SYS_unlink, "unlink", NAMES },
    { SYS_unlinkat, "unlinkat", NAMES },
    { SYS_mkdir, "mkdir", NAMES | SPACE },
    { SYS_stat, "stat", NAMES },
    { SYS_lstat, "lstat", NAMES },
    { SYS_fstat, "fstat", BROKEN },
    { SYS_newfstatat, "fstatat", NAMES },
    { SYS_statx, "statx", NAMES },
    { SYS_access, "access", NAMES },
    { SYS_faccessat, "faccessat", NAMES },
    { SYS_faccessat2, "faccessat2", NAMES },
    { SYS_readlink, "readlink", NAMES },
    { SYS_readlinkat, "readlinkat", NAMES },
    { SYS_getcwd, "getcwd", DENIED },
    { SYS_getdents64, "getdents", BROKEN },
    { SYS_lseek, "lseek", BROKEN },
    { SYS_fchmod, "fchmod", NAMES | FORBIDDEN },
    { SYS_fchown, "fchown", NAMES | FORBIDDEN },
    { SYS_fcntl, "fcntl", BROKEN | INTERRUPTED | FORBIDDEN },
    { SYS_flock, "flock", BROKEN | INTERRUPTED | FORBIDDEN },
    { SYS_dup, "dup", FILES },
    { SYS_pipe2, "pipe", FILES },
    { SYS_poll, "poll", INTERRUPTED | FORBIDDEN },
    { SYS_ioctl, "ioctl", BROKEN | FORBIDDEN },
    { SYS_mmap, "mmap", MEMORY },
    { SYS_mremap, "mremap", MEMORY },
    { SYS_madvise, "madvise", MEMORY | FORBIDDEN },
    { SYS_getrandom, "getrandom", FORBIDDEN },
    { SYS_sysinfo, "sysinfo", FORBIDDEN },
    { SYS_sched_getaffinity, "sched_getaffinity", FORBIDDEN },
    { SYS_getrusage, "getrusage", FORBIDDEN },
    { SYS_prlimit64, "prlimit", FORBIDDEN },
    { SYS_rt_sigaction, "sigaction", FORBIDDEN },
    { SYS_kill, "kill", FORBIDDEN },
};

/* ---- counting -------------------------------------------------------------------------------- */

enum mode { COUNT, AT, FROM, EACH };

static struct {
    const struct kind *kind;
    long n;
    enum mode mode;
    atomic_int paused;
    atomic_long calls, live;
    struct report *report;
    size_t sites; /* number of sites for which the report has room */
} self;

struct trace {
    uint64_t *frame;
    int n, most;
    bool program; /* record frames of the program alone, relative to its start */
};

static _Unwind_Reason_Code add_frame(struct _Unwind_Context *context, void *arg) {
    struct trace *t = arg;
    const struct report *r = self.report;
    uint64_t at = _Unwind_GetIP(context);
    bool inside = at >= r->start[0] && at < r->end[0];
    if (t->program && inside) at -= r->start[0];
    if (!t->program || inside) t->frame[t->n++] = at;
    return t->n < t->most ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static void note_site(long n, const char *name) {
    if (n > (long)self.sites) return;
    struct site *site = &self.report->site[n - 1];
    struct trace t = { site->frame, 0, SITE_FRAMES, true };
    memset(site, 0, sizeof *site); /* of an earlier run */
    memcpy(site->name, name, strnlen(name, sizeof site->name - 1));
    _Unwind_Backtrace(add_frame, &t);
}

static void note_failure(const char *name) {
    struct trace t = { self.report->frame, 0, FRAMES, false };
    memcpy(self.report->name, name, strnlen(name, 15));
    _Unwind_Backtrace(add_frame, &t);
    self.report->frames = t.n;
}

/* Is this the call that fails? */
static bool fails(int kinds_of_call, const char *name) {
    if (!self.report || self.paused || !(kinds_of_call & self.kind->bit)) return false;
    long n = atomic_fetch_add(&self.calls, 1) + 1;
    self.report->calls = n;
    if (self.mode == COUNT) return note_site(n, name), false;
    if (self.mode == AT ? n != self.n : self.mode == FROM ? n < self.n : n % 2 == 0) return false;
    if (self.report->failed++ == 0) note_failure(name);
    return true;
}

API int inject_pause(int pause) {
    return atomic_exchange(&self.paused, pause);
}

API long inject_live(void) {
    return self.live;
}

/* ---- memory and threads: functions ----------------------------------------------------------- */

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void (*free)(void *);
    int (*pthread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
} real;

/* Finds the replaced functions at the first call: the loader allocates before a constructor
 * runs. */
static void find_real(void) {
    if (real.free) return;
#define FIND(name) *(void **)&real.name = dlsym(RTLD_NEXT, #name)
    FIND(malloc), FIND(calloc), FIND(realloc), FIND(aligned_alloc), FIND(posix_memalign);
    FIND(pthread_create), FIND(free);
}
#define REAL(name) (find_real(), real.name)

static bool no_memory(const char *name) {
    bool none = fails(MEMORY, name);
    if (none) errno = ENOMEM;
    return none;
}

static void *lives(void *block) {
    if (block) self.live++;
    return block;
}

API void *malloc(size_t size) {
    return no_memory("malloc") ? NULL : lives(REAL(malloc)(size));
}

API void *calloc(size_t n, size_t size) {
    return no_memory("calloc") ? NULL : lives(REAL(calloc)(n, size));
}

API void *realloc(void *old, size_t size) {
    if (no_memory("realloc")) return NULL;
    void *block = REAL(realloc)(old, size);
    return old ? block : lives(block);
}

API void *aligned_alloc(size_t alignment, size_t size) {
    return no_memory("aligned_alloc") ? NULL : lives(REAL(aligned_alloc)(alignment, size));
}

API int posix_memalign(void **block, size_t alignment, size_t size) {
    if (fails(MEMORY, "posix_memalign")) return ENOMEM;
    int error = REAL(posix_memalign)(block, alignment, size);
    if (!error) self.live++;
    return error;
}

API void free(void *block) {
    if (block) self.live--;
    REAL(free)(block);
}

API int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                       void *arg) {
    if (fails(THREADS, "pthread_create")) return EAGAIN;
    return REAL(pthread_create)(thread, attributes, run, arg);
}

/* ---- everything else: system calls ----------------------------------------------------------- */

/* Makes a system call. The filter lets calls of this function's instruction pass. */
long inject_call(long number, long a, long b, long c, long d, long e, long f);
extern const char inject_called[];
__asm__(".text\n"
        ".globl inject_call, inject_called\n"
        ".hidden inject_call, inject_called\n"
        ".type inject_call, @function\n"
        "inject_call:\n"
        "  mov %rdi, %rax\n"
        "  mov %rsi, %rdi\n"
        "  mov %rdx, %rsi\n"
        "  mov %rcx, %rdx\n"
        "  mov %r8, %r10\n"
        "  mov %r9, %r8\n"
        "  mov 8(%rsp), %r9\n"
        "  syscall\n"
        "inject_called:\n"
        "  ret\n");

/* rt_sigprocmask, but never blocks SIGSYS: with that signal blocked, the next listed call would
 * kill the process. */
static long set_mask(uint64_t *mask, const long arg[6]) {
    const uint64_t *set = (const uint64_t *)arg[1], old = *mask;
    if (set) *mask = arg[0] == SIG_BLOCK ? old | *set : arg[0] == SIG_UNBLOCK ? old & ~*set : *set;
    *mask &= ~(UINT64_C(1) << (SIGSYS - 1));
    if (arg[2]) *(uint64_t *)arg[2] = old;
    return 0;
}

/* The kinds of failure that this call can have with these arguments. */
static int kinds_of(const struct call *c, const long arg[6]) {
    bool sized = c->number == SYS_read || c->number == SYS_write || c->number == SYS_pread64 ||
                 c->number == SYS_pwrite64 || c->number == SYS_readv || c->number == SYS_writev;
    bool writes = c->number == SYS_write || c->number == SYS_writev;
    if (writes && arg[0] == STDERR_FILENO) return MUTE;
    int of = c->kinds;
    if (sized && arg[2] <= 1) of &= ~SHORT;
    if (c->number == SYS_openat && arg[2] & O_CREAT) of |= SPACE;
    if (c->number == SYS_open && arg[1] & O_CREAT) of |= SPACE;
    return of;
}

static long perform(int number, const long arg[6]) {
    return inject_call(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}

static long answer(int number, long arg[6]) {
    const struct call *c = calls;
    while (c < calls + COUNT_OF(calls) && c->number != number) c++;
    if (c == calls + COUNT_OF(calls) || !fails(kinds_of(c, arg), c->name))
        return perform(number, arg);
    /* The kernel closes a descriptor even if close returns an error, so the call is made. */
    if (number == SYS_close) perform(number, arg);
    if (self.kind->bit != SHORT) return -self.kind->error;
    arg[2] = self.mode == AT ? 1 : (arg[2] + 1) / 2;
    return perform(number, arg);
}

static void on_call(int signal, siginfo_t *info, void *context) {
    (void)signal;
    ucontext_t *u = context;
    greg_t *r = u->uc_mcontext.gregs;
    long arg[6] = { (long)r[REG_RDI], (long)r[REG_RSI], (long)r[REG_RDX],
                    (long)r[REG_R10], (long)r[REG_R8],  (long)r[REG_R9] };
    int error = errno;
    r[REG_RAX] = info->si_syscall == SYS_rt_sigprocmask
                     ? set_mask((uint64_t *)(void *)&u->uc_sigmask, arg)
                     : answer(info->si_syscall, arg);
    errno = error;
}

/* Installs the seccomp filter: a listed call raises SIGSYS, unless inject_call makes it. */
static bool filter_calls(void) {
    enum { BEFORE = 6, TRAPPED = COUNT_OF(calls) + 1 };
    const uint32_t nr = offsetof(struct seccomp_data, nr);
    const uint32_t from = offsetof(struct seccomp_data, instruction_pointer);
    const uint64_t pass = (uint64_t)(uintptr_t)inject_called;
    struct sock_filter f[BEFORE + TRAPPED + 2] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, from),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)pass, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, from + 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(pass >> 32), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, nr),
    };
    for (size_t i = 0; i < TRAPPED; i++) {
        int number = i < COUNT_OF(calls) ? calls[i].number : SYS_rt_sigprocmask;
        f[BEFORE + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number,
                                                     (uint8_t)(TRAPPED - i), 0);
    }
    f[BEFORE + TRAPPED] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    f[BEFORE + TRAPPED + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    struct sock_fprog program = { COUNT_OF(f), f };
    struct sigaction action = { .sa_sigaction = on_call, .sa_flags = SA_SIGINFO | SA_NODEFER };
    return sigaction(SIGSYS, &action, NULL) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* ---- the beginning --------------------------------------------------------------------------- */

static int add_module(struct dl_phdr_info *m, size_t size, void *arg) {
    int *n = arg;
    (void)size;
    if (*n == MODULES) return 1;
    uint64_t start = UINT64_MAX, end = 0;
    for (int i = 0; i < m->dlpi_phnum; i++) {
        if (m->dlpi_phdr[i].p_type != PT_LOAD) continue;
        uint64_t at = m->dlpi_addr + m->dlpi_phdr[i].p_vaddr;
        if (at < start) start = at;
        if (at + m->dlpi_phdr[i].p_memsz > end) end = at + m->dlpi_phdr[i].p_memsz;
    }
    self.report->start[*n] = start, self.report->end[*n] = end;
    memcpy(self.report->module[*n], m->dlpi_name, strnlen(m->dlpi_name, 63));
    return ++*n, 0;
}

static struct report *map_report(const char *path) {
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : -1;
    void *report = MAP_FAILED;
    if (size >= (off_t)sizeof(struct report)) {
        report = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        self.sites = ((size_t)size - sizeof(struct report)) / sizeof self.report->site[0];
    }
    if (fd >= 0) close(fd);
    return report == MAP_FAILED ? NULL : report;
}

static bool parse(const char *text) {
    static const char *const modes[] = { "count", "at", "from", "each" };
    char kind[16], mode[8];
    if (sscanf(text, "%15[a-z]:%ld:%7s", kind, &self.n, mode) != 3) return false;
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        if (strcmp(kind, kinds[i].name) == 0) self.kind = &kinds[i];
    for (int i = 0; i < 4; i++)
        if (strcmp(mode, modes[i]) == 0) self.mode = (enum mode)i;
    return self.kind;
}

static _Noreturn void give_up(int status, const char *why) {
    (void)!write(STDERR_FILENO, why, strlen(why));
    _exit(status);
}

__attribute__((constructor)) static void begin(void) {
    const char *text = getenv("INJECT");
    int modules = 0;
    if (!text) return;
    struct report *report = map_report(getenv("INJECT_REPORT"));
    if (!report || !parse(text)) give_up(124, "inject: a bad INJECT or INJECT_REPORT\n");
    self.paused = 1;
    self.report = report;
    dl_iterate_phdr(add_module, &modules);
    if (!filter_calls()) give_up(125, "inject: system calls can't be filtered here\n");
    const char *seconds = getenv("INJECT_SECONDS");
    if (seconds) alarm((unsigned)atoi(seconds)); /* who hangs is killed */
    self.paused = 0;
}

#ifdef COVERAGE
static int (*real_main)(int, char **, char **);

static void pause_for_good(void) {
    self.paused = 1;
}

/* Handlers of atexit run in reverse order. One that is registered before main runs after those of
 * the program, but before the coverage counters are written. */
static int main_with_an_end(int argc, char **argv, char **environment) {
    atexit(pause_for_good);
    return real_main(argc, argv, environment);
}

typedef int start(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void),
                  void (*)(void), void *);
API start __libc_start_main;

API int __libc_start_main(int (*program)(int, char **, char **), int argc, char **argv,
                          void (*init)(void), void (*fini)(void), void (*unload)(void),
                          void *stack) {
    start *real_start;
    *(void **)&real_start = dlsym(RTLD_NEXT, "__libc_start_main");
    real_main = program;
    return real_start(main_with_an_end, argc, argv, init, fini, unload, stack);
}
#endif
