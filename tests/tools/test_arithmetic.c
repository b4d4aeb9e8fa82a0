/* tests/tools/test_arithmetic.c - the same bits on every processor: the hash of `bench signature`,
 * a training that is resumed with another instruction set, stored weights, and ranks with different
 * instruction sets. */
#include <stdio.h>
#include <stdlib.h>

#include <unistd.h>

#include "core/transport.h"
#include "nn/layers.h"
#include "nn/trainer.h"
#include "ops/kernels/kernels.h"
#include "tests/suites.h"
#include "tests/support/commands.h"

TESTS(arithmetic)

/* The hash is also in README.md, SECURITY.md and CHANGES.md. A change of the arithmetic must change
 * it in all of them, and be named in CHANGES.md, because resumed trainings then get other bits. */
#define SIGNATURE "27f19679d6b0eb5b2ccae7b845a6430f\n"

SETUP(enter_folder, leave_folder)

enum { MOST_SETS = 4 };

/* The hash is computed with every instruction set that runs here: with the best on one thread, with
 * the others on two. Sanitized builds use the best set only, because builds without sanitizers
 * compare the others. */
TEST_ROWS(the_signature_is_the_published_one, MOST_SETS) {
    const wf_kernels_f32 *t = wf_f32_at(_i);
    if (!t || (SANITIZED && t != wf_f32())) return;
    run("WEFT_ISA=%s bench signature --threads %d", t->isa, t == wf_f32() ? 1 : 2);
    expect(0);
    ck_assert_str_eq(result.out, SIGNATURE);
}

TEST(the_signature_stands_in_the_readme) {
    run("grep -c '%.*s' " WEFT_TEST_DATA "/../../README.md " WEFT_TEST_DATA
        "/../../SECURITY.md " WEFT_TEST_DATA "/../../CHANGES.md",
        (int)sizeof SIGNATURE - 2, SIGNATURE);
    expect(0);
}

#define TRAIN "train --quiet --threads 1 --valid-size 20 -o "
#define TASK                                                                                       \
    " --task sort --d-model 24 --heads 2 --layers 1 --d-ff 32 --batch-size 8 --dropout 0.1 "       \
    "--ema 0.9 --warmup 5 --lr-steps 30 "

/* A training whose three parts run with the first instruction set, the last one, and the first
 * again writes the same file as a training with the last one alone. */
TEST(a_training_goes_on_with_another_instruction_set) {
    const char *first = wf_f32_at(0)->isa, *last = first;
    for (int i = 0; wf_f32_at(i); i++) last = wf_f32_at(i)->isa;
    run("WEFT_ISA=%s " TRAIN "one" TASK "--max-steps 30", last);
    expect(0);
    run("WEFT_ISA=%s " TRAIN "parts" TASK "--max-steps 10 && WEFT_ISA=%s train --resume --quiet "
        "--max-steps 20 -o parts && WEFT_ISA=%s train --resume --quiet --max-steps 30 -o parts",
        first, last, first);
    expect(0);
    ck_assert(same_files("one", "parts"));
}

/* Matrices whose widths are multiples of the panels' width with some instruction sets, or with
 * none. Every set must store the same weights in bf16 or int8, or decoding would give other
 * bits. */
TEST_ROWS(weights_are_kept_the_same_with_every_instruction_set, 4) {
    static const int widths[] = { 24, 32, 48, 96 };
    run("train --task copy --quiet --threads 1 --valid-size 20 --max-steps 30 --d-model %d --heads "
        "2 "
        "--layers 1 --d-ff 40 --batch-size 8 -o model && for i in 1 2 3 4 5 6 7 8 9; do "
        "echo 1 $i 3 $i 5 7; done > lines",
        widths[_i]);
    expect(0);
    for (int k = 0; k < 2; k++)
        for (int i = 0; wf_f32_at(i); i++) {
            run("WEFT_ISA=%s generate --model model -i lines --weights %s --nbest 3 --sample "
                "--quiet "
                "--threads 1 -o %s",
                wf_f32_at(i)->isa, k ? "int8" : "bf16", i ? "other" : "first");
            expect(0);
            ck_assert_msg(same_files("first", i ? "other" : "first"), "%s", wf_f32_at(i)->isa);
        }
}

/* ---- ranks ----------------------------------------------------------------------------------- */

enum { ROWS = 12, WIDTH = 70, PARTS = 4, UPDATES = 6 };

static bool update(wf_trainer *t, const wf_tensor *x) {
    float drawn[ROWS * WIDTH];
    int64_t step = wf_trainer_steps(t), i, to;
    bool ok = wf_trainer_begin(t, PARTS, &i, &to);
    for (; ok && i < to; i++) {
        for (int k = 0; k < ROWS * WIDTH; k++)
            drawn[k] = (float)wf_random_normal((uint64_t)(step * PARTS + i), (uint64_t)k);
        ok = wf_feed(wf_trainer_plan(t), x, drawn, sizeof drawn) && wf_trainer_add(t, i);
    }
    return ok && wf_trainer_update(t, NULL);
}

/* Trains a small network and saves it at `path`. Ranks use different instruction sets, and the best
 * one in place of a set that this processor lacks; `ranks` NULL: one process trains. Returns 0 if
 * it succeeded. WEFT_ISA is set before anything else, because the first use of a kernel reads
 * it. */
static int train_rank(wf_transport *ranks, void *path) {
    static const char *const sets[] = { "base", "avx2", "neon", "" };
    if (ranks) setenv("WEFT_ISA", sets[wf_transport_rank(ranks) % 4], 1);
    wf_graph *g = wf_graph_new(NULL);
    wf_tensor *x = wf_input(g, "x", WF_F32, 2, (int64_t[]){ ROWS, WIDTH });
    struct wf_linear_layer in = wf_linear_new(g, "in", WIDTH, WIDTH, true);
    struct wf_linear_layer out = wf_linear_new(g, "out", WIDTH, WIDTH, true);
    wf_tensor *h = wf_dropout(wf_gelu(wf_linear(&in, x)), 0.2, NULL);
    wf_tensor *loss = wf_square_sum(wf_sub(wf_softmax(wf_linear(&out, h), -1), wf_tanh(x)));
    wf_trainer_options o = { .optimizer = wf_optimizer_defaults(WF_ADAMW), .transport = ranks };
    o.schedule = (wf_schedule){ .kind = WF_COSINE, .peak = 0.01, .steps = 2 * UPDATES };
    o.optimizer.clip_norm = 0.5, o.micro_batches = PARTS;
    wf_trainer *t = wf_trainer_new(g, loss, wf_constant(g, ROWS), &o);
    bool ok = wf_trainer_ok(t);
    while (ok && wf_trainer_steps(t) < UPDATES) ok = update(t, x);
    ok = ok && wf_trainer_save(t, path, NULL, 0);
    if (!ok) fprintf(stderr, "%s\n", wf_trainer_error(t));
    wf_trainer_free(t);
    wf_graph_free(g);
    return !ok;
}

/* Ranks with different instruction sets, connected by shared memory, write the same file as one
 * process. tests/mpi/train.sh tests this over MPI. */
TEST(ranks_of_different_processors_write_one_file) {
    char together[] = "together", alone[] = "alone";
    wf_processes_result cause;
    unsetenv("WEFT_ISA");
    ck_assert_int_eq(wf_processes_run(4, train_rank, together, _exit, &cause), 0);
    ck_assert_int_eq(train_rank(NULL, alone), 0);
    ck_assert(same_files("together", "alone"));
}
