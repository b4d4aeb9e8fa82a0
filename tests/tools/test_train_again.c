/* tests/tools/test_train_again.c - the program train with an existing output file: replacing it,
 * resuming it, and prolonging its training. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/suites.h"
#include "tests/support/commands.h"
#include "tests/support/support.h"
#include "tools/train/progress.h"

TESTS(train_again)

#define SIZE "--d-model 16 --heads 2 --layers 1 --d-ff 16 --threads 1 --quiet "
#define NUMBERS "train --task copy " SIZE "--batch-size 4 --warmup 2 --valid-size 0 "
#define PAIRS "train --train pairs --tokenizer word " SIZE "--batch-size 5 --warmup 2 "

#define SHORT "--d-model 8 --heads 2 --layers 1 --d-ff 8 --max-len 8 --threads 1 --max-steps 1"

SETUP(enter_folder, leave_folder)

static void make_pairs(void) {
    ok("for i in $(seq 24); do echo \"a$((i % 7)) b$((i % 5))\tc$((i % 5)) d$((i % 7))\"; done > "
       "pairs");
}

static double meta_number(const char *path, const char *key) {
    wf_file *f = wf_file_open(path);
    const char *text = wf_file_ok(f) ? wf_file_meta(f, key) : NULL;
    ck_assert_msg(text, "%s has no %s", path, key);
    double value = atof(text);
    wf_file_free(f);
    return value;
}

/* ---- replacing ------------------------------------------------------------------------------- */

/* Without --resume or --overwrite an existing file is not replaced: neither a model of another task
 * nor a .best file. */
TEST(a_model_is_replaced_only_if_asked) {
    static const char *const says = "is there already: --resume goes on with a training, "
                                    "--overwrite replaces it";
    ok(NUMBERS "--max-steps 3 -o m");
    ok("cp m before; cp m other.best");
    run("train --task sort " SIZE "--max-steps 2 -o m");
    expect(2);
    assert_contains(result.err, says);
    run("train --task date " SIZE "--max-steps 2 -o other");
    expect(2);
    assert_contains(result.err, "other.best is there already");
    ck_assert(same_files("m", "before"));
    ok("train --task sort " SIZE "--max-steps 2 --dry-run -o m");
    ok("train --task sort " SIZE "--max-steps 2 -o m --overwrite");
    ck_assert(!same_files("m", "before"));
    ok("train --task date " SIZE "--max-steps 2 --valid-size 5 -o other --overwrite; : > empty");
    ok(NUMBERS "--max-steps 3 -o empty"); /* an empty file, as mktemp makes, may be replaced */
}

TEST(overwrite_alone_is_refused) {
    static const char *const idle[] = { "--max-steps 3", "--max-steps 3 -o m --dry-run" };
    ok(NUMBERS "--max-steps 3 -o m");
    for (int i = 0; i < COUNT_OF(idle); i++) {
        run("%s %s --overwrite", NUMBERS, idle[i]);
        expect(2);
        assert_contains(result.err, "--overwrite would have no effect");
    }
}

/* A command with --overwrite may be repeated with --resume, which then replaces nothing. */
TEST(a_resume_may_repeat_overwrite) {
    ok("echo '{\"event\":\"first\"}' > log");
    ok(NUMBERS "--max-steps 3 -o m --overwrite && cp m plain");
    ok("train --threads 1 --quiet --max-steps 9 -o m --log log --resume --overwrite");
    ok("head -1 log");
    assert_contains(result.out, "first");
    ok("train --threads 1 --quiet --max-steps 9 -o plain --resume");
    ck_assert(same_files("m", "plain"));
    /* a resume does not replace a page of the user's own, either */
    ok("echo mine > page; cp page kept");
    run("train --threads 1 --quiet --max-steps 12 -o m --report page --resume --overwrite");
    expect(1);
    assert_contains(result.err, "or give --report another name");
    ck_assert(same_files("page", "kept") && same_files("m", "plain"));
}

