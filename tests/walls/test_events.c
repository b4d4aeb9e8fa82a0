/* tests/walls/test_events.c - events of the programs: their JSON, and the messages if one is lost
 * for want of memory, of a descriptor or of space on the disk; and the progress bar of a
 * terminal. */
#define _XOPEN_SOURCE 700 /* posix_openpt */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/suites.h"
#include "tests/support/commands.h"
#include "tests/support/faults.h"
#include "tools/cli/jsonl.h"
#include "tools/cli/numbers.h"
#include "tools/train/progress.h"

TESTS(events)

static const program nobody = { .name = "events" };

/* Sends an event that is larger than the initial buffer, which must grow. */
static void send_large(report *r) {
    char text[3000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    jsonl *e = event(r, "large");
    json_text(e, "text", text);
    event_send(r);
}

/* Runs f, and captures its output to stderr in result.err. */
static void hear(void (*f)(report *), report *r) {
    int kept = dup(STDERR_FILENO), file = open(".said", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ck_assert(kept >= 0 && file >= 0 && dup2(file, STDERR_FILENO) >= 0);
    f(r);
    ck_assert(dup2(kept, STDERR_FILENO) >= 0);
    close(kept), close(file);
    read_text(".said", result.err, sizeof result.err);
}

SETUP(enter_folder, leave_folder)

TEST_ROWS(json_escapes_what_a_terminal_obeys, 6) {
    static const char *const rows[][2] = {
        { "plain ü 犬", "plain ü 犬" },
        { "\"\\/", "\\\"\\\\/" },
        { "\t\n\r\033[2J\b\x7f", "\\u0009\\u000a\\u000d\\u001b[2J\\u0008\\u007f" },
        { "\xC2\x9B \xE2\x80\xA8 \xE2\x80\xAE", "\\u009b \\u2028 \\u202e" },
        { "\xF3\xA0\x81\x81", "\\udb40\\udc41" },
        { "\xFFx\xED\xA0\x80", "\xEF\xBF\xBDx\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD" },
    };
    jsonl line = { 0 };
    json_string(&line, rows[_i][0]);
    ck_assert(!line.failed && line.length == strlen(rows[_i][1]) + 2);
    ck_assert_mem_eq(line.text + 1, rows[_i][1], line.length - 2);
    json_free(&line);
}

/* Numbers that JSON lacks become null. Others have up to 9 digits, which distinguish every f32. */
TEST(json_has_lists) {
    const double reals[] = { 0.1, NAN, -INFINITY };
    jsonl line = { 0 };
    json_ints(&line, "none", NULL, 0);
    json_ints(&line, "ids", (int32_t[]){ 3, -1 }, 2);
    json_reals(&line, "zero", NULL, 0);
    json_reals(&line, "some", reals, 3);
    json_reals(&line, "bad", reals + 1, 1);
    json_raw(&line, "%c", '\0');
    ck_assert_str_eq(line.text, ",\"none\":[],\"ids\":[3,-1],\"zero\":[],"
                                "\"some\":[0.1,null,null],\"bad\":[null]");
    json_free(&line);
}

/* Allocations fail only while the event is sent, because Check allocates memory, too. */
static long fail_at, asked;
static bool persistent;

static void send_failing(report *r) {
    long left;
    faults_begin(fail_at, persistent);
    send_large(r);
    asked = faults_end(&left);
}

/* Each allocation fails in turn: alone, or together with all later ones. */
TEST_ROWS(no_memory_is_told, 2) {
    report r;
    persistent = _i;
    for (int at = 1; at <= 4; at++) {
        ck_assert(report_open(&r, &nobody, true, false, "log", false));
        fail_at = at;
        hear(send_failing, &r);
        read_text("log", result.out, sizeof result.out);
        if (asked < at) {
            ck_assert_int_gt(at, 1);
            ck_assert(report_close(&r) && *result.out && !*result.err);
            return;
        }
        ck_assert_str_eq(result.out, "");
        ck_assert(strstr(result.err, "events: an event is missing: Cannot allocate memory"));
        send_large(&r); /* the next one is whole again */
        read_text("log", result.out, sizeof result.out);
        ck_assert(strncmp(result.out, "{\"event\":\"large\"", 16) == 0 &&
                  strstr(result.out, "x\"}\n"));
        ck_assert(!report_close(&r));
    }
    ck_abort_msg("an event takes more allocations than were tried");
}

static void send_two(report *r) {
    send_large(r);
    send_large(r);
}

/* If the second line does not fit on the disk, its part is removed and the first line stays whole.
 * The failure is reported. */
TEST_ROWS(half_a_line_is_taken_back, 2) {
    report r;
    struct rlimit old, limit;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
    limit = old, limit.rlim_cur = 4000;
    signal(SIGXFSZ, SIG_IGN);
    ck_assert(report_open(&r, &nobody, true, false, "log", _i));
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    hear(send_two, &r);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
    read_text("log", result.out, sizeof result.out);
    char *end = strchr(result.out, '\n');
    ck_assert(end && end[1] == '\0');
    ck_assert(strstr(result.err, "events: the log could not be written: "));
    ck_assert(!report_close(&r));
}

/* If a power cut left half a line, the next event begins a new line. */
TEST(a_torn_log_is_gone_on_with) {
    report r;
    ok("printf '{\"event\":\"one\"}\\n{\"eve' > log");
    for (int i = 0; i < 2; i++) {
        ck_assert(report_open(&r, &nobody, true, false, "log", true));
        event(&r, "two"), event_send(&r);
        ck_assert(report_close(&r));
    }
    read_text("log", result.out, sizeof result.out);
    ck_assert_str_eq(result.out, "{\"event\":\"one\"}\n{\"eve\n{\"event\":\"two\"}\n"
                                 "{\"event\":\"two\"}\n");
}

/* Events that go nowhere allocate no memory and open no file. */
TEST(unread_events_cost_nothing) {
    report r;
    struct rlimit old, none;
    ck_assert(report_open(&r, &nobody, true, false, NULL, false));
    ck_assert_ptr_null(event(&r, "step"));
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = old, none.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &none);
    fail_at = 1, persistent = true;
    send_failing(&r);
    setrlimit(RLIMIT_NOFILE, &old);
    ck_assert_int_eq(asked, 0);
    ck_assert(report_close(&r));
}

/* A signal reaches train while it waits for the reader of its pipe: the events of all steps arrive,
 * and then that of the signal. */
TEST(a_signal_loses_no_event) {
    run("{ train --task copy --d-model 8 --heads 2 --layers 1 --d-ff 8 --valid-size 0 --threads 1 "
        "--max-steps 1000000 --log-every 1 --json --quiet & train=$!; sleep 1; kill -TERM $train; "
        "wait $train; echo $? > status; } | { sleep 2; cat > events; }; cat status; "
        "sed -n 's/{\"event\":\"step\",\"step\":\\([0-9]*\\),.*}/\\1/p' events | "
        "awk '$1 != NR { lost = 1 } END { print lost + 0 }'; "
        "sed -n 's/{\"event\":\"\\([a-z]*\\)\".*}/\\1/p' events | tail -n 3");
    expect(0);
    ck_assert_str_eq(result.out, "143\n0\nstep\nsignal\nend\n");
    ck_assert_str_eq(result.err, "");
}

/* ---- for people ------------------------------------------------------------------------------ */

TEST(numbers_are_short) {
    static const struct {
        const char *(*as_text)(double, char *);
        double value;
        const char *text;
    } rows[] = {
        { duration, 0.04, "0.0 s" },
        { duration, 59.94, "59.9 s" },
        { duration, 59.96, "1:00" },
        { duration, 3599.4, "59:59" },
        { duration, 3599.6, "1:00:00" },
        { duration, 90061, "25:01:01" },
        { duration, -1, "?" },
        { duration, 1e9, "?" },
        { duration, NAN, "?" },
        { thousands, 0, "0" },
        { thousands, 999, "999" },
        { thousands, 1234567, "1,234,567" },
        { thousands, -1, "?" },
        { thousands, 1e15, "?" },
        { bytes_text, 999, "999 B" },
        { bytes_text, 1234, "1.2 kB" },
        { bytes_text, 123456, "123 kB" },
        { bytes_text, 7e15, "7.0 PB" },
        { bytes_text, 7e18, "7000 PB" },
    };
    for (int i = 0; i < COUNT_OF(rows); i++) {
        char buffer[OPTION_TEXT_SIZE];
        ck_assert_str_eq(rows[i].as_text(rows[i].value, buffer), rows[i].text);
    }
}

static wf_plan *plan;

static void say_profile(report *r) {
    report_profile(r, plan);
}

/* Before it has run, a plan has taken no time; a failed one has no steps. */
TEST(a_profile_of_nothing_is_empty) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_param(g, "x", SHAPE(2), wf_init_zeros()), *y = wf_tanh(x);
    for (int i = 0; i < 2; i++) {
        report r;
        plan = wf_plan_new(g, &(wf_plan_options){ .fetch = i ? NULL : &y, .n_fetch = 1 });
        wf_profile(plan, true);
        ck_assert(report_open(&r, &nobody, false, false, "log", false));
        hear(say_profile, &r);
        ck_assert(report_close(&r));
        assert_contains(result.err, "GFLOP/s      GB/s\nall                                     0 "
                                    "     0.000 s    0.0 %      0.00      0.00\n");
        read_text("log", result.out, sizeof result.out);
        ck_assert_str_eq(result.out, "");
        wf_plan_free(plan);
    }
    end_graph(g);
}

