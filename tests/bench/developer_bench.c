/* tests/bench/developer_bench.c - build/tests/bench: the machine's limits, attention over the
 * length, and every op, for those who change kernels. Users have `bench gemm` and `bench step`. */
#include "developer_bench.h"

#include <stdio.h>

#include "tools/cli/options/uses.h"
#include "tools/cli/terminal.h"

/* Static, because the rows of the option table hold addresses of these settings. */
static bench_settings told = { .seconds = 1 };

static const char *subject;

static option rows[] = {
    COUNT("size", told.size, 1, 16384,
          "with attention: measure only sequences of this number of tokens",
          .fallback = "several lengths"),
    COUNT("threads", told.threads, 1, 256, "number of threads that compute",
          .fallback = DEFAULT_THREADS),
    ROW("only", OPTION_STRING, told.name_prefix, "PREFIX",
        "with ops: measure only rows whose names begin with this", .fallback = "every row"),
    SECONDS_OPTION(told),
    FLAG("json", told.json, "print results as JSON objects, one on each line"),
};

program bench_program = {
    .name = "bench",
    .purpose = "measures attention and every op against this machine's own limits",
    .examples = "  bench limits\n"
                "  bench attention --size 4096\n"
                "  bench ops --threads 1\n"
                "  bench ops --only bitwise\n",
    .options = rows,
    .n = sizeof rows / sizeof *rows,
    .operand_name = "limits|attention|ops",
    .operand = &subject,
};

static void print_limits(bench_settings *set, int64_t threads) {
    double flops = best_flops(threads, is_trial(set));
    bandwidth memory = measure_bandwidth(threads, is_trial(set));
    if (!set->json)
        printf("%3lld threads   %8.1f GFLOP/s f32   %7.1f GB/s read   %7.1f GB/s triad\n",
               (long long)threads, flops / 1e9, memory.read / 1e9, memory.triad / 1e9);
    send_limits(set, threads, flops, memory);
}

static void bench_limits(bench_settings *set) {
    print_limits(set, 1);
    if (set->threads > 1) print_limits(set, set->threads);
}

static const bench_part parts[] = {
    { .name = "limits", .run = bench_limits, .without_limits = true },
    { .name = "attention", .run = bench_attention },
    { .name = "ops", .run = bench_ops }
};

enum { PARTS = sizeof parts / sizeof *parts };

int main(int argc, char **argv) {
    bench_settings *set = &told;
    terminal_open();
    options_parse(&bench_program, argc, argv);
    if (!subject)
        usage_error(&bench_program, "say what to measure: %s", bench_program.operand_name);
    const bench_part *part = bench_part_named(parts, PARTS, subject);
    option_no_effect(&bench_program, "size", part->run != bench_attention, "it is for attention");
    option_no_effect(&bench_program, "only", part->run != bench_ops, "it is for ops");
    check_uses(&bench_program, NULL, 0);
    return bench_run(set, part);
}
