/* tests/tools/test_tools.c - the command-line programs, run as people run them.
 *
 * How a command is run is in commands.h; what generate does with lines, in test_generate.c. */
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#include "tests/suites.h"
#include "tests/support/commands.h"
#include "tests/support/models.h"
#include "tests/support/support.h"
#include "tools/sources/tasks.c" /* included to test its functions directly */

TESTS(tools)

/* Options of a very small model and a very short training. */
#define TINY "--task copy --d-model 16 --heads 2 --layers 1 --d-ff 16 --batch-size 4 --warmup 5 "
#define SMALL TINY "--lr-steps 1000 "
#define QUICK "train " SMALL "--quiet --threads 1 --max-steps "

/* ---- help ---------------------------------------------------------------------------------- */

static const char *const programs[] = { "train",   "generate", "graph", "inspect",
                                        "convert", "tokenize", "embed" };

SETUP(enter_folder, leave_folder)

TEST_ROWS(help_goes_to_stdout, COUNT_OF(programs)) {
    char name[40];
    run("%s --help --no-such-option", programs[_i]);
    expect(0);
    snprintf(name, sizeof name, "%s: ", programs[_i]);
    assert_contains(result.out, name);
    assert_contains(result.out, "\nExamples\n");
    assert_contains(result.out, "--version");
    ck_assert_str_eq(result.err, "");
    run("%s --help > /dev/full", programs[_i]);
    expect(1);
}

TEST(h_is_help) {
    ok("train --help > long; train --task none -h > short");
    ck_assert(same_files("long", "short"));
}

/* The default of an option in the help, and the values that runs of three kinds of tasks use:
 * numbers, generated text, and text from files. NULL: the task lacks the option. */
static const struct {
    const char *name, *help, *taken[3];
} defaults[] = {
    { "max-len",
      "12; 256 with --task add, date, text, pairs, classify, lm, mask or spans",
      { "12", "256", "256" } },
    { "tokenizer",
      "char with --task add or date; word, char or bpe, chosen from the lines, with text or "
      "pairs; "
      "byte-bpe with lm",
      { NULL, "char", "char" } },
    { "vocab-size",
      "0; 300 to 8000, growing with the text, with --tokenizer bpe or byte-level; 300 to 4096, "
      "growing with the text, with byte-bpe",
      { "0", "0", "0" } },
    { "min-freq", "1; 2 with --tokenizer bpe, byte-bpe or byte-level", { "1", "1", "1" } },
    { "d-model", "64 with --preset tiny; 128 with small; 512 with base", { "64", "64", "128" } },
    { "d-ff", "128 with --preset tiny; 256 with small; 2048 with base", { "128", "128", "256" } },
    { "heads", "4 with --preset tiny or small; 8 with base", { "4", "4", "4" } },
    { "dropout",
      "0; 0.3 to 0.05, less for more pairs, with --task text, pairs or classify; 0.2 to 0, less "
      "for "
      "more text, "
      "with lm, mask or spans; "
      "0.1 with --init",
      { "0", "0", "0.3" } },
    { "warmup",
      "200; 800 with --task text, pairs or classify; 100 with --init",
      { "200", "200", "800" } },
    { "label-smoothing", "0; 0.1 with --task text; 0 with --init", { "0", "0", "0.1" } },
    { "batch-size",
      "32; 0 with --task add, date, text, pairs, classify, lm, mask or spans",
      { "32", "0", "0" } },
    { "max-tokens",
      "4096 with --task add or date; 256 to 4096, more for more data, with text, lm, pairs, mask, "
      "classify or spans",
      { NULL, "4096", "256" } },
    { "clip-norm", "1", { "1", "1", "1" } },
};

/* Asserts the default of an option in the help text. Its name may also be mentioned in the help of
 * other options. */
static void assert_default(const char *help, const char *name, const char *value) {
    char head[64], expected[256];
    snprintf(head, sizeof head, " --%s ", name);
    size_t n = (size_t)snprintf(expected, sizeof expected, "(default %s", value);
    for (const char *at = strstr(help, head); at; at = strstr(at + 1, head)) {
        const char *said = strstr(at, "(default ");
        if (said && strncmp(said, expected, n) == 0 && strchr(";)", said[n])) return;
    }
    ck_abort_msg("--%s: the help does not say '%s'", name, expected);
}

TEST(help_tells_the_defaults_that_runs_take) {
    static const char *const tasks[] = { "--task copy", "--task add", "--train pairs" };
    static char help[sizeof result.out];
    char expected[128];
    ok("train --help | tr -s '\\n ' ' '");
    snprintf(help, sizeof help, "%s", result.out);
    for (int i = 0; i < COUNT_OF(defaults); i++)
        assert_default(help, defaults[i].name, defaults[i].help);
    assert_default(help, "preset",
                   "tiny; small with --task text, lm, pairs, mask, classify or spans");
    assert_default(help, "epochs",
                   "15 with --task add; 5 with date; 200 to 2, fewer for more pairs, with text, "
                   "pairs or classify; "
                   "40 to 2, fewer for more text, with lm, mask or spans; 5 with --init");
    assert_default(
        help, "valid-every",
        "500; an epoch with --task add, date, text, pairs or classify; 250 with lm, mask or spans");
    ok("yes 'a b\tb a' | head -n 9 > pairs");
    for (int t = 0; t < COUNT_OF(tasks); t++) {
        run("train %s --lr-steps 99999 --dry-run --quiet --json", tasks[t]);
        expect(0);
        for (int i = 0; i < COUNT_OF(defaults); i++) {
            if (!defaults[i].taken[t]) continue;
            snprintf(expected, sizeof expected, "\"%s\":\"%s\"", defaults[i].name,
                     defaults[i].taken[t]);
            assert_contains(result.out, expected);
        }
    }
}

TEST_ROWS(version_goes_to_stdout, COUNT_OF(programs)) {
    char line[80];
    run("%s --version", programs[_i]);
    expect(0);
    snprintf(line, sizeof line, "weft-%s (weft) %s\n", programs[_i], wf_version());
    ck_assert_str_eq(result.out, line);
}

TEST_ROWS(unknown_option_names_the_nearest, COUNT_OF(programs)) {
    run("%s --hepl", programs[_i]);
    expect(2);
    assert_contains(result.err, "there is no option --hepl");
    assert_contains(result.err, "the nearest is --help");
}

/* ---- refusals: a command, its exit code, and a text that its message must contain ---------- */

