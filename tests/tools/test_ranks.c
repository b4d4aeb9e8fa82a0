/* tests/tools/test_ranks.c - the lock that allows one training at a time on a file; and trainings
 * by several processes: the same files as by one, and the end of all if one fails. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/file.h"
#include "core/file_internal.h"
#include "tests/suites.h"
#include "tests/support/commands.h"

TESTS(ranks)

#define SIZE "--d-model 16 --heads 2 --layers 1 --d-ff 24 --max-len 8 "
#define COPY "train --task copy --quiet --threads 1 " SIZE "--valid-size 0 "

SETUP(enter_folder, leave_folder)

/* ---- one run at a time ----------------------------------------------------------------------- */

/* Starts a training that does not end by itself, and waits for its first save: from then on it
 * holds the lock, and there is a file to resume. */
#define ENDLESS                                                                                    \
    COPY "--max-steps 1000000000 --save-every 1 -o m & first=$!; "                                 \
         "until [ -e m ]; do sleep 0.01; done; "

/* A second training on the same file is refused: new, by another name of the file, and resumed. */
TEST_ROWS(two_runs_on_one_file_are_refused, 3) {
    static const char *const second[] = { COPY "--max-steps 1 -o m", COPY "--max-steps 1 -o link",
                                          "train --resume --quiet --max-steps 1000000 -o ./m" };
    run("ln -s m link; " ENDLESS "%s; second=$?; kill -TERM $first; wait $first; echo $? $second",
        second[_i]);
    ck_assert_str_eq(result.out, "143 1\n");
    assert_contains(result.err, " is being written by another run: wait for its end");
    ok("test ! -e m.lock");
    ok("train --resume --quiet -o m --max-steps 1000000 --max-time 0.001");
}

/* While a training holds the lock, inspect may read the file, and a dry run is allowed. */
TEST(a_locked_file_is_read) {
    run(ENDLESS COPY "--max-steps 2 --dry-run -o m && inspect m > /dev/null; second=$?; "
                     "kill -TERM $first; wait $first; echo $second");
    ck_assert_str_eq(result.out, "0\n");
}

TEST(a_killed_run_leaves_no_lock) {
    run(ENDLESS "kill -KILL $first; wait $first; " COPY "--max-steps 1 -o m --overwrite");
    expect(0);
    ok("test ! -e m.lock");
}

/* A run that fails after it took the lock removes it. */
TEST(a_failed_run_leaves_no_lock) {
    run(COPY "--max-steps 1 --init none -o m");
    expect(1);
    run("train --resume -o none");
    expect(1);
    assert_contains(result.err, "none is not there: a training writes it first after");
    ok("test ! -e m.lock && test ! -e none.lock");
}

/* A file that is not a lock is not touched. */
TEST(a_file_of_the_locks_name_stays) {
    ok("echo mine > m.lock");
    run(COPY "--max-steps 1 -o m");
    expect(1);
    assert_contains(result.err, "m.lock is in the way: it is no lock of a run");
    ok("grep -q mine m.lock && rm m.lock && echo mine > other && ln -s other m.lock");
    run(COPY "--max-steps 1 -o m");
    expect(1);
    assert_contains(result.err, "m.lock could not be made");
    ok("grep -q mine other");
}

TEST(what_can_not_be_written_is_said_as_before) {
    run(COPY "--max-steps 1 -o none/m");
    expect(1);
    assert_contains(result.err, "none/m can't be written: there is no folder none");
    run(COPY "--max-steps 1 -o /dev/null");
    expect(1);
    assert_contains(result.err, "/dev/null can't be written: it is not an ordinary file");
    ok(COPY "--max-steps 1");
}

/* ---- several processes are one --------------------------------------------------------------- */

#define TEXT "train --train pairs --tokenizer char --max-tokens 40 --batch-size 3 --warmup 2 " SIZE
#define LM "train --task lm --tokenizer byte --max-tokens 32 --warmup 2 " SIZE
#define NUMBERS "train --task copy --batch-size 4 --valid-size 120 --warmup 2 " SIZE
#define STEPS "--max-steps 8 --save-every 3 --log-every 1 "

static void make_texts(void) {
    enter_folder();
    ok("for i in 1 2 3 4 5 6 7; do printf 'one two\\tein zwei\\nthree\\tdrei\\nfour a b\\tvier a "
       "b\\n"
       "five\\tf\\n'; done > pairs; head -11 pairs > held; cut -f 1 pairs > text");
}

