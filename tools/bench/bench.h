/* tools/bench/bench.h - what the parts of `bench` share: settings, the machine's limits, a clock, a
 * line of the result.
 *
 * Times are printed beside what this machine could do, measured in the same run: a line of gemm,
 * and of a model's step, has the rates of operations and bytes where they are counted, and the time
 * that the run would take at the measured peak and bandwidth. */
#ifndef WEFT_TOOLS_BENCH_BENCH_H
#define WEFT_TOOLS_BENCH_BENCH_H

#include "models/decode.h"
#include "tools/cli/options/options.h"
#include "tools/cli/report.h"

enum { MODE_TRAIN, MODE_FORWARD, MODE_DECODE };
enum { OPERANDS_BOTH, OPERANDS_HOT, OPERANDS_COLD };

typedef struct bench_settings {
    int preset, mode, weights;
    int64_t batch, beam, threads, size;
    double seconds;          /* least time for a line; 0: a trial, see is_trial */
    const char *name_prefix; /* measure only products, or ops, whose names begin with this */
    int operands;
    bool unguarded, profile, json;
    double bandwidth; /* of the memory, in bytes a second: the better of reading and of a triad */
    report report;    /* where results go */
} bench_settings;

extern program bench_program;

/* The row of --seconds in an option table. */
#define SECONDS_OPTION(set)                                                                        \
    REAL("seconds", (set).seconds, 0, 3600,                                                        \
         "number of seconds for which each line is measured, in at least three runs; 0: only one " \
         "run with little memory, to see that it works. Refused with the measurement "             \
         "\"signature\"")

/* --seconds 0: everything is run once on little memory, to see that it works. The figures of a
 * trial have the right form and say little about speed. */
static inline bool is_trial(const bench_settings *set) {
    return set->seconds <= 0;
}

/* A measurement: the operand that names it, and its function. tests/bench has further ones for
 * developers. */
typedef struct bench_part {
    const char *name;
    void (*run)(bench_settings *set);
    bool without_limits; /* does not need the machine's limits, whose measurement takes seconds */
} bench_part;

void bench_gemm(bench_settings *set);
void bench_step(bench_settings *set);
void bench_signature(bench_settings *set); /* prints one number and nothing else */

/* The part with this name among n. Exits with usage_error if there is none. */
const bench_part *bench_part_named(const bench_part *parts, int n, const char *name);
/* Prints the machine and its limits, runs the part, and returns the program's exit code. */
int bench_run(bench_settings *set, const bench_part *part);

/* ---- limits: bench_limits.c, bench_loops.c --------------------------------------------------- */

typedef struct bandwidth {
    double triad, read; /* bytes a second */
} bandwidth;

/* The rate of f32 operations a second in a burst of about `seconds` seconds, with the kernels'
 * instruction set. A multiply-add counts as two. */
double peak_flops(int64_t threads, double seconds);
/* The best rate of many bursts, because other programs can only lower it. A trial has one burst. */
double best_flops(int64_t threads, bool trial);
bandwidth measure_bandwidth(int64_t threads, bool trial);
/* Measures peak and bandwidth, sets set->bandwidth and prints both. */
void measure_limits(bench_settings *set);
void send_limits(bench_settings *set, int64_t threads, double flops, bandwidth memory);
const char *processor_name(void);

/* ---- measuring: bench_measure.c -------------------------------------------------------------- */

typedef struct timing {
    double median; /* seconds of a run: the median of the rounds' medians */
    double min;    /* the seconds of the fastest run of all */
    /* number of operations in the time of a run, at the peak speed of bursts between the runs */
    double capacity;
    int64_t runs;
} timing;

/* Calls the function run() once without measuring. Then rounds follow until --seconds have passed,
 * three at least: a round calls run() once or more often, and then measures peak_flops, so that
 * other programs slow both alike. A trial is one round of one call. False: a call failed. */
bool measure(const bench_settings *set, bool (*run)(void *user), void *user, timing *out);

/* For plans: run_plan runs one, as a callback of `measure`; plan_of makes one, or ends the program;
 * work_of counts the operations and bytes of a run. */
bool run_plan(void *plan);
wf_plan *plan_of(wf_graph *g, wf_plan_options options);
void work_of(wf_plan *plan, double *flops, double *bytes);

/* Seconds that `flops` operations take at the peak speed that was measured beside the runs of t. */
double at_peak(const timing *t, double flops);

/* The peak of this process's resident memory since the last reset, in bytes. */
void reset_peak_memory(void);
double peak_memory(void);

typedef struct line {
    const char *name;
    timing time;
    double flops, bytes; /* operations and bytes of a run; 0: not counted */
    double tokens;       /* of a run; 0: none */
    double limit;        /* seconds that the measured limits allow for a run */
    double memory;       /* peak of memory in bytes; 0: not measured */
} line;

void print_line(bench_settings *set, const line *l);

#endif