static const struct refusal {
    const char *command;
    int status;
    const char *says;
} refusals[] = {
    { "train", 2, "--task copy|reverse|sort" },
    { "WEFT_ISA= train", 2, "--task copy|reverse|sort" },
    { "WEFT_ISA=bogus train --task copy", 2, "WEFT_ISA=bogus: no such kernels run here" },
    { "WEFT_CACHES= train", 2, "--task copy|reverse|sort" },
    { "WEFT_CACHES=32K/8,512K/8,16M/16 train", 2, "--task copy|reverse|sort" },
    { "WEFT_CACHES=large train --task copy", 2, "WEFT_CACHES=large is not like 32K/8,512K/8" },
    { "train --task cpoy", 2, "'cpoy' is not one of copy|reverse|sort" },
    { "train --task copy --bacth-size 3", 2,
      "there is no option --bacth-size; the nearest is --batch-size" },
    { "train --task copy --dmodel 3", 2, "the nearest is --d-model" },
    { "train --task copy -x", 2, "there is no option -x" },
    { "train --task copy -o", 2, "--model needs a value" },
    { "train --task copy -onone/copy", 1, "none/copy can't be written" },
    { "train --$(printf %0600d 0)", 2, "there is no option --000000" },
    { "train --task copy extra", 2,
      "'extra' is not an option; words with spaces need quotes, and a file follows the name of its "
      "option: --init FILE, --text FILE, "
      "--text-eval FILE, --train FILE, --train-src FILE, --train-tgt FILE" },
    { "train --task copy --max-time 3m", 2, "--max-time: '3m' is not a number: SECONDS" },
    { "inspect .", 1, ". can't be read: it is a folder" },
    { "mkdir d; echo {} > d/config.json; generate d", 1,
      "d can't be read: it is a folder; convert --from hf makes a model file" },
    { "mkdir d; echo {} > d/adapter_config.json; inspect d", 1,
      "d can't be read: it is a folder; convert --from hf --base MODEL makes a file of adapters" },
    { "mkdir d; train --task copy --init d", 1,
      "d can't be read: it is a folder, and a model is a file that train or convert wrote" },
    { "mkdir d; echo {} > d/config.json; train --train x --init d", 1,
      "d can't be read: it is a folder; convert --from hf makes a model file" },
    { "echo one > f; train --task copy --init f", 1, "f is no model but perhaps a text: name a" },
    { "echo one > f; train --task copy --resume -o f", 1, "f is no model but perhaps a text" },
    { "echo one > f; generate f", 1,
      "f is no model but perhaps a text: name a model, as train or convert wrote it, before the "
      "text" },
    { "echo one > f; graph f", 1,
      "f is no model but perhaps a text: name a model, as train or convert wrote it\n" },
    { "echo > f; convert --from hf f -o m", 1, "f is a file: --from hf reads the folder" },
    { "convert --from hf opus -o m", 1, "opus: no such folder: --from hf reads a model's folder" },
    { "convert --from hf . -o m", 1, ". has no config.json: --from hf reads a folder with config" },
    { "mkdir p; touch p/adapter_config.json; convert --from hf p -o m", 1,
      "p has adapters without their model: --base MODEL names the file of that model" },
    { "mkdir p; touch p/config.json; convert --from hf --base b p -o m", 1,
      "p has a model, and no adapters (adapter_config.json): leave --base out" },
    { "mkdir p; convert --from hf --base b p -o m", 1, "p has no adapter_config.json: --from hf" },
    { "echo mine > f; convert --heads 2 --norm pre x -o f", 1,
      "f is there and is no model: remove it" },
    { "echo mine > f; train --task copy -o f", 1, "f is there and is no model: remove it" },
    { "echo mine > f; graph --of attention -o f", 1,
      "f is there and weft did not write it: remove it, or give --output another name" },
    { "echo mine > f; graph --html f", 1, "or give --html another name" },
    { "echo mine > f; generate m --explain f", 1, "or give --explain another name" },
    { "echo mine > f; generate m --attention f", 1, "or give --attention another name" },
    { "echo mine > f; train --task copy --curve f", 1, "or give --curve another name" },
    { "echo mine > f; train --task copy --curve f --overwrite -o m", 1, "or give --curve another" },
    { "echo mine > f; train --task copy --report f --overwrite -o m", 1, "give --report another" },
    { "echo a digraph weft { > f; graph --of attention -o f", 1, "weft did not write it" },
    { "echo '<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"9\">' > f; train --task copy "
      "--curve f",
      1, "weft did not write it" },
    { "echo \"<p content=\\\"default-src 'none'; style-src\" > f; train --task copy --report f", 1,
      "weft did not write it" },
    { "echo '/* mine, not as C that needs no library */' > f; graph --of attention -o f", 1,
      "weft did not write it" },
    { "generate m --attention -o", 2, "--attention needs a value" },
    { "echo 1 > m.safetensors; echo 1 | generate m.best.safetensors", 1,
      "m.best.safetensors is not there, and m.safetensors is: train writes the best weights" },
    { "echo mine > r; train --task copy --report r -o new", 1,
      "r is there and weft did not write" },
    { "echo '{\"event\":\"x\"}' > l; train --task copy --log l -o new", 2,
      "l is there already, from a training: give another name, or --overwrite" },
    { "echo '{\"event\":\"x\"}' > l; train --task copy --max-steps 1 --quiet -o m.safetensors > o; "
      "train --task copy --log l -o m.safetensors",
      2, "m.safetensors is there already: --resume goes on with a training" },
    { "echo mine > f; chmod 222 f; graph --of attention -o f", 1, "f is there and " },
    { "graph --of attention -o f; echo 1 | generate m -o f", 1,
      "f is there and is a picture or a page of weft: remove it, or give --output another name" },
    { "printf 'PK\\3\\4%022d\\23\\0\\0\\0[Content_Types].xml%09d' 0 0 > f; convert --from marian x "
      "-o f",
      1, "f is there and is no model" },
    { "printf 'PK\\3\\4%022d\\10\\0\\0\\0Wemb.npy%09d' 0 0 > f; generate m -o f", 1,
      "f is there and is a model" },
    { "printf 'PK\\3\\4%022d\\20\\0\\0\\0archive/data.pkl%09d' 0 0 > f; generate m -o f", 1,
      "f is there and is a model" },
    { "printf '\\0\\1\\0\\0\\0\\0\\0\\0{}' > f; train --task copy -o f", 1,
      "f is there and is no model" },
    { "printf '\\4\\0\\0\\0\\0\\0\\0\\0{mine' > f; train --task copy -o f", 1,
      "f is there and is no model" },
    { "echo mine > f; train --task copy --overwrite -o f", 1,
      "f is there and is no model: remove it" },
    { "echo mine > f; train --task copy --log f", 1,
      "f is there and is no log of a training: remove it, or give --log another name" },
    { "echo mine > f; tokenize --learn bpe --vocab-size 300 -o f", 1,
      "f is there and weft did not write it: remove it, or give --output another name" },
    { "echo mine > f; graph --emit-c m --weights-file f", 1,
      "f is there and is a text: remove it, or give --weights-file another name" },
    { "printf '\\2\\0\\0\\0\\0\\0\\0\\0{}' > f; generate m -o f", 1,
      "f is there and is a model: remove it, or give --output another name" },
    { "for i in 1 2; do graph --of attention -o f && graph --of attention --html g || exit 5; "
      "done; "
      "train -o m",
      2, "--task copy|reverse|sort" },
    { "convert --to hf m", 2, "say where to: -o FOLDER, which is made" },
    { "train --task copy --task sort", 2, "--task is given twice" },
    { "train --task copy --lr", 2, "--lr needs a value" },
    { "train --task copy -o --quiet", 2, "--model needs a value" },
    { "train --task copy --quiet=yes", 2, "--quiet takes no value" },
    { "train --task copy --lr fast", 2, "'fast' is not a number" },
    { "train --task copy --lr nan", 2, "'nan' is not a number" },
    { "train --task copy --max-steps 1.5", 2, "'1.5' is not a whole number" },
    { "train --task copy --max-steps 0", 2,
      "--max-steps: 0 is outside the range 1..1000000000000" },
    { "train --task copy --max-steps 99999999999999999999", 2, "is outside the range" },
    { "train --task copy --dropout 1.5", 2, "--dropout: 1.5 is outside the range 0..0.9" },
    { "train --task copy --threads 0", 2, "outside the range 1..256" },
    { "train --task copy --min-len 13", 2, "--min-len 13 is more than --max-len 12" },
    { "train --task copy --max-len 600", 2,
      "--max-len 600: a generated sequence has at most 512 tokens" },
    { "train --task copy --batch-size 0", 2,
      "--batch-size 0: a batch of generated sequences has at least one" },
    { "train --task copy --heads 3", 2, "3" },
    { "train --task copy --d-model 15 --heads 3", 2, "even" },
    { "train --task copy --max-steps 20 --lr-steps 10 --warmup 2", 2, "beyond --lr-steps 10" },
    { "train --task copy --warmup 5000", 2, "--warmup 5000 leaves nothing" },
    { "train --task copy --optimizer sgd --beta1 0.5", 2, "--beta1 would have no effect" },
    { "train --task copy --momentum 0.5", 2, "--momentum would have no effect" },
    { "train --task copy --weight-decay 0.5", 2, "--weight-decay would have no effect" },
    { "train --task copy --lr-schedule noam --lr-steps 5", 2, "--lr-steps would have no effect" },
    { "train --task copy --save-every 5", 2, "--save-every would have no effect" },
    { "train --task copy --quiet --log-every 5", 2, "--log-every would have no effect" },
    { "train --task copy --valid-size 0 --valid-every 5", 2, "--valid-every would have no effect" },
    { "train --task copy --valid-size 1000001", 2, "outside the range 0..1000000" },
    { "train --task copy --arch language --enc-layers 2", 2,
      "--enc-layers would have no effect: this architecture has one stack" },
    { "train --task copy --arch language --dec-layers 2", 2, "--dec-layers would have no effect" },
    { "train --task copy --arch rnn", 2, "'rnn' is not one of transformer|language" },
    { "train --task copy --layers 2 --enc-layers 1 --dec-layers 1", 2,
      "--layers would have no effect" },
    { "train --resume", 2, "-o FILE" },
    { "train --resume -o none.safetensors", 1, "none.safetensors" },
    { "train --task copy -o none/copy.safetensors", 1,
      "none/copy.safetensors can't be written: there is no folder none" },
    { "train --task copy -o /proc/copy", 1, "/proc/copy can't be written: " },
    { "train --task copy -o .", 1, ". can't be written: it is a folder" },
    { "train --task copy -o /dev/full", 1, "it is not an ordinary file" },
    { "ln -s b a; ln -s a b; train --task copy -o a", 1, "a can't be written: Too many levels" },
    { "d=$(printf %0250d 0); mkdir $d; ln -s $(printf %04000d 0) $d/a; train --task copy -o $d/a",
      1, "can't be written: File name too long" },
    { "exec 5> a; rm a; train --task copy -o /proc/self/fd/5", 1, "it has no name any more" },
    { "mkfifo a; exec 5<> a; train --task copy -o /proc/self/fd/5", 1, "not an ordinary file" },
    { "train --task copy --log none/log", 1, "none/log can't be written" },
    { "train --task copy --curve none/curve.svg", 1, "none/curve.svg can't be written" },
    { "train --task copy --log a --curve a", 2,
      "a is to be two outputs at once: --log and --curve; give one of them another name" },
    { "train --task copy --preset base --batch-size 65536 --max-len 512", 1, "--batch-size" },
    { "inspect", 2, "say which file" },
    { "inspect none.safetensors", 1, "none.safetensors" },
    { "inspect /none.safetensors", 1, "/none.safetensors: cannot be opened: No such file" },
    { "inspect -- --json", 1, "--json: cannot be opened: No such file" },
    { "inspect -", 2, "a model must be a file, not a stream" },
    { "( exec <&-; ulimit -n 3; exec inspect a )", 1,
      "no file descriptor is left: Too many open files" },
    { "inspect a b", 2, "not 'b' too" },
};

