/* tests/tools/test_bench.c - the benchmark programs, tools/bench and tests/bench: their arguments
 * and the form of their output.
 *
 * Measured figures depend on the machine, so the tests only check that they are there and
 * consistent with each other. WEFT_TOOLS names the folder of tools/bench; the other is in
 * ../tests. */
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>

#include "core/file/json.h"
#include "tests/suites.h"
#include "tests/support/support.h"

TESTS(bench)

#define QUICK " --threads 1 --seconds 0"

static char text[1 << 17]; /* the last run's stdout, with what its arguments redirect there */

/* Runs tools/bench, or tests/bench if the arguments begin with limits, attention or ops. Returns
 * the exit code. */
static int bench(const char *arguments) {
    static const char *const developers[] = { "limits", "attention", "ops" };
    const char *tools = getenv("WEFT_TOOLS"), *folder = "";
    char command[4400];
    ck_assert_msg(tools, "set WEFT_TOOLS to the folder of the programs: build/tools");
    for (int i = 0; i < COUNT_OF(developers); i++)
        if (strncmp(arguments, developers[i], strlen(developers[i])) == 0) folder = "/../tests";
    snprintf(command, sizeof command, "%s%s/bench %s", tools, folder, arguments);
    FILE *f = popen(command, "r");
    ck_assert_ptr_nonnull(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = '\0';
    int status = pclose(f);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- refusals -------------------------------------------------------------------------------- */

static const struct refusal {
    const char *arguments, *says;
} refusals[] = {
    { "", "say what to measure: gemm|step" },
    { "gem", "'gem' is not one of gemm|step" },
    { "gemm step", "one gemm|step|signature at a time, not 'step' too" },
    { "gemm --thread 2", "the nearest is --threads" },
    { "gemm --threads 0", "outside the range 1..256" },
    { "gemm --size 0", "outside the range 1..16384" },
    { "gemm --preset base", "--preset would have no effect: it is for step" },
    { "gemm --profile", "--profile would have no effect: it is for step" },
    { "attention ops", "one limits|attention|ops at a time, not 'ops' too" },
    { "ops --size 5", "--size would have no effect: it is for attention" },
    { "attention --only exp", "--only would have no effect: it is for ops" },
    { "step --shape base", "--shape would have no effect: it is for gemm without --size" },
    { "gemm --shape base --size 8", "--shape would have no effect: it is for gemm without --size" },
    { "step --operands hot", "--operands would have no effect: it is for gemm" },
    { "opus", "'opus' is not one of gemm|step" },
    { "opsy", "'opsy' is not one of limits|attention|ops" },
    { "attention --gemm", "there is no option --gemm" },
    { "gemm --operands warm", "'warm' is not one of both|hot|cold" },
    { "limits --size 5", "--size would have no effect" },
    { "step --size 5", "--size would have no effect" },
    { "step --preset small", "'small' is not one of copy|base" },
    { "step --mode sleep", "'sleep' is not one of train|forward|decode" },
    { "step --mode decode --unguarded", "--unguarded would have no effect" },
    { "step --beam 4", "--beam would have no effect" },
    { "step --mode decode --profile", "--profile would have no effect" },
    { "step --weights bf16", "--weights would have no effect: it is for --mode decode" },
    { "step --mode decode --weights f16", "'f16' is not one of f32|bf16|int8" },
};

TEST_ROWS(refusal_says_what_to_do, COUNT_OF(refusals)) {
    char line[200];
    snprintf(line, sizeof line, "%s 2>&1", refusals[_i].arguments);
    ck_assert_int_eq(bench(line), 2);
    assert_contains(text, refusals[_i].says);
}

TEST(help_and_version) {
    ck_assert_int_eq(bench("--help"), 0);
    assert_contains(text, "bench: measures");
    assert_contains(text, "bench [options] gemm|step|signature");
    ck_assert_int_eq(bench("--version"), 0);
    assert_contains(text, wf_version());
    ck_assert_int_eq(bench("gemm --size 8" QUICK " > /dev/full 2>&1"), 1);
}

/* ---- JSON lines ------------------------------------------------------------------------------ */

typedef struct member {
    char *key, *value; /* value: behind the quote of a string */
} member;

typedef struct object {
    member members[24];
    int n;
} object;

static object parse(char *line) {
    struct wf_json j;
    object o = { .n = 0 };
    ck_assert_msg(wf_json_begin(&j, line, strlen(line)), "%s", j.error);
    char *key;
    for (bool first = true; wf_json_key(&j, &first, &key);) {
        ck_assert_int_lt(o.n, COUNT_OF(o.members));
        while (*j.at == ' ') j.at++;
        o.members[o.n++] = (member){ key, j.at };
        if (!wf_json_skip(&j)) break;
    }
    ck_assert_msg(!*j.error && wf_json_finish(&j), "%s in %s", j.error, line);
    return o;
}

static double number_of(const object *o, const char *key) {
    for (int i = 0; i < o->n; i++)
        if (strcmp(o->members[i].key, key) == 0) return strtod(o->members[i].value, NULL);
    ck_abort_msg("no \"%s\" among the members", key);
}

static bool is_event(const object *o, const char *name) {
    ck_assert_str_eq(o->members[0].key, "event");
    return strncmp(o->members[0].value + 1, name, strlen(name)) == 0;
}

static void check_result(const object *o) {
    double median = number_of(o, "median"), limit = number_of(o, "limit");
    ck_assert(median >= number_of(o, "min") && number_of(o, "min") > 0);
    ck_assert(limit > 0 && number_of(o, "runs") >= 1);
    ck_assert(fabs(number_of(o, "of_limit") - limit / median) < 1e-9 * limit / median);
}

static const struct {
    const char *arguments;
    int results; /* lines of them */
} runs[] = {
    { "gemm --size 24", 6 },
    { "gemm --size 24 --operands cold", 3 },
    { "gemm --shape 'copy l' --operands hot", 6 },
    { "attention --size 24", 4 },
    { "ops", 282 },
    { "ops --only max_pool", 13 },
    { "ops --only 'conv2d dw stride 2'", 6 },
    { "step --batch 2", 1 },
    { "step --batch 2 --unguarded --profile", 1 },
    { "step --batch 2 --mode forward", 1 },
    { "step --batch 1 --mode forward --preset base", 1 },
    { "step --batch 2 --mode decode", 2 },
    { "step --batch 2 --mode decode --beam 3", 2 },
    { "step --batch 2 --mode decode --weights bf16", 2 },
};

TEST_ROWS(json_lines_can_be_read, COUNT_OF(runs)) {
    char command[200];
    int results = 0;
    snprintf(command, sizeof command, "%s --json" QUICK " 2> /dev/null", runs[_i].arguments);
    ck_assert_int_eq(bench(command), 0);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        object o = parse(line);
        if (!is_event(&o, "result")) continue;
        check_result(&o);
        results++;
    }
    ck_assert_int_eq(results, runs[_i].results);
}

/* The benchmark of attention counts two matrix products for forward and five for backward, which is
 * measured without forward. */
TEST(backward_attention_runs_alone) {
    ck_assert_int_eq(bench("attention --size 24 --json" QUICK " 2> /dev/null"), 0);
    double operations[4];
    int lines = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        object o = parse(line);
        if (!is_event(&o, "result")) continue;
        ck_assert_int_lt(lines, COUNT_OF(operations));
        operations[lines++] = number_of(&o, "gflops") * number_of(&o, "median");
    }
    ck_assert_int_eq(lines, COUNT_OF(operations));
    for (int i = 0; i < lines; i += 2)
        ck_assert_double_eq_tol(operations[i + 1] / operations[i], 2.5, 1e-6);
}

