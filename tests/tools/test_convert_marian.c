/* tests/tools/test_convert_marian.c - `convert` and files of Marian: imported models, used by
 * `generate`, exported and imported again; exported models of weft; and refused files. The format
 * of the files is tested in models/test_marian.c. */
#include <stdio.h>

#include "tests/suites.h"
#include "tests/support/commands.h"
#include "tests/support/support.h"

TESTS(convert_marian)
SETUP(enter_folder, leave_folder)

static const char *recorded(const char *name) {
    static char path[512];
    char relative[128];
    snprintf(relative, sizeof relative, "tests/data/marian/%s", name);
    return source_path(relative, path, sizeof path);
}

/* Runs a command, with a name in place of its %s, and asserts that it exits with 0. */
static void with(const char *command, const char *name) {
    run(command, name);
    expect(0);
}

static const char *const names[] = { "shared.npz", "shared.bin", "split.bin", "teacher.npz" };

/* The imported model, and its export imported again, give the recorded outputs. */
TEST_ROWS(a_model_goes_in_and_out, COUNT_OF(names)) {
    char lines[64];
    with("convert --from marian %s -o first", recorded(names[_i]));
    ok("convert --to marian first -o model.npz");
    ok("convert --from marian model.npz -o second");
    ok("convert --to marian second -o again.npz");
    ok("cmp model.npz again.npz");
    snprintf(lines, sizeof lines, "%s.txt", names[_i]);
    with("sed 's/ |.*//' %s > sources", recorded(lines));
    with("sed 's/.*| *//' %s > outputs", recorded(lines));
    ok("generate second sources > ours");
    ok("diff ours outputs");
    ok("generate --weights int8 --beam 3 second sources");
}

/* A model is exported in int8, calibrated on a text, and imported: exporting it again gives the
 * same rounded weights. */
TEST_ROWS(a_model_goes_out_in_int8, COUNT_OF(names)) {
    char lines[64];
    with("convert --from marian %s -o first", recorded(names[_i]));
    snprintf(lines, sizeof lines, "%s.txt", names[_i]);
    with("sed 's/ |.*//' %s > sources", recorded(lines));
    ok("cat sources > more && echo >> more");
    ok("convert --to marian --calibrate more first -o first.bin");
    assert_contains(result.err, "scales of activations from 40 lines of more; 1 were empty");
    ok("convert --from marian first.bin -o second");
    ok("convert --to marian --scales first.bin second -o second.bin");
    ok("cmp first.bin second.bin");
    ok("generate second sources > ours && test -s ours");
    ok("generate --arithmetic marian --batch-size 7 --threads 3 second sources > int8");
    ok("generate --arithmetic marian --batch-size 1 --threads 1 second sources > alone");
    ok("test -s int8 && cmp int8 alone");
    ok("convert --weights int8 second -o rows");
    run("generate --arithmetic marian rows sources");
    expect(1);
    assert_contains(result.err, "it has no scales of activations");
    ok("convert --from marian --weights int8 first.bin -o rows");
    run("generate --arithmetic marian rows sources");
    expect(1);
    assert_contains(result.err, "convert --from marian without --weights int8 keeps them");
}

/* With a SentencePiece model, the converted model translates lines of text as recorded. */
TEST(a_model_translates_text) {
    char path[512];
    with("cp %s model.bin", recorded("words.bin"));
    with("cp %s vocabulary.spm", source_path("tests/data/words_de.spm", path, sizeof path));
    ok("convert --from marian model.bin --spm-src vocabulary.spm -o model.weft");
    with("sed 's/|.*//' %s > sources", recorded("words.bin.lines"));
    with("sed 's/.*|//' %s > outputs", recorded("words.bin.lines"));
    ok("generate model.weft sources > ours");
    ok("diff ours outputs");
    ok("convert --from marian model.bin --spm-src vocabulary.spm --spm-tgt vocabulary.spm -o two");
    ok("cmp model.weft two");
    ok("convert --to marian --scales model.bin model.weft -o back.bin");
    ok("cmp back.bin model.bin");
    ok("cat sources > more && printf '\\n \\t\\r\\n\\n' >> more");
    ok("convert --to marian --calibrate sources model.weft -o a.bin");
    ok("convert --to marian --calibrate more model.weft -o b.bin");
    assert_contains(result.err, "; 3 were empty or too long");
    ok("cmp a.bin b.bin");
}

/* Options that train new models, with each kind of decoder, and an imported model. The weights are
 * exported, imported and exported again, and keep their bits. */
static const char *const trainings[] = {
    "--like firefox --preset tiny --tie all",
    "--like firefox --preset tiny --tie decoder --decoder attention --activation silu",
    "--like firefox --preset tiny --tie all --decoder average",
    "--init model.weft",
};

TEST_ROWS(a_trained_model_goes_out, COUNT_OF(trainings)) {
    char path[512];
    with("cp %s vocabulary.spm", source_path("tests/data/words_de.spm", path, sizeof path));
    with("convert --from marian %s --spm-src vocabulary.spm -o model.weft", recorded("words.bin"));
    ok("for i in 1 2 3 4 5 6 7 8; do printf 'hallo\thunde\nleute\tein\n'; done > pairs");
    const char *spm = _i < 3 ? "--spm-src vocabulary.spm" : "";
    run("train --train pairs --valid-size 0 --max-steps 3 --quiet %s %s -o trained", trainings[_i],
        spm);
    expect(0);
    ok("convert --to marian trained -o model.npz");
    ok("convert --from marian model.npz --spm-src vocabulary.spm -o back");
    ok("printf 'hallo\nein hund\n' > lines");
    ok("generate --weights f32 --beam 1 trained lines > a && test -s a");
    ok("convert --to marian back -o again.npz");
    ok("cmp again.npz model.npz");
}