TEST_ROWS(refusal_says_what_to_do, COUNT_OF(refusals)) {
    const struct refusal *r = &refusals[_i];
    if (SANITIZED && strstr(r->command, "ulimit -n")) return; /* it would wait for ever */
    run("%s < /dev/null", r->command);
    ck_assert_msg(result.status == r->status, "%s: exit code %d, not %d:\n%s", r->command,
                  result.status, r->status, result.err);
    assert_contains(result.err, r->says);
    ck_assert_str_eq(result.out, "");
    ck_assert_msg(!strstr(result.err, "step "), "%s: it began to train before it refused",
                  r->command);
}

TEST(dashes_and_underscores_are_alike) {
    ok("train --task copy --d_model=16 --heads=2 --layers=1 --max_steps 1 --quiet");
    ok("train --task copy --d-model 16 --activation gelu_tanh --heads 2 --layers 1 --max-steps 1 "
       "--quiet");
}

/* ---- training ------------------------------------------------------------------------------ */

/* int8 weights that are rounded when the file is read, or were stored rounded, give the same
 * log-probabilities to the last digit, with any batch and threads. The file with stored int8
 * weights has less than half of the bytes. */
static void int8_stays_the_same(void) {
    static const char *const ways[] = { "small", "m.safetensors --weights int8",
                                        "small --batch-size 1", "small --batch-size 7 --threads 2",
                                        "back --weights int8" };
    ok("convert --weights int8 m.safetensors -o small");
    ok("convert --weights f32 small -o back; convert --weights int8 back -o again; cmp small "
       "again");
    ok("inspect small; inspect back");
    assert_contains(result.out, " I8 ");
    ok("for i in 3 4 5 6 7 8; do echo 5 $i 7; echo $i 9; echo $i 8 5 6; done > lines");
    ok("generate --quiet --json --model small -i lines > expected");
    for (int i = 0; i < COUNT_OF(ways); i++) {
        run("generate --quiet --json --model %s -i lines | cmp - expected", ways[i]);
        expect(0);
    }
    long bytes, whole;
    ok("wc -c < small; wc -c < back");
    ck_assert_int_eq(sscanf(result.out, "%ld %ld", &bytes, &whole), 2);
    ck_assert(bytes < whole / 2);
}

