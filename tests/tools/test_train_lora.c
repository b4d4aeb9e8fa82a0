/* tests/tools/test_train_lora.c - `train --lora` and its file of adapters: resumed, applied by
 * `generate`, merged by `convert`, exported as a folder of PEFT and imported again. */
#include <stdio.h>

#include "core/file.h"
#include "tests/suites.h"
#include "tests/support/commands.h"
#include "tests/support/support.h"

TESTS(train_lora)

#define SIZE "--d-model 16 --heads 2 --layers 1 --d-ff 16 "
#define QUICK "--threads 1 --quiet --warmup 2 --batch-size 5 "
#define NEW "train --train one " QUICK "--max-steps 9 --lr-steps 60 --valid-size 0 -o base " SIZE
#define TUNE "train --init base --train two " QUICK "--lr-steps 40 --lr 0.02 --valid-size 0 "

static void make_pairs(void) {
    enter_folder();
    ok("awk 'BEGIN { split(\"haus hund katze baum stadt garten vogel fluss\", a);"
       " split(\"house dog cat tree town garden bird river\", b);"
       " for (i = 0; i < 24; i++) { n = 2 + i % 4; s = t = \"\";"
       " for (k = 0; k < n; k++) { w = 1 + (i + 3 * k * (1 + int(i / 8))) % 8;"
       " s = s (k ? \" \" : \"\") a[w]; t = t (k ? \" \" : \"\") b[w] }"
       " print s \"\\t\" t }}' > both; head -12 both > one; tail -12 both > two; cut -f 1 both > "
       "in");
}

SETUP(make_pairs, leave_folder)

static const struct {
    const char *model, *lora;
} rows[] = {
    { "--like bart --tokenizer byte-level --vocab-size 270", "" },
    { "--like bart --tokenizer byte-level --vocab-size 270",
      "--lora-targets all-linear --base-weights bf16" },
    { "--arch language --form llama --kv-heads 1 --tokenizer byte-bpe --vocab-size 270",
      "--lora-alpha 6 --lora-targets in_proj,linear2" },
    { "--tokenizer word", "--lora-targets out_proj,output --base-weights int8" },
};

/* Counts the adapters' matrices of a that have other bits in b, and those that have the same. */
static void compare(const char *a, const char *b, int *other, int *same) {
    wf_file *f = wf_file_open(a), *g = wf_file_open(b);
    *other = *same = 0;
    for (int i = 0; i < wf_file_count(f); i++) {
        const wf_entry *x = wf_file_at(f, i), *y = wf_file_find(g, x->name);
        ck_assert_msg(strstr(x->name, ".lora_"), "%s", x->name);
        if (strncmp(x->name, "optimizer.", 10) == 0) continue;
        bool equal = y && x->bytes == y->bytes && !memcmp(x->data, y->data, x->bytes);
        ++*(equal ? same : other);
    }
    wf_file_free(f);
    wf_file_free(g);
}

/* A training that is stopped and resumed gives the same bits of the adapters. The file has no
 * parameters of the base model. */
TEST_ROWS(a_resumed_training_of_adapters_is_the_same, COUNT_OF(rows)) {
    int other, same;
    run(NEW "%s", rows[_i].model);
    expect(0);
    ok("cp base before");
    run(TUNE "--lora 3 %s --max-steps 12 -o whole", rows[_i].lora);
    expect(0);
    ck_assert_str_eq(result.err, "");
    run(TUNE "--lora 3 %s --max-steps 5 -o parts", rows[_i].lora);
    expect(0);
    ok("train --resume --init base --train two --threads 1 --quiet --valid-size 0 --max-steps 12 "
       "-o parts");
    ok("cmp base before; test $(wc -c < whole) -lt $(wc -c < base)");
    compare("whole", "parts", &other, &same);
    ck_assert_int_eq(other, 0);
    ck_assert_int_gt(same, 3);
}

/* Adapters give the same outputs applied by generate as merged by convert, and others than the base
 * model. */
