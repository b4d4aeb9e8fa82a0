/* tests/tools/test_embed.c - the program embed: vectors in every format, the nearest lines,
 * refusals; and train --task pairs, which makes models for it. The values of vectors are tested by
 * the suites encoder and hf_encoder. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suites.h"
#include "tests/support/commands.h"

TESTS(embed)

#define HF WEFT_TEST_DATA "/hf/"
enum { LINES = 7, WIDTH = 6 }; /* of enc_dense and its lines.txt */

static void convert_models(void) {
    enter_folder();
    ok("convert --from hf " HF "enc_dense -o dense 2> said && convert --from hf " HF
       "enc_distil -o masked 2> /dev/null && cp " HF "enc_dense/lines.txt lines");
}

SETUP(convert_models, leave_folder)

/* ---- vectors --------------------------------------------------------------------------------- */

TEST(vectors_have_three_forms) {
    float raw[LINES * WIDTH];
    char npy[192];
    ok("embed dense lines --quiet > text");
    ck_assert_str_eq(result.err, "");
    ok("embed dense lines --format f32 -o raw --quiet && embed dense --format npy < lines > npy");
    assert_contains(result.err, "7 lines in ");
    FILE *f = fopen("raw", "rb");
    ck_assert_int_eq(fread(raw, sizeof *raw, LINES * WIDTH, f), LINES * WIDTH);
    ck_assert_int_eq(fgetc(f), EOF);
    fclose(f);
    f = fopen("text", "r");
    for (int i = 0; i < LINES * WIDTH; i++) {
        float x;
        ck_assert_int_eq(fscanf(f, "%f", &x), 1);
        ck_assert(x == raw[i]);
    }
    fclose(f);
    f = fopen("npy", "rb");
    ck_assert_int_eq(fread(npy, 1, 128, f), 128);
    npy[128] = '\0';
    ck_assert(memcmp(npy, "\x93NUMPY\x01\x00\x76\x00", 10) == 0);
    assert_contains(npy + 10, "{'descr': '<f4', 'fortran_order': False, 'shape': (7, 6), }");
    ck_assert(npy[127] == '\n');
    fclose(f);
    ok("tail -c +129 npy | cmp - raw");
}

/* A line's vector does not depend on the batch, the threads, or how the lines are read. */
TEST_ROWS(a_line_has_one_vector, 4) {
    static const char *const ways[] = {
        "embed dense lines --batch-size 1",
        "embed dense lines --batch-size 2 --threads 2",
        "gzip -c lines | embed -m dense -i -",
        "(head -n 1 lines; sleep 0.1; tail -n +2 lines) | embed dense",
    };
    ok("embed dense lines --quiet > all");
    run("(%s --quiet) > other 2>&1 && cmp all other", ways[_i]);
    expect(0);
}

/* Weights of fewer bits are near. */
TEST_ROWS(weights_may_be_rounded, 2) {
    run("embed dense lines --quiet --weights %s > a; embed dense lines --quiet > b; paste -d ' ' a "
        "b | awk '{ s = 0; for (i = 1; i <= 6; i++) s += $i * $(i + 6); if (s < 0.98) print s }'",
        _i ? "int8" : "bf16");
    expect(0);
    ck_assert_str_eq(result.out, "");
}

TEST(an_encoder_is_drawn_as_it_is) {
    ok("graph --of encoder-layer dense | grep -c 'Encoder layer'; graph --of attention dense");
    assert_contains(result.out, "Self-attention(x)");
    run("graph --of decoder-layer dense");
    expect(1);
    assert_contains(result.err, "an encoder has no decoder: --of encoder-layer draws one of its");
}

TEST(a_prompt_is_put_before_each_line) {
    ok("sed 's/^/it runs: /' lines > with; embed dense with --quiet > a; embed dense lines "
       "--prompt "
       "'it runs: ' --quiet | cmp - a");
}

/* For a model without a vocabulary, lines are token ids; a message counts those that are too
 * long. */
TEST(ids_are_read_without_a_vocabulary) {
    ok("mkdir f && cp " HF "enc_distil/config.json " HF "enc_distil/pytorch_model.bin f && convert "
       "--from hf f -o ids 2> said && grep -q 'the model reads token ids' said");
    ok("(echo 2 7 8 3; yes 5 | head -n 30 | tr '\\n' ' '; echo; echo) | embed ids --quiet | wc -l");
    ck_assert_int_eq(atoi(result.out), 3);
    assert_contains(result.err, "1 of 3 lines have more than 24 tokens");
}

