/* tests/tools/test_gzip.c - text compressed by gzip, wherever a program reads text. Damaged files
 * are refused, and never read as a shorter text. Other files are refused, too: text in UTF-16, a
 * model, a pointer of Git LFS, other compressions, archives and other files that are no text. */
#include <stdio.h>
#include <unistd.h>

#include "tests/suites.h"
#include "tests/support/commands.h"
#include "tools/data/lines.h"

TESTS(gzip)

#define SIZE "--d-model 8 --heads 2 --layers 1 --d-ff 16 --threads 1 --quiet --max-steps 3 "
#define PAIRS "train --tokenizer word " SIZE
#define TEXT "train --task lm --tokenizer byte --max-len 8 " SIZE

static void make_files(void) {
    enter_folder();
    ok("for i in $(seq 40); do echo \"a$((i % 7)) b$((i % 5))\tc$((i % 5)) d$((i % 7))\"; done > "
       "pairs; cut -f1 pairs > src; cut -f2 pairs > tgt; head -n 9 pairs > valid\n"
       "for f in pairs src tgt valid; do gzip -n -k $f; done\n"
       "{ head -n 7 pairs | gzip -1; : | gzip; tail -n +8 pairs | gzip -9; } > members.gz\n"
       "train --train pairs --tokenizer word " SIZE "-o model > /dev/null");
}

SETUP(make_files, leave_folder)

/* ---- other files ----------------------------------------------------------------------------- */

#define LITTLE "printf '\\377\\376a\\0\\tb\\0\\n\\0' > x; "
#define BIG "printf '\\376\\377\\0a\\0\\t\\0b\\0\\n' > x; "
#define UNMARKED "printf 'a\\0\\t\\0b\\0\\n\\0' > x; "
#define UNMARKED_BIG "printf '\\0a\\0\\t\\0b\\0\\n' > x; "

#define ZIP "printf 'PK\\3\\4\\024\\0\\0\\0\\10\\0\\n' > x; "

#define POINTER                                                                                    \
    "printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:12\\nsize 312\\n' > x; "