static const char *const rounded[] = {
    "step --mode decode --weights bf16 --json" QUICK " 2> /dev/null",
    "step --mode decode --weights int8 --json" QUICK " 2> /dev/null",
};

TEST_ROWS(rounding_is_measured, COUNT_OF(rounded)) {
    ck_assert_int_eq(bench(rounded[_i]), 0);
    int lines = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        object o = parse(line);
        if (!is_event(&o, "rounding")) continue;
        double mean = number_of(&o, "mean"), most = number_of(&o, "most");
        ck_assert(0 < mean && mean <= most && most < 0.2);
        ck_assert(number_of(&o, "agree") > 0.5 && number_of(&o, "agree") <= 1);
        lines++;
    }
    ck_assert_int_eq(lines, 1);
}

TEST(limits_are_numbers) {
    ck_assert_int_eq(bench("limits --json --threads 2 2> /dev/null"), 0);
    int lines = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        object o = parse(line);
        if (!is_event(&o, "limits")) continue;
        ck_assert(number_of(&o, "gflops") > 0 && number_of(&o, "read_gbytes") > 0 &&
                  number_of(&o, "triad_gbytes") > 0);
        ck_assert(number_of(&o, "threads") == ++lines);
    }
    ck_assert_int_eq(lines, 2);
}

/* ---- text ------------------------------------------------------------------------------------ */

TEST(results_on_stdout_words_on_stderr) {
    ck_assert_int_eq(bench("gemm --size 8" QUICK " 2> /dev/null"), 0);
    assert_contains(text, "median");
    assert_contains(text, "of limit");
    assert_contains(text, "\nsquare 8x8x8 y hot ");
    assert_contains(text, "\nsquare 8x8x8 dw cold ");
    ck_assert_int_eq(bench("gemm --size 8" QUICK " 2>&1 > /dev/null"), 0);
    assert_contains(text, "kernels, 1 thread\nlimits: ");
    assert_contains(text, ", caches ");
    ck_assert_int_eq(bench("gemm --size 8 --seconds 0.02 2>&1"), 0); /* on all processors */
    assert_contains(text, "\nsquare 8x8x8 dx hot ");
    ck_assert_int_eq(bench("limits" QUICK " 2> /dev/null"), 0);
    assert_contains(text, "  1 threads  ");
    assert_contains(text, " GB/s triad\n");
}

/* The machine is named once. */
TEST(the_machine_is_named) {
    ck_assert_int_eq(setenv("WEFT_CACHES", "16K/4,64K/4,1M/8", 1), 0);
    ck_assert_int_eq(bench("attention --size 8 --json" QUICK " 2> /dev/null"), 0);
    assert_contains(text, "\"processor\":\"");
    assert_contains(text, "\"caches\":\"16K/4,64K/4,1M/8\"");
    const char *limits = strstr(text, "\"event\":\"limits\"");
    ck_assert(limits && !strstr(limits + 1, "\"event\":\"limits\""));
}

TEST(a_product_or_an_op_that_is_not_there) {
    ck_assert_int_eq(bench("gemm --shape huge" QUICK " 2>&1"), 1);
    assert_contains(text, "no product's name begins with 'huge'");
    ck_assert_int_eq(bench("ops --only huge" QUICK " 2>&1"), 1);
    assert_contains(text, "no op's name begins with 'huge'");
}

/* With WEFT_ISA=base, bench measures the kernels and the machine's limits for that set. */
TEST(instruction_set_is_chosen_by_the_environment) {
    ck_assert_int_eq(setenv("WEFT_ISA", "base", 1), 0);
    ck_assert_int_eq(bench("gemm --size 8 --json" QUICK " 2> /dev/null"), 0);
    assert_contains(text, "\"isa\":\"base\"");
}