/* A training that is killed before its first save leaves no file. Its resume says to start anew. */
TEST(a_resume_of_nothing_says_to_start_anew) {
    run("train --resume -o m");
    expect(1);
    assert_contains(result.err, "m is not there: a training writes it first after --save-every "
                                "steps. Start anew without --resume");
}

/* Options for a new training, which a resume may repeat. */
static const char *const repeated[] = {
    "--tokenizer word --preset tiny --share-vocab --tie all",
    "--tokenizer word --layers 1 --d-model 16 --heads 2 --d-ff 16",
    "--preset tiny --d-ff 24 --like bart --vocab-size 270",
    "--preset tiny --d-model 192 --like bart --vocab-size 270",
    "--tokenizer char --arch language --form llama --preset tiny --layers 1",
};

/* Repeating these options in a resume changes no bit of the trained file. */
TEST_ROWS(a_resume_may_repeat_what_the_file_has, COUNT_OF(repeated)) {
    const char *rest = "--threads 1 --quiet --warmup 2 --lr-steps 9";
    make_pairs();
    run("train --train pairs %s %s --max-steps 3 -o m", repeated[_i], rest);
    expect(0);
    ok("cp m brief");
    run("train --resume --train pairs %s %s --max-steps 5 -o m", repeated[_i], rest);
    expect(0);
    ok("train --resume --train pairs --threads 1 --quiet --max-steps 5 -o brief");
    ck_assert(same_files("m", "brief"));
    run("train --resume --train pairs --max-steps 7 -o m --preset base");
    expect(2);
    assert_contains(result.err, "--preset would have no effect: a resume takes it from the file");
    run("train --resume --train pairs --max-steps 7 -o m --%s", _i < 3 ? "like none" : "form gpt");
    expect(2);
    assert_contains(result.err, "would have no effect: a resume takes it from the file");
}

/* A task on numbers has no vocabulary that sides could share. */
TEST(a_resume_of_numbers_shares_no_vocabulary) {
    ok("train --task copy --preset tiny --max-steps 1 --valid-size 0 --quiet -o m");
    run("train --resume --max-steps 2 --quiet -o m --share-vocab");
    expect(2);
    assert_contains(result.err, "--share-vocab would have no effect: a resume takes it from");
}

/* ---- training longer ------------------------------------------------------------------------- */

static const char *const schedules[] = { "linear", "cosine" };

/* A finished training is resumed with more epochs: its rate is at most the old peak, and falls to 0
 * again. The prolonged training may also be stopped and resumed. */
TEST_ROWS(more_epochs_stretch_the_schedule, COUNT_OF(schedules)) {
    make_pairs();
    run(PAIRS "--epochs 2 --lr 0.01 --lr-schedule %s -o m", schedules[_i]);
    expect(0);
    double before = meta_number("m", "train.lr-steps");
    ck_assert(meta_number("m", "train.step") == before);
    run("train --resume --train pairs -o m --threads 1");
    expect(2);
    assert_contains(result.err, "more --epochs or --max-steps go on");
    ok("cp m stretched");
    ok("train --resume --train pairs -o m --threads 1 --epochs 4 --log log --log-every 1");
    assert_contains(result.err, "steps in place of");
    ck_assert(meta_number("m", "train.lr-steps") == 2 * before);
    ck_assert(meta_number("m", "train.step") == 2 * before);
    ok("grep -o '\"rate\":[^,]*' log | cut -d: -f2 | awk '$1 > 0.01 || (NR > 1 && $1 >= last) "
       "{ exit 1 } { last = $1 } END { exit !(last == 0 && NR > 3) }'");
    /* stopped and resumed once more, the longer training has the same bits */
    run("train --resume --train pairs -o stretched --quiet --threads 1 --lr-steps %d --max-steps "
        "%d",
        (int)(2 * before), (int)before + 3);
    expect(0);
    ok("train --resume --train pairs -o stretched --quiet --threads 1");
    ck_assert(same_files("m", "stretched"));
}

