/* tests/tools/test_convert_hf.c - `convert` and folders of Hugging Face: an input file is never an
 * output, files of other programs are not replaced, and an interrupted export can be repeated. */
#include <stdio.h>

#include "models/hf.h"
#include "models/hf_internal.h"
#include "tests/suites.h"
#include "tests/support/commands.h"
#include "tests/support/emitted.h"
#include "tests/support/support.h"

TESTS(convert_hf)
SETUP(enter_folder, leave_folder)

#define UNFINISHED "weft-export.unfinished"

static const char *const kinds[] = { "marian", "marian_shards", "marian_separate", "bart", "m2m" };

static void copy_of(const char *kind, const char *name) {
    char path[512], relative[128];
    snprintf(relative, sizeof relative, "tests/data/hf/%s", kind);
    run("cp -r %s %s", source_path(relative, path, sizeof path), name);
    expect(0);
}

/* ---- what is read is not written ------------------------------------------------------------- */

/* Every file that an import may read from the folder, whether it exists or not, is refused as the
 * output, and the folder stays as it is. */
TEST_ROWS(no_file_that_is_read_is_an_output, COUNT_OF(kinds)) {
    wf_hf_files files;
    copy_of(kinds[_i], "folder");
    copy_of(kinds[_i], "before");
    ck_assert(wf_hf_list_files("folder", &files, NULL));
    for (int i = 0; i < files.n; i++) {
        run("mkdir -p $(dirname folder/%s) $(dirname before/%s)", files.names[i], files.names[i]);
        run("convert --from hf folder -o folder/%s", files.names[i]);
        expect(2);
        assert_contains(result.err, "is to be read and written at once");
        ok("diff -r folder before");
    }
    wf_hf_files_free(&files);
    ok("convert --from hf folder -o folder/other.weft && inspect folder/other.weft");
}

TEST(the_list_has_the_files_of_an_index) {
    char path[512];
    wf_hf_files fixed, all;
    ck_assert(wf_hf_list_files(NULL, &fixed, NULL));
    source_path("tests/data/hf/marian_shards", path, sizeof path);
    ck_assert(wf_hf_list_files(path, &all, NULL));
    ck_assert_int_eq(all.n, fixed.n + 3);
    for (int i = 0; i < fixed.n; i++) ck_assert_str_eq(all.names[i], fixed.names[i]);
    ck_assert_str_eq(all.names[all.n - 1], "model-00003-of-00003.safetensors");
    wf_hf_files_free(&fixed), wf_hf_files_free(&all);
    wf_hf_files_free(NULL);
    ck_assert(!wf_hf_list_files(path, NULL, NULL));
}

TEST(a_model_that_another_run_writes_is_left_alone) {
    copy_of("marian", "folder");
    run("exec 9> out.lock; flock 9; convert --from hf folder -o out");
    expect(1);
    assert_contains(result.err, "out is being written by another run");
    ok("convert --from hf folder -o out; test ! -e out.lock");
    run("exec 9> out.lock; flock 9; convert --to torch out -o out2 && convert --weights int8 out2 "
        "-o out");
    ck_assert_int_ne(result.status, 0);
}

/* ---- what is another's is not replaced ------------------------------------------------------- */

TEST(files_of_another_are_not_replaced) {
    wf_hf_files files;
    copy_of("bart", "folder");
    ok("convert --from hf folder -o m && mkdir d");
    ck_assert(wf_hf_list_files(NULL, &files, NULL));
    for (int i = 0; i < files.n; i++) {
        run("mkdir -p $(dirname d/%s); echo mine > d/%s", files.names[i], files.names[i]);
        run("convert --to hf m -o d");
        expect(1);
        assert_contains(result.err, "is there: a model is written into a folder without one");
        ok("test \"$(find d -type f -exec cat {} +)\" = mine && test $(ls d | wc -l) = 1 && "
           "rm -r d/*");
    }
    wf_hf_files_free(&files);
}