TEST(training_learns_and_generates) {
    ok("train --task copy --seed 3 --min-len 2 --max-len 4 --d-model 32 --heads 2 --layers 1 "
       "--d-ff 64 --max-steps 900 "
       "-o m.safetensors --log log.jsonl --log-every 50 --valid-every 300 --curve loss.svg");
    int exact = -1;
    ck_assert_msg(sscanf(result.out, "exact match %d/1000", &exact) == 1, "%s", result.out);
    ck_assert_msg(exact >= 900, "exact match %d/1000 only:\n%s", exact, result.err);
    assert_contains(result.err, "parameters");
    assert_contains(result.err, "of memory");
    assert_contains(result.err, "kernels");
    assert_contains(result.err, "900/900");
    ck_assert_msg(!strchr(result.err, '\r') && !strchr(result.err, '\033'), "a bar in a pipe");
    ok("printf '5 6 7\\n9 8\\n' | generate --model m.safetensors --quiet");
    ck_assert_str_eq(result.out, "5 6 7\n9 8\n");
    ck_assert_str_eq(result.err, "");
    ok("printf '5 6 7\\n9 8\\n' | generate --model m.safetensors --weights bf16");
    ck_assert_str_eq(result.out, "5 6 7\n9 8\n");
    int8_stays_the_same();
    ok("grep -c '^{\"event\":.*}$' log.jsonl; wc -l < log.jsonl; grep -c valid log.jsonl; grep svg "
       "loss.svg");
    int events, lines, validations;
    ck_assert_int_eq(sscanf(result.out, "%d %d %d", &events, &lines, &validations), 3);
    ck_assert_int_eq(events, lines);
    ck_assert_int_eq(validations, 3);
}

TEST(a_language_model_learns_and_generates) {
    ok("train --arch language --task copy --seed 3 --min-len 2 --max-len 4 --d-model 32 --heads 2 "
       "--layers 2 --d-ff 64 --max-steps 1200 -o m.safetensors");
    int exact = -1;
    ck_assert_msg(sscanf(result.out, "exact match %d/1000", &exact) == 1, "%s", result.out);
    ck_assert_msg(exact >= 970, "exact match %d/1000 only:\n%s", exact, result.err);
    assert_contains(result.err,
                    "a language model of width 32, 2 heads, 2 layers, feed-forward 64, relu");
    static const char *const ways[] = { "",
                                        "--beam 4",
                                        "--weights bf16 --threads 2",
                                        "--weights int8",
                                        "--sample --top-p 0.5",
                                        "--batch-size 1" };
    for (int i = 0; i < COUNT_OF(ways); i++) {
        run("printf '5 6 7\\n9 8\\n' | generate --model m.safetensors --quiet %s", ways[i]);
        expect(0);
        ck_assert_str_eq(result.out, "5 6 7\n9 8\n");
    }
    ok("printf '5 6 7\\t5 6 7\\n9 8\\t8 9\\n' | generate --model m.safetensors --quiet --score");
    double right, wrong;
    ck_assert_int_eq(sscanf(result.out, "%lf %lf", &right, &wrong), 2);
    ck_assert(right > -0.7 && wrong < -3);
    ok("echo 5 6 7 | generate --model m.safetensors --quiet --attention a.json");
    ok("grep -F '\"source\":[5,6,7],\"target\":[0,5,6,7],\"self\":[[[[1,' a.json");
    ok("echo 5 6 7 | generate --model m.safetensors --quiet --attention a.svg && "
       "grep 'Self-attention of layer 2 of 2' a.svg");
    ok("echo 5 6 7 | generate --model m.safetensors --quiet --attention -");
    assert_contains(result.err, "self-attention of layer 2 of 2, mean of heads");
}

/* A Transformer with rotary positions can be decoded and drawn, but is not written as a state_dict
 * of PyTorch's module, which would compute other values. */
TEST(every_program_takes_rotary_positions) {
    ok(QUICK "3 --positions rotary -o m.safetensors");
    ok("inspect m.safetensors");
    assert_contains(result.out, "rotary positions");
    ok("echo 3 4 5 | generate m.safetensors --beam 2 --max-len-b 4");
    ok(QUICK "3 --positions sinusoidal-rotary -o both && inspect both | grep sinusoidal-rotary");
    ok("echo 3 4 5 | generate both --beam 2 --max-len-b 4");
    ok("graph --of attention -m m.safetensors");
    assert_contains(result.out, "Q rotated by position");
    ok("for layer in encoder-layer decoder-layer; do graph --of $layer -m both | grep -q rotate && "
       "graph --of $layer -m m.safetensors | grep -q rotate || exit 1; done");
    run("convert --to torch m.safetensors -o torch.safetensors");
    expect(1);
    assert_contains(result.err, "no torch.nn.Transformer has rotary positions");
    ok(QUICK "3 -o plain && convert --to torch plain -o torch.safetensors");
    run("convert --heads 2 --norm pre --positions rotary torch.safetensors -o back");
    expect(1);
    assert_contains(result.err, "no torch.nn.Transformer has rotary positions");
}

/* Every program that reads a model's file accepts a language model. */
TEST(every_program_takes_a_language_model) {
    ok(QUICK "3 --arch language -o m.safetensors");
    ok("inspect m.safetensors");
    assert_contains(result.out, "a language model of width 16, 2 heads, 1 layers");
    ok("graph --model m.safetensors --plan --backward --length 5");
    assert_contains(result.out, "Language model, width 16, 2 heads");
    ok("graph --of decoder-layer -m m.safetensors");
    assert_contains(result.out, "Layer of a decoder-only model, width 16");
    ck_assert_ptr_null(strstr(result.out, "memory"));
    ck_assert_ptr_null(strstr(result.out, "multihead_attn"));
    ok("graph --of decoder-layer -m m.safetensors --plan && "
       "graph --of decoder-layer -m m.safetensors --values");
    ok("graph --of attention -m m.safetensors");
    assert_contains(result.out, "Self-attention(x)");
    run("graph --of encoder-layer -m m.safetensors");
    expect(1);
    assert_contains(result.err, "a language model has no encoder: --of decoder-layer");
    run("convert --to torch m.safetensors -o torch.safetensors");
    expect(1);
    assert_contains(result.err,
                    "no torch.nn.Transformer can load this kind of model; --to hf makes a folder");
    run("yes 1 | head -130 | tr '\\n' ' ' | generate -m m.safetensors --long-lines stop");
    expect(1);
    assert_contains(result.err, "127");
    change_meta("m.safetensors", "train.arch", "transformer");
    run("train --resume -o m.safetensors --max-steps 5");
    expect(1);
    assert_contains(result.err,
                    "its model is of kind language_model, and this training of kind transformer");
}