/* ---- search ---------------------------------------------------------------------------------- */

TEST(a_line_is_nearest_to_itself) {
    ok("embed dense lines --search lines --top 1 --quiet > found; cut -f 2 found | tr '\\n' ' '");
    ck_assert_str_eq(result.out, "1 2 3 4 5 6 7 ");
    ok("cut -f 3- found | cmp - lines; cut -f 1 found | sort -u");
    ck_assert(fabs(atof(result.out) - 1) < 1e-5);
    /* all lines are found, the nearest first; of equally near ones the first in the file first */
    ok("(cat lines; cat lines) > twice; head -n 1 lines | embed dense --search twice --top 100 "
       "--quiet > found; wc -l < found; head -n 2 found | cut -f 2 | tr '\\n' ' '; cut -f 1 found "
       "| "
       "sort -grs | diff -q - found.cosines || cut -f 1 found > found.cosines; sort -grs "
       "found.cosines | cmp - found.cosines");
    ck_assert_msg(strncmp(result.out, "14\n1 8 ", 7) == 0, "%s", result.out);
}

/* The cosines are those of the vectors. */
TEST(cosines_are_those_of_the_vectors) {
    ok("tail -n 1 lines > q; embed dense q --search lines --top 7 --quiet | sort -k 2n | cut -f 1 "
       "> "
       "a; (embed dense q --quiet; embed dense lines --quiet) | awk 'NR == 1 { split($0, q); next "
       "} "
       "{ s = 0; for (i = 1; i <= NF; i++) s += q[i] * $i; print s }' > b; paste a b | awk '{ d = "
       "$1 "
       "- $2; if (d > 1e-5 || d < -1e-5) print }'");
    ck_assert_str_eq(result.out, "");
}

/* ---- learned --------------------------------------------------------------------------------- */

static void make_pairs(void) {
    ok("for a in one two three four five six seven eight; do for b in red blue green black; do "
       "printf '%s %s house\\tdas haus %s ist %s\\n' $a $b x$a y$b; done; done > pairs; sed "
       "'s/.*\\t//' "
       "pairs > targets; cut -f 1 pairs > sources");
}

#define TRAIN                                                                                      \
    "train --task pairs --train pairs --valid-size 0 --tokenizer word --d-model 32 --heads 2 "     \
    "--layers 1 --d-ff 48 --threads 1 --quiet --warmup 5 --lr 0.01 --dropout 0 --batch-size 16 "

TEST(pairs_are_found_when_they_are_learned) {
    make_pairs();
    ok(TRAIN "--max-steps 150 -o m");
    ok("embed m sources --search targets --top 1 --quiet | cut -f 2 | awk '$1 == NR' | wc -l");
    ck_assert_int_ge(atoi(result.out), 30);
}

/* train --task pairs says at its end if the loss is no better than chance, as at a rate of 1e-9, at
 * which nothing is learned. */
TEST(a_loss_of_chance_is_told) {
    make_pairs();
    ok("train --task pairs --train pairs --valid pairs --tokenizer word --d-model 32 --heads 2 "
       "--layers 1 --d-ff 48 --threads 1 --warmup 1 --lr 1e-9 --max-steps 2 --batch-size 16");
    assert_contains(result.err, "2 steps in ");
    assert_contains(result.err, " s, without validations\n");
    assert_contains(result.err, "on learned ones: no better than chance\n");
    assert_contains(result.err,
                    "which is no better than chance, 3.466: all vectors may be alike; a "
                    "lower --lr or a longer --warmup may help\n");
    ok("train --task pairs --train pairs --valid pairs --tokenizer word --d-model 32 --heads 2 "
       "--layers 1 --d-ff 48 --threads 1 --warmup 5 --lr 0.01 --dropout 0 --batch-size 16 "
       "--max-steps 150");
    ck_assert_ptr_null(strstr(result.err + strlen(result.err) / 2, "chance"));
}