static const struct {
    const char *command, *says;
} wide[] = {
    { LITTLE "train --train x -o y", "x can't be read: it is UTF-16, not UTF-8: iconv -f UTF-16 "
                                     "-t UTF-8 FILE > NEW converts it" },
    { BIG "train --train x -o y", "iconv -f UTF-16 -t" },
    { UNMARKED "train --train x -o y", "iconv -f UTF-16LE -t" },
    { UNMARKED_BIG "train --train x -o y", "iconv -f UTF-16BE -t" },
    { LITTLE "train --train-src x --train-tgt tgt -o y", "iconv -f UTF-16 -t" },
    { LITTLE "train --train pairs --valid x -o y", "iconv -f UTF-16 -t" },
    { LITTLE "cat x | train --train - -o y", "iconv -f UTF-16 -t" },
    { LITTLE TEXT "--text x -o y", "iconv -f UTF-16 -t" },
    { UNMARKED TEXT "--text x -o y", "iconv -f UTF-16LE -t" },
    { LITTLE TEXT "--text src --text-eval x -o y", "iconv -f UTF-16 -t" },
    { LITTLE "train --task lm --text x --dry-run", "x can't be read: it is UTF-16, not UTF-8: " },
    { BIG "train --task lm --tokenizer byte-bpe --vocab-size 300 --text x -o y",
      "x can't be read: it is UTF-16, not UTF-8: iconv -f UTF-16 -t" },
    { LITTLE "tokenize --learn wordpiece --vocab-size 33 -i src -o j; train --task mask "
             "--tokenizer-json j --text x -o y",
      "iconv -f UTF-16 -t" },
    { LITTLE "generate model x", "iconv -f UTF-16 -t" },
    { LITTLE "generate model < x", "iconv -f UTF-16 -t" },
    { UNMARKED "cat x | generate model", "iconv -f UTF-16LE -t" },
    { LITTLE "generate model src --reference x", "iconv -f UTF-16 -t" },
    { LITTLE "tokenize --learn bpe --vocab-size 300 -i x -o y", "iconv -f UTF-16 -t" },
    { LITTLE "tokenize --learn bpe --vocab-size 258 -i src -o z; tokenize --tokenizer z -i x",
      "iconv -f UTF-16 -t" },
    { "train --train model -o y", "model can't be read: it is a model, and a text is wanted here" },
    { "train --train-src src --train-tgt model -o y", "model can't be read: it is a model" },
    { "train --text model -o y", "model can't be read: it is a model" },
    { "generate model -i model", "model can't be read: it is a model" },
    { "generate model < model", "stdin can't be read: it is a model" },
    { "tokenize --learn bpe --vocab-size 300 -i model -o y", "it is a model" },
    { POINTER "train --train x -o y", "x can't be read: it is a Git LFS pointer, not the file" },
    { POINTER TEXT "--text x -o y", "x can't be read: it is a Git LFS pointer" },
    { POINTER "generate model x", "x can't be read: it is a Git LFS pointer" },
    { POINTER "generate model < x", "stdin can't be read: it is a Git LFS pointer" },
    { POINTER "tokenize --tokenizer x", "x can't be read: it is a Git LFS pointer" },
    { POINTER "generate model src --shortlist x", "x can't be read: it is a Git LFS pointer" },
    { POINTER "convert --from marian x -o y", "x can't be read: it is a Git LFS pointer" },
    { "printf '\\375\\067zXZ\\0\\0\\4' > x; train --train x -o y",
      "x can't be read: it is compressed by xz, and only gzip is read: xz -dc FILE > NEW" },
    { "printf '\\050\\265\\057\\375\\4' > x; generate model x", "it is compressed by zstd" },
    { "printf 'BZh91AY&SY\\1' > x; " TEXT "--text x -o y", "it is compressed by bzip2" },
    { ZIP "train --train x -o y", "x can't be read: it does not look like a text: it is a zip "
                                  "archive; unzip -p FILE > NEW unpacks it" },
    { ZIP "train --train-src src --train-tgt x -o y", "it is a zip archive" },
    { ZIP TEXT "--text x -o y", "x can't be read: it does not look like a text: it is a zip" },
    { ZIP "generate model x", "x can't be read: it does not look like a text: it is a zip" },
    { ZIP "cat x | generate model", "stdin can't be read: it does not look like a text: it is" },
    { ZIP "tokenize --learn bpe --vocab-size 300 -i x -o y", "it is a zip archive" },
    { "printf 'a\\0c\\n' > x; tokenize --learn bpe --vocab-size 300 -i x -o y",
      "line 1: it has a zero byte; it does not look like a text\n" },
    { "printf '7z\\274\\257\\047\\034\\0\\4' > x; train --train x -o y",
      "it is a 7z archive; 7z x -so" },
    { "printf 'Rar!\\032\\7\\0' > x; generate model x", "it is a rar archive" },
    { "printf 'a\\tb\\0c\\n' > x; train --train x -o y",
      "line 1 of x: a zero byte (U+0000) at byte 3; it does not look like a text\n" },
    { "printf '\\377\\330\\0\\020\\tb\\n' > x; train --train x -o y",
      "line 1 of x: not UTF-8 at byte 0; it does not look like a text\n" },
    { "printf '\\377\\330\\0\\020\\n' > x; generate model x",
      "x, line 1: not UTF-8 at byte 0; it does not look like a text\n" },
#ifdef HAVE_ZLIB
    { LITTLE "gzip x; train --train x.gz -o y", "iconv -f UTF-16 -t" },
    { UNMARKED "gzip -c x | generate model", "iconv -f UTF-16LE -t" },
#endif
};

TEST_ROWS(what_is_no_text_is_refused, COUNT_OF(wide)) {
    run("%s", wide[_i].command);
    expect(1);
    assert_contains(result.err, wide[_i].says);
    ck_assert_int_ne(access("y", F_OK), 0);
}

#ifdef HAVE_ZLIB

/* ---- wherever text is read ------------------------------------------------------------------- */

/* Two commands that must write the same. */
static const struct {
    const char *plain, *packed;
} same[] = {
    { PAIRS "--train pairs -o a", PAIRS "--train pairs.gz -o b" },
    { PAIRS "--train pairs -o a", PAIRS "--train members.gz -o b" },
    { PAIRS "--train pairs -o a", PAIRS "--train - -o b < pairs.gz" },
    { PAIRS "--train pairs -o a", "cat pairs.gz | " PAIRS "--train /dev/stdin -o b" },
    { PAIRS "--train pairs -o a", PAIRS "--train - -o b < pairs" },
    { PAIRS "--train pairs --valid valid -o a", PAIRS "--train pairs --valid valid.gz -o b" },
    { PAIRS "--train-src src --train-tgt tgt -o a",
      PAIRS "--train-src src.gz --train-tgt tgt -o b" },
    { PAIRS "--train-src src --train-tgt tgt -o a",
      PAIRS "--train-src src.gz --train-tgt tgt.gz -o b" },
    { PAIRS "--train pairs --processes 2 --accum 2 -o a",
      PAIRS "--train pairs.gz --processes 2 --accum 2 -o b" },
    { TEXT "--text src --text-eval tgt -o a", TEXT "--text src.gz --text-eval tgt.gz -o b" },
    { TEXT "--text src -o a", TEXT "--text - -o b < src.gz" },
    { "generate model src > a", "generate model src.gz > b" },
    { "generate model < src > a", "generate model < src.gz > b" },
    { "generate model < src > a",
      "{ head -c 1 src.gz; sleep 0.1; tail -c +2 src.gz; } | generate model > b" },
    { "generate model src --reference tgt 2> /dev/null > a",
      "generate model src.gz --reference tgt.gz 2> /dev/null > b" },
    { "generate model --score < pairs > a", "generate model --score < pairs.gz > b" },
};