TEST_ROWS(resumed_training_is_the_same_training, 2) {
    const char *arch = _i ? "language" : "transformer";
    run(QUICK "12 --dropout 0.1 --attention-dropout 0.1 -o whole.safetensors --arch %s", arch);
    expect(0);
    run(QUICK "5 --dropout 0.1 --attention-dropout 0.1 -o parts.safetensors --arch %s", arch);
    expect(0);
    ok("train --resume -o parts.safetensors --quiet --threads 2 --max-steps 9");
    ck_assert(!same_files("whole.safetensors", "parts.safetensors"));
    ok("train --resume -o parts.safetensors --quiet --threads 3 --max-steps 12 --task copy --lr "
       "0.003");
    ck_assert_msg(same_files("whole.safetensors", "parts.safetensors"), "%s", result.out);
}

/* If the schedule has no end, the file contains no total of steps. A resumed training gives the
 * same file. */
TEST_ROWS(endless_schedules_resume_to_the_same_file, 2) {
    static const char *const lines[] = { "train --task copy --batch-size 2",
                                         "train --train pairs.tsv --warmup 1" };
    ok("printf 'ab\\tba\\nabc\\tcba\\nb\\tb\\n' > pairs.tsv");
    char line[256];
    snprintf(line, sizeof line,
             "%s --d-model 8 --heads 1 --layers 1 --d-ff 8 --lr-schedule constant --threads 1 "
             "--quiet ",
             lines[_i]);
    run("%s --max-steps %d -o whole.safetensors", line, _i ? 40 : 3000);
    expect(0);
    run("%s --max-steps 3 -o parts.safetensors", line);
    expect(0);
    run("train --resume -o parts.safetensors %s --max-steps %d --quiet",
        _i ? "--train pairs.tsv" : "", _i ? 40 : 3000);
    expect(0);
    ck_assert(same_files("whole.safetensors", "parts.safetensors"));
}

/* A few pairs to learn from, and the smallest model of their letters. */
#define PAIRS "printf 'ab\\tba\\nabc\\tcba\\nb\\tb\\n' > pairs.tsv"
#define LETTERS                                                                                    \
    "train --train pairs.tsv --tokenizer char --d-model 8 --heads 1 --layers 1 --d-ff 8 "          \
    "--warmup 1 --threads 1 --quiet "

/* The file has the lowest loss of a validation, and how many validations were made since, so that a
 * resume continues from there. */
TEST(the_file_tells_of_the_last_validation) {
    ok(PAIRS);
    ok(LETTERS "--valid pairs.tsv --max-steps 3 --lr-steps 9 -o m.safetensors --log log.jsonl");
    ok("grep -a -o '\"train.without\":\"0\"' m.safetensors");
    ok("loss=$(grep '\"valid\"' log.jsonl | tail -n 1 | grep -o '\"loss\":[0-9.]*' | cut -c8-13) "
       "&& "
       "grep -a -o '\"train.best\":\"[0-9.]*' m.safetensors | grep -F \"$loss\"");
}

TEST(what_is_learned_from_is_not_written_over) {
    ok(PAIRS " && cp pairs.tsv before.tsv");
    run(LETTERS "--max-steps 1 -o pairs.tsv");
    expect(2);
    assert_contains(result.err, "pairs.tsv is to be read and written at once");
    ck_assert(same_files("pairs.tsv", "before.tsv"));
    run(LETTERS "--max-steps 1 --valid-size 0 --patience 3");
    expect(2);
    assert_contains(result.err, "--valid-size 0 makes no validation");
}

TEST(threads_do_not_change_the_result) {
    ok("train " SMALL "--quiet --dropout 0.1 --max-steps 8 --threads 1 -o 1.safetensors");
    ok("train " SMALL "--quiet --dropout 0.1 --max-steps 8 --threads 2 -o 2.safetensors");
    ok("train " SMALL "--quiet --dropout 0.1 --max-steps 8 --threads 5 -o 5.safetensors");
    ck_assert(same_files("1.safetensors", "2.safetensors"));
    ck_assert(same_files("1.safetensors", "5.safetensors"));
}

TEST(resume_refuses_other_settings) {
    ok(QUICK "3 -o m.safetensors");
    ok("cp m.safetensors before");
    run("train --resume -o m.safetensors --max-steps 5 --lr 0.5 --seed 9 --batch-size 4");
    expect(2);
    assert_contains(result.err, "--lr 0.003, not 0.5");
    assert_contains(result.err, "--seed 1, not 9");
    ck_assert_msg(!strstr(result.err, "batch"), "a setting that agrees is named: %s", result.err);
    run("train --resume -o m.safetensors --max-steps 5 --preset small");
    expect(2);
    assert_contains(result.err, "--preset would have no effect");
    run("train --resume -o m.safetensors --max-steps 3");
    expect(2);
    assert_contains(result.err, "has done 3 steps already");
    ck_assert(same_files("m.safetensors", "before"));
}

/* Metadata that are changed in a checkpoint (value NULL: removed), and the message that refuses its
 * resume. */
static const struct {
    const char *key, *value, *says;
} stories[] = {
    { "train.step", NULL, "m holds a model but no training: it can't be resumed" },
    { "train.step", "some", "m: --step: 'some' is not a whole number" },
    { "train.without", "-1", "m: --without: -1 is outside the range" },
    { "train.best", "low", "m: --best: 'low' is not a number" },
    { "train.heads", NULL, "m lacks the setting --heads: it can't be resumed" },
    { "train.lr", "fast", "m: --lr: 'fast' is not a number" },
    { "train.min-len", "13", "m: its settings contradict each other" },
    { "weft.kind", "best", "m holds the weights of a training but not the state of its optimizer" },
};

TEST_ROWS(resume_refuses_what_is_no_checkpoint, COUNT_OF(stories)) {
    ok(QUICK "3 --log-every 1 -o m --valid-every 2 --valid-size 4 --log log");
    change_meta("m", stories[_i].key, stories[_i].value);
    ok("cp m before");
    run("train --resume -o m --max-steps 9");
    expect(1);
    assert_contains(result.err, stories[_i].says);
    ck_assert(same_files("m", "before"));
    if (_i > 0) return;
    ok(QUICK "3 --ema 0.9 -o m --overwrite && cp m whole"); /* without moments; without averages */
    change_values("m", "optimizer.", 0);
    run("train --resume -o m --max-steps 9");
    expect(1);
    assert_contains(result.err, stories[COUNT_OF(stories) - 1].says);
    change_values("whole", "optimizer.src_embedding.weight.average", 0);
    run("train --resume -o whole --max-steps 9");
    expect(1);
    assert_contains(result.err, "whole holds the weights of a training but not the state");
}