/* New models of --task pairs and --like bart have a lower default rate and a longer warm-up. */
TEST(a_short_training_has_its_own_rate) {
    make_pairs();
    ok("train --task pairs --train pairs --valid-size 0 --dry-run; train --train pairs --like bart "
       "--valid-size 0 --dry-run 2>&1 | sed -n 's/^recipe.*peak/peak/p' >&2");
    assert_contains(result.err, " tokens, peak rate 0.002 after ");
    assert_contains(result.err, "\npeak rate 0.002 after ");
    ok("train --task pairs --train pairs --valid-size 0 --max-steps 100 --lr-steps 100 --dry-run");
    assert_contains(result.err, "peak rate 0.002 after 30 steps, then linear");
    ok("train --task pairs --train pairs --init dense --max-steps 100 --dry-run");
    assert_contains(result.err, "peak rate 0.0003 after 10 steps");
}

/* A vocabulary that train learned is exported as a tokenizer.json with the same ids: also for lines
 * with texts of special tokens, unknown characters, or other white space. */
static const char *const learned[] = { "word", "char", "bpe --vocab-size 80" };

TEST_ROWS(a_learned_vocabulary_goes_out, COUNT_OF(learned)) {
    make_pairs();
    ok("printf '@@ a@@ b@ @@@\\t</w> x</w>y w</w>\\n%.0s' 1 2 3 4 5 6 >> pairs");
    run("train --task pairs --train pairs --valid-size 0 --tokenizer %s --d-model 16 --heads 2 "
        "--layers 1 --threads 1 --quiet --max-steps 2 --warmup 1 -o m && convert --to hf m -o "
        "folder && convert --from hf folder -o back",
        learned[_i]);
    expect(0);
    ck_assert_msg(!strstr(result.err, "no tokenizer"), "%s", result.err);
    ok("cut -f 1 pairs > l; cut -f 2 pairs >> l; printf 'one  two\\f red\\v@@\\nONE \\303\\251 "
       "tw@@o</w>\\n <unk a</ w>@@@@ \\nxyzthree\\n' >> l; embed m l > a; embed back l > b; cmp a "
       "b "
       "&& wc -l < a");
    ck_assert_str_eq(result.out, "80\n");
}

TEST(a_folder_without_a_tokenizer_says_why) {
    make_pairs();
    ok("train --task pairs --train pairs --valid-size 0 --tokenizer byte --d-model 16 --heads 2 "
       "--layers 1 --threads 1 --quiet --max-steps 2 --warmup 1 -o m && convert --to hf m -o "
       "folder && sed 's/.*/5 6 7/' sources > ids && convert --from hf folder -o again && embed "
       "again ids --quiet | wc -l && test ! -e folder/tokenizer.json");
    assert_contains(result.err, "with --tokenizer word, char or bpe, has one that is written");
}

/* A training that is stopped and resumed, or made by several processes, has the same bits. */
TEST(parts_are_the_whole) {
    make_pairs();
    ok(TRAIN
       "--accum 2 --max-steps 6 --lr-schedule constant -o whole 2> /dev/null && " TRAIN
       "--accum 2 --lr-schedule constant --max-steps 3 -o part 2> /dev/null && train --resume "
       "-o part --train pairs --valid-size 0 --max-steps 6 --threads 1 --quiet && " TRAIN
       "--accum 2 --max-steps 6 --lr-schedule constant --processes 2 -o two 2> /dev/null");
    ok("embed whole sources --format f32 --quiet -o a; embed part sources --format f32 --quiet -o "
       "b; embed two sources --format f32 --quiet -o c; cmp a b && cmp a c");
}

/* An imported model is fine-tuned with its own tokenizer. */
TEST(an_imported_model_learns_pairs) {
    ok("for a in the house tree dog; do for b in runs in and; do printf '%s %s\\tgr\\303\\274n %s "
       "1999 %s\\n' $a $b $b $a; done; done > pairs; cut -f 1 pairs > sources; cut -f 2 pairs > "
       "targets");
    ok("train --task pairs --train pairs --init dense -o tuned --max-steps 150 --lr 0.01 "
       "--threads 1 --batch-size 12 --dropout 0 --warmup 5 --quiet --valid pairs");
    assert_contains(result.out, "nearest in its batch: ");
    ok("embed tuned sources --search targets --top 1 --quiet | cut -f 2 | awk '$1 == NR' | wc -l");
    ck_assert_int_ge(atoi(result.out), 8);
    ok("convert --to hf tuned -o folder && convert --from hf folder -o back && embed tuned sources "
       "--format f32 -o a --quiet && embed back sources --format f32 -o b --quiet && cmp a b");
}

