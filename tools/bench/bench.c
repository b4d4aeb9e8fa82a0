/* tools/bench/bench.c - measures how fast the kernels and the model are, compared with the limits
 * of this machine.
 *
 * This file has the options and the choice of a part; each part has a file of its own.
 * WEFT_ISA=base|avx2|avx512|neon chooses the kernels, and the instruction set of the peak that they
 * are compared with. WEFT_CACHES=32K/8,512K/8,16M/16 sets the caches from which block sizes are
 * derived. */
#include "bench.h"
#include "bench_model.h"
#include "models/choices.h"
#include "tools/cli/options/uses.h"
#include "tools/cli/terminal.h"

/* Static, because the rows of the option table hold addresses of these settings. */
static bench_settings told = { .seconds = 1, .beam = 1 };

static const char *subject;

static option rows[] = {
    GROUP("For step: time of a model's steps"),
    CHOICE("preset", told.preset, PRESET_WORDS,
           "for \"step\": model and batch that are timed. copy: those of train --task copy. base: "
           "the base model of \"Attention Is All You Need\", 2 sentences"),
    CHOICE("mode", told.mode, "train|forward|decode",
           "for \"step\": work that is timed. train: a training step. forward: the logits of a "
           "batch. decode: the search for outputs"),
    CHOICE("weights", told.weights, WF_NAMES(WF_WEIGHT_FORMAT_NAMES),
           "for \"step\" with --mode decode: number format of the weight matrices. With bf16 and "
           "int8 it is also printed how much they change log-probabilities"),
    COUNT("beam", told.beam, 1, 64,
          "for \"step\" with --mode decode: number of hypotheses of the beam search. 1 is greedy "
          "search"),
    COUNT("batch", told.batch, 1, 65536, "for \"step\": number of sentences in a batch",
          .fallback = "32 with --preset copy; 2 with base"),
    FLAG("unguarded", told.unguarded,
         "for \"step\" with --mode train: leave out gradient clipping and the check of gradients "
         "for NaN"),
    FLAG("profile", told.profile,
         "for \"step\" with --mode train or forward: also print the time of each kind of op"),

    GROUP("For gemm: time of matrix products"),
    COUNT("size", told.size, 1, 16384,
          "for \"gemm\": measure only products of two N x N matrices. Refused with --shape",
          .fallback = "15 products with the shapes of models"),
    STRING("shape", told.name_prefix, "NAME",
           "for \"gemm\": measure only those of the 15 products whose names begin with this: "
           "square, base, copy or decode. Each line of the output has its name",
           .fallback = "all of them"),
    CHOICE(
        "operands", told.operands, "both|hot|cold",
        "for \"gemm\": place of the operands. hot: in the cache, because one product is repeated. "
        "cold: in memory, because each product has other operands. both: hot, then cold"),

    GROUP("For all"),
    COUNT("threads", told.threads, 1, 256, "number of threads that compute",
          .fallback = DEFAULT_THREADS),
    SECONDS_OPTION(told),
    FLAG("json", told.json,
         "print JSON objects, one on each line, in place of tables: one for the machine's limits, "
         "and one for each measurement with its times in seconds. Refused with the measurement "
         "\"signature\""),
};

program bench_program = {
    .name = "bench",
    .purpose = "measures kernels and steps of a model against the limits of this machine; "
               "signature prints a number that is the same on all machines",
    .examples = "  bench gemm --threads 1\n"
                "  bench gemm --shape base --operands hot\n"
                "  bench step --preset base --mode train --profile\n"
                "  bench signature\n"
                "  WEFT_ISA=avx2 bench gemm --size 1024 --json\n",
    .options = rows,
    .n = sizeof rows / sizeof *rows,
    .operand_name = "gemm|step|signature",
    .operand = &subject,
};

static const bench_part parts[] = { { .name = "gemm", .run = bench_gemm },
                                    { .name = "step", .run = bench_step },
                                    { .name = "signature", .run = bench_signature } };

enum { PARTS = sizeof parts / sizeof *parts };

static void refuse_idle_options(const bench_settings *set, void (*run)(bench_settings *)) {
    option_no_effect(&bench_program, "preset|mode|weights|beam|batch|unguarded|profile",
                     run != bench_step, "it is for step");
    option_no_effect(&bench_program, "size", run != bench_gemm, "it is for gemm");
    option_no_effect(&bench_program, "shape", run != bench_gemm || set->size,
                     "it is for gemm without --size");
    option_no_effect(&bench_program, "operands", run != bench_gemm, "it is for gemm");
    option_no_effect(&bench_program, "seconds", run == bench_signature, "signature times nothing");
    option_no_effect(&bench_program, "json", run == bench_signature, "signature prints one number");
    option_no_effect(&bench_program, "weights|beam", set->mode != MODE_DECODE,
                     "it is for --mode decode");
    option_no_effect(&bench_program, "unguarded", set->mode != MODE_TRAIN,
                     "only a training step updates anything");
    option_no_effect(&bench_program, "profile", set->mode == MODE_DECODE,
                     "decoding runs many plans");
}

int main(int argc, char **argv) {
    bench_settings *set = &told;
    terminal_open();
    options_parse(&bench_program, argc, argv);
    if (!subject)
        usage_error(&bench_program, "say what to measure: %s", bench_program.operand_name);
    const bench_part *part = bench_part_named(parts, PARTS, subject);
    refuse_idle_options(set, part->run);
    check_uses(&bench_program, NULL, 0);
    if (part->run != bench_signature) return bench_run(set, part);
    if (!set->threads) set->threads = default_threads(1);
    bench_signature(set);
    return close_stdout(&bench_program, EXIT_DONE);
}