TEST_ROWS(signal_saves_and_resumes, 2) {
    static const struct {
        const char *name;
        int status;
    } signals[] = { { "HUP", 129 }, { "TERM", 143 } };
    signal(SIGHUP, SIG_DFL); /* ignored if nohup started the tests */
    run("train " SMALL
        "--threads 1 --max-steps 1000 --log log -o m.safetensors --log-every 1 & pid=$!\n"
        "until grep -q '\"step\":7,' log 2> /dev/null; do sleep 0.01; done\n"
        "kill -%s $pid; wait $pid",
        signals[_i].name);
    expect(signals[_i].status);
    assert_contains(result.err, "go on with: train --resume --max-steps 1000 --threads 1 -o "
                                "m.safetensors --log-every 1 --log log\n");
    assert_contains(result.err, signals[_i].name);
    ok("inspect m.safetensors");
    const char *at = strstr(result.out, "train.step");
    long step = 0;
    ck_assert_msg(at && sscanf(at, "train.step %ld", &step) == 1 && step >= 7 && step < 1000, "%s",
                  result.out);
    run(QUICK "%ld -o same.safetensors", step);
    expect(0);
    ck_assert_msg(same_files("m.safetensors", "same.safetensors"), "after step %ld: %s", step,
                  result.out);
}

static int count_lines(const char *text, const char *with) {
    int n = 0;
    while ((text = strstr(text, with)) != NULL) n++, text += strlen(with);
    return n;
}

TEST(unseen_sequences_are_as_many_as_asked_for) {
    ok("train " SMALL "--threads 1 --max-steps 4 --valid-every 2 --valid-size 7 -o a.safetensors "
       "--log a.log");
    ck_assert_str_eq(result.out + strcspn(result.out, "/"), "/7\n");
    read_text("a.log", result.out, sizeof result.out);
    ck_assert_int_eq(count_lines(result.out, "\"sequences\":7"), 3); /* 2 validations, the test */
    ok("train " SMALL "--threads 1 --max-steps 4 --valid-size 0 -o b.safetensors --log b.log "
       "--curve b.svg");
    ck_assert_str_eq(result.out, "");
    read_text("b.log", result.out, sizeof result.out);
    ck_assert_int_eq(count_lines(result.out, "\"sequences\""), 0);
    /* weights and moments are the same; only the headers differ, by the best validation */
    ok("for f in a b; do tail -c 50000 $f.safetensors > $f; done");
    ck_assert(same_files("a", "b"));
}

/* --beta1 0 and --beta2 0 mean 0, and not the default. */
TEST_ROWS(zero_is_what_was_asked_for, 2) {
    static const char *const options[][2] = { { "--beta1 0", "--beta1 0.9" },
                                              { "--beta2 0", "--beta2 0.999" } };
    for (int k = 0; k < 2; k++) {
        run(QUICK "3 -o %d.safetensors %s && convert --to torch %d.safetensors -o %d 2> /dev/null",
            k, options[_i][k], k, k);
        expect(0);
    }
    ck_assert_msg(!same_files("0", "1"), "%s trains as %s does", options[_i][0], options[_i][1]);
}

TEST(time_limit_ends_the_training) {
    ok("train " SMALL "--max-steps 1000 --max-time 0.001 -o m.safetensors");
    assert_contains(result.out, "exact match ");
    ok("inspect m.safetensors | grep train.step");
    /* a busy machine makes few steps in a short time, and the warm-up has to end */
    bool warm = false;
    for (double limit = 0.1; !warm && limit < 60; limit *= 2) {
        run("train " TINY
            "--max-steps 100000000 --lr-steps 100000000 --max-time %g -o long --overwrite",
            limit);
        expect(0);
        warm = strstr(result.err, "a new training with");
    }
    ck_assert(warm);
    assert_contains(result.err,
                    "the schedule of the learning rate ends at step 100000000; the rate is "
                    "0.00");
    assert_contains(result.err, "a new training with --max-steps ");
    assert_contains(result.err, " ends its schedule in about this time\n");
    ok("train " TINY "--max-steps 100000000 --lr-schedule constant --max-time 0.1 -o constant");
    ck_assert_ptr_null(strstr(result.err, "schedule ends"));
}

TEST(non_finite_step_keeps_the_file) {
    ok(QUICK "3 -o m.safetensors");
    ok("cp m.safetensors before");
    run("train " SMALL "--optimizer sgd --lr 1e6 --clip-norm 0 --max-steps 900 -o m.safetensors "
        "--overwrite --json --log-every 1");
    expect(3);
    assert_contains(result.err, "is not finite");
    assert_contains(result.out, "\"event\":\"nonfinite\"");
    ck_assert(same_files("m.safetensors", "before"));
}

/* Factors for the weights of the decoder's layers and the target table (`layers`), and for those of
 * the output, that make a number not finite; and the message that names it: a parameter, the loss,
 * a gradient or its norm. */
static const struct {
    float layers, output;
    const char *says;
} overflows[] = {
    { NAN, 1, "step 4: the parameter tgt_embedding.weight is not finite" },
    { 1, 1e38f, "step 4: the loss (inf) is not finite" },
    { 1e-6f, 1e37f, "step 4: the gradient of src_embedding.weight is not finite" },
    { 1, 1e25f, "step 4: the norm of the gradient is not finite" },
};

TEST_ROWS(the_number_that_is_not_finite_is_named, COUNT_OF(overflows)) {
    ok(QUICK "3 --positions none -o m");
    change_values("m", "tgt_embedding", overflows[_i].layers);
    change_values("m", "transformer.decoder.layers", overflows[_i].layers);
    change_values("m", "output.weight", overflows[_i].output);
    ok("cp m before");
    run("train --resume -o m --max-steps 9 --threads 1");
    expect(3);
    assert_contains(result.err, overflows[_i].says);
    assert_contains(result.err, "; lower --lr or --clip-norm\nm keeps step 3\n");
    ck_assert(same_files("m", "before"));
}

TEST(dry_run_says_how_long_all_will_take) {
    ok("train " SMALL "--dry-run --max-steps 2 -o m --threads 1 --json");
    assert_contains(result.err, " for 2 steps, without validations\n");
    assert_contains(result.out, "{\"event\":\"dry_run\",\"seconds\":");
    ok("ls | wc -l");
    ck_assert_int_eq(atoi(result.out), 0);
    ok("train " SMALL "--dry-run --max-steps 900");
    assert_contains(result.err, " for 900 steps, ");
    assert_contains(result.err, "         measured over ");
    ck_assert_ptr_null(strstr(result.err, "--max-time"));
    ok("train " TINY "--dry-run --max-steps 100000000 --lr-steps 100000000 --max-time 1");
    assert_contains(result.err, "         --max-time 1 ends this run at about step ");
    assert_contains(result.err, " of 100000000, before its learning rate has fallen: --max-steps ");
    ok("train " SMALL "--dry-run --max-steps 2 --max-time 1000");
    ck_assert_ptr_null(strstr(result.err, "--max-time"));
}