TEST(a_model_is_replaced_when_asked) {
    copy_of("bart", "folder");
    copy_of("marian", "folder2");
    ok("convert --from hf folder -o m && convert --from hf folder2 -o m2");
    ok("convert --to hf m -o d");
    ok("cp -r d d0; convert --to hf m -o d --overwrite && diff -r d d0");
    run("convert --to hf m2 -o d --overwrite");
    expect(1);
    assert_contains(result.err, "d/merges.txt is of another model, and this one has no such file");
    ok("diff -r d d0; rm d/merges.txt; convert --to hf m2 -o d --overwrite");
    ok("convert --from hf d -o back && cmp back m2");
}

/* ---- an export that was stopped -------------------------------------------------------------- */

/* A folder as a killed export leaves it, with the list of names and some of the files, cannot be
 * imported. An export to it succeeds, of the same or of another model, unless it has a file that
 * the list does not name. */
TEST(an_export_that_was_stopped_is_made_again) {
    copy_of("bart", "folder");
    copy_of("marian", "folder2");
    ok("convert --from hf folder -o m && convert --from hf folder2 -o m2");
    ok("convert --to hf m -o whole && test ! -e whole/" UNFINISHED " && ls whole > names");
    ok("mkdir d && cp names d/" UNFINISHED " && cp whole/merges.txt d && echo half > d/vocab.json");
    run("convert --from hf d -o x");
    expect(1);
    ok("cp -r d d2; convert --to hf m -o d && diff -r d whole");
    ok("convert --to hf m2 -o d2 && convert --from hf d2 -o back && cmp back m2");
    ok("test ! -e d2/merges.txt && test ! -e d2/" UNFINISHED);
    ok("mkdir d3; printf 'vocab.json\\n' > d3/" UNFINISHED "; echo mine > d3/merges.txt");
    run("convert --to hf m -o d3");
    expect(1);
    assert_contains(result.err, "d3/merges.txt is there");
}

TEST(two_exports_do_not_mix) {
    copy_of("bart", "folder");
    ok("convert --from hf folder -o m && mkdir d");
    run("exec 9< d; flock 9; convert --to hf m -o d");
    expect(1);
    assert_contains(result.err, "d is being written by another run");
    ok("test $(ls d | wc -l) = 0");
}

/* After an export to a full disk, a new folder is removed, and an old folder has no files of the
 * model. */
TEST(an_export_that_fails_leaves_nothing) {
    copy_of("bart", "folder");
    ok("convert --from hf folder -o m && mkdir d");
    for (int kb = 0; kb < 24; kb += 4) {
        run("ulimit -f %d; trap '' XFSZ; convert --to hf m -o d; echo $?; convert --to hf m -o e",
            kb);
        expect(1);
        ok("test $(ls d | wc -l) = 0 && test ! -e e");
    }
}

/* ---- pointers of Git LFS --------------------------------------------------------------------- */

/* A Git LFS pointer is the small text file that a clone without git-lfs has in place of a large
 * file. */
TEST(a_pointer_of_git_lfs_is_called_so) {
    static const char *const files[] = { "model.safetensors", "source.spm", "vocab.json" };
    copy_of("marian", "folder");
    ok("printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:12\\nsize 312087009\\n' > "
       "p");
    for (int i = 0; i < 3; i++) {
        run("cp folder/%s kept && cp p folder/%s; convert --from hf folder -o m", files[i],
            files[i]);
        expect(1);
        assert_contains(result.err, files[i]);
        assert_contains(result.err, "it is a Git LFS pointer, not the file itself: fetch that");
        run("cp kept folder/%s", files[i]);
    }
    run("inspect p; generate --model p; convert p --heads 2 --norm pre -o m");
    ck_assert_int_ne(result.status, 0);
    assert_contains(result.err, "inspect: p: it is a Git LFS pointer");
    assert_contains(result.err, "generate: p: it is a Git LFS pointer");
    assert_contains(result.err, "convert: p: it is a Git LFS pointer");
}

