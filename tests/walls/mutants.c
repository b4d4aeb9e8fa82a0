/* tests/walls/mutants.c - gives mutants of model files to every reader of the library.
 *
 * usage: mutants FIRST COUNT FILE... judges mutants FIRST.. of the files; exits 1 if one failed
 *        mutants --write N OUT FILE...    writes mutant N of the files
 *
 * A mutant depends on its number and the files alone: tests/fuzz/mutator.h. The fuzz targets
 * safetensors, model and state_dict check it, and abort if a check fails. So a child process runs
 * them, with limits of time and memory. If it crashes, hangs or takes more memory than a small file
 * needs, the parent counts a failure, keeps that mutant as failed-N.safetensors, and continues with
 * the next one. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fuzz/judge_model.h"
#include "tests/fuzz/mutator.h"

#if defined(__SANITIZE_ADDRESS__) /* gcc */
#define SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) /* clang */
#define SANITIZED
#endif
#endif

int fuzz_safetensors(const uint8_t *data, size_t size);

enum { MOST_FILES = 32, FAILURES = 100 };
enum { SECONDS = 20, PATIENCE = 900 }; /* limits of processor time and of elapsed time */

/* Memory that parent and child share. */
typedef struct progress {
    long number; /* of the mutant that is being judged */
    long reached[2][JUDGED_STAGES];
    size_t size;
    uint8_t mutant[MUTANT_MOST];
} progress;

typedef struct base {
    uint8_t *data;
    size_t size;
} base;

static base bases[MOST_FILES];
static int n_bases;

static bool read_base(const char *path) {
    FILE *f = fopen(path, "rb");
    base *b = &bases[n_bases++];
    if (!f || !(b->data = malloc(MUTANT_MOST))) return false;
    b->size = fread(b->data, 1, MUTANT_MOST, f);
    return fclose(f) == 0 && b->size > 0;
}

static size_t make(long number, uint8_t *out) {
    const base *b = &bases[number % n_bases];
    return mutate_file(b->data, b->size, (uint64_t)number, out, MUTANT_MOST);
}

/* Limits memory to what a model and its copy take, each with tables of a million positions. A
 * sanitizer needs more address space, so it gets no limit. */
static void limit_memory(void) {
#if !defined(SANITIZED)
    enum { MEGABYTES = 160 };
    struct rlimit limit = { (rlim_t)MEGABYTES << 20, (rlim_t)MEGABYTES << 20 };
    fuzz_must(setrlimit(RLIMIT_AS, &limit) == 0);
#endif
}

/* Copies the mutant into a block of exactly its size, so that a sanitizer sees a read behind it. */
static void judge(progress *p) {
    uint8_t *data = malloc(p->size + !p->size);
    fuzz_must(data);
    memcpy(data, p->mutant, p->size);
    fuzz_safetensors(data, p->size);
    p->reached[0][judge_model(data, p->size)]++;
    p->reached[1][judge_state_dict(data, p->size)]++;
    free(data);
}

static void limit_time(void) {
    const struct itimerval limit = { .it_value.tv_sec = SECONDS };
    fuzz_must(setitimer(ITIMER_PROF, &limit, NULL) == 0);
    alarm(PATIENCE);
}

_Noreturn static void child(progress *p, long end) {
    limit_memory();
    for (; p->number < end; p->number++) {
        limit_time();
        p->size = make(p->number, p->mutant);
        judge(p);
    }
    _exit(0);
}

static bool write_file(const char *path, const uint8_t *data, size_t size) {
    FILE *f = fopen(path, "wb");
    if (!f) return false;
    bool ok = fwrite(data, 1, size, f) == size;
    return fclose(f) == 0 && ok;
}

static void report(const progress *p, int status) {
    char path[64];
    snprintf(path, sizeof path, "failed-%ld.safetensors", p->number);
    bool kept = write_file(path, p->mutant, p->size);
    int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (signal)
        printf("mutant %ld: %s", p->number,
               signal == SIGPROF || signal == SIGALRM ? "hangs" : strsignal(signal));
    else
        printf("mutant %ld: exit %d", p->number, WEXITSTATUS(status));
    printf("; %s %s\n", kept ? "it is in" : "and can't be written to", path);
    fflush(stdout);
}

static int judge_all(long first, long count) {
    static const char *const readers[] = { "as a model", "as a state_dict" };
    progress *p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int failures = 0, status;
    if (p == MAP_FAILED) return 2;
    const long end = first + count;
    for (p->number = first; p->number < end && failures < FAILURES; p->number++) {
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0) child(p, end);
        if (pid < 0 || waitpid(pid, &status, 0) != pid) return 2;
        if (status == 0) break;
        failures++, report(p, status);
    }
    for (int i = 0; i < 2; i++)
        printf("%s: %ld refused as files, %ld as models, %ld loaded, decoded, saved and loaded\n",
               readers[i], p->reached[i][JUDGED_REFUSED], p->reached[i][JUDGED_FILE],
               p->reached[i][JUDGED_MODEL]);
    printf("%ld mutants, %d failures\n", p->number - first, failures);
    return failures != 0;
}

/* Tests that reseal() corrects a wrong checksum: without it, readers would refuse all mutants. */
static bool reseals(void) {
    uint8_t *copy = malloc(bases[0].size);
    if (!copy) return false;
    memcpy(copy, bases[0].data, bases[0].size);
    copy[bases[0].size - 1] ^= 1;
    bool ok = reseal(copy, bases[0].size) && !reseal(copy, bases[0].size);
    free(copy);
    return ok;
}

int main(int argc, char **argv) {
    bool writes = argc > 1 && strcmp(argv[1], "--write") == 0;
    for (int i = 3 + writes; i < argc && n_bases < MOST_FILES; i++)
        if (!read_base(argv[i])) return fprintf(stderr, "mutants: %s can't be read\n", argv[i]), 2;
    if (!n_bases) return fprintf(stderr, "usage: mutants FIRST COUNT FILE...\n"), 2;
    if (!reseals()) return fprintf(stderr, "mutants: %s has no checksum\n", argv[3 + writes]), 2;
    if (!writes) return judge_all(atol(argv[1]), atol(argv[2]));
    static uint8_t out[MUTANT_MOST];
    return !write_file(argv[3], out, make(atol(argv[2]), out));
}
