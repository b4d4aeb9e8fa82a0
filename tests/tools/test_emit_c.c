/* tests/tools/test_emit_c.c - `graph --emit-c`: programs of trained models, compiled, write the
 * lines that `generate` writes; what cannot be written is refused. WEFT_EMIT_CC names another
 * compiler, as in suite `emit`. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/suites.h"
#include "tests/support/commands.h"
#include "tests/support/emitted.h"
#include "tests/support/support.h"

TESTS(emit_c)

#define PLAIN "--d-model 16 --heads 2 --layers 1 --d-ff 24 --quiet --threads 1 "
#define SIZE PLAIN "--valid-size 4 "
#define STRICT "-std=c11 -O1 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -ffreestanding"

static const char *compiler(void) {
    const char *other = getenv("WEFT_EMIT_CC");
    return other ? other : WEFT_TEST_CC;
}

static bool has_compiler(void) {
    run("echo 'int one = 1;' > one.c && %s -c one.c", compiler());
    if (result.status == 0) return true;
    printf("emit_c: skipped, because '%s' compiles nothing\n", compiler());
    return false;
}

SETUP(enter_folder, leave_folder)

/* Lines of 1 to `most` ids from `low` on. */
static void write_lines(int n, int low, int vocab, int most) {
    FILE *file = fopen("lines", "w");
    ck_assert(file);
    for (int i = 0; i < n; i++) {
        int length = 1 + (int)(number(1, (uint64_t)i) * most);
        for (int k = 0; k < length; k++)
            fprintf(file, "%s%d", k ? " " : "",
                    low + (int)(number(2, (uint64_t)(i * most + k)) * (vocab - low)));
        fputs("\n", file);
    }
    ck_assert_int_eq(fclose(file), 0);
}

static void compare(const char *options, const char *search) {
    run("graph --emit-c m %s -o m.c && %s " STRICT " -DMODEL_MAIN m.c -o program", options,
        compiler());
    ck_assert_msg(result.status == 0, "%s", result.err);
    run("./program < lines > got && generate m --quiet %s < lines > expected && cmp got expected",
        search);
    ck_assert_msg(result.status == 0, "%s: %s %s", options, result.out, result.err);
}

TEST(a_program_writes_the_lines_of_generate) {
    if (!has_compiler()) return;
    ok("train --task copy " SIZE "--max-steps 30 -o m > /dev/null");
    write_lines(300, 1, 11, 12);
    compare("", "");
    compare("--beam 4 --prefix copier", "--beam 4");
}

TEST(memory_is_printed_and_nothing_written) {
    long memory, shorter, weights;
    ok("train --task copy " SIZE "--max-steps 1 -o m > /dev/null");
    ok("graph --emit-c m --dry-run");
    ck_assert_int_eq(sscanf(result.out, "%ld bytes of memory, %ld bytes of w", &memory, &weights),
                     2);
    ok("graph --emit-c m --dry-run --train");
    ck_assert_int_eq(sscanf(result.out, "%ld bytes of memory, %ld of them w", &shorter, &weights),
                     2);
    ck_assert(0 < weights && weights < shorter);
    ok("graph --emit-c m --dry-run --max-length 8");
    ck_assert_int_eq(sscanf(result.out, "%ld bytes of memory", &shorter), 1);
    ck_assert(shorter > 0 && shorter < memory && weights > 0);
    run("graph --emit-c m --dry-run --output m.c");
    expect(2);
    run("ls m.c");
    ck_assert_int_ne(result.status, 0);
}

/* ---- a training ------------------------------------------------------------------------------ */

#define FLAGS "-std=c11 -O1 -Wall -Wextra -Wpedantic -Wconversion -Werror"

/* With these options `train` has made the file at some update, and the program goes on from there,
 * or begins anew. */
typedef struct trained {
    const char *options, *before, *emit;
} trained;

static const trained trainings[] = {
    { "--task copy --dropout 0.1 --min-len 9 --batch-size 6", "--max-steps 3", "" },
    { "--task copy", "--max-steps 1", "--from-start" },
    { "--task reverse --arch language --dropout 0.1 --optimizer adamw --lr-schedule cosine "
      "--max-len 4",
      "--max-steps 1", "--from-start --prefix gpt" },
    { "--task sort --arch language --form llama --optimizer lion --lr 1e-4 --ema 0.9 "
      "--label-smoothing 0.1 --max-len 4 --seed 5",
      "--max-steps 7", "" },
};