/* A resume with a total of at most the planned steps does not change the schedule: the result has
 * the bits of one training. */
TEST(a_stop_on_the_way_does_not_stretch) {
    ok(NUMBERS "--lr-steps 9 --max-steps 9 -o whole");
    ok(NUMBERS "--lr-steps 9 --max-steps 4 -o parts");
    ok("train --resume -o parts --max-steps 7 --valid-size 0 --threads 1");
    ck_assert_ptr_null(strstr(result.err, "in place of"));
    ok("train --resume -o parts --lr-steps 9 --valid-size 0 --threads 1 --quiet");
    ck_assert(same_files("whole", "parts"));
}

/* A resume does not replace a .best file of another training or of another program. */
TEST(best_weights_of_another_training_are_kept) {
    static const char *const says[] = { "m.best is not of this training, which would replace it: "
                                        "move it to another place",
                                        "m.best is there and is no model: remove it" };
    make_pairs();
    ok(PAIRS "--valid pairs --epochs 2 -o m > out; " PAIRS
             "--valid pairs --epochs 2 --seed 2 -o n > out");
    ok("cp m.best own; cp n.best m.best");
    for (int i = 0; i < 2; i++) {
        run("cp m.best before; cp m m0; train --resume --train pairs --valid pairs -o m --threads "
            "1 --epochs 4");
        expect(1);
        assert_contains(result.err, says[i]);
        ck_assert(same_files("m.best", "before") && same_files("m", "m0"));
        ok("echo something > m.best");
    }
    ok("cp own m.best; train --resume --train pairs --valid pairs -o m --threads 1 --epochs 4 > "
       "out");
    ok(": > n.best; train --resume --train pairs --valid pairs -o n --threads 1 --epochs 3 > out");
}

/* Resumes with other validation data are refused: their losses cannot be compared with the best
 * one. */
static const struct {
    const char *start, *resume, *says;
} validated[] = {
    { "--train pairs --valid few", "--train pairs --valid other",
      "m was validated on other pairs than these: give it the same --valid as before, or begin "
      "another training with its weights: --init m -o NEW" },
    { "--train pairs --valid-src src --valid-tgt tgt",
      "--train pairs --valid-src tgt --valid-tgt src",
      "give it the same --valid-src and --valid-tgt as before" },
    { "--text pairs --max-len 8 --text-eval few", "--text pairs --text-eval other",
      "m was validated on another text than this: give it the same --text-eval as before" },
};

TEST_ROWS(a_resume_validates_with_the_same_text, COUNT_OF(validated)) {
    make_pairs();
    ok("head -n 5 pairs > few; tail -n 5 pairs > other; cut -f1 few > src; cut -f2 few > tgt");
    run("train %s " SIZE "--max-steps 2 -o m", validated[_i].start);
    expect(0);
    run("cp m before; train --resume %s --max-steps 3 --quiet -o m", validated[_i].resume);
    expect(1);
    assert_contains(result.err, validated[_i].says);
    ck_assert(same_files("m", "before"));
    run("train --resume %s --max-steps 3 --quiet -o m", validated[_i].start);
    expect(0);
    change_meta("m", "train.valid-data", NULL); /* as older files */
    run("train --resume %s --max-steps 4 --quiet -o m", validated[_i].resume);
    expect(0);
}

/* If the reader of the events closes the pipe, the training continues silently, and its exit code
 * shows the lost events. */
TEST(a_closed_pipe_of_events_is_silent) {
    ok("{ " NUMBERS
       "--max-steps 30 --log-every 1 --json -o m; echo $? > code; } 2> err | head -n 1 > "
       "first; cat err; cat code; wc -l < first");
    ck_assert_str_eq(result.out, "141\n1\n");
    ck_assert(meta_number("m", "train.step") == 30);
    run(NUMBERS "--max-steps 3 --json -o m2 > /dev/full");
    expect(1);
    assert_contains(result.err, "stdout could not be written");
}