/* Tasks whose losses count tokens, pairs, lines or masked tokens: in each case the dry run predicts
 * the time of all steps. A step must take some time, because tenths of a second are printed. */
static const char *const forecast_tasks[] = {
    "text --train pairs --valid-size 0 --tokenizer word --batch-size 16",
    "pairs --train pairs --valid-size 0 --tokenizer word --batch-size 16",
    "classify --train labels --valid-size 0 --tokenizer-json words --batch-size 32",
    "lm --text text --text-eval-size 0 --tokenizer byte --max-len 32 --batch-size 16",
    "mask --text text --text-eval-size 0 --tokenizer-json words --max-len 32 --batch-size 24",
    "spans --text text --text-eval-size 0 --tokenizer-json spans --max-len 32 --batch-size 24",
};

TEST_ROWS(the_forecast_is_of_all_steps, COUNT_OF(forecast_tasks)) {
    double updates = 0, steps = 0, took = 0;
    ok("s='<pad>,</s>,<unk>'; for i in 0 1 2 3 4 5 6 7 8 9; do s=\"$s,<extra_id_$i>\"; done; "
       "awk 'BEGIN { srand(1); for (i = 0; i < 640; i++) { s = \"\"; for (j = 0; j < 20; j++) s = "
       "s "
       "\"w\" int(rand() * 40) \" \"; print s \"\\t\" s > \"pairs\"; print s > \"text\"; print s "
       "\"\\t\" i % 2 > \"labels\" } }'; tokenize --learn wordpiece --vocab-size 40 -i text -o "
       "words; "
       "tokenize --learn unigram --vocab-size 60 --special \"$s\" -i text -o spans");
    run("train --d-model 128 --heads 2 --layers 2 --threads 1 --dry-run --json --epochs 10 --task "
        "%s",
        forecast_tasks[_i]);
    expect(0);
    const char *in_epoch = strstr(result.err, " steps in an epoch"),
               *measured = strstr(result.err, "measured over ");
    ck_assert(in_epoch && measured);
    while (in_epoch[-1] >= '0' && in_epoch[-1] <= '9') in_epoch--;
    ck_assert_int_eq(sscanf(in_epoch, "%lf", &updates), 1);
    ck_assert_int_eq(sscanf(measured, "measured over %lf step%*[s] (%lf", &steps, &took), 2);
    const char *said = strstr(result.out, "\"dry_run\",\"seconds\":");
    ck_assert(said);
    double share = atof(said + 20) / (took / steps * 10 * updates);
    ck_assert_msg(share > 0.6 && share < 1.6, "%g of it: %s", share, result.err);
}

TEST(profile_says_where_the_time_went) {
    ok("train " SMALL "--max-steps 3 --profile");
    assert_contains(result.err, "GFLOP/s");
    assert_contains(result.err, "matmul");
    assert_contains(result.err, "adam_step");
    ck_assert_int_eq(strncmp(result.out, "exact match ", 12), 0);
    ok("train " SMALL "--max-steps 3 --profile --quiet --json");
    assert_contains(result.out, "\"event\":\"profile\",\"op\":\"matmul\"");
    ck_assert_str_eq(result.err, "");
}

TEST(full_disk_is_a_failure) {
    run(QUICK "1 > /dev/full");
    expect(1);
    assert_contains(result.err, "stdout could not be written");
    ok(QUICK "1 -o m.safetensors");
    run("echo 1 2 3 | generate --model m.safetensors > /dev/full");
    expect(1);
    run("inspect m.safetensors > /dev/full");
    expect(1);
}

/* A limit on the size of files (in blocks of 512 bytes) stands for a full disk. */
TEST(failed_save_keeps_the_file_and_the_training) {
    ok(QUICK "3 -o m.safetensors");
    ok("cp m.safetensors before");
    run("( ulimit -f 20; train --resume -o m.safetensors --max-steps 9 --save-every 2 --threads 1 "
        ")");
    expect(1);
    assert_contains(result.err, "step 4 is not saved");
    assert_contains(result.err, "step 9 is not saved");
    assert_contains(result.out, "exact match ");
    ck_assert(same_files("m.safetensors", "before"));
    ok("ls | wc -l");
    ck_assert_int_eq(atoi(result.out), 2);
}

/* ---- inspecting ------------------------------------------------------------- */

/* Without decoder layers, --attention is refused. Without encoder layers, the encoder's list of
 * attention is empty. */
TEST(attention_of_stacks_without_layers) {
    char message[WF_MESSAGE];
    for (int side = 0; side < 2; side++) {
        wf_transformer_config c = small_config();
        *(side ? &c.decoder_layers : &c.encoder_layers) = 0;
        wf_model *m = open_model(&c, NULL, WF_F32, 1);
        ck_assert_msg(wf_model_save(m, "m", NULL, NULL, 0, message), "%s", message);
        close_model(m);
        run("echo 1 2 | generate --model m --quiet --max-len-b 2 --attention a.json");
        expect(side);
        if (side) assert_contains(result.err, "it has no layers");
    }
    ok("grep -F '\"encoder_self\":[],' a.json");
}

TEST(damaged_model_is_refused) {
    static const char *const damages[] = {
        "head -c 5 m.safetensors > bad",
        "head -c 3000 m.safetensors > bad",
        ": > bad",
        "echo text > bad",
        "{ cat m.safetensors; echo; } > bad",
        "sed 's/train.step/train.stop/' m.safetensors > bad",
        "{ head -c 20000 m.safetensors; printf 'x'; tail -c +20002 m.safetensors; } > bad",
    };
    ok(QUICK "1 -o m.safetensors");
    for (int i = 0; i < COUNT_OF(damages); i++) {
        ok(damages[i]);
        run("echo 1 2 3 | generate --model bad");
        ck_assert_msg(result.status == 1 && strstr(result.err, "bad"), "%s: exit code %d\n%s",
                      damages[i], result.status, result.err);
        run("train --resume -o bad --max-steps 9");
        expect(1);
        run("inspect bad");
        expect(1);
    }
}

TEST(inspect_shows_the_model) {
    ok(QUICK "1 -o m.safetensors");
    ok("inspect m.safetensors");
    assert_contains(result.out, "a Transformer of width 16, 2 heads, 1 + 1 layers");
    assert_contains(result.out, "transformer.encoder.layers.0.self_attn.in_proj_weight");
    assert_contains(result.out, "[48,16]");
    assert_contains(result.out, "the checksum is right; all values are finite");
    ok("inspect --json m.safetensors");
    assert_contains(result.out, "{\"event\":\"metadata\",\"key\":\"train.seed\",\"value\":\"1\"}");
    assert_contains(result.out, "\"finite\":true");
}