TEST_ROWS(a_training_writes_the_file_of_train, COUNT_OF(trainings)) {
    enum { STEPS = 22 };
    const trained *t = &trainings[_i];
    if (!has_emitted_compiler("emit_c")) return;
    const char *size = strstr(t->options, "llama") ? PLAIN "--kv-heads 1" : PLAIN;
    run("train %s %s --valid-size 0 --lr-steps 30 --warmup 5 %s -o m > /dev/null && "
        "train %s %s --valid-size 0 --lr-steps 30 --warmup 5 --max-steps %d -o expected > "
        "/dev/null",
        size, t->options, t->before, size, t->options, STEPS);
    ck_assert_msg(result.status == 0, "%s", result.err);
    run("graph --emit-c m --train %s -o m.c && %s " FLAGS " -DMODEL_MAIN m.c -o program", t->emit,
        emitted_compiler());
    ck_assert_msg(result.status == 0, "%s", result.err);
    run("./program %d > got && cmp got expected", STEPS);
    ck_assert_msg(result.status == 0, "%s: %s %s", t->options, result.out, result.err);
}

/* Its program reads batches of at most these sizes. */
TEST(a_training_on_text_reads_batches) {
    if (!has_emitted_compiler("emit_c")) return;
    ok("seq 1 400 > text && train --task lm --text text --max-len 8 --batch-size 3 --max-steps 1 "
       "--text-eval-size 0 " PLAIN "-o m > /dev/null");
    run("graph --emit-c m --train --batch-size 2 --length 6 -o m.c && %s " FLAGS
        " -DMODEL_MAIN m.c -o program",
        emitted_compiler());
    ck_assert_msg(result.status == 0, "%s", result.err);
    run("echo '1 2 3  5 6 7 8 9 10  6 7 8 9 10 -1  1 2 7' | ./program > more");
    expect(1);
    ck_assert_msg(strstr(result.err, "update 3: no batches of such sizes"), "%s", result.err);
    run("echo '1 2 3  5 6 7 8 9 10  6 7 8 9 10 -1' | ./program > more && inspect more");
    expect(0);
    ck_assert_msg(strstr(result.out, "train.step                       2"), "%s", result.out);
}

/* ---- refusals -------------------------------------------------------------------------------- */

typedef struct refusal {
    const char *options, *says;
    int status;
} refusal;

static const refusal refusals[] = {
    { "--emit-c", "needs the file of a model", 2 },
    { "--emit-c m --html page.html", "one at a time", 2 },
    { "--emit-c m --depth 2", "C is written", 2 },
    { "--beam 2", "no C is written", 2 },
    { "--emit-c m --beam 65", "65", 2 },
    { "--emit-c m --max-length 0", "0", 2 },
    { "--emit-c m --prefix 'a b' -o m.c", "no identifier", 1 },
    { "--emit-c m --prefix search -o m.c", "for something else", 1 },
    { "--emit-c int8 -o m.c", "weights in int8 have no form in C", 1 },
    { "--train", "no C is written", 2 },
    { "--emit-c m --from-start", "only --train begins a training", 2 },
    { "--emit-c m --train --beam 2", "a training has no search", 2 },
    { "--emit-c m --train --max-length 9", "a training has no search", 2 },
    { "--emit-c m --train --runs 9", "nothing is timed", 2 },
    { "--emit-c m --train --batch-size 9 -o m.c", "its task says them", 1 },
    { "--emit-c m --train --prefix training -o m.c", "for something else", 1 },
    { "--emit-c int8 --train -o m.c", "no state of a training", 1 },
    { "--emit-c tuned --train --from-start -o m.c", "started from another model", 1 },
};

TEST(what_cannot_be_written_is_refused) {
    ok("train --task copy " SIZE "--max-steps 1 -o m > /dev/null");
    ok("convert --weights int8 m -o int8");
    ok("train --task copy --init m --max-steps 1 --quiet --threads 1 --valid-size 4 -o tuned "
       "> /dev/null");
    for (int i = 0; i < COUNT_OF(refusals); i++) {
        run("graph %s", refusals[i].options);
        ck_assert_msg(result.status == refusals[i].status && strstr(result.err, refusals[i].says),
                      "%s: %d %s", refusals[i].options, result.status, result.err);
    }
    run("ls m.c");
    ck_assert_int_ne(result.status, 0);
}