/* A training of running text saves at each validation, every 250 steps. A .best file cannot be
 * resumed, but serves for --init. */
TEST(running_text_is_saved_when_it_is_validated) {
    make_pairs();
    run("train --task lm --text pairs --text-eval-size 100 --max-len 8 --d-model 8 --heads 2 "
        "--layers 1 --threads 1 --log log --log-every 1 -o m --max-steps 99999 2> err & pid=$!\n"
        "until grep -q '\"step\":252,' log 2> /dev/null; do sleep 0.01; done\n"
        "kill -KILL $pid; wait $pid");
    ck_assert((int64_t)meta_number("m", "train.step") % 250 == 0);
    ok("rm m");
    run("train --task lm --text pairs -o m");
    expect(2);
    assert_contains(result.err, "m.best is there already, best weights without their training");
    assert_contains(result.err, "--init takes them");
}

/* ---- what is lost, left, or little ----------------------------------------------------------- */

/* If the model's file cannot be written, as on a full disk, the last message says so. */
TEST(what_is_lost_is_said_last) {
    static const char *const says = "train: nothing of this training is kept: m could not be "
                                    "written\n";
    run("(ulimit -f 8; " NUMBERS "--max-steps 3 -o m 2> err)");
    expect(1);
    ok("tail -n 1 err");
    ck_assert_str_eq(result.out, says);
    ok(NUMBERS "--max-steps 3 -o m");
    run("(ulimit -f 8; train --resume -o m --max-steps 5 --quiet 2> err)");
    expect(1);
    ok("tail -n 1 err");
    assert_contains(result.out, "what was learned after step 3 is lost: m could not be written");
}

/* The weights alone still fit. */
TEST(best_weights_that_are_left_are_told) {
    make_pairs();
    ok(PAIRS "--valid pairs --epochs 2 -o m");
    run("(ulimit -f $((($(wc -c < m) + $(wc -c < m.best)) / 1024)); " PAIRS
        "--valid pairs --epochs 2 -o n 2> err)");
    expect(1);
    ok("inspect n.best > out; test ! -e n; tail -n 1 err");
    ck_assert_str_eq(result.out, "train: n could not be written: only the best weights, in n.best, "
                                 "are kept, and the training cannot be resumed\n");
}

/* A dry run of a resume counts only the steps that are left. */
TEST(a_dry_run_counts_the_steps_that_are_left) {
    ok(NUMBERS "--max-steps 30 -o m");
    ok("train --resume -o m --max-steps 40 --dry-run");
    assert_contains(result.err, " for 10 steps, without validations");
    make_pairs();
    ok(PAIRS "--epochs 4 -o p && train --train pairs --resume -o p --epochs 5 --dry-run");
    assert_contains(result.err, " for the steps that are left, without validations");
}

/* Before the first step there is nothing to save, and a signal ends the program at once. */
TEST(an_early_signal_is_no_silent_end) {
    /* the shell opens the pipe when train has opened it */
    ok("mkfifo pipe; train --train pipe -o m 2> err & exec 3> pipe; kill -TERM $!; wait $!; test "
       "$? = 143; cat err");
    ck_assert_str_eq(result.out,
                     "\nended before this run trained anything: no model was written\n");
    ok("test ! -e m");
}

TEST(few_steps_are_told) {
    make_pairs();
    ok(PAIRS "--epochs 4 -o p; head -n 4 pairs > few; train --init p --train few --max-len 8 "
             "--threads 1 -o f");
    assert_contains(result.err, "steps    5 in all, which change little: --epochs 100 would make "
                                "about a hundred, and --batch-size N gives smaller batches\n");
    ok("train --init p --train few --max-len 8 --threads 1 --batch-size 4 -o h");
    assert_contains(result.err, "would make about a hundred\n");
    ok("train --init p --train few --max-len 8 --threads 1 --epochs 5 -o g");
    ck_assert_ptr_null(strstr(result.err, "change little"));
}