TEST(a_language_is_found_by_its_beginning) {
    copy_of("nllb", "folder");
    ok("convert --from hf folder -o m");
    run("echo a | generate --model m --target-language fra");
    expect(1);
    assert_contains(result.err, "no piece for the language 'fra'; the nearest is fra_Latn");
}

/* ---- the search ------------------------------------------------------------------------------ */

/* If the model's file has no settings of a search, the exported folder has the defaults of
 * `generate`. For a greedy search it has num_beams 1 and no other settings of beams, because
 * transformers would warn of them. */
TEST(a_folder_searches_as_generate_does) {
    ok("printf 'a b\\tb a\\nb a\\ta b\\n' > pairs");
    ok("train --train pairs --tokenizer word --norm post --positions sinusoidal-halves "
       "--activation "
       "silu --d-model 8 --heads 2 --layers 1 --d-ff 8 --max-steps 1 --quiet --threads 1 -o m");
    ok("convert --to hf m -o d; generate --dump-config | grep -o 'beam = [0-9]*'");
    assert_contains(result.err, "the folder gets num_beams 4, which generate uses for it");
    assert_contains(result.out, "beam = 4\n");
    ok("grep -q '\"num_beams\": 4' d/generation_config.json");
    ok("grep -q '\"length_penalty\": 0.48' d/generation_config.json");
    ok("train --task copy --norm post --positions sinusoidal-halves --activation silu --d-model 8 "
       "--heads 2 --layers 1 --d-ff 8 --max-steps 1 --quiet --threads 1 -o ids && convert --to hf "
       "ids -o d2 && cat d2/generation_config.json");
    assert_contains(result.out, "\"num_beams\": 1");
    ck_assert(!strstr(result.out, "length_penalty") && !strstr(result.out, "early_stopping"));
}

/* A tied model with scaled embeddings is exported as an untied GPT-2, which does not scale them,
 * with a message; but as a tied Gemma, which does. */
TEST_ROWS(a_tie_that_is_lost_is_said, 2) {
    ok("seq 300 > text");
    run("train --task lm --text text --tokenizer byte --d-model 8 --heads 2 --layers 1 --d-ff 8 "
        "--max-steps 1 --max-len 16 --quiet --threads 1 --text-eval-size 0 -o m %s && convert --to "
        "hf m -o d && cat d/config.json",
        _i ? "--form llama --activation gelu-tanh" : "");
    expect(0);
    static const char said[] = "config.json: 'tie_word_embeddings' is false: gpt2 does not scale";
    ck_assert_msg((strstr(result.err, said) == NULL) == (_i == 1), "%s", result.err);
    assert_contains(result.out,
                    _i ? "\"tie_word_embeddings\": true" : "\"tie_word_embeddings\": false");
}

/* A model's file contains the tokenizer.json: without the folder, each prompt has the continuation
 * that was recorded from transformers. */
TEST(a_prompt_goes_on_as_in_transformers) {
    copy_of("lm_llama", "folder");
    ok("convert --from hf folder -o m && mv folder gone && inspect m");
    ok("generate -m m --beam 1 --max-new-tokens 10 < gone/lines.txt > out");
    ok("tr '\\001-\\011\\013-\\037' ' ' < out | cmp - gone/texts.txt");
    ok("rm gone/tokenizer.json && convert --from hf gone -o ids");
    ok("echo 5 6 7 | generate -m ids --max-new-tokens 3 --json --attention w.json");
    ok("echo 5 | generate -m m --explain page.html --attention w.svg");
    ok("generate -m m --prompt 'the house' --attention w.svg --explain page.html");
    if (!has_emitted_compiler("convert_hf")) return;
    ok("graph --emit-c m -o m.c && generate m --quiet --threads 1 < gone/lines.txt > expected");
    run("%s -std=c11 -O1 -DMODEL_MAIN m.c -o p && ./p < gone/lines.txt | cmp - expected",
        emitted_compiler());
    expect(0);
}

/* The emitted program of a model whose tokenizer.json, written by convert, splits text by a regular
 * expression writes the lines of generate. */
