/* tests/runner.c - see runner.h.
 *
 * Suites that run at once print into one file each. The file is shown when its suite ends, so lines
 * of two suites never mix. Counts are read from Check's closing lines: a suite that printed none
 * did not finish, which is an error. */
#include "runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/commands.h"

enum { LINE = 4096, SLOWEST = 10 };

typedef struct counts {
    int run, failures, errors;
} counts;

/* One suite that runs, or ran, in a process of its own. */
typedef struct part {
    const suite_entry *suite;
    pid_t process; /* 0: not started, or over */
    FILE *output;
    counts counts;
    double begun, seconds, cpu;
    bool apart; /* its rows run in a process each */
    bool well;
} part;

static counts run_here(const suite_entry *const *suites, int n) {
    SRunner *runner = srunner_create(NULL);
    for (int i = 0; i < n; i++) srunner_add_suite(runner, suites[i]->make());
    srunner_run_all(runner, CK_ENV);
    counts c = { .run = srunner_ntests_run(runner), .failures = srunner_ntests_failed(runner) };
    srunner_free(runner);
    return c;
}

bool run_in_turn(const suite_entry *const *suites, int n) {
    counts c = run_here(suites, n);
    return c.run > 0 && c.failures == 0;
}

/* ---- a process for each suite ---------------------------------------------------------------- */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double seconds_of(struct timeval t) {
    return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

/* Runs the suite of p in a child process. All tests of a ROWS suite share that process, because a
 * fork takes longer than most of them. */
static void run_alone(const part *p, int index) {
    dup2(fileno(p->output), STDOUT_FILENO);
    dup2(fileno(p->output), STDERR_FILENO);
    if (p->suite->rows && !p->apart) setenv("CK_FORK", "no", 1);
    tally_part(index);
    exit(run_here(&p->suite, 1).failures > 0);
}

static void start(part *p, int index) {
    p->output = tmpfile();
    p->begun = now();
    fflush(NULL);
    p->process = p->output ? fork() : -1;
    if (p->process == 0) run_alone(p, index);
    if (p->process > 0) return;
    perror(p->suite->name);
    exit(1);
}

static bool closing_line(const char *line, counts *c) {
    return sscanf(line, "%*d%%: Checks: %d, Failures: %d, Errors: %d", &c->run, &c->failures,
                  &c->errors) == 3;
}

/* Prints the output of a suite, without Check's heading and closing line: all of it, or only the
 * failures, which follow the closing line. */
static void show(part *p, bool failures_only) {
    char line[LINE];
    counts ignored;
    bool shown = !failures_only;
    rewind(p->output);
    while (fgets(line, sizeof line, p->output)) {
        bool closing = closing_line(line, &ignored);
        shown = shown || closing;
        if (shown && !closing && strncmp(line, "Running suite(s): ", 18) != 0) fputs(line, stdout);
    }
}

/* Reads the counts of Check's closing line into *out. Returns false, and leaves *out as it was, if
 * the output has no such line. */
static bool read_counts(part *p, counts *out) {
    char line[LINE];
    counts found;
    bool finished = false;
    rewind(p->output);
    while (fgets(line, sizeof line, p->output))
        if (closing_line(line, &found)) {
            *out = found;
            finished = true;
        }
    return finished;
}

static double cpu_of_children(void) {
    struct rusage used;
    getrusage(RUSAGE_CHILDREN, &used);
    return seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
}

/* A row that crashes ends the process of its suite, and so the other rows. Such a suite is started
 * again, with a process for each row: then Check names the row that crashes, and runs the others.
 * The suite has failed in any case. Returns true if the suite was started again. */
static bool is_run_apart(part *p, int index) {
    counts found;
    if (!p->suite->rows || p->apart || read_counts(p, &found)) return false;
    show(p, false);
    printf("%-16s did not finish: again, with a process for each row\n", p->suite->name);
    fclose(p->output);
    p->apart = true;
    start(p, index);
    return true;
}

static void finish(part *p, int status) {
    p->process = 0;
    p->seconds = now() - p->begun;
    bool finished = read_counts(p, &p->counts);
    p->well = finished && status == 0 && !p->apart;
    if (!finished) p->counts.errors = 1;
    show(p, false);
    printf("%-16s %5d checks, %d failures, %d errors, %.1f s, CPU %.1f s%s\n", p->suite->name,
           p->counts.run, p->counts.failures, p->counts.errors, p->seconds, p->cpu,
           p->well    ? ""
           : finished ? ": FAILED"
                      : ": DID NOT FINISH");
    fflush(stdout);
}

/* Waits for the process of a suite to end. Returns false if the suite was started again. wait()
 * adds the processor time of the process, and of those that it waited for itself, to the time of
 * this process's children: the difference is the suite's. */
static bool wait_for_one(part *parts, int n) {
    int status;
    double before = cpu_of_children();
    pid_t process = wait(&status);
    for (int i = 0; i < n; i++) {
        if (process <= 0 || parts[i].process != process) continue;
        parts[i].cpu += cpu_of_children() - before;
        if (is_run_apart(&parts[i], i)) return false;
        finish(&parts[i], status);
    }
    return true;
}

/* ---- their sum ------------------------------------------------------------------------------- */

static int by_time(const void *a, const void *b) {
    const part *x = a, *y = b;
    return (x->cpu < y->cpu) - (x->cpu > y->cpu);
}

static void print_slowest(part *parts, int n) {
    qsort(parts, (size_t)n, sizeof *parts, by_time);
    printf("CPU seconds of the slowest suites:");
    for (int i = 0; i < n && i < SLOWEST; i++)
        printf("%s %s %.1f", i ? "," : "", parts[i].suite->name, parts[i].cpu);
    printf("\n");
}

static bool print_sum(part *parts, int n) {
    counts sum = { 0 };
    bool well = true;
    for (int i = 0; i < n; i++) {
        sum.run += parts[i].counts.run;
        sum.failures += parts[i].counts.failures;
        sum.errors += parts[i].counts.errors;
    }
    int passed = sum.run - sum.failures - sum.errors;
    printf("%d%%: Checks: %d, Failures: %d, Errors: %d\n",
           sum.run > 0 && passed > 0 ? (int)(100.0 * passed / sum.run) : 0, sum.run, sum.failures,
           sum.errors);
    for (int i = 0; i < n; i++) {
        if (parts[i].well) continue;
        printf("suite %s:%s\n", parts[i].suite->name,
               parts[i].apart ? " crashed while its rows shared a process" : "");
        show(&parts[i], parts[i].counts.run > 0);
        well = false;
    }
    return well && sum.run > 0;
}

bool run_at_once(const suite_entry *const *suites, int n, int jobs) {
    part *parts = calloc((size_t)n + 1, sizeof *parts);
    if (!parts) return false;
    for (int started = 0, over = 0; over < n;) {
        if (started < n && started - over < jobs) {
            parts[started].suite = suites[started];
            start(&parts[started], started);
            started++;
        } else {
            if (wait_for_one(parts, started)) over++;
        }
    }
    print_slowest(parts, n);
    bool well = print_sum(parts, n);
    for (int i = 0; i < n; i++) fclose(parts[i].output);
    free(parts);
    return well;
}