/* generate --alignment uses the head that was trained by guided alignment, or else the mean of
 * all. */
TEST(a_guided_model_aligns_by_its_head) {
    char path[512];
    with("cp %s vocabulary.spm", source_path("tests/data/words_de.spm", path, sizeof path));
    with("convert --from marian %s --spm-src vocabulary.spm -o mean", recorded("words.bin"));
    with("convert --from marian --guided %s --spm-src vocabulary.spm -o head",
         recorded("words.bin"));
    ok("inspect --json head | grep -q 'generate.alignment-head\",\"value\":\"0\"'");
    ok("printf 'alle leute\nein hund\n' > lines");
    ok("generate --alignment soft mean lines > a && generate --alignment soft head lines > b");
    ok("test -s a && ! cmp -s a b");
}

/* A decoder's configuration beside the model sets the length penalty of its search. */
static const char *const decoders[] = { "model.npz.decoder.yml", "decoder.yml",
                                        "config.intgemm8bitalpha.yml" };

TEST_ROWS(a_decoder_s_length_penalty_is_kept, COUNT_OF(decoders)) {
    with("cp %s model.npz", recorded("teacher.npz"));
    ok("convert --from marian model.npz -o none");
    with("printf 'models:\\n  - model.npz\\nbeam-size: 6\\nnormalize: 0.6\\r\\n' > %s",
         decoders[_i]);
    ok("convert --from marian model.npz -o m");
    assert_contains(result.err, "length penalty 0.6, as ");
    assert_contains(result.err, decoders[_i]);
    ok("inspect --json m | grep -q 'generate.length-penalty-type\",\"value\":\"avg\"'");
    with("sed 's/ |.*//' %s > sources", recorded("teacher.npz.txt"));
    ok("generate --beam 4 m sources > a");
    ok("generate --beam 4 --length-penalty-type avg --length-penalty 0.6 none sources > b");
    ok("cmp a b");
    with("echo 'normalize: \"0\"' > %s && convert --from marian model.npz -o m && cmp m none",
         decoders[_i]);
    with("echo 'word-penalty: 0.5' > %s", decoders[_i]);
    ok("convert --from marian model.npz -o m && generate m sources");
    assert_contains(result.err, "settings that are not done here: word-penalty=0.5");
    with("printf 'normalize:\ttrue' > %s", decoders[_i]);
    ok("convert --from marian model.npz -o m");
    assert_contains(result.err, "length penalty 1, as ");
    with("echo 'normalize: false' > %s && convert --from marian model.npz -o m && cmp m none",
         decoders[_i]);
    with("echo 'normalize: much # of it' > %s", decoders[_i]);
    run("convert --from marian model.npz -o m");
    expect(1);
    assert_contains(result.err, decoders[_i]);
    assert_contains(result.err, "the decoder's 'normalize' is 'much', not between 0 and 10");
}

static const struct {
    const char *command, *sentence;
    int status;
} refused[] = {
    { "convert --from marian NOTHING -o m", "NOTHING", 1 },
    { "convert --from marian in --to hf -o m", "--from marian makes a model", 2 },
    { "convert --from marian --heads 2 in -o m", "--from marian takes it from the file", 2 },
    { "convert --to marian --heads 2 in -o m", "--to marian takes it from the model", 2 },
    { "convert --to marian --weights int8 in -o m",
      "a model.npz is written in f32, an .intgemm.alphas.bin in int8", 2 },
    { "convert --from marian in -o n && convert --to hf n -o m",
      "convert --to marian writes models of this form", 1 },
    { "train --task copy --preset tiny --decoder ssru --max-steps 1 --quiet -o n && "
      "convert --to hf n -o m",
      "transformers has no such decoder", 1 },
    { "convert --spm-src in in -o m", "it is for --from marian", 2 },
    { "convert --guided in -o m", "it is for --from marian", 2 },
    { "convert --from marian in --spm-src in -o m", "the vocabulary of the source", 1 },
    { "convert --scales in in -o m", "it is for --to marian", 2 },
    { "convert --calibrate in in -o m", "it is for --to marian", 2 },
    { "generate --arithmetic marian trained in", "it has no scales of activations", 1 },
    { "generate --arithmetic marian --weights f32 trained in", "integers of the model's own", 2 },
    { "convert --to marian --calibrate in --scales in trained -o m", "--scales has the scales", 2 },
    { "convert --from marian in -o n && : > e && convert --to marian --calibrate e n -o m",
      "has no line to run the model on", 1 },
    { "convert --from marian in -o n && echo a > e && convert --to marian --calibrate e n -o m",
      "e, line 1: ", 1 },
    { "convert --to marian --calibrate in trained -o m", "Marian has no such model", 1 },
    { "convert --to marian --scales in trained -o m", "Marian has no such model", 1 },
    { "convert --from marian in -o in", "read and written", 2 },
    { "convert --to marian trained -o m", "Marian has no such model", 1 },
    { "train --train in --like firefox --tokenizer bpe -o m", "it reads text with", 2 },
    { "train --train in --like firefox --norm pre --spm-src in -o m", "it has --norm post", 2 },
    { "train --train in --like marian --decoder ssru --spm-src in -o m", "has self-attention", 2 },
};

TEST_ROWS(what_is_not_possible_is_refused, COUNT_OF(refused)) {
    with("cp %s in", recorded("shared.bin"));
    ok("train --task copy --preset tiny --max-steps 1 --quiet -o trained");
    run("%s", refused[_i].command);
    expect(refused[_i].status);
    assert_contains(result.err, refused[_i].sentence);
    ok("test ! -e m");
}