/* ---- the command that goes on ---------------------------------------------------------------- */

/* After Ctrl-C, train prints the command that resumes. A shell must be able to run it as
 * printed. */
TEST(advice_of_a_signal_is_a_command) {
    make_pairs();
    signal(SIGINT, SIG_DFL); /* ignored in a background job */
    ok("mv pairs \"it's\"");
    run("(until grep -q '\"step\":7,' 'a log' 2> /dev/null; do sleep 0.01; done\n"
        "kill -INT $(cat pid)) & sh -c 'echo $$ > pid; exec \"$@\"' sh train --train \"it's\" "
        "--tokenizer word --d-model 16 --heads 2 --layers 1 --threads 1 --warmup 2 --log 'a log' "
        "--log-every 1 -o 'm $x' --epochs 99999 2> err");
    expect(130);
    ok("sed -n 's/.*go on with: //p' err | sed 's/--epochs 99999/--max-time 0.001/' > again; sh "
       "again");
    assert_contains(result.err, "resumed  m $x after step");
    assert_contains(result.err, "--max-time: saved step ");
    assert_contains(result.err, "go on with: train --resume");
}

/* Two equal signals at the same time, as from a terminal and a shell, count as one. Of two
 * different signals, one gives the exit code, and the file is whole. */
TEST(a_signal_that_comes_twice_at_once_saves) {
    signal(SIGHUP, SIG_DFL); /* ignored if nohup started the tests */
    run("train --task copy --d-model 16 --heads 2 --layers 1 --d-ff 16 --threads 1 --log log "
        "--log-every 1 -o m --max-steps 99999 2> err & pid=$!\n"
        "until grep -q '\"step\":3,' log 2> /dev/null; do sleep 0.01; done\n"
        "kill -TERM $pid; kill -TERM $pid; wait $pid");
    expect(143);
    ok("grep 'SIGTERM: saved step' err && inspect m");
    run("train --resume --threads 1 --log log --log-every 1 -o m --max-steps 999999 2> err & "
        "pid=$!\n"
        "n=$(wc -l < log); until [ $(wc -l < log) -gt $n ]; do sleep 0.01; done\n"
        "kill -STOP $pid; kill -HUP $pid; kill -TERM $pid; kill -CONT $pid; wait $pid");
    ck_assert(result.status == 129 || result.status == 143);
    ok("inspect m && [ -z \"$(ls | grep tmp-weft)\" ]");
}

/* A signal during a long validation is answered at once with a message. After the last step there
 * is no command to resume. */
TEST(a_signal_in_a_validation_is_answered) {
    run("train --task copy --d-model 16 --heads 2 --layers 1 --d-ff 16 --threads 1 --log log "
        "--valid-size 30000 --valid-every 2 --log-every 1 --max-steps 2 -o m 2> err & pid=$!\n"
        "until grep -q '\"step\":2,' log 2> /dev/null; do sleep 0.01; done; sleep 0.2\n"
        "kill -TERM $pid; sleep 0.1; cat err >&2; wait $pid");
    expect(143);
    assert_contains(result.err, "ends after this validation; a second signal ends at once\n");
    ok("cat err >&2");
    assert_contains(result.err, "SIGTERM: saved step 2, the last one: the training is finished\n");
    ck_assert_ptr_null(strstr(result.err, "go on with"));
}

/* A closed terminal sends SIGHUP, perhaps more than once: the training saves and ends. Under nohup
 * it continues. */