/* inspect shows files of other programs: other types, a scalar, NaN, odd names. */
TEST(inspect_shows_any_file) {
    static const double f64[] = { 1, 2, 3, NAN };
    static const float none[] = { NAN, INFINITY };
    static const int32_t i32[] = { -7 };
    static const uint8_t u8[] = { 1, 2 };
    const wf_entry entries[] = {
        { "doubles", "F64", 2, { 2, 2 }, f64, sizeof f64 },
        { "optimizer.none", "F32", 1, { 2 }, none, sizeof none },
        { "optimizer.well", "I32", 0, { 0 }, i32, sizeof i32 },
        { "\033[2Jbytes", "U8", 1, { 2 }, u8, sizeof u8 },
    };
    char long_value[200], message[WF_MESSAGE];
    memset(long_value, 'x', sizeof long_value - 1), long_value[sizeof long_value - 1] = '\0';
    const wf_meta meta[] = { { "a key of more than thirty-two characters", long_value } };
    ck_assert_msg(wf_file_save("f", entries, 4, meta, 1, message), "%s", message);
    ok("inspect f");
    assert_contains(result.out, "f: not a model of weft (");
    assert_contains(result.out, "  a key of more than thirty-two characters xxx");
    assert_contains(result.out, "xxx...\n");
    assert_contains(result.out,
                    "F64  [2,2]                 4          2     0.816          1          "
                    "3  1 NOT FINITE\n");
    assert_contains(result.out, "optimizer.none F32  [2]                   2  2 NOT FINITE\n");
    ck_assert(!strstr(result.out, "optimizer.well") && !strchr(result.out, '\033'));
    assert_contains(result.out, "NOT all values are finite");
    ok("inspect --all f");
    assert_contains(result.out, "optimizer.well I32  []                    1         -7 ");
    ok("inspect --json f");
    assert_contains(result.out, "\"shape\":[],\"count\":1,\"mean\":-7,\"std\":0,\"min\":-7,");
    assert_contains(result.out, "\"count\":2,\"mean\":null,\"std\":null,\"min\":null,\"max\":null,"
                                "\"finite\":false}");
    assert_contains(result.out, "\"dtype\":\"U8\",\"shape\":[2],\"count\":2,\"mean\":null,");
    ck_assert_msg(wf_file_save("f", NULL, 0, NULL, 0, message), "%s", message);
    ok("inspect f"); /* its checksum is all there is */
    assert_contains(result.out, "\n0 tensors: 0 parameters");
    ok("printf '\\010\\0\\0\\0\\0\\0\\0\\0{}      ' > f; inspect f");
    assert_contains(result.out, "; no checksum; all values are finite\n");
    ck_assert(!strstr(result.out, "Metadata"));
}

TEST(model_file_says_nothing_of_its_making) {
    ok(QUICK "2 -o first.safetensors");
    ok("mkdir sub; cd sub; sleep 1.1; train " SMALL
       "--threads 2 --max-steps 2 --log-every 1 --log l -o second.safetensors");
    ck_assert(same_files("first.safetensors", "sub/second.safetensors"));
}

/* ---- the tasks ----------------------------------------------------------------------------- */

/* A training prints samples of its task to stderr, as source | reference | output. */
TEST_ROWS(tasks_ask_what_they_say, 3) {
    static const char *const names[] = { "copy", "reverse", "sort" };
    run("train --task %s --d-model 16 --heads 2 --layers 1 --d-ff 16 --max-steps 1", names[_i]);
    expect(0);
    const char *line = strstr(result.err, "source | reference | output\n  ");
    ck_assert_msg(line, "%s", result.err);
    line += strlen("source | reference | output\n");
    int src[16], ref[16], n = 0, used;
    for (; sscanf(line, "%d%n", &src[n], &used) == 1; line += used, n++) ck_assert_int_lt(n, 12);
    line = strchr(line, '|') + 1;
    for (int i = 0; i < n; i++, line += used)
        ck_assert_int_eq(sscanf(line, "%d%n", &ref[i], &used), 1);
    ck_assert_int_ge(n, 3);
    for (int i = 0; i < n; i++) {
        if (_i == TASK_COPY) ck_assert_int_eq(ref[i], src[i]);
        if (_i == TASK_REVERSE) ck_assert_int_eq(ref[i], src[n - 1 - i]);
        if (_i == TASK_SORT && i) ck_assert_int_ge(ref[i], ref[i - 1]);
    }
}

/* Hashes of the first n sequences of a stream; the caller frees them. */
static uint64_t *names_of(const task *t, task_stream stream, int64_t n) {
    int32_t src[TASK_MAX_LEN], tgt[TASK_MAX_LEN];
    uint64_t *names = calloc((size_t)n, sizeof *names);
    ck_assert_ptr_nonnull(names);
    for (int64_t i = 0; i < n; i++) {
        int64_t length = task_sequence(t, stream, (uint64_t)i, src, tgt);
        ck_assert(length >= t->min_len && length <= t->max_len);
        for (int64_t k = 0; k < length; k++) ck_assert(src[k] >= 1 && src[k] < TASK_VOCAB);
        names[i] = wf_hash_bytes(7, src, (uint64_t)length * sizeof *src);
    }
    return names;
}

/* With lengths of 2 and 3 there are so few sequences that training and evaluation would share some
 * if they were not kept apart. */
TEST(evaluation_sequences_are_never_trained_on) {
    task t = { TASK_COPY, 2, 3, 5 };
    enum { TRAINED = 20000, HELD = 200 };
    uint64_t *trained = names_of(&t, STREAM_TRAIN, TRAINED);
    uint64_t *valid = names_of(&t, STREAM_VALID, HELD), *test = names_of(&t, STREAM_TEST, HELD);
    for (int i = 0; i < TRAINED; i++)
        for (int k = 0; k < HELD; k++) {
            if (trained[i] == valid[k] || trained[i] == test[k])
                ck_abort_msg("sequence %d was trained on", k);
        }
    ck_assert_int_ne(memcmp(valid, test, HELD * sizeof *valid), 0);
    free(trained), free(valid), free(test);
}

TEST(streams_follow_from_the_seed) {
    task one = { TASK_COPY, 3, 12, 1 }, two = { TASK_COPY, 3, 12, 2 };
    uint64_t *a = names_of(&one, STREAM_TRAIN, 500), *b = names_of(&one, STREAM_TRAIN, 500);
    uint64_t *c = names_of(&two, STREAM_TRAIN, 500);
    int same = 0;
    ck_assert_mem_eq(a, b, 500 * sizeof *a);
    for (int i = 0; i < 500; i++) same += a[i] == c[i];
    ck_assert_int_lt(same, 5);
    free(a), free(b), free(c);
}
