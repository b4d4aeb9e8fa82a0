/* tools/learn/learn_run.c - runs the program of an exercise, and finds out how it ended. See
 * learn.h. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "learn.h"

/* SAID_SIZE: bytes of the learner's output that are kept; SHOWN: bytes that are shown. */
enum { SAID_SIZE = 1 << 16, SHOWN = 4000 };
static const rlim_t most_memory = (rlim_t)4 << 30, most_file = 1 << 20;

typedef struct text {
    char *data;
    size_t n, size;
} text;

typedef struct child {
    pid_t id;
    int report, said; /* descriptors to read from */
} child;

/* ---- the child ------------------------------------------------------------------------------- */

static void limit(int resource, rlim_t most) {
    struct rlimit r = { most, most };
    setrlimit(resource, &r);
}

/* Starts the program in this child. bounded is false for a program with the address sanitizer,
 * which reserves more addresses than any limit allows, and has its own memory limit. */
static _Noreturn void become(const char *path, const char *what, int report, int said,
                             double seconds, bool bounded) {
    char descriptor[16];
    setpgid(0, 0);
    dup2(said, STDOUT_FILENO);
    dup2(said, STDERR_FILENO);
    int nothing[2]; /* a pipe that is at its end from the beginning */
    if (pipe(nothing) == 0 && close(nothing[1]) == 0) dup2(nothing[0], STDIN_FILENO);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_FSIZE, most_file);
    limit(RLIMIT_CPU, (rlim_t)seconds + 1);
    if (bounded) limit(RLIMIT_AS, most_memory);
    setenv("ASAN_OPTIONS", "detect_leaks=0:hard_rss_limit_mb=4000:max_allocation_size_mb=4000", 1);
    setenv("UBSAN_OPTIONS", "print_stacktrace=0", 1);
    snprintf(descriptor, sizeof descriptor, "%d", report);
    execl(path, path, what, descriptor, (char *)NULL);
    _exit(127);
}

static bool start(child *c, const char *path, const char *what, double seconds, bool bounded) {
    int report[2], said[2];
    if (pipe(report) != 0) return false;
    if (pipe(said) != 0) {
        close(report[0]), close(report[1]);
        return false;
    }
    fflush(stdout);
    c->id = fork();
    if (c->id == 0) {
        close(report[0]), close(said[0]);
        become(path, what, report[1], said[1], seconds, bounded);
    }
    if (c->id > 0) setpgid(c->id, c->id);
    close(report[1]), close(said[1]);
    c->report = report[0];
    c->said = said[0];
    return c->id > 0;
}

/* ---- listening ------------------------------------------------------------------------------- */

/* Reads some data. False at the end. Data beyond the limit are discarded. */
static bool take(int from, text *t) {
    char more[4096];
    ssize_t n = read(from, more, sizeof more);
    if (n < 0 && errno == EINTR) return true;
    if (n <= 0) return false;
    size_t room = t->size - t->n, kept = (size_t)n < room ? (size_t)n : room;
    memcpy(t->data + t->n, more, kept);
    t->n += kept;
    return true;
}

/* Reads until the report's pipe ends, then reads the learner's output until 0.1 s bring nothing
 * new: a process that the child started may keep that pipe open. True: the time ran out before the
 * report's pipe ended. */
static bool listen_to(const child *c, text *report, text *said, double seconds) {
    double until = wf_seconds_now() + seconds;
    struct pollfd from[2] = { { .fd = c->report, .events = POLLIN },
                              { .fd = c->said, .events = POLLIN } };
    while (from[0].fd >= 0) {
        double left = until - wf_seconds_now();
        if (left <= 0) return true;
        if (poll(from, 2, (int)(left * 1000) + 1) < 0) continue;
        if (from[0].revents && !take(c->report, report)) from[0].fd = -1;
        if (from[1].fd >= 0 && from[1].revents && !take(c->said, said)) from[1].fd = -1;
    }
    while (from[1].fd >= 0 && poll(&from[1], 1, 100) > 0)
        if (!take(c->said, said)) from[1].fd = -1;
    return false;
}

/* The exit status of the child, which gets one more second to end, unless it is late. Processes
 * that it started are killed, too. */
static int end_of(const child *c, bool late) {
    int status = 0;
    bool ended = false;
    for (int i = 0; i < 100 && !ended && !late; i++) {
        ended = waitpid(c->id, &status, WNOHANG) == c->id;
        if (!ended) poll(NULL, 0, 10);
    }
    kill(-c->id, SIGKILL);
    if (!ended) waitpid(c->id, &status, 0);
    return status;
}

/* ---- what happened --------------------------------------------------------------------------- */

/* Finds the last line that begins with '>', if that call did not return. */
static void find_place(const text *report, run_outcome *out) {
    const char *end = report->data + report->n;
    out->place[0] = '\0';
    for (const char *at = report->data; at && at < end;) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        if (*at == '=') return; /* the numbers of a picture follow */
        if (*at == '>' && line)
            snprintf(out->place, sizeof out->place, "%.*s", (int)(line - at - 1), at + 1);
        at = line ? line + 1 : NULL;
    }
}