TEST(a_folder_of_ones_own_becomes_a_program) {
    if (!has_emitted_compiler("convert_hf")) return;
    ok("seq 300 > text && train --task lm --text text --tokenizer byte-bpe --vocab-size 270 "
       "--d-model 8 --heads 2 --layers 1 --d-ff 8 --max-steps 1 --max-len 16 --quiet --threads 1 "
       "--text-eval-size 0 -o m && convert --to hf m -o d && convert --from hf d -o n");
    ok("graph --emit-c n -o n.c && generate n --quiet --threads 1 < text > expected");
    run("%s -std=c11 -w -O1 -DMODEL_MAIN n.c -o p && ./p < text 2> said | cmp - expected",
        emitted_compiler());
    expect(0);
}

TEST(what_is_not_done_stays_with_the_model) {
    copy_of("marian", "folder");
    ok("sed -i 's/\"num_beams\": 4/\"num_beams\": 4, \"num_beam_groups\": 2/' "
       "folder/generation_config.json");
    ok("convert --from hf folder -o m && inspect m");
    assert_contains(result.out, "asks for what weft does not do: num_beam_groups=2\n");
}

/* ---- models of weft's own -------------------------------------------------------------------- */

#define LIKE "train --train pairs --like marian --threads 1 --quiet --max-steps 1 "

/* Models of --like marian are exported and imported; options that would prevent it are refused
 * before the training. */
TEST(what_is_like_marian_goes_out_and_comes_back) {
    char path[512], spm[640];
    snprintf(spm, sizeof spm, "cp %s model.spm",
             source_path("tests/data/hf/marian/source.spm", path, sizeof path));
    ok(spm);
    ok("printf 'a b\\tb a\\nb a\\ta b\\n' > pairs");
    ok(LIKE "--preset tiny --spm-src model.spm -o m && convert --to hf m -o d");
    ck_assert(!strstr(result.err, "has no tokenizer"));
    ok("convert --from hf d -o back && convert --to hf back -o d2 && diff -r d d2");
    run(LIKE "-o m2");
    expect(2);
    assert_contains(result.err, "it reads text with SentencePiece models");
    run(LIKE "--spm-src model.spm --norm pre -o m2");
    expect(2);
    assert_contains(result.err, "it has --norm post --positions sinusoidal-halves");
    run(LIKE "--spm-src model.spm --arch language -o m2");
    expect(2);
    assert_contains(result.err, "it has an encoder and a decoder");
    ok("test ! -e m2");
}

#define BART "train --train pairs --like bart --preset tiny --threads 1 --quiet "

/* Models of --like bart are exported and imported with the same greedy outputs. Their vocabulary is
 * learned, so that no tokenizer file is needed. */
TEST(what_is_like_bart_goes_out_and_comes_back) {
    ok("for i in $(seq 30); do echo \"a$((i % 7)) B.c d$((i % 5))'s\tn\303\251 d$((i % 5)) a$((i % "
       "7))\"; done > pairs; cut -f1 pairs > src");
    ok(BART "--epochs 3 -o m > out && convert --to hf m -o d");
    ck_assert(!strstr(result.err, "has no tokenizer") && !strstr(result.err, "pad_token_id"));
    ok("convert --from hf d -o back && convert --to hf back -o d2 && diff -r d d2");
    ck_assert_ptr_null(strstr(result.err, "convert: "));
    ok("for f in m back; do generate $f src --beam 1 --max-len-a 0 --max-len-b 20 > $f.out; done; "
       "test -s m.out && cmp m.out back.out");
    ok("grep -q '\"architectures\": \\[\"BartForConditionalGeneration\"\\]' d/config.json");
    ok("grep -q BartTokenizer d/tokenizer_config.json; head -n 1 d/merges.txt");
    assert_contains(result.out, "#version: 0.2");
    ok("train --resume --train pairs -o m --threads 1 --quiet --epochs 4 > out");
    ok("train --init back --train pairs -o tuned --threads 1 --quiet --max-steps 2 > out");
}

#define T5 "train --train pairs --like t5 --preset tiny --threads 1 --quiet "

