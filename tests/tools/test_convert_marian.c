/* tests/tools/test_convert_marian.c - `convert` and files of Marian: in, used by `generate`, out, and in
 * again; and what is refused. The files themselves: models/test_marian.c. */
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

/* A command with a name in it, which must exit with 0. */
static void with(const char *command, const char *name) {
    run(command, name);
    expect(0);
}

static const char *const names[] = { "shared.npz", "shared.bin", "split.bin", "teacher.npz" };

/* The recorded outputs of the recorded sources, from the model and from what comes back. */
TEST_ROWS(a_model_goes_in_and_out, COUNT_OF(names)) {
    char lines[64];
    with("convert --from marian %s -o first", recorded(names[_i]));
    ok("convert --to marian first -o model.npz");
    ok("convert --from marian model.npz -o second");
    ok("cmp first second");
    snprintf(lines, sizeof lines, "%s.txt", names[_i]);
    with("sed 's/ |.*//' %s > sources", recorded(lines));
    with("sed 's/.*| *//' %s > outputs", recorded(lines));
    ok("generate second sources > ours");
    ok("diff ours outputs");
    ok("generate --weights int8 --beam 3 second sources");
}

/* With a SentencePiece model, lines of text become lines of text. */
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
}

static const struct {
    const char *command, *sentence;
    int status;
} refused[] = {
    { "convert --from marian NOTHING -o m", "NOTHING", 1 },
    { "convert --from marian in --to hf -o m", "--from marian makes a model", 2 },
    { "convert --from marian --heads 2 in -o m", "--from marian takes it from the file", 2 },
    { "convert --to marian --heads 2 in -o m", "--to marian takes it from the model", 2 },
    { "convert --to marian --weights int8 in -o m", "model.npz is written in f32", 2 },
    { "convert --spm-src in in -o m", "it is for --from marian", 2 },
    { "convert --from marian in --spm-src in -o m", "the vocabulary of the source", 1 },
    { "convert --scales in in -o m", "it is for --to marian", 2 },
    { "convert --to marian --scales in trained -o m", "Marian has no such model", 1 },
    { "convert --from marian in -o in", "read and written", 2 },
    { "convert --to marian trained -o m", "Marian has no such model", 1 },
};

TEST_ROWS(what_is_not_possible_is_refused, COUNT_OF(refused)) {
    with("cp %s in", recorded("shared.bin"));
    ok("train --task copy --preset tiny --max-steps 1 --quiet -o trained");
    run("%s", refused[_i].command);
    expect(refused[_i].status);
    assert_contains(result.err, refused[_i].sentence);
    ok("test ! -e m");
}
