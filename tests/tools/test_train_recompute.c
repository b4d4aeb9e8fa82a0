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

SETUP(make_data, leave_folder)

static const struct {
    const char *model, *again; /* again: what --resume must be given again */
} rows[] = {
    { "--task copy --quiet --threads 1 --batch-size 4 --dropout 0.2 --norm pre " SIZE, "" },
    { PAIRS "--dropout 0.3 --ema 0.9", "--train pairs" },
    { PAIRS "--arch language --form llama --kv-heads 1 --dropout 0.1", "--train pairs" },
    { PAIRS "--decoder ssru --quantize-aware int8", "--train pairs" },
    { PAIRS "--decoder average --dropout 0.1", "--train pairs" },
    { "--init base --lora 3 --lora-targets all-linear --train pairs " QUICK,
      "--init base --train pairs" },
    { "--task lm " TEXT "--max-len 16 --tokenizer byte", "--text text" },
    { "--task mask --tokenizer-json words --max-len 20 --dropout 0.1 " TEXT, "--text text" },
    { "--task spans --tokenizer-json spans --max-len 20 " TEXT, "--text text" },
};

TEST_ROWS(the_model_is_the_same, COUNT_OF(rows)) {
    run("train %s --max-steps 7 -o kept", rows[_i].model);
    expect(0);
    run("train %s --max-steps 3 -o again --recompute", rows[_i].model);
    expect(0);
    run("train --resume %s --quiet --threads 2 --max-steps 7 -o again --recompute", rows[_i].again);
    expect(0);
    ck_assert(same_files("kept", "again"));
}

/* Two processes, each with half of a step's micro-batches, make the same file, too. */
TEST(ranks_make_the_same_model) {
    run("train %s --max-steps 5 -o kept", rows[1].model);
    expect(0);
    run("train %s --max-steps 5 -o again --recompute --processes 2", rows[1].model);
    expect(0);
    ck_assert(same_files("kept", "again"));
}

/* The announced memory of a deep model is less. */
TEST(memory_is_announced) {
    double megabytes[2];
    for (int i = 0; i < 2; i++) {
        run("train --task copy --d-model 32 --heads 2 --d-ff 256 --layers 12 --batch-size 256 "
            "--max-len 60 --threads 1 --valid-size 0 --dry-run %s",
            i ? "--recompute" : "");
        expect(0);
        const char *at = strstr(result.err, "kernels, ");
        ck_assert_msg(at && sscanf(at, "kernels, %lf MB of memory", &megabytes[i]) == 1, "%s",
                      result.err);
    }
    ck_assert_msg(megabytes[1] * 2 < megabytes[0], "%g MB, and %g", megabytes[1], megabytes[0]);
}