/* Models of --like t5 are exported and imported with the same greedy outputs: with a SentencePiece
 * model, which is copied into the folder, and with words, for which the folder has no tokenizer. An
 * imported model that was fine-tuned is exported with its old tokenizer.json. */
TEST(what_is_like_t5_goes_out_and_comes_back) {
    char path[512], spm[640];
    snprintf(spm, sizeof spm, "cp %s t5.spm",
             source_path("tests/data/hf/t5/spiece.model", path, sizeof path));
    ok(spm);
    ok("for i in $(seq 30); do echo \"the dog $i\tHaus Baum\"; done > pairs; cut -f1 pairs > src");
    ok(T5 "--spm-src t5.spm --epochs 3 -o m > out && convert --to hf m -o d && cmp t5.spm "
          "d/spiece.model");
    ck_assert(!strstr(result.err, "has no tokenizer"));
    ok("convert --from hf d -o back && convert --to hf back -o d2 && diff -r d d2");
    ck_assert_ptr_null(strstr(result.err, "convert: "));
    ok("for f in m back; do generate $f src --beam 1 --max-new-tokens 9 > $f.out; done; "
       "test -s m.out && cmp m.out back.out");
    ok("grep -q '\"scale_decoder_outputs\": false' d/config.json");
    ok("train --resume --train pairs -o m --threads 1 --quiet --epochs 4 > out");
    copy_of("flan-own", "folder");
    ok("convert --from hf folder -o flan && train --init flan --train pairs -o tuned --threads 1 "
       "--quiet --max-steps 2 > out && convert --to hf tuned -o d3 && cmp folder/tokenizer.json "
       "d3/tokenizer.json");
    ok(T5 "--tie all --tokenizer word --max-steps 1 -o m2 && convert --to hf m2 -o d4");
    assert_contains(result.err, "the folder has no tokenizer: T5's are a tokenizer.json or one");
    ck_assert_ptr_null(strstr(result.err, "--like bart"));
    ok("grep -q '\"scale_decoder_outputs\": true' d4/config.json");
}

/* Language models that no class of transformers can express, and the message that names the option
 * to train with instead. */
static const struct {
    const char *training, *says;
} decoders[] = {
    { "--train pairs --arch language",
      "convert: m: its output has a bias, which no language model of transformers has. For pairs, "
      "train --like bart in place of --arch language makes" },
    { "--train pairs --arch language --form llama",
      "its start token stands between a prompt and its output, which it does in no language model "
      "of "
      "transformers. For pairs, train --like bart in place of --arch language" },
    { "--task copy --arch language",
      "its output has a bias, which no language model of transformers has: a model of a made-up "
      "task has no folder. train --like bart makes a model of text" },
    { "--task lm --text pairs --tokenizer byte --norm post --text-eval-size 0 --max-len 8",
      "its norms are not those of transformers: before each sublayer, and one at the end: train it "
      "with --norm pre" },
};

TEST_ROWS(a_language_model_without_a_family_is_told_the_flag, COUNT_OF(decoders)) {
    ok("printf 'a b\\tb a\\nb a\\ta b\\n' > pairs");
    run("train %s --preset tiny --max-steps 1 --threads 1 --quiet -o m", decoders[_i].training);
    expect(0);
    run("convert --to hf m -o d");
    expect(1);
    assert_contains(result.err, decoders[_i].says);
    ok("test ! -e d");
}

/* Language models in both forms and with both byte-level tokenizers are exported and imported, and
 * continue prompts alike. */
