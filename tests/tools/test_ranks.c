/* tests/tools/test_ranks.c - one training at a time on a file, and one training by several
 * processes: the same files, and what becomes of it when one of them fails. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/suites.h"
#include "tests/support/commands.h"

TESTS(ranks)

#define SIZE "--d-model 16 --heads 2 --layers 1 --d-ff 24 --max-len 8 --threads 1 "
#define COPY "train --task copy --quiet " SIZE "--valid-size 0 "

SETUP(enter_folder, leave_folder)

/* ---- one run at a time ----------------------------------------------------------------------- */

/* A training that does not end by itself. It has begun when its lock is there, and the second
 * comes when the first has saved: from then on there is a file to resume. */
#define ENDLESS                                                                                    \
    COPY "--max-steps 1000000000 --save-every 1 -o m & first=$!; "                                 \
         "until [ -e m ]; do sleep 0.01; done; "

/* Under another name too, and to go on from it. */
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

/* Others may read it, and say what they would do. */
TEST(a_locked_file_is_read) {
    run(ENDLESS COPY "--max-steps 2 --dry-run -o m && inspect m > /dev/null; second=$?; "
                     "kill -TERM $first; wait $first; echo $second");
    ck_assert_str_eq(result.out, "0\n");
}

TEST(a_killed_run_leaves_no_lock) {
    run(ENDLESS "kill -KILL $first; wait $first; " COPY "--max-steps 1 -o m");
    expect(0);
    ok("test ! -e m.lock");
}

/* By a failure after it was taken. */
TEST(a_failed_run_leaves_no_lock) {
    run(COPY "--max-steps 1 --init none -o m");
    expect(1);
    run("train --resume -o none");
    expect(1);
    assert_contains(result.err, "none: cannot be opened");
    ok("test ! -e m.lock && test ! -e none.lock");
}

/* What is no lock is not touched. */
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
    assert_contains(result.err, "none/m can't be written: No such file");
    run(COPY "--max-steps 1 -o /dev/null");
    expect(1);
    assert_contains(result.err, "/dev/null can't be written: it is not an ordinary file");
    ok(COPY "--max-steps 1");
}