/* The line of the learner's file that a sanitizer reported, after "name.c:"; 0: none. */
static int line_in(const char *said, const char *file) {
    char name[PATH_SIZE];
    const char *slash = strrchr(file, '/');
    snprintf(name, sizeof name, "%s:", slash ? slash + 1 : file);
    const char *at = strstr(said, name);
    return at ? atoi(at + strlen(name)) : 0;
}

static void say_place(run_outcome *out, const char *said, const char *file, const char *fact) {
    int line = line_in(said, file);
    char where[64] = "";
    if (line > 0) snprintf(where, sizeof where, "line %d ", line);
    snprintf(out->fault, sizeof out->fault, "%s%s", where, fact);
    if (line == 0 && out->fault[0] != '\0') snprintf(out->fault, sizeof out->fault, "it %s", fact);
}

/* Translates a sanitizer's finding into a plain sentence; a row for each term. */
static bool say_finding(run_outcome *out, const char *said, const char *file) {
    static const char *const rows[][2] = {
        { "stack-overflow", "calls itself without end, or its arrays are too large for the stack" },
        { "heap-use-after-free", "uses memory that it has freed" },
        { "attempting double-free", "frees memory twice" },
        { "attempting free on", "frees memory that malloc did not give" },
        { "allocation-size-too-big", "asks for more memory than there is" },
        { "hard rss limit exhausted", "takes more than 4 GB of memory" },
        { "out of memory", "takes more memory than there is" },
        { "division by zero", "divides an integer by zero" },
        { "variable length array bound", "declares an array of zero or fewer elements" },
        { "out of bounds for type", "uses an index outside of its array" },
        { "null pointer", "reads or writes through a null pointer" },
        { "signed integer overflow", "overflows an integer" },
        { "\nWRITE of size", "writes outside of an array" },
        { "\nREAD of size", "reads outside of an array" },
        { "address points to the zero page", "reads or writes through a null pointer" },
        { "SEGV on unknown address", "reads or writes memory that is not its own" },
        { "runtime error:", "does something that C leaves undefined" },
        { "AddressSanitizer", "uses memory wrongly" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!strstr(said, rows[i][0])) continue;
        say_place(out, said, file, rows[i][1]);
        return true;
    }
    return false;
}

static void say_signal(run_outcome *out, int signal) {
    static const struct {
        int signal;
        const char *fact;
    } rows[] = { { SIGSEGV, "it reads or writes memory that is not its own" },
                 { SIGBUS, "it reads or writes memory that is not its own" },
                 { SIGFPE, "it divides an integer by zero" },
                 { SIGABRT, "it called abort, or the C library found its memory damaged" },
                 { SIGILL, "it ran into an instruction that this machine does not have" },
                 { SIGXCPU, "it does not end" },
                 { SIGXFSZ, "it writes a large file" } };
    snprintf(out->fault, sizeof out->fault, "it was ended by signal %d", signal);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].signal == signal) snprintf(out->fault, sizeof out->fault, "%s", rows[i].fact);
}

static void judge_end(run_outcome *out, int status, bool late, const text *report, const char *said,
                      const char *file, double seconds) {
    bool whole = report->n >= 2 && memcmp(report->data + report->n - 2, "<\n", 2) == 0;
    bool drawn = strstr(report->data, "\n=") != NULL;
    bool clean = WIFEXITED(status) && WEXITSTATUS(status) <= 1 && (whole || drawn);
    out->right = clean && WEXITSTATUS(status) == 0 && !late;
    if (late || (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU))
        snprintf(out->fault, sizeof out->fault, "it does not end: stopped after %.0f seconds",
                 seconds);
    else if (!clean && !say_finding(out, said, file) && WIFSIGNALED(status))
        say_signal(out, WTERMSIG(status));
    else if (!clean && !out->fault[0])
        snprintf(out->fault, sizeof out->fault, "it left the program: exit was called");
}

/* Shows what the learner's code printed, without a sanitizer's report. */
static void show_prints(const text *said) {
    const char *end = strstr(said->data, "=================================================");
    const char *finding = strstr(said->data, "runtime error:");
    size_t n = end ? (size_t)(end - said->data) : said->n;
    if (finding && (size_t)(finding - said->data) < n) {
        n = (size_t)(finding - said->data);
        while (n > 0 && said->data[n - 1] != '\n') n--;
    }
    size_t shown = n < SHOWN ? n : SHOWN;
    fwrite(said->data, 1, shown, stdout);
    if (shown > 0 && said->data[shown - 1] != '\n') printf("\n");
    if (shown < n) printf("(your program printed more, which is not shown)\n");
}

bool exercise_run(const char *path, const char *what, const char *file, bool bounded,
                  double seconds, run_outcome *out) {
    text report = { malloc(REPORT_SIZE + 1), 0, REPORT_SIZE };
    text said = { malloc(SAID_SIZE + 1), 0, SAID_SIZE };
    child c;
    int status = 0;
    *out = (run_outcome){ .report = report.data };
    bool ok = report.data && said.data && start(&c, path, what, seconds, bounded);
    if (!ok) {
        free(said.data);
        return false;
    }
    bool late = listen_to(&c, &report, &said, seconds);
    status = end_of(&c, late);
    close(c.report), close(c.said);
    report.data[report.n] = '\0';
    said.data[said.n] = '\0';
    out->bytes = report.n;
    find_place(&report, out);
    show_prints(&said);
    judge_end(out, status, late, &report, said.data, file, seconds);
    free(said.data);
    return true;
}