TEST_ROWS(a_closed_terminal_saves, 2) {
    signal(SIGHUP, SIG_DFL); /* ignored if nohup started the tests */
    run("train --task copy --d-model 16 --heads 2 --layers 1 --d-ff 16 %s --log log "
        "--log-every 1 -o m --max-steps 99999 > out 2> err & pid=$!\n"
        "until grep -q '\"step\":3,' log 2> /dev/null; do sleep 0.01; done\n"
        "kill -HUP $pid; sleep 0.3; kill -HUP $pid; wait $pid",
        _i == 0 ? "--threads 1" : "--processes 2 --threads 1");
    expect(129);
    ok("grep 'SIGHUP: saved step' err && inspect m");
    run("nohup train --resume --threads 1 --log log --log-every 1 -o m --max-steps 999999 > out 2> "
        "err & pid=$!\n"
        "n=$(wc -l < log); until [ $(wc -l < log) -gt $n ]; do sleep 0.01; done\n"
        "kill -HUP $pid; n=$(wc -l < log); until [ $(wc -l < log) -gt $n ]; do sleep 0.01; done\n"
        "kill -TERM $pid; wait $pid");
    expect(143);
}

/* Signals that are ignored at the start stay ignored: a shell ignores SIGINT for a background job,
 * and a trap may ignore other signals. */
TEST(ignored_signals_stay_ignored) {
    run("trap '' INT HUP TERM; train --task copy --d-model 16 --heads 2 --layers 1 --d-ff 16 "
        "--threads 1 --log log --log-every 1 -o m --max-time 1 2> err & pid=$!\n"
        "until grep -q '\"step\":3,' log 2> /dev/null || ! kill -0 $pid; do sleep 0.01; done\n"
        "kill -INT $pid; kill -HUP $pid; kill -TERM $pid; wait $pid");
    expect(0);
    ok("grep -e '--max-time: saved step' err && inspect m");
}

/* ---- what is told ---------------------------------------------------------------------------- */

/* A command, its exit code, and a text that its message must contain. */
static const struct {
    const char *command;
    int status;
    const char *says;
} told[] = {
    { "train --task copy --d-model 8 --heads 2 --layers 1 --max-steps 1 --valid-size 0", 0,
      "the model will not be kept: -o FILE would save it\ntask" },
    { "tr '\\t' , < pairs > p.csv; train --train p.csv", 1, "if commas part them" },
    { "{ cat pairs; head -c 50 /dev/zero; cat pairs; } > b; train --text b --text-eval-size 0 "
      "--max-len 8 --dry-run",
      0, "50 bytes of it are zero: is it a text?" },
    { "{ cat pairs; printf 'caf\\351\\n'; head -c 50 /dev/zero; } > b; train --text b "
      "--text-eval-size 0 --max-len 8 --dry-run",
      1, "b is no text: it is not UTF-8 at byte 291, and 50 bytes are zero\n" },
    { "{ cat pairs; printf 'caf\\351\\n'; cat pairs; } > b; train --text b --text-eval-size 0 "
      "--max-len 8 --dry-run",
      0,
      "the text to learn from is not UTF-8 at byte 291; iconv -f LATIN1 -t UTF-8 "
      "converts Latin-1" },
    { "train --task pairs --train pairs " SHORT, 0, "loss/line perplexity accuracy    lines/s" },
    { "tokenize --learn wordpiece --vocab-size 33 -i pairs -o j; train --task mask --text pairs "
      "--tokenizer-json j " SHORT,
      0, "loss/token perplexity accuracy   hidden/s" },
    { "cut -f1 pairs > f; train --train f", 1, "For two files: --train-src and --train-tgt" },
    { "train --task copy -o none/m", 1,
      "none/m can't be written: there is no folder none (mkdir -p makes it)" },
    { "train --task copy --d-model 16384 --layers 100 --dry-run", 1, " TB and this machine has " },
    { "cut -f1 pairs > f; train --train-src f --train-tgt f --dry-run", 0,
      "sources and targets are the lines of one file" },
    { "train --task copy --max-steps 1 --valid-size 0 --curve c.png", 1,
      "c.png: weft does not write .png files: its pictures are .svg" },
    { "train --train pairs --like t5 --dry-run", 0, "leaves this tokenizer out; one of --spm-src" },
    { "train --train pairs --like bart --dry-run", 0, " ids for both sides\n" },
    { "train --task copy --max-steps 1 --valid-size 0 --quiet -o m; convert --to hf m -o pairs", 1,
      "pairs can't be written into: it is not a folder" },
    { "train --task lm --text pairs --text-eval-size 0 --max-len 16 --max-steps 1 --quiet -o m; "
      "echo a dog | generate m --max-new-tokens 99",
      0, "have at most 15 tokens together in this model" },
    { "train --train pairs --valid pairs --dry-run", 0, "scores on them say nothing of others" },
    { "train --train pairs --valid pairs --d-model 8 --heads 2 --layers 1 --max-steps 1", 0,
      "sequences it has learned from: loss" },
    { "train --train pairs --processes 2 --d-model 8 --heads 2 --layers 1 --max-steps 1", 0,
      "as --accum says: give --accum 2\n" },
    { "train --train pairs --valid pairs --d-model 8 --heads 2 --layers 1 --max-steps 1 --quiet -o "
      "m; train --resume --train pairs --valid pairs --max-steps 2 -o m",
      0, ": a lower loss replaces it\n" },
};

