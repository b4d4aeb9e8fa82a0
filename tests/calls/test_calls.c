/* tests/calls/test_calls.c - the public functions, called at random and with NULL in every place.
 *
 * table.py reads the public headers and writes a function for each declaration that draws its
 * arguments from world.h: valid ones, failed ones, those of another graph, NULL, the ends of types.
 * So no function can be forgotten; table.py lists those that it cannot call, with the reason.
 *
 * After every call the test asks: a result that is promised never to be NULL is not NULL; a
 * function that returns false has said why; the graph and its plans are fine or say their error.
 * Nothing may crash or be printed. At the end the plan that was made first still computes its
 * numbers, and all is freed.
 *
 *     WEFT_CALLS=5000000 build/tests/weft-tests calls       the number of calls
 *     WEFT_CALLS_SEED=2 ... calls                           another sequence
 *     WEFT_CALLS_LOUD=1 ... calls                           print each function before its call */
#define _XOPEN_SOURCE 700
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/suites.h"
#include "tests/support/faults.h"
#include "world.h"

TESTS(calls)

typedef struct public_function {
    const char *name;
    void (*call)(world *w);
    uint32_t pointers; /* bit i: parameter i can be NULL */
} public_function;

#include "table.inc"

enum { ROWS = 8, CALLS = 24000, CALLS_OF_A_WORLD = 150, LARGEST = 1 << 21 };

/* ---- what is printed ------------------------------------------------------------------------- */

static int before[2], printed;

/* Redirects stdout and stderr to a file without a name, whose size shows whether something was
 * printed; not with WEFT_CALLS_LOUD. */
static void open_streams(void) {
    char name[] = "/tmp/weft-printed-XXXXXX";
    open_folder();
    faults_largest(LARGEST);
    if (getenv("WEFT_CALLS_LOUD")) return;
    printed = mkstemp(name);
    ck_assert(printed >= 0 && unlink(name) == 0);
    for (int i = 0; i < 2; i++) {
        before[i] = dup(i + 1);
        ck_assert_int_eq(dup2(printed, i + 1), i + 1);
    }
}

static void close_streams(void) {
    faults_largest(0);
    if (printed) {
        off_t bytes = lseek(printed, 0, SEEK_END);
        for (int i = 0; i < 2; i++) ck_assert_int_eq(dup2(before[i], i + 1), i + 1);
        ck_assert_msg(bytes == 0, "the library prints %lld bytes", (long long)bytes);
    }
    close_folder();
}

SETUP(open_streams, close_streams)

/* ---- at random ------------------------------------------------------------------------------- */

static int64_t number_of(const char *variable, int64_t otherwise) {
    const char *text = getenv(variable);
    return text && *text ? strtoll(text, NULL, 10) : otherwise;
}

/* One sequence of calls in a world of its own. In worlds of different seeds, 2 to 50 % of the
 * arguments are odd. */
static void live(uint64_t seed) {
    world w;
    open_world(&w, seed, 2 + (int)(seed % 7) * 8);
    if (w.loud) dprintf(2, "seed %llu\n", (unsigned long long)seed);
    int since = 0;
    for (int i = 0; i < CALLS_OF_A_WORLD; i++) {
        functions[dice(&w, COUNT_OF(functions))].call(&w);
        end_call(&w);
        since = wf_ok(current(&w)) ? 0 : since + 1;
        if (since > 3 && !next_graph(&w)) break;
    }
    close_world(&w);
}

TEST_ROWS(any_sequence_of_calls_is_survived, ROWS) {
    int64_t calls = number_of("WEFT_CALLS", CALLS) / ROWS;
    uint64_t seed = (uint64_t)number_of("WEFT_CALLS_SEED", 1) * 1000003;
    for (int64_t i = 0; i * CALLS_OF_A_WORLD < calls; i++) live(seed + (uint64_t)(i * ROWS + _i));
}

/* ---- NULL ------------------------------------------------------------------------------------ */

static void call_without(const public_function *f, uint32_t nulls) {
    world w;
    open_world(&w, nulls, 0);
    w.nulls = nulls;
    f->call(&w);
    end_call(&w);
    w.nulls = 0;
    close_world(&w);
}

TEST(every_function_takes_null_in_every_place) {
    for (int i = 0; i < COUNT_OF(functions); i++) {
        const public_function *f = &functions[i];
        for (int place = 0; place < 16; place++)
            if (f->pointers >> place & 1) call_without(f, 1u << place);
        call_without(f, f->pointers);
    }
}