/* A command that removes from events what may differ between runs: times, memory, the numbers of
 * threads and ranks, and the traffic between ranks. */
#define WITHOUT_TIMES                                                                              \
    "sed -E 's/\"(seconds|tokens_per_second|memory|threads|ranks|exchange_share|bytes_sent)\":"    \
    "[^,}]*,?//g'"

/* Trains with this number of processes and threads, and keeps the files, events and results for a
 * comparison with one process. */
static void train_as(const char *name, const char *command, int processes, int threads) {
    run("%s " STEPS "--processes %d --threads %d -o %s --overwrite --log %s.log > %s.out 2> %s.err",
        command, processes, threads, name, name, name, name);
    expect(0);
    run("for f in %s.best %s; do test ! -e $f || sha256sum < $f; done; " WITHOUT_TIMES
        " %s.log; cat %s.out; grep -E '(\\|)|(rate)|(bits)|(unseen)|(kept)' %s.err | sed "
        "s/%s/m/g",
        name, name, name, name, name, name);
    expect(0);
}

static void expect_the_same(const char *command) {
    static char alone[sizeof result.out];
    train_as("alone", command, 1, 1);
    strcpy(alone, result.out);
    assert_contains(alone, "\"event\":\"end\"");
    static const int processes[] = { 2, 3, 4, 8 };
    for (int i = 0; i < 4; i++) {
        train_as("m", command, processes[i], i == 1 ? 2 : 1);
        ck_assert_msg(strcmp(result.out, alone) == 0, "%d processes: %s\nand one:\n%s",
                      processes[i], result.out, alone);
    }
}

SETUP(make_texts, leave_folder)

TEST_ROWS(parts_of_any_number, 5) {
    static const int parts[] = { 1, 2, 3, 5, 8 };
    char command[300];
    snprintf(command, sizeof command, TEXT "--valid held --accum %d --dropout 0.1 --ema 0.8",
             parts[_i]);
    expect_the_same(command);
}

TEST_ROWS(optimizers_of_all_kinds, 6) {
    static const char *const options[] = {
        "sgd --momentum 0.5 --lr 0.1", "adam --clip-norm 0.1",  "adamw --weight-decay 0.1",
        "rmsprop --ema 0.9",           "adagrad --dropout 0.2", "lion --lr 1e-3 --clip-norm 0"
    };
    char command[300];
    snprintf(command, sizeof command, TEXT "--accum 3 --optimizer %s", options[_i]);
    expect_the_same(command);
}

TEST_ROWS(models_of_all_kinds, 6) {
    static const char *const commands[] = {
        NUMBERS "--dropout 0.1 --valid-every 3",
        LM "--text text --valid-every 4 --accum 3 --ema 0.5",
        LM "--text text --accum 2 --form llama --kv-heads 1 --text-eval-size 0",
        TEXT "--arch language --accum 4 --valid held --share-vocab --tie decoder",
        TEXT "--tie all --share-vocab --accum 2 --label-smoothing 0.1 --attention-dropout 0.1",
        TEXT "--accum 2 --freeze transformer.encoder --valid held --patience 1 --valid-every 1",
    };
    expect_the_same(commands[_i]);
}

/* A training in parts, each with another number of processes, gives the file of one process. */
TEST_ROWS(parts_of_a_training_at_any_number, 3) {
    static const char *const commands[] = { TEXT "--accum 5 --ema 0.9 --dropout 0.1",
                                            LM "--text text --accum 2 --optimizer rmsprop",
                                            NUMBERS "--optimizer sgd" };
    static const char *const data[] = { "--train pairs", "--text text", "--valid-size 0" };
    run("%s --quiet --max-steps 12 --lr-steps 12 -o whole", commands[_i]);
    expect(0);
    run("%s --quiet --max-steps 3 --lr-steps 12 --processes 3 -o m", commands[_i]);
    expect(0);
    static const int processes[] = { 1, 4, 2 };
    for (int i = 0; i < 3; i++) {
        run("train --resume -o m %s --quiet --threads 1 --processes %d --max-steps %d", data[_i],
            processes[i], 6 + 3 * i);
        expect(0);
    }
    ck_assert(same_files("whole", "m"));
}

/* A text from a pipe works with several processes, because it is read before they are started. */
TEST(a_pipe_is_a_text_for_all) {
    ok(LM "--text text --quiet --accum 4 --max-steps 3 -o a");
    ok("cat text | " LM "--text /dev/stdin --quiet --accum 4 --max-steps 3 -o b --processes 3");
    ck_assert(same_files("a", "b"));
}