TEST_ROWS(a_likely_mistake_is_told, COUNT_OF(told)) {
    make_pairs();
    run("%s", told[_i].command);
    expect(told[_i].status);
    assert_contains(result.err, told[_i].says);
}

/* Without a progress bar, a line is printed after 30 s without output. It is not an event. */
TEST(silence_ends_with_a_line) {
    char text[1000];
    progress p = { .step = 7, .total = 9, .loss = 1, .nll = 1, .speed = 1 };
    report r = { .log = -1 };
    fflush(stderr);
    int kept = dup(STDERR_FILENO);
    ck_assert(kept >= 0 && freopen("said", "w", stderr));
    say(&r, "first");
    report_bar(&r, &p);
    r.said_at -= 31;
    report_bar(&r, &p), report_bar(&r, &p);
    fflush(stderr);
    ck_assert(dup2(kept, STDERR_FILENO) == STDERR_FILENO && close(kept) == 0);
    read_text("said", text, sizeof text);
    const char *at = strstr(text, "7/9");
    ck_assert_msg(at && !strstr(at + 1, "7/9"), "%s", text);
}

/* ---- the result ------------------------------------------------------------------------------ */

/* The result of a training is one figure, chosen by the kind of data: BLEU for sentences, the
 * number of exact matches for data that are right or wrong. */
static const struct {
    const char *options, *result, *said, *unsaid;
} results[] = {
    { "--tokenizer bpe --vocab-size 60", "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|", NULL,
      "exact match" },
    { "--tokenizer word", "exact match ", "word error rate ", "BLEU" },
    { "--tokenizer char", "exact match ", "character error rate ", "BLEU" },
};

TEST_ROWS(the_result_is_one_line, COUNT_OF(results)) {
    make_pairs();
    run("train --train pairs --valid pairs --d-model 8 --heads 2 --layers 1 --d-ff 8 --threads 1 "
        "--max-steps 2 --log log %s",
        results[_i].options);
    expect(0);
    ck_assert_int_eq(strncmp(result.out, results[_i].result, strlen(results[_i].result)), 0);
    ck_assert_str_eq(strchr(result.out, '\n'), "\n");
    if (results[_i].said) assert_contains(result.err, results[_i].said);
    ck_assert_ptr_null(strstr(result.out, results[_i].unsaid));
    ok("grep '\"event\":\"valid\"' log | grep '\"bleu\"' | grep '\"chrf\"' | grep -q '\"wer\"'");
}
