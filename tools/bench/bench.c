/* tools/bench/bench.c - how fast the kernels and the model are, against what this machine can do.
 *
 * Here are the options and the choice; each part has a file of its own.
 * WEFT_ISA=base|avx2|avx512|neon chooses the kernels, and with them the instruction set of the
 * peak that they are held to; WEFT_CACHES=32K/8,512K/8,16M/16 the caches that blocks are made
 * for. */
#include <string.h>

#include "bench.h"
#include "bench_model.h"
#include "tools/cli/terminal.h"
#include "tools/cli/uses.h"

/* Static, because the rows of the option table hold addresses of these settings. */
static bench_settings told = { .seconds = 1, .beam = 1 };

static const char *subject;

static option rows[] = {
    GROUP("What is measured by step"),
    CHOICE("preset", told.preset, PRESET_WORDS,
           "the model and the batch: that of the copy task, or the paper's base"),
    CHOICE("mode", told.mode, "train|forward|decode",
           "a training step, the logits of a batch, or decoding"),
    CHOICE("weights", told.weights, "f32|bf16|int8",
           "how decoding keeps the weights that it multiplies with; bf16 and int8 also tell what "
           "they cost"),
    COUNT("beam", told.beam, 1, 64, "hypotheses of a sentence while decoding"),
    COUNT("batch", told.batch, 1, 65536, "sentences", .fallback = "32 for copy, 2 for base"),
    FLAG("unguarded", told.unguarded, "train without clipping, and without a look for NaN"),
    FLAG("profile", told.profile, "also where the time goes, by op"),

    GROUP("By gemm and attention"),
    COUNT("size", told.size, 1, 16384, "one square product, or one length, alone",
          .fallback = "all of a list"),

    ROW("shape", OPTION_STRING, told.shape, "NAME",
        "gemm: products whose names begin so alone, as base or copy", .fallback = "all of a list"),
    CHOICE("operands", told.operands, "both|hot|cold",
           "gemm: one product again and again, or each with operands of its own"),

    GROUP("By all"),
    COUNT("threads", told.threads, 1, 256, "that work together", .fallback = DEFAULT_THREADS),
    REAL("seconds", told.seconds, 0, 3600, "for each line; it has three runs at least"),
    FLAG("json", told.json, "results as JSON lines"),
};

program bench_program = {
    .name = "bench",
    .purpose = "measures kernels and model steps against this machine's own limits",
    .examples = "  bench limits\n"
                "  bench gemm --threads 1\n"
                "  bench gemm --shape base --operands hot\n"
                "  bench attention --size 4096\n"
                "  bench ops --threads 1\n"
                "  bench step --preset base --mode train --profile\n"
                "  bench signature\n"
                "  WEFT_ISA=avx2 bench gemm --size 1024 --json\n",
    .options = rows,
    .n = sizeof rows / sizeof *rows,
    .operand_name = "limits|gemm|attention|step|ops|signature",
    .operand = &subject,
};

static const struct {
    const char *name;
    void (*run)(bench_settings *set);
} parts[] = { { "limits", bench_limits },
              { "gemm", bench_gemm },
              { "attention", bench_attention },
              { "step", bench_step },
              { "ops", bench_ops },
              { "signature", bench_signature } };

enum { PARTS = sizeof parts / sizeof *parts };

static int part_named(const char *name) {
    for (int i = 0; i < PARTS; i++)
        if (strcmp(parts[i].name, name) == 0) return i;
    usage_error(&bench_program, "'%.60s' is not one of %s", name, bench_program.operand_name);
}

static void refuse_idle_options(const bench_settings *set, void (*run)(bench_settings *)) {
    static const char *const of_step[] = { "preset", "mode",      "weights", "beam",
                                           "batch",  "unguarded", "profile" };
    for (size_t i = 0; i < sizeof of_step / sizeof *of_step; i++)
        option_no_effect(&bench_program, of_step[i], run != bench_step, "it is for step");
    option_no_effect(&bench_program, "size", run != bench_gemm && run != bench_attention,
                     "it is for gemm and attention");
    option_no_effect(&bench_program, "shape", run != bench_gemm || set->size,
                     "it is for the list of gemm");
    option_no_effect(&bench_program, "operands", run != bench_gemm, "it is for gemm");
    option_no_effect(&bench_program, "seconds", run == bench_signature, "nothing is timed");
    option_no_effect(&bench_program, "json", run == bench_signature, "it is one number");
    option_no_effect(&bench_program, "weights", set->mode != MODE_DECODE, "it is for decoding");
    option_no_effect(&bench_program, "beam", set->mode != MODE_DECODE, "it is for decoding");
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
    int part = part_named(subject);
    refuse_idle_options(set, parts[part].run);
    check_uses(&bench_program, NULL, 0);
    if (!set->threads) set->threads = default_threads(1);
    if (parts[part].run == bench_signature) {
        bench_signature(set);
        return close_stdout(&bench_program, EXIT_DONE);
    }
    report_open(&set->report, &bench_program, false, set->json, NULL, false);
    jsonl *e = event(&set->report, "run");
    json_text(e, "bench", subject);
    json_text(e, "isa", wf_isa());
    json_int(e, "threads", set->threads);
    json_text(e, "processor", processor_name());
    json_text(e, "caches", wf_caches_text());
    event_send(&set->report);
    say(&set->report, "%s, caches %s", processor_name(), wf_caches_text());
    say(&set->report, "weft %s, %s kernels, %lld thread%s", wf_version(), wf_isa(),
        (long long)set->threads, set->threads == 1 ? "" : "s");
    if (parts[part].run != bench_limits) measure_limits(set);
    parts[part].run(set);
    return close_stdout(&bench_program, report_close(&set->report) ? EXIT_DONE : EXIT_FAILED);
}