/* Several processes can start from the weights of a model (--init). */
TEST(several_start_from_a_model) {
    ok(TEXT "--quiet --max-steps 3 -o start");
    ok("train --quiet --init start --train pairs --accum 2 --threads 1 --max-steps 3 -o a");
    ok("train --quiet --init start --train pairs --accum 2 --threads 1 --max-steps 3 -o b "
       "--processes 2");
    ck_assert(same_files("a", "b"));
}

/* More processes than batches in an update are allowed, with a message: some then have no work. */
TEST(ranks_without_a_batch_are_told) {
    ok(TEXT "--accum 2 --processes 5 --max-steps 1");
    assert_contains(
        result.err,
        "ranks without a batch: 3; batches in an update: 2, as --accum says: give --accum 5");
}

TEST(who_speaks_and_writes) {
    ok(TEXT
       "--accum 4 --processes 3 --max-steps 3 --log-every 1 --curve c.svg --log l --json --valid "
       "held -o m");
    ok("grep -c '\"event\":\"run\"' l | grep -x 1 && grep -c '\"event\":\"end\"' l | grep -x 1");
    ok("ls | tr '\\n' ' '");
    ck_assert_str_eq(result.out, "c.svg held l m m.best pairs text ");
}

/* ---- failures -------------------------------------------------------------------------------- */

#define ANY_LENGTH TEXT "--accum 4 --ema 0.9 --lr-schedule constant --quiet --threads 1 "
/* Starts a training of three processes that does not end by itself, and waits for its first save.
 * `rank N` prints the process id of a rank, counted from 1. */
#define THREE                                                                                      \
    "rank() { cat /proc/[0-9]*/stat 2> /dev/null | awk -v p=$first '$4 == p { print $1 }' | "      \
    "sort -n | sed -n ${1}p; }; " ANY_LENGTH                                                       \
    "--max-steps 1000000000 --save-every 1 -o m --log log --processes 3 "                          \
    "& first=$!; until [ -e m ]; do sleep 0.01; done; "

static int saved_step(void) {
    run("inspect m | sed -n 's/^ *train.step *//p'");
    int step = atoi(result.out);
    ck_assert_msg(step > 0, "no step: %s", result.out);
    return step;
}

/* Resumes the interrupted training with this number of processes: the result must be the file of a
 * training that was never interrupted. */
static void expect_to_go_on(int processes) {
    int step = saved_step() + 3;
    run("train --resume -o m --train pairs --quiet --threads 1 --max-steps %d --processes %d", step,
        processes);
    expect(0);
    run(ANY_LENGTH "--max-steps %d -o whole --overwrite", step);
    expect(0);
    ck_assert(same_files("whole", "m"));
    ok("test ! -e m.lock && ! ls | grep tmp");
}

/* Sentences of the last run. */
static int sentences(void) {
    int n = 0;
    for (const char *at = result.err; (at = strstr(at, "train: ")) != NULL; at++) n++;
    return n;
}

/* The last run must have printed the message once (none if it is empty), and ended with the code.
 * If `logged`, the last event of the log has the code, too. */
static void expect_an_end(int code, const char *sentence, bool logged) {
    char text[40], line[300];
    snprintf(text, sizeof text, "%d\n", code);
    snprintf(line, sizeof line, *sentence ? "train: %s\n" : "%s", sentence);
    ck_assert_str_eq(result.out, text);
    ck_assert_str_eq(result.err, line);
    if (!logged) return;
    run("tail -n 1 log");
    snprintf(line, sizeof line, "\"status\":%d}", code);
    assert_contains(result.out, line);
}

TEST_ROWS(a_killed_rank_ends_all, 3) {
    char sentence[100];
    run(THREE "kill -KILL $(rank %d); wait $first; echo $?", _i + 1);
    snprintf(sentence, sizeof sentence, "rank %d was killed by signal 9", _i);
    expect_an_end(137, sentence, _i > 0);
    static const int processes[] = { 2, 1, 5 };
    expect_to_go_on(processes[_i]);
}

TEST(a_stopped_rank_ends_all) {
    run(THREE "kill -STOP $(rank 2); wait $first; echo $?");
    expect_an_end(124, "rank 1 sent no heartbeat for 10 seconds", true);
    expect_to_go_on(4);
}

