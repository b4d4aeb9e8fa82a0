/* tests/tools/test_config.c - files of options (--config), names by which other programs know an
 * option, and options of the optimizers, each of which must have an effect. */
#include <stdio.h>

#include "tests/suites.h"
#include "tests/support/commands.h"
#include "tests/support/support.h"

TESTS(config)

SETUP(enter_folder, leave_folder)

static void write_config(const char *text) {
    FILE *file = fopen("options", "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

/* ---- what a file says ---------------------------------------------------------------------- */

TEST(a_file_of_options_is_read_and_the_command_line_goes_before_it) {
    write_config("# a training\n\n  task = copy\nlr=0.001 # slow\nbatch_size = 8\n"
                 "model = \"a \\\"b\\\".safetensors\"\nquiet = true\nshare-vocab = false\n");
    ok("train --config options --lr 0.002 --dump-config");
    assert_contains(result.out, "\ntask = \"copy\"\n");
    assert_contains(result.out, "\nlr = 0.002\n");
    assert_contains(result.out, "\nbatch-size = 8\n");
    assert_contains(result.out, "\nmodel = \"a \\\"b\\\".safetensors\"\n");
    assert_contains(result.out, "\nquiet = true\n");
    assert_contains(result.out, "\n# share-vocab = false\n");
}

TEST(a_training_from_a_file_is_the_one_from_the_command_line) {
    write_config("task = \"copy\"\nd-model = 16\nheads = 2\nlayers = 1\nd-ff = 16\nbatch-size = 4\n"
                 "lr-steps = 100\nwarmup = 5\nmax-steps = 3\nthreads = 1\nquiet = true\n");
    ok("train --config options -o from-file.safetensors");
    ok("train --task copy --d-model 16 --heads 2 --layers 1 --d-ff 16 --batch-size 4 "
       "--lr-steps 100 --warmup 5 --max-steps 3 --threads 1 --quiet -o typed.safetensors");
    ck_assert(same_files("from-file.safetensors", "typed.safetensors"));
}

TEST(what_is_dumped_is_read_back) {
    ok("train --task sort --lr 1e-4 --quiet --train \"$(printf 'a\\tb\\\\\"c')\" --norm post "
       "--dump-config > first");
    ok("train --config first --dump-config > second");
    ck_assert(same_files("first", "second"));
    ok("grep -q '^train = \"a.tb' first");
}

TEST(every_program_takes_a_file) {
    write_config("threads = 1\n");
    ok("generate --config options --dump-config | grep -x 'threads = 1'");
    ok("graph --config options --dump-config | grep -x 'threads = 1'");
    ok("bench --config options --dump-config | grep -x 'threads = 1'");
    write_config("json = true\n");
    ok("inspect --config options --dump-config | grep -x 'json = true'");
}

TEST(a_dash_is_stdin) {
    ok("echo 'lr = 0.25' | train --config - --dump-config | grep -x 'lr = 0.25'");
    run("echo 'lr = fast' | train --config -");
    expect(2);
    assert_contains(result.err, "stdin, line 1: --lr: 'fast' is not a number");
}

/* ---- what it can't say ---------------------------------------------------------------------- */

static const struct {
    const char *text;
    int status;
    const char *says;
} refusals[] = {
    { "task\n", 2, "options, line 1: not 'name = value'" },
    { "[train]\n", 2, "options, line 1: not 'name = value'" },
    { "\nlr =\n", 2, "options, line 2: there is no value behind '='" },
    { "lr = # none\n", 2, "line 1: there is no value behind '='" },
    { "lr = fast\n", 2, "line 1: --lr: 'fast' is not a number" },
    { "lr = 1\nlr = 2\n", 2, "line 2: lr is given twice" },
    { "quiet = yes\n", 2, "line 1: quiet is true or false, not 'yes'" },
    { "model = \"open\n", 2, "line 1: a quoted value ends with \"" },
    { "model = \"a\\x\"\n", 2, "line 1: a quoted value ends with \"" },
    { "model = \"a\" b\n", 2, "line 1: a quoted value ends with \"" },
    { "learning-rate = 1\n", 2, "there is no option 'learning-rate'; here it is --lr" },
    { "bacth-size = 1\n", 2, "there is no option 'bacth-size'; the nearest is --batch-size" },
    { "config = other\n", 2, "there is no option 'config'" },
    { "= 3\n", 2, "there is no option ''" },
    { "--seed = 3\n", 2, "a name has no dashes before it: name = value" },
};

TEST_ROWS(a_bad_file_is_refused_with_its_line, COUNT_OF(refusals)) {
    write_config(refusals[_i].text);
    run("train --config options");
    expect(refusals[_i].status);
    assert_contains(result.err, refusals[_i].says);
}

TEST(a_file_that_is_none_is_refused) {
    run("train --config missing");
    expect(1);
    assert_contains(result.err, "missing can't be read");
    run("train --config .");
    expect(1);
    run("head -c 2000000 /dev/zero | tr '\\0' '#' > large; train --config large");
    expect(2);
    assert_contains(result.err, "more than a megabyte");
    run("printf 'lr = 1\\0' > zero; train --config zero");
    expect(2);
    assert_contains(result.err, "zero byte");
    write_config("lr = 1\n");
    run("train --config options --config options");
    expect(2);
    assert_contains(result.err, "--config is given twice");
    run("train --config");
    expect(2);
    assert_contains(result.err, "--config needs a value");
}

TEST(the_file_of_options_is_no_output) {
    write_config("task = copy\nmax-steps = 1\nquiet = true\n");
    ok("cp options before");
    run("train --config options -o options");
    expect(2);
    assert_contains(result.err, "to be read and written at once");
    ck_assert(same_files("options", "before"));
}

/* ---- names of other programs ----------------------------------------------------------------- */

static const struct {
    const char *command, *says;
} names[] = {
    { "train --learning-rate 1", "there is no option --learning-rate; here it is --lr\n" },
    { "train --learning_rate 1", "; here it is --lr\n" },
    { "train --hidden-size 1", "; here it is --d-model\n" },
    { "train --grad-clip 1", "; here it is --clip-norm\n" },
    { "train --early-stopping 1", "; here it is --patience\n" },
    { "train --update-freq 4", "; here it is --accum\n" },
    { "train --dev x", "; here it is --valid\n" },
    { "train --src x", "; here it is --train-src\n" },
    { "train --output x", "; here it is --model\n" },
    { "generate --early-stopping 1", "; here it is --stop\n" },
    { "train --beam-size 4", ": generate searches, and has --beam\n" },
    { "generate --verbose", ": progress is printed by default: leave it out" },
    { "train --silent", "; here it is --quiet\n" },
    { "convert --gpu 0", ": weft computes on the processor alone: leave it out\n" },
    { "train --gpu 0", ": weft computes on the processor alone" },
    { "train --device cuda", ": weft computes on the processor alone" },
    { "train --fp16", ": training is in f32" },
    { "train --wandb", "; here it is --log\n" },
    { "generate --beam-size 4", "; here it is --beam\n" },
    { "generate --num-beams=4", "; here it is --beam\n" },
    { "generate --n-best 4", "; here it is --nbest\n" },
    { "generate --fp16", "; here it is --weights\n" },
    { "generate --src x", "; here it is --input\n" },
    { "generate --max-tokens 4", "; here it is --max-new-tokens\n" },
    { "generate --length 4", "; here it is --max-new-tokens\n" },
    { "generate -n 4", "there is no option -n; here it is --max-new-tokens\n" },
    { "generate -p x", "there is no option -p; here it is --prompt\n" },
    { "generate -x 4", "there is no option -x\n" },
    { "generate --cpu-threads 4", "; here it is --threads\n" },
    { "graph --n-layer 4", "; here it is --layers\n" },
    { "train --qqqqqqqq", "there is no option --qqqqqqqq\n" },
    { "train --xy", "there is no option --xy\n" },
    { "inspect --learning-rate", "there is no option --learning-rate\n" },
};

TEST_ROWS(a_name_of_another_program_is_known, COUNT_OF(names)) {
    run("%s", names[_i].command);
    expect(2);
    assert_contains(result.err, names[_i].says);
}

TEST(capital_v_is_the_version) {
    ok("train --version > long; train -V > short");
    ck_assert(same_files("long", "short"));
}

/* ---- any bytes ------------------------------------------------------------------------------- */

TEST(any_bytes_are_options_or_a_sentence) {
    static const char alphabet[] = "task=copy\n\"\\# .01[]lr-\t\xff";
    uint32_t state = 1;
    for (int round = 0; round < 60; round++) {
        char text[64];
        for (int i = 0; i < (int)sizeof text - 1; i++) {
            state = state * 1664525 + 1013904223;
            text[i] = alphabet[(state >> 16) % (sizeof alphabet - 1)];
        }
        text[sizeof text - 1] = '\0';
        write_config(text);
        run("train --config options --dump-config");
        ck_assert_msg(result.status == 0 || result.status == 2, "exit %d: %s", result.status, text);
    }
}

/* ---- numbers of the optimizers --------------------------------------------------------------- */

static const struct {
    const char *optimizer, *option, *one, *other;
} optimizer_numbers[] = {
    { "sgd", "--momentum", "0", "0.9" },     { "adam", "--beta1", "0.5", "0.9" },
    { "adam", "--beta2", "0.5", "0.98" },    { "adam", "--eps", "1e-9", "1e-2" },
    { "adamw", "--weight-decay", "0", "1" }, { "adamw", "--beta2", "0.5", "0.98" },
    { "rmsprop", "--beta2", "0.5", "0.98" }, { "rmsprop", "--momentum", "0", "0.9" },
    { "rmsprop", "--eps", "1e-9", "1e-2" },  { "lion", "--beta1", "0.5", "0.9" },
    { "lion", "--beta2", "0.5", "0.98" },    { "lion", "--weight-decay", "0", "1" },
    { "adagrad", "--eps", "1e-9", "1e-2" },
};

static void train_with(int row, const char *value, const char *losses) {
    run("train --task copy --d-model 16 --heads 2 --layers 1 --d-ff 16 --batch-size 4 --warmup 0 "
        "--max-steps 12 --log-every 1 --threads 1 --quiet --overwrite -o m --optimizer %s %s %s "
        "--log log && grep -o '\"loss\":[^,]*' log > %s && rm log",
        optimizer_numbers[row].optimizer, optimizer_numbers[row].option, value, losses);
    expect(0);
}

/* Each numeric option of an optimizer must change the losses: an option without effect would
 * mislead. */
TEST_ROWS(a_number_of_an_optimizer_changes_the_training, COUNT_OF(optimizer_numbers)) {
    train_with(_i, optimizer_numbers[_i].one, "one");
    train_with(_i, optimizer_numbers[_i].other, "other");
    ck_assert_msg(!same_files("one", "other"), "%s %s: the same losses",
                  optimizer_numbers[_i].optimizer, optimizer_numbers[_i].option);
}