TEST_ROWS(running_text_goes_out_and_comes_back, 4) {
    static const char *const ways[] = { "--form gpt", "--form gpt --tokenizer byte",
                                        "--form llama --kv-heads 1", "--form llama --tie none" };
    ok("for i in 1 2 3 4 5 6; do printf \"one two three's 1999\\n\\tn\\303\\251  five... six\\n\"; "
       "done "
       "> text");
    run("train --task lm --text text %s --d-model 16 --heads 2 --layers 1 --d-ff 24 --max-len 32 "
        "--threads 1 --max-steps 60 --warmup 2 --lr 0.01 --quiet -o m",
        ways[_i]);
    expect(0);
    ok("convert --to hf m -o d && convert --from hf d -o back");
    ck_assert_ptr_null(strstr(result.err, "tokenizer"));
    ok("convert --to hf back -o d2 && diff -r d d2 && convert --from hf d2 -o b2 && cmp back b2");
    ok("for f in m back; do generate $f text --beam 1 --max-new-tokens 8 --quiet > $f.out; done; "
       "test -s m.out && cmp m.out back.out");
    run("grep -q '\"architectures\": \\[\"%s\"\\]' d/config.json",
        _i < 2 ? "GPT2LMHeadModel" : "LlamaForCausalLM");
    expect(0);
    ok("tokenize --tokenizer d/tokenizer.json < text > ids && test -s ids");
}

/* An imported language model is fine-tuned on running text, with its tokenizer.json, or on pairs,
 * and exported again. */
TEST(an_imported_language_model_is_trained_on) {
    copy_of("lm_llama", "folder");
    ok("convert --from hf folder -o m && for i in 1 2 3 4 5 6 7 8 9; do echo 'the house runs'; "
       "done "
       "> text; paste text text > pairs");
    ok("train --init m --task lm --text text --threads 1 --max-steps 60 --warmup 2 --lr 0.02 "
       "--quiet "
       "-o tuned && generate -m tuned --prompt 'the house' --beam 1 --max-new-tokens 3 --quiet");
    assert_contains(result.out, "the house runs");
    ok("train --resume --task lm --text text --threads 1 --max-steps 62 --quiet -o tuned");
    ok("convert --to hf tuned -o out && cmp out/tokenizer.json folder/tokenizer.json");
    ok("train --init m --train pairs --threads 1 --max-steps 1 --quiet -o of-pairs");
    /* the scored tokens of a target do not begin with <s> */
    ok("printf 'the\\t house\\n' | generate -m m --score --json --quiet");
    ck_assert_ptr_null(strstr(result.out, "<s>"));
}

/* A new model is trained with an existing tokenizer.json. */
TEST(a_tokenizer_json_is_taken) {
    copy_of("lm_llama", "folder");
    ok("for i in 1 2 3 4 5 6 7 8 9; do echo 'the house runs'; done > text");
    ok("train --task lm --text text --tokenizer-json folder/tokenizer.json --end-token '</s>' "
       "--form "
       "llama --d-model 16 --heads 2 --layers 1 --d-ff 24 --max-len 32 --threads 1 --max-steps 60 "
       "--warmup 2 --lr 0.02 --quiet -o m");
    ok("generate -m m --prompt 'the house' --beam 1 --max-new-tokens 3 --quiet");
    assert_contains(result.out, "the house runs");
    ok("train --resume --task lm --text text --threads 1 --max-steps 62 --quiet -o m");
    ok("convert --to hf m -o d && cmp d/tokenizer.json folder/tokenizer.json && convert --from hf "
       "d "
       "-o back && convert --to hf back -o d2 && diff -r d d2");
    static const char *const refused[][2] = {
        { "--tokenizer json", "--tokenizer json: say which one" },
        { "--tokenizer-json folder/tokenizer.json", "say which of its tokens ends a document" },
        { "--end-token a", "--end-token would have no effect: it is for --tokenizer-json" },
    };
    for (int i = 0; i < COUNT_OF(refused); i++) {
        run("train --task lm --text text -o new %s", refused[i][0]);
        expect(2);
        assert_contains(result.err, refused[i][1]);
    }
    run("train --task lm --text text -o new --tokenizer-json folder/tokenizer.json --end-token "
        "xyz");
    expect(1);
    assert_contains(result.err, "folder/tokenizer.json: it has no token 'xyz'");
    run("train --task lm --text text -o new --tokenizer-json folder/config.json --end-token x");
    expect(1);
    assert_contains(result.err, "folder/config.json: ");
}

