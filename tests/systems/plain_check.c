/* tests/systems/plain_check.c - see check.h. It runs the tests of suites, each in a process of its
 * own. */
#include "check.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 256 }; /* tests in a case, cases in a suite, and suites in a runner */

struct TCase {
    const char *name;
    double timeout;
    void (*checked[2])(void), (*unchecked[2])(void); /* before and after; once per test, per case */
    struct {
        const TTest *test;
        int from, end;
    } tests[MOST];
    int n;
};

struct Suite {
    const char *name;
    TCase *cases[MOST];
    int n;
};

struct SRunner {
    Suite *suites[MOST];
    int n, run, failures, errors;
};

static struct {
    const Suite *suite;
    const TCase *tcase;
    const TTest *test;
    int i;
    jmp_buf *failed; /* with CK_FORK=no, a test that fails jumps here */
} at;

static void *must(void *p) {
    if (!p) fputs("out of memory\n", stderr), exit(2);
    return p;
}

static void room(int n) {
    if (n == MOST) fputs("check.c: MOST is too small\n", stderr), exit(2);
}

Suite *suite_create(const char *name) {
    Suite *s = must(calloc(1, sizeof *s));
    s->name = name;
    return s;
}

void suite_add_tcase(Suite *s, TCase *c) {
    room(s->n), s->cases[s->n++] = c;
}

TCase *tcase_create(const char *name) {
    const char *seconds = getenv("CK_DEFAULT_TIMEOUT");
    TCase *c = must(calloc(1, sizeof *c));
    c->name = name;
    c->timeout = seconds ? atof(seconds) : 4;
    return c;
}

void tcase_add_loop_test(TCase *c, const TTest *test, int from, int end) {
    room(c->n);
    c->tests[c->n].test = test;
    c->tests[c->n].from = from;
    c->tests[c->n++].end = end;
}

void tcase_add_checked_fixture(TCase *c, void (*setup)(void), void (*teardown)(void)) {
    c->checked[0] = setup, c->checked[1] = teardown;
}

void tcase_add_unchecked_fixture(TCase *c, void (*setup)(void), void (*teardown)(void)) {
    c->unchecked[0] = setup, c->unchecked[1] = teardown;
}

SRunner *srunner_create(Suite *s) {
    SRunner *r = must(calloc(1, sizeof *r));
    if (s) srunner_add_suite(r, s);
    return r;
}

void srunner_add_suite(SRunner *r, Suite *s) {
    room(r->n), r->suites[r->n++] = s;
}
int srunner_ntests_run(const SRunner *r) {
    return r->run;
}
int srunner_ntests_failed(const SRunner *r) {
    return r->failures + r->errors;
}

void srunner_free(SRunner *r) {
    for (int s = 0; s < r->n; free(r->suites[s++]))
        for (int c = 0; c < r->suites[s]->n; c++) free(r->suites[s]->cases[c]);
    free(r);
}

/* ---- running ----------------------------------------------------------------------------- */

void ck_failed(const char *file, int line, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    printf("%s:%d:F:%s:%s:%d: ", file, line, at.tcase->name, at.test->name, at.i);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    fflush(stdout);
    if (at.failed) longjmp(*at.failed, 1);
    _exit(1);
}

static void call(void (*f)(void)) {
    if (f) f();
}

static void run_test(void) {
    call(at.tcase->checked[0]);
    at.test->run(at.i);
    call(at.tcase->checked[1]);
}

/* run_here and run_apart run a test and return a status like that of wait(). run_here returns that
 * of a process that exits with 0 or 1. */
static int run_here(void) {
    jmp_buf failed;
    at.failed = &failed;
    if (setjmp(failed) != 0) return 1 << 8;
    run_test();
    return 0;
}

/* Runs the test in a process group of its own, so that processes which it started end with it. */
static int run_apart(void) {
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child < 0) return perror("fork"), -1;
    if (child == 0) {
        setpgid(0, 0);
        alarm((unsigned)ceil(at.tcase->timeout));
        run_test();
        exit(0);
    }
    while (waitpid(child, &status, 0) != child) {}
    kill(-child, SIGKILL);
    return status;
}

static void count(SRunner *r, bool apart) {
    r->run++;
    int status = apart ? run_apart() : run_here();
    if (status == 0) return;
    bool failure = WIFEXITED(status) && WEXITSTATUS(status) == 1;
    failure ? r->failures++ : r->errors++;
    if (failure) return;
    printf("%s:E:%s:%s:%d: %s %d\n", at.suite->name, at.tcase->name, at.test->name, at.i,
           WIFSIGNALED(status) ? "ended by signal" : "exited with",
           WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static void run_case(SRunner *r, bool apart) {
    const char *only = getenv("CK_RUN_CASE");
    if (only && strcmp(only, at.tcase->name) != 0) return;
    call(at.tcase->unchecked[0]);
    for (int t = 0; t < at.tcase->n; t++) {
        at.test = at.tcase->tests[t].test;
        for (at.i = at.tcase->tests[t].from; at.i < at.tcase->tests[t].end; at.i++) count(r, apart);
    }
    call(at.tcase->unchecked[1]);
}

void srunner_run_all(SRunner *r, enum print_output mode) {
    (void)mode;
    const char *fork_wanted = getenv("CK_FORK");
    bool apart = !fork_wanted || strcmp(fork_wanted, "no") != 0;
    for (int s = 0; s < r->n; s++) {
        at.suite = r->suites[s];
        for (int c = 0; c < at.suite->n; c++) at.tcase = at.suite->cases[c], run_case(r, apart);
    }
    int passed = r->run - srunner_ntests_failed(r);
    printf("%d%%: Checks: %d, Failures: %d, Errors: %d\n", r->run ? 100 * passed / r->run : 100,
           r->run, r->failures, r->errors);
}
