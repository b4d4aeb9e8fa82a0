/* tools/bench/bench_measure.c - measures time and memory, and prints results. See bench.h. */
#include "bench.h"
#include "core/base/caches.h"
#include "core/base/clock.h"
#include "tools/cli/numbers.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* ---- time ------------------------------------------------------------------------------------ */

enum { LEAST_TURNS = 3, MOST_TURNS = 5000, MOST_RUNS = 20000 };

static const double shortest_turn = 4e-3,
                    burst_share = 0.1; /* seconds; length of a burst as a share of the runs' time */

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of n values, which it sorts. */
static double middle(double *values, int n) {
    qsort(values, (size_t)n, sizeof *values, by_size);
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

/* The time that two readings of the clock are apart if nothing is between them. */
static double clock_time(void) {
    double least = INFINITY;
    for (int i = 0; i < 9; i++) {
        double from = wf_seconds_now();
        least = fmin(least, wf_seconds_now() - from);
    }
    return least;
}

/* The median time of `count` consecutive runs; *min: the least so far. Negative: a run failed. Each
 * run is timed alone, so the median does not change if other programs interrupt fewer than half of
 * them. */
static double time_runs(bool (*run)(void *user), void *user, int count, double *min) {
    static double taken[MOST_RUNS];
    double clock = clock_time();
    for (int i = 0; i < count; i++) {
        double from = wf_seconds_now();
        if (!run(user)) return -1;
        taken[i] = fmax(wf_seconds_now() - from - clock, 1e-9);
        *min = fmin(*min, taken[i]);
    }
    return middle(taken, count);
}

bool measure(const bench_settings *set, bool (*run)(void *user), void *user, timing *out) {
    static double taken[MOST_TURNS], capacity[MOST_TURNS];
    int n = 0;
    double start = wf_seconds_now(), least_time = INFINITY;
    double once = run(user) ? time_runs(run, user, 1, &least_time) : -1;
    if (once < 0) return false;
    double turn = is_trial(set) ? 0 : shortest_turn;
    int least = is_trial(set) ? 1 : LEAST_TURNS;
    int runs = once < turn ? (int)fmin(turn / once, MOST_RUNS - 1) + 1 : 1;
    while (n < least || (n < MOST_TURNS && wf_seconds_now() - start < set->seconds)) {
        double seconds = time_runs(run, user, runs, &least_time);
        double burst = burst_share * seconds * runs;
        if (seconds < 0) return false;
        taken[n] = seconds;
        capacity[n++] = seconds * peak_flops(set->threads, burst > turn ? burst : turn);
    }
    *out = (timing){ .median = middle(taken, n),
                     .min = least_time,
                     .capacity = middle(capacity, n),
                     .runs = (int64_t)n * runs };
    return true;
}

bool run_plan(void *plan) {
    return wf_run(plan);
}

wf_plan *plan_of(wf_graph *g, wf_plan_options options) {
    wf_plan *plan = wf_plan_new(g, &options);
    if (!wf_plan_ok(plan)) fail(&bench_program, "%s", wf_plan_error(plan));
    return plan;
}

void work_of(wf_plan *plan, double *flops, double *bytes) {
    *flops = *bytes = 0;
    for (int i = 0; i < wf_step_count(plan); i++) {
        wf_step step;
        if (!wf_step_at(plan, i, &step)) continue;
        *flops += step.flops;
        *bytes += step.bytes;
    }
}

double at_peak(const timing *t, double flops) {
    assert(t->capacity > 0);
    return flops / t->capacity * t->median;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Linux can reset the peak; on other systems it is that of the whole process. */
void reset_peak_memory(void) {
    FILE *f = fopen("/proc/self/clear_refs", "w");
    if (!f) return;
    fputs("5", f);
    fclose(f);
}

double peak_memory(void) {
    char text[128];
    double kilobytes = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(text, sizeof text, f))
        if (strncmp(text, "VmHWM:", 6) == 0) kilobytes = (double)strtoll(text + 6, NULL, 10);
    if (f) fclose(f);
    if (kilobytes > 0) return 1024 * kilobytes;
    struct rusage used;
    return getrusage(RUSAGE_SELF, &used) == 0 ? 1024.0 * (double)used.ru_maxrss : 0;
}

/* ---- a line ---------------------------------------------------------------------------------- */

static const char *time_text(double seconds, char buffer[OPTION_TEXT_SIZE]) {
    if (seconds < 1e-3)
        snprintf(buffer, OPTION_TEXT_SIZE, "%.4g us", 1e6 * seconds);
    else if (seconds < 1)
        snprintf(buffer, OPTION_TEXT_SIZE, "%.4g ms", 1e3 * seconds);
    else
        snprintf(buffer, OPTION_TEXT_SIZE, "%.4g s", seconds);
    return buffer;
}

/* A rate as text, or a dash if there is none. */
static const char *rate_text(double amount, double seconds, double unit,
                             char buffer[OPTION_TEXT_SIZE]) {
    if (amount <= 0) return "-";
    snprintf(buffer, OPTION_TEXT_SIZE, "%.1f", amount / seconds / unit);
    return buffer;
}

static void print_text(const line *l) {
    static bool titled;
    char t[7][OPTION_TEXT_SIZE];
    double s = l->time.median;
    if (!titled)
        printf("%-38s %10s %10s %8s %7s %9s %10s %9s %9s\n", "", "median", "min", "GFLOP/s", "GB/s",
               "tokens/s", "limit", "of limit", "memory");
    titled = true;
    printf("%-38s %10s %10s %8s %7s %9s %10s %7.1f %% %9s\n", l->name, time_text(s, t[0]),
           time_text(l->time.min, t[1]), rate_text(l->flops, s, 1e9, t[2]),
           rate_text(l->bytes, s, 1e9, t[3]), rate_text(l->tokens, s, 1, t[4]),
           time_text(l->limit, t[5]), 100 * l->limit / s,
           l->memory > 0 ? bytes_text(l->memory, t[6]) : "-");
    fflush(stdout);
}

static void send_if(jsonl *e, const char *key, double value) {
    if (value > 0) json_real(e, key, value);
}

void print_line(bench_settings *set, const line *l) {
    double s = l->time.median;
    if (!set->json) print_text(l);
    jsonl *e = event(&set->report, "result");
    json_text(e, "name", l->name);
    json_real(e, "median", s);
    json_real(e, "min", l->time.min);
    json_int(e, "runs", l->time.runs);
    send_if(e, "gflops", l->flops / s / 1e9);
    send_if(e, "gbytes", l->bytes / s / 1e9);
    send_if(e, "tokens_per_second", l->tokens / s);
    send_if(e, "peak_gflops", l->time.capacity / s / 1e9);
    json_real(e, "limit", l->limit);
    json_real(e, "of_limit", l->limit / s);
    send_if(e, "memory", l->memory);
    event_send(&set->report);
}

/* ---- the program ----------------------------------------------------------------------------- */

const bench_part *bench_part_named(const bench_part *parts, int n, const char *name) {
    for (int i = 0; i < n; i++)
        if (strcmp(parts[i].name, name) == 0) return &parts[i];
    usage_error(&bench_program, "'%.60s' is not one of %s", name, bench_program.operand_name);
}

int bench_run(bench_settings *set, const bench_part *part) {
    if (!set->threads) set->threads = default_threads(1);
    report_open(&set->report, &bench_program, false, set->json, NULL, false);
    jsonl *e = event(&set->report, "run");
    json_text(e, "bench", part->name);
    json_text(e, "isa", wf_isa());
    json_int(e, "threads", set->threads);
    json_text(e, "processor", processor_name());
    json_text(e, "caches", wf_caches_text());
    event_send(&set->report);
    say(&set->report, "%s, caches %s", processor_name(), wf_caches_text());
    say(&set->report, "weft %s, %s kernels, %lld thread%s", wf_version(), wf_isa(),
        (long long)set->threads, set->threads == 1 ? "" : "s");
    if (!part->without_limits) measure_limits(set);
    part->run(set);
    return close_stdout(&bench_program, report_close(&set->report) ? EXIT_DONE : EXIT_FAILED);
}