/* A model with default settings cannot be exported; the message names the one option that would
 * make it exportable. */
TEST(what_has_no_way_out_is_told_the_flag) {
    ok("printf 'a b\\tb a\\nb a\\ta b\\n' > pairs; train --train pairs --preset tiny --max-steps 1 "
       "--threads 1 --quiet -o m");
    run("convert --to hf m -o d");
    expect(1);
    assert_contains(result.err,
                    "no family of marian, bart, mbart, m2m_100, t5, mt5, umt5 has these positions");
    assert_contains(result.err, "train it with --like bart beside the same options");
    ck_assert(!strstr(result.err, "searches it") && !strstr(result.err, "its vocabulary"));
    ok("train --task copy --preset tiny --max-steps 1 --threads 1 --quiet -o ids");
    run("convert --to hf ids -o d");
    expect(1);
    assert_contains(result.err, "output bias together: a model of a made-up task has no folder");
    ok("train --train pairs --preset tiny --max-steps 1 --threads 1 --quiet --share-vocab --norm "
       "post --positions sinusoidal-halves --activation silu -o m2 && convert --to hf m2 -o d");
    assert_contains(result.err, "a model trained with --like bart has one that is written");
    ok("test -f d/config.json && test ! -e d/vocab.json");
    ok("train --train pairs --preset tiny --max-steps 1 --threads 1 --quiet --like bart -o m3 && "
       "convert --to hf m3 -o d3 && test -f d3/vocab.json && test -f d3/merges.txt");
}

/* Options that do not fit --like bart, and the message that refuses them. */
static const struct {
    const char *flags, *says;
} unlike[] = {
    { "--norm pre", "--like bart: it has --norm post --positions learned --activation gelu "
                    "--embedding-norm yes --tie all" },
    { "--embedding-norm no", "--like bart: it has --norm post" },
    { "--tie decoder", "--like bart: it has --norm post" },
    { "--tokenizer bpe", "--like bart: it reads text with byte-pair encoding of bytes: --tokenizer "
                         "byte-level" },
    { "--tokenizer-tgt char", "--like bart: it reads text with" },
    { "--arch language", "--like bart: it has an encoder and a decoder" },
};

/* Options that do not fit --like t5, and the message that refuses them. */
static const struct {
    const char *flags, *says;
} unlike_t5[] = {
    { "--norm post", "--like t5: it has --norm pre --positions none --tie inputs or all" },
    { "--positions rotary", "--like t5: it has --norm pre" },
    { "--tie decoder", "--like t5: it has --norm pre" },
    { "--tokenizer-tgt char", "--like t5: both sides have one vocabulary: leave" },
    { "--spm-src a --spm-tgt b", "--like t5: both sides have one vocabulary: --spm-src alone" },
    { "--spm-src marian.spm", "T5 needs ids of padding and of the end" },
    { "--arch language", "--like t5: it has an encoder and a decoder" },
};

TEST_ROWS(what_t5_has_not_is_told, COUNT_OF(unlike_t5)) {
    char path[512], spm[640];
    snprintf(spm, sizeof spm, "cp %s marian.spm",
             source_path("tests/data/hf/marian/source.spm", path, sizeof path));
    ok(spm);
    ok("printf 'a b\\tb a\\nb a\\ta b\\n' > pairs");
    run(T5 "%s -o m", unlike_t5[_i].flags);
    ck_assert(result.status != 0);
    assert_contains(result.err, unlike_t5[_i].says);
}

TEST_ROWS(what_bart_has_not_is_told, COUNT_OF(unlike)) {
    ok("printf 'a b\\tb a\\nb a\\ta b\\n' > pairs");
    run(BART "%s -o m", unlike[_i].flags);
    expect(2);
    assert_contains(result.err, unlike[_i].says);
    run("train --task copy --like bart --max-steps 1");
    expect(2);
    assert_contains(result.err, "--like bart: it is for text");
    run("train --task copy --arch language --embedding-norm yes --max-steps 1");
    expect(2);
    assert_contains(result.err, "--embedding-norm would have no effect");
}