/* A signal to the program that started the ranks stops all of them after the same step. One that is
 * sent to a single rank has no effect. */
TEST_ROWS(a_signal_stops_all_after_the_same_step, 2) {
    static const char *const names[] = { "TERM", "HUP" };
    signal(SIGHUP, SIG_DFL); /* ignored if nohup started the tests */
    run(THREE "kill -%s $(rank 2); kill -%s $first; wait $first; echo $?", names[_i], names[_i]);
    expect_an_end(_i ? 129 : 143, "", true);
    int step = saved_step();
    run("grep '\"event\":\"signal\"' log | grep -c '\"step\":%d,'", step);
    ck_assert_str_eq(result.out, "1\n");
    expect_to_go_on(2);
}

/* A signal that comes twice at once, as from GNU timeout, counts once, so that the training
 * saves. */
TEST(a_signal_twice_at_once_saves) {
    run(THREE "kill -TERM $first; kill -TERM $first; wait $first; echo $?");
    expect_an_end(143, "", true);
    expect_to_go_on(2);
}

/* With --max-time, rank 0 decides by its clock when all ranks stop. */
TEST(a_time_limit_stops_all_after_the_same_step) {
    run(ANY_LENGTH "--max-steps 1000000000 --max-time 0.2 --profile --json -o m --processes 3");
    expect(0);
    assert_contains(result.out, "\"event\":\"profile\"");
    expect_to_go_on(4);
}

/* If the program that started the ranks is killed, they end. Until then, the output file is
 * locked. */
TEST(ranks_do_not_outlive_their_program) {
    run(THREE "kill -KILL $first; wait $first; until train --resume -o m --train pairs --quiet "
              "--max-steps 1000000000 --max-time 0.001 2> said; do grep -v 'by another run' said "
              "&& break; sleep 0.1; done; cat said");
    ck_assert_str_eq(result.out, "");
    expect_to_go_on(3);
}

/* The disk is full when the resumed training saves. Three processes print the messages of one
 * process, and each once. */
TEST_ROWS(a_full_disk_is_told_once, 2) {
    ok(ANY_LENGTH "--max-steps 2 -o m");
    run("(ulimit -f 8; exec train --resume -o m --train pairs --threads 1 --max-steps 4 "
        "--save-every 1 --processes %d --quiet); echo $?",
        _i ? 3 : 1);
    ck_assert_str_eq(result.out, "1\n");
    ck_assert_int_eq(sentences(), 3);
    assert_contains(result.err, "train: step 3 is not saved: ");
    ck_assert_int_eq(saved_step(), 2);
    expect_to_go_on(2);
}

TEST_ROWS(numbers_that_are_not_finite_end_all, 2) {
    run(TEXT "--accum 4 --quiet --max-steps 50 --optimizer sgd --lr 1e6 --clip-norm 0 -o m "
             "--save-every 1 --log log --processes %d; echo $?",
        _i ? 3 : 1);
    ck_assert_str_eq(result.out, "3\n");
    ck_assert_int_eq(sentences(), 1);
    assert_contains(result.err, "is not finite; lower --lr or --clip-norm");
    ok("grep '\"event\":\"nonfinite\"' log");
}

/* The message about a number that is not finite is printed once, whichever rank ends first. */
TEST_ROWS(a_dry_run_says_what_is_not_finite, 4) {
    run(TEXT "--accum 4 --quiet --dry-run --max-steps 10 --optimizer sgd --lr 1e6 "
             "--clip-norm 0 --processes 4; echo $?");
    ck_assert_str_eq(result.out, "3\n");
    ck_assert_int_eq(sentences(), 1);
    assert_contains(result.err, "is not finite; lower --lr or --clip-norm");
}

/* Commands that are refused. With several processes, too, the message is printed once. */
static const struct {
    const char *command;
    int status;
    const char *says;
} refused[] = {
    { TEXT "--processes 3 --d-model 15 -o m", 2, "--d-model" },
    { TEXT "--processes 3 --freeze nothing -o m", 2, "nothing" },
    { TEXT "--processes 3 -o none/m", 1, "none/m can't be written" },
    { TEXT "--processes 2 --resume -o pairs", 1, "pairs" },
    { TEXT "--processes 257", 2, "--processes: 257 is outside the range 1..256" },
    { TEXT "--ranks 2", 2, "--ranks would have no effect: it is for --dry-run" },
    { TEXT "--dry-run --network 1Gb,1ms", 2, "--network would have no effect: it is for a --dry" },
    { TEXT "--dry-run --ranks 2 --processes 2", 2, "--ranks would have no effect: --processes" },
    { TEXT "--dry-run --ranks 2 --network 1Gb", 2,
      "--network 1Gb: give a rate in Gb, Mb or kb per second and a delay" },
    { TEXT "--dry-run --ranks 2 --network 1,1", 2, "--network 1,1: give a rate in Gb" },
    { TEXT "--dry-run --ranks 2 --network 0Gb,1us", 2, "--network 0Gb,1us: give a rate in Gb" },
};