TEST_ROWS(adapters_are_applied_and_merged, COUNT_OF(rows)) {
    run(NEW "%s", rows[_i].model);
    expect(0);
    run(TUNE "--lora 3 %s --max-steps 30 -o own --save-every 0", rows[_i].lora);
    expect(0);
    ok("convert --adapter own base -o merged");
    ok("generate base --adapter own --quiet --max-len-b 5 in > applied");
    ok("generate merged --quiet --max-len-b 5 in > together; cmp applied together");
    ok("generate base --quiet --max-len-b 5 in > plain; ! cmp -s applied plain");
    run("generate own in");
    expect(1);
    assert_contains(result.err, "it has adapters without their model");
    run(NEW "--overwrite --seed 7 %s", rows[_i].model);
    expect(0);
    ok("convert --adapter own base -o other");
    assert_contains(result.err, "warning: own was trained beside other weights than those in base; "
                                "it is merged all the same");
    ok("generate base --adapter own --quiet in");
    assert_contains(result.err, "warning: own was trained beside other weights than those in base; "
                                "it is applied all the same");
}

/* The default rate of adapters is ten or more times that of a whole model, and smaller for a model
 * that is wider. An option overrides it. */
TEST(adapters_have_a_rate_of_their_own) {
    static const struct {
        const char *width, *options, *rate;
    } cases[] = { { "16", "--lora 3", "\"lr\":\"0.01\"" },
                  { "256", "--lora 3", "\"lr\":\"0.005\"" },
                  { "16", "--lora 3 --lr 0.25", "\"lr\":\"0.25\"" },
                  { "16", "", "\"lr\":\"0.0003\"" } };
    for (int i = 0; i < COUNT_OF(cases); i++) {
        run("train --train one " QUICK "--max-steps 1 --lr-steps 60 --valid-size 0 -o base%d "
            "--tokenizer word --heads 2 --layers 1 --d-ff 16 --d-model %s",
            i, cases[i].width);
        expect(0);
        run("train --init base%d --train two --threads 1 --dry-run --json %s", i, cases[i].options);
        expect(0);
        assert_contains(result.out, cases[i].rate);
        bool said = strstr(result.err, "rate     of adapters: 0.01");
        ck_assert_msg(said == (i < 2), "%s", result.err);
    }
}

/* A base model in int8 stays in int8 in memory, unless an option says otherwise. */
TEST(a_rounded_base_stays_rounded) {
    int other, same;
    ok(NEW "--tokenizer word; convert --weights int8 base -o small");
    ok("mv small base");
    ok(TUNE "--lora 3 --max-steps 5 -o own");
    ok(TUNE "--lora 3 --max-steps 5 -o rounded --base-weights int8");
    compare("own", "rounded", &other, &same);
    ck_assert(!other && same > 3);
    ok(TUNE "--lora 3 --max-steps 5 -o whole --base-weights f32");
    compare("own", "whole", &other, &same);
    ck_assert_int_gt(other, 3);
}

/* Adapters that are exported to a folder of PEFT and imported have the same bits in A and B. */
TEST_ROWS(adapters_go_to_peft_and_back, 2) {
    int other, same;
    run(NEW "%s", rows[_i].model);
    expect(0);
    run(TUNE "--lora 3 %s --max-steps 6 -o own", rows[_i].lora);
    expect(0);
    ok("convert --to hf own -o peft; convert --from hf --base base peft -o again");
    assert_contains(result.err, "peft does not say which weights its adapters were trained beside: "
                                "only sizes were compared with base");
    ok("grep -q SEQ_2_SEQ_LM peft/adapter_config.json");
    compare("own", "again", &other, &same);
    ck_assert(!other && same > 3);
    ok("convert --to hf again -o peft2; diff -r peft peft2");
}

/* In GPT-2, queries, keys and values have one matrix. PEFT adapts it by default. */
TEST(adapters_of_a_gpt_go_to_peft_and_back) {
    int other, same;
    ok("for i in $(seq 60); do cat in; done > text");
    ok("train --task lm --text text " QUICK SIZE "--max-len 16 --max-steps 3 --text-eval-size 0 "
       "-o base");
    ok("train --init base --task lm --text text " QUICK "--lora 3 --max-steps 4 --text-eval-size 0 "
       "-o own");
    ok("convert --to hf own -o peft; convert --from hf --base base peft -o again");
    ok("grep -q attn.c_attn peft/adapter_config.json && grep -q CAUSAL_LM "
       "peft/adapter_config.json");
    compare("own", "again", &other, &same);
    ck_assert(!other && same == 2);
    ok("train --resume --init base --task lm --text text --threads 1 --quiet --max-steps 5 "
       "--text-eval-size 0 -o own");
    ok("train --init base --task lm --text text " QUICK "--lora 3 --lora-targets q_proj "
       "--max-steps 4 --text-eval-size 0 -o part");
    run("convert --to hf part -o x");
    expect(1);
    assert_contains(result.err, "Train them anew with --lora-targets in_proj, or merge them");
}

