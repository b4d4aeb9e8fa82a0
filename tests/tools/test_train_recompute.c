/* tests/tools/test_train_recompute.c - `train --recompute` writes the same file as without it, byte
 * for byte, for every kind of model, and takes less memory. */
#include <stdio.h>
#include <string.h>

#include "tests/suites.h"
#include "tests/support/commands.h"
#include "tests/support/support.h"

TESTS(train_recompute)

#define SIZE "--d-model 16 --heads 2 --layers 2 --d-ff 16 "
#define QUICK                                                                                      \
    "--quiet --threads 1 --warmup 2 --batch-size 5 --lr-steps 60 --valid-size 0 --accum 2 "
#define PAIRS "--train pairs " QUICK SIZE "--tokenizer word "
#define TEXT "--text text --quiet --threads 1 --warmup 2 --batch-size 2 --lr-steps 60 " SIZE

static void make_data(void) {
    enter_folder();
    ok("for i in 1 2 3 4 5 6 7 8; do printf 'alle leute\ttwo words\nein hund\tone dog\n'; done > "
       "pairs; for i in $(seq 60); do echo \"one two three $i four five\"; done > text;"
       "s='<pad>,</s>,<unk>,<extra_id_0>,<extra_id_1>,<extra_id_2>,<extra_id_3>,<extra_id_4>';"
       "tokenize --learn unigram --vocab-size 40 --special \"$s\" -i text -o spans &&"
       "tokenize --learn wordpiece --vocab-size 58 --min-freq 1 -i text -o words && "
       "train " PAIRS "--max-steps 3 -o base");
}

SETUP_ONCE(make_data, leave_folder)

static const char *const models[] = {
    "--task copy --quiet --threads 1 --batch-size 4 --dropout 0.2 --norm pre " SIZE,
    PAIRS "--dropout 0.3 --ema 0.9",
    PAIRS "--arch language --form llama --kv-heads 1 --dropout 0.1",
    PAIRS "--decoder ssru --quantize-aware int8",
    PAIRS "--decoder average --dropout 0.1",
    "--init base --lora 3 --lora-targets all-linear --train pairs " QUICK,
    "--task lm " TEXT "--max-len 16 --tokenizer byte",
    "--task mask --tokenizer-json words --max-len 20 --dropout 0.1 " TEXT,
    "--task spans --tokenizer-json spans --max-len 20 " TEXT,
    "--task pairs --tokenizer-json words " QUICK SIZE "--train pairs --max-len 20",
    "--task classify --tokenizer-json words " QUICK SIZE "--train pairs --max-len 20",
};

TEST_ROWS(the_model_is_the_same, COUNT_OF(models)) {
    run("train %s --max-steps 4 -o kept --overwrite", models[_i]);
    expect(0);
    run("train %s --max-steps 4 -o again --overwrite --recompute", models[_i]);
    expect(0);
    ck_assert(same_files("kept", "again"));
}

/* A resume may begin it, or end it; two processes, each with half of a step's micro-batches, make
 * the same file, too. */
TEST(resumes_and_ranks_make_the_same_model) {
    run("train %s --max-steps 5 -o whole", models[1]);
    expect(0);
    run("train %s --max-steps 2 -o parts", models[1]);
    expect(0);
    ok("train --resume --train pairs --quiet --threads 2 --max-steps 4 -o parts --recompute");
    ok("train --resume --train pairs --quiet --max-steps 5 -o parts");
    ck_assert(same_files("whole", "parts"));
    run("train %s --max-steps 5 -o ranks --recompute --processes 2", models[1]);
    expect(0);
    ck_assert(same_files("whole", "ranks"));
}

static const char *const architectures[] = {
    "copy --batch-size 256 --max-len 60 --valid-size 0",
    "lm --text text --tokenizer byte --batch-size 40 --max-len 300 --text-eval-size 0",
    "mask --text text --tokenizer-json words --batch-size 40 --max-len 300 --text-eval-size 0",
};

/* The announced memory of deep models of each architecture is less. */
TEST_ROWS(memory_is_announced, COUNT_OF(architectures)) {
    double megabytes[2];
    for (int i = 0; i < 2; i++) {
        run("train --task %s --d-model 32 --heads 2 --d-ff 256 --layers 12 --threads 1 --dry-run "
            "%s",
            architectures[_i], i ? "--recompute" : "");
        expect(0);
        const char *at = strstr(result.err, "kernels, ");
        ck_assert_msg(at && sscanf(at, "kernels, %lf MB of memory", &megabytes[i]) == 1, "%s",
                      result.err);
    }
    ck_assert_msg(megabytes[1] * 2 < megabytes[0], "%g MB, and %g", megabytes[1], megabytes[0]);
}