TEST_ROWS(a_packed_text_is_the_text, COUNT_OF(same)) {
    ok(same[_i].plain);
    ok(same[_i].packed);
    ok("test -s a; cmp a b");
}

TEST(references_are_counted_against_packed_lines) {
    run("head -n 39 src | gzip > fewer.gz; generate model fewer.gz --reference tgt");
    expect(1);
    assert_contains(result.err, "fewer.gz has 39 lines and tgt has 40");
}

/* ---- what is damaged ------------------------------------------------------------------------- */

static const struct {
    const char *command, *says;
} damaged[] = {
    { "head -c -9 pairs.gz > x.gz; train --train x.gz -o x",
      "x.gz can't be read: it is a gzip file that ends too early" },
    { "head -c -1 src.gz > x.gz; train --text x.gz -o x",
      "x.gz can't be read: it is a gzip file that ends too early" },
    { "head -c 20 valid.gz > x.gz; train --train pairs --valid x.gz -o x",
      "x.gz can't be read: it is a gzip file" },
    { "{ head -c -8 pairs.gz; printf abcd; tail -c 4 pairs.gz; } > x.gz; train --train x.gz -o x",
      "a damaged gzip file: incorrect data check" },
    { "{ cat pairs.gz; echo more; } > x.gz; train --train x.gz -o x",
      "a damaged gzip file: incorrect header check" },
    { "head -c -9 src.gz | generate model",
      "stdin can't be read: it is a gzip file that ends too early" },
    { "head -c -9 tgt.gz > x.gz; generate model src --reference x.gz",
      "x.gz can't be read: it is a gzip file" },
};

TEST_ROWS(a_damaged_gzip_file_is_refused, COUNT_OF(damaged)) {
    run("%s", damaged[_i].command);
    expect(1);
    assert_contains(result.err, damaged[_i].says);
    ck_assert_int_ne(access("x", F_OK), 0);
}

/* The number of lines in a file; -1: reading failed, with a message about the gzip file. */
static int64_t lines_in(const char *path) {
    lines l;
    char *line;
    line_status status;
    ck_assert(lines_open(&l, path));
    while ((status = lines_next(&l, true, &line)) == LINE_READ) continue;
    int64_t n = status == LINE_END ? l.number : -1;
    if (n < 0) ck_assert_ptr_nonnull(strstr(lines_failure(&l), "gzip file"));
    lines_close(&l);
    return n;
}

static void write_bytes(const char *path, const char *bytes, size_t n) {
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

/* A file that is cut is refused, unless the cut is between two gzip members. A file with a flipped
 * bit is refused or gives the same text. The first two bytes stay, because without them it is plain
 * text. */
TEST(no_cut_and_no_bit_makes_another_text) {
    char bytes[4096];
    FILE *f = fopen("members.gz", "rb");
    size_t n = f ? fread(bytes, 1, sizeof bytes, f) : 0;
    ck_assert(n > 100 && n < sizeof bytes);
    fclose(f);
    int refused = 0;
    for (size_t cut = 2; cut < n; cut++) {
        write_bytes("x.gz", bytes, cut);
        int64_t got = lines_in("x.gz");
        refused += got < 0;
        ck_assert_msg(got == -1 || got == 7, "cut at %zu: %lld lines", cut, (long long)got);
    }
    ck_assert_int_ge(refused, (int)n - 2 - 2); /* between members a file is whole */
    for (size_t bit = 16; bit < 8 * n; bit++) {
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
        write_bytes("x.gz", bytes, n);
        int64_t got = lines_in("x.gz");
        ck_assert_msg(got == -1 || got == 40, "bit %zu: %lld lines", bit, (long long)got);
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
    }
}

#else

static const char *const told[] = { "train --train pairs.gz",
                                    "cat pairs.gz | train --train /dev/stdin",
                                    "train --text src.gz", "generate model < src.gz",
                                    "generate model src --reference tgt.gz" };

TEST_ROWS(a_build_without_zlib_says_so, COUNT_OF(told)) {
    run("%s", told[_i]);
    expect(1);
    assert_contains(result.err, "can't be read: it is a gzip file, and this build has no zlib: "
                                "unpack it, or install zlib1g-dev (zlib-devel) and run "
                                "meson setup --reconfigure build && ninja -C build\n");
}

#endif