/* Changes of adapter_config.json as commands of sed, and the messages about them. */
static const struct {
    const char *edit, *says;
} peft[] = {
    { "s/\"use_dora\": false/\"use_dora\": true/", "'use_dora' is true, which weft does not have" },
    { "s/\"bias\": \"none\"/\"bias\": \"all\"/", "'bias' is \"all\", which weft does not have" },
    { "s/\"LORA\"/\"IA3\"/", "'peft_type' is \"IA3\"" },
    { "s/\"r\": 3/\"r\": 4/", "lora_A" },
    { "s/\"r\": 3/\"r\": -4/", "'r' is no rank" },
    { "s/\"lora_alpha\": 3/\"lora_alpha\": \"3\"/", "'lora_alpha' is no number above 0" },
    { "s/\"bias\": /\"rank_pattern\": {\"q\": 2}, \"bias\": /", "'rank_pattern' is {\"q\":2}" },
};

TEST_ROWS(other_adapters_of_peft_are_refused, COUNT_OF(peft)) {
    run(NEW "%s", rows[0].model);
    expect(0);
    ok(TUNE "--lora 3 --max-steps 3 -o own; convert --to hf own -o peft");
    run("sed -i '%s' peft/adapter_config.json", peft[_i].edit);
    expect(0);
    run("convert --from hf --base base peft -o again");
    expect(1);
    assert_contains(result.err, peft[_i].says);
}

static const struct {
    int status;
    const char *command, *says;
} refused[] = {
    { 2, "train --lora 3 --train two", "--lora adapts a model: name it with --init MODEL" },
    { 2, "train --lora-alpha 3 --train two",
      "--lora-alpha would have no effect: it is for --lora" },
    { 2, "train --base-weights int8 --train two", "--base-weights would have no effect" },
    { 2, "train --lora-targets q_proj --train two", "--lora-targets would have no effect" },
    { 2, TUNE "--lora 3 --freeze tgt", "--freeze would have no effect: --lora trains adapters" },
    { 1, TUNE "--lora 3 --lora-targets nothing", "no matrix of the model is called 'nothing'" },
    { 1, "train --init own --train two --lora 2 --warmup 1",
      "own has adapters without their model: start from that model, or from both merged: convert "
      "--adapter own MODEL" },
    { 2, "train --resume -o own --train two --valid-size 0 --max-steps 9",
      "own has adapters without their model: name it with --init MODEL, which was base" },
    { 2,
      "train --resume -o base --train one --max-steps 12 --quiet --threads 1; train "
      "--resume -o own --init base --train two --valid-size 0 --max-steps 9",
      "own has adapters of other weights than those that base has now: name a copy with the "
      "weights "
      "of then, or train new adapters, without --resume: --init base --lora 3 -o NEW" },
    { 2, "train --resume -o own --init base --train two --valid-size 0 --lora-targets output",
      "own was trained with --lora-targets q_proj,v_proj: leave it out" },
    { 2, "train --resume -o own --init base --train two --valid-size 0 --lora 5",
      "own was trained with --lora 3, not 5" },
    { 2, "train --resume -o own --init base --train two --valid-size 0 --base-weights int8",
      "own was trained with the weights as they are: leave --base-weights out" },
    { 1, "generate base --adapter base in", "base: it has no adapters" },
    { 1, "generate own in",
      "own: it has adapters without their model: load that model first (generate" },
    { 1, "graph --step own", "graph: own: it has adapters without their model" },
    { 1, "convert own -o x", "own has adapters without their model: convert --adapter own MODEL" },
    { 1, "convert --adapter base base -o x", "base: it has no adapters" },
    { 2, "convert --to hf --adapter own base -o x", "--adapter would have no effect" },
    { 2, "convert --base base own -o x", "--base would have no effect: it is for --from hf" },
    { 1, "convert --to hf own -o x",
      "no family of transformers has models of this form. convert --adapter FILE MODEL merges" },
};

TEST_ROWS(idle_options_and_wrong_files_are_refused, COUNT_OF(refused)) {
    ok(NEW "--tokenizer word");
    ok(TUNE "--lora 3 --max-steps 3 -o own");
    run("%s", refused[_i].command);
    assert_contains(result.err, refused[_i].says);
    expect(refused[_i].status);
}