/* A model of masked tokens is fine-tuned on pairs, without its head: a training at a rate of almost
 * 0 leaves its vectors unchanged. */
TEST(a_masked_model_learns_pairs) {
    ok("printf 'the dog\\tthe house\\na tree\\tin green\\n' > pairs; train --task pairs --train "
       "pairs "
       "--init masked -o tuned --max-steps 1 --lr 1e-9 --threads 1 --dropout 0 --warmup 0 --quiet "
       "--valid-size 0; inspect tuned | grep -c head.weight; embed masked lines --quiet > a; embed "
       "tuned lines --quiet > b; paste -d ' ' a b | awk '{ for (i = 1; i <= NF / 2; i++) { d = $i "
       "- "
       "$(i + NF / 2); if (d > 1e-4 || d < -1e-4) print } }'");
    ck_assert_str_eq(result.out, "0\n");
}

/* ---- pictures
 * --------------------------------------------------------------------------------- */

TEST(an_encoder_is_drawn_and_inspected) {
    ok("graph dense -o a.svg && graph --of attention dense -o b.svg && graph --of encoder-layer "
       "dense -o c.svg && inspect dense | grep -c 'encoder.layers.1'");
    ck_assert_int_eq(atoi(result.out), 12);
}

/* ---- refused --------------------------------------------------------------------------------- */

static const struct {
    const char *command;
    int status;
    const char *says;
} refused[] = {
    { "embed", 2, "say which model: embed MODEL [FILE]" },
    { "embed none", 1, "none" },
    { "embed dense none", 1, "none can't be read" },
    { "embed dense lines --search none", 1, "none can't be read" },
    { ": > empty; embed dense lines --search empty", 1, "empty has no lines" },
    { ": > empty; embed dense empty --search lines", 0, "empty has no line: nothing was read" },
    { "embed dense < /dev/null", 0, "stdin has no line: nothing was read" },
    { "embed dense --search - < lines", 2, "only one of --search and the input can be stdin" },
    { "embed dense lines --search lines --format npy", 2, "--search prints lines" },
    { "embed dense lines --top 3", 2, "it is for --search" },
    { "embed dense lines --search-prompt x", 2, "it is for --search" },
    { "printf 'a\\n\\377\\n' | embed dense", 1, "stdin, line 2: not UTF-8 at byte 0" },
    { "yes | head -c 4000000 | tr -d '\\n' | embed dense", 1,
      "line 1: it is longer than a megabyte" },
    { "embed dense lines -o lines", 2, "is to be read and written at once" },
    { "embed dense lines > /dev/full", 1, "No space left" },
    { "train --task copy --max-steps 1 --quiet -o copy > /dev/null; embed copy lines", 1,
      "copy is not an encoder, so it has no vectors of lines; generate runs it" },
    { "generate dense lines", 1, "an encoder has no outputs to decode: embed prints its vectors" },
    { "graph --emit-c dense -o dense.c", 1, "dense: an encoder has no form in C yet" },
    { "convert --to torch dense -o dense.bin", 1,
      "no torch.nn.Transformer can load this kind of model" },
    { "train --task pairs", 2, "say which text: --train FILE.tsv" },
    { "train --task pairs --train lines --positions learned", 2,
      "the task trains an encoder, which has one form" },
    { "train --task pairs --train lines --share-vocab", 2, "an encoder has one vocabulary" },
    { "train --task pairs --train lines --report r.html", 2, "an encoder has no outputs to show" },
    { "printf 'a\\tb\\n' > p; train --task text --train p --init dense -o t", 1,
      "its model is of kind encoder, and this training of kind transformer; --task pairs, mask "
      "and classify train an encoder" },
    { "printf 'a\\tb\\n' > p; train --task pairs --train p --init masked --lora 1 -o t", 1,
      "masked predicts masked tokens: its adapters are for --task mask" },
};

TEST_ROWS(what_is_wrong_is_said, COUNT_OF(refused)) {
    run("%s", refused[_i].command);
    expect(refused[_i].status);
    assert_contains(result.err, refused[_i].says);
}