/* Reports a training on a terminal of that many columns (0: the terminal does not say). Returns the
 * bytes that were drawn. */
static const char *drawn_on_terminal(const char *term, unsigned short columns, bool quiet) {
    struct winsize size = { .ws_row = 24, .ws_col = columns };
    progress p = { .step = 51, .total = 100, .loss = 1.5, .remaining = 61, .accuracy = 0.25 };
    report r;
    int kept = dup(STDERR_FILENO), master = posix_openpt(O_RDWR | O_NOCTTY);
    ck_assert(kept >= 0 && master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    ck_assert(slave >= 0 && ioctl(slave, TIOCSWINSZ, &size) == 0);
    ck_assert_int_eq(term ? setenv("TERM", term, 1) : unsetenv("TERM"), 0);
    ck_assert(dup2(slave, STDERR_FILENO) >= 0 && close(slave) == 0);
    ck_assert(report_open(&r, &nobody, quiet, false, NULL, false));
    for (int i = 0; i < 2; i++) report_bar(&r, &p), report_step(&r, &p); /* one bar in 0.1 s */
    say(&r, "a line");
    report_bar(&r, &p);
    ck_assert(report_close(&r) && dup2(kept, STDERR_FILENO) >= 0 && close(kept) == 0);
    size_t n = 0; /* reads until the terminal fails, because no process has it open for writing */
    for (ssize_t got; (got = read(master, result.err + n, sizeof result.err - 1 - n)) > 0;)
        n += (size_t)got;
    result.err[n] = '\0';
    close(master);
    return result.err;
}

/* The bar never uses the last column, because some terminals then begin a new line. It is removed
 * in the end. */
TEST(a_terminal_has_a_bar) {
    ck_assert_str_eq(drawn_on_terminal("xterm", 40, false),
                     "\r\033[K51/100 [#####.....] 1:01 left, loss 1.5\r\033[Ka line\r\n"
                     "\r\033[K51/100 [#####.....] 1:01 left, loss 1.5\r\033[K");
    assert_contains(drawn_on_terminal("xterm", 0, false),
                    "] 1:01 left, loss 1.500, 25.0 % right, 0 tokens/s\r");
    static const char *const plain[] = { "dumb", "", NULL };
    for (int i = 0; i < COUNT_OF(plain); i++) {
        drawn_on_terminal(plain[i], 40, false);
        assert_contains(result.err, "     51/100 ");
        assert_contains(result.err, "a line\r\n");
        ck_assert(!strchr(result.err, '#') && !strchr(result.err, '\033'));
    }
    ck_assert_str_eq(drawn_on_terminal("xterm", 40, true), "");
}