TEST_ROWS(mistakes_are_told_once, COUNT_OF(refused)) {
    run("%s", refused[_i].command);
    expect(refused[_i].status);
    assert_contains(result.err, refused[_i].says);
    ck_assert_int_eq(sentences(), 1);
}

/* ---- what it would take ---------------------------------------------------------------------- */

static double number_in(const char *event, const char *key) {
    char begins[40], number[40] = "";
    double value = -1;
    snprintf(begins, sizeof begins, "\"event\":\"%s\"", event);
    const char *at = strstr(result.out, begins);
    snprintf(begins, sizeof begins, "\"%s\":", key);
    at = at ? strstr(at, begins) : NULL;
    if (at) snprintf(number, sizeof number, "%.*s", (int)strcspn(at, ",}"), at);
    ck_assert_msg(at && wf_parse_real(number + strlen(begins), &value), "no %s of %s in %s", key,
                  event, result.out);
    return value;
}

/* The bytes that a dry run predicts for ranks are those that real ranks send. With a power of two
 * of micro-batches, each of two ranks sends half of its sum of the gradients and half of the
 * parameters: 4 bytes for each parameter. */
TEST_ROWS(bytes_are_as_foretold, 5) {
    static const int parts[] = { 4, 1, 3, 7, 8 };
    for (int ranks = 2; ranks < 6; ranks++) {
        run(TEXT "--accum %d --dry-run --quiet --json --ranks %d", parts[_i], ranks);
        expect(0);
        double sent = number_in("ranks", "sent"), received = number_in("ranks", "received");
        double parameters = number_in("run", "parameters");
        if (ranks == 2 && parts[_i] == 4)
            ck_assert_msg(sent >= 4 * parameters && sent < 4.1 * parameters, "%g bytes", sent);
        run(TEXT "--accum %d --dry-run --quiet --json --processes %d", parts[_i], ranks);
        expect(0);
        ck_assert_double_eq(sent, number_in("ranks", "sent"));
        ck_assert_double_eq(received, number_in("ranks", "received"));
        ck_assert_double_eq(number_in("ranks", "batches"), (parts[_i] + ranks - 1) / ranks);
    }
}

/* Predicted times on a network with a long delay, and on one with a low rate. A dry run writes no
 * file. */
TEST(a_network_takes_its_time) {
    run(TEXT "--accum 4 --dry-run --quiet --json --ranks 4 --network 1000Gb,2s -o m");
    expect(0);
    ck_assert_double_gt(number_in("network", "exchanging"), 2 * 4);
    run(TEXT "--accum 4 --dry-run --quiet --json --ranks 4 --network 1kb,1us -o m");
    expect(0);
    double bytes = fmax(number_in("ranks", "sent"), number_in("ranks", "received"));
    double seconds = number_in("network", "exchanging");
    /* each exchange takes the time of the direction with more bytes, so the sum may take longer */
    ck_assert_msg(seconds >= bytes / 125 && seconds < 2 * bytes / 125, "%g s for %g bytes", seconds,
                  bytes);
    ck_assert_double_gt(number_in("network", "seconds"), seconds);
    ck_assert_double_lt(number_in("network", "efficiency"), 0.1);
    ok("test ! -e m && test ! -e m.lock");
}

TEST(what_is_exchanged_is_said) {
    run(TEXT "--accum 4 --processes 2 --max-steps 2 --log-every 2 --json");
    expect(0);
    assert_contains(result.err, "2 ranks of ");
    ck_assert_ptr_null(strstr(result.err, "without a batch"));
    assert_contains(result.err, " of it exchanging and waiting; ");
    double share = number_in("step", "exchange_share");
    ck_assert(share > 0 && share < 1);
    ck_assert_double_gt(number_in("step", "bytes_sent"), 4 * number_in("run", "parameters"));
}
