/* tests/tools/test_emit_c.c - `graph --emit-c`: programs of trained models, compiled, write the
 * lines that `generate` writes; what cannot be written is refused. WEFT_EMIT_CC names another
 * compiler, as in suite `emit`. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/suites.h"
#include "tests/support/commands.h"
#include "tests/support/support.h"

TESTS(emit_c)

#define SIZE "--d-model 16 --heads 2 --layers 1 --d-ff 24 --quiet --threads 1 --valid-size 4 "
#define SMALL "--d-model 16 --heads 2 --layers 1 --d-ff 24 --quiet --threads 1 --batch-size 8 "
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

/* ---- models of ids --------------------------------------------------------------------------- */

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
    run("./program < lines > got && generate m --quiet --threads 1 %s < lines > expected && cmp "
        "got expected",
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

/* ---- models of text -------------------------------------------------------------------------- */

static const char *const words[] = {
    "ein",        "Mann",
    "schläft",    "Frau",
    ",",          "Hunde,",
    "im",         "Ga\xCC\x88rten",
    "ha\xC3\x9f", "\xE6\x97\xA5\xE6\x9C\xAC",
    "it's",       "12",
    "3.5",        "@@",
    "<unk>",      "\xE2\x96\x81",
    "  ",         "\t",
    "\\n",        "\"?\"",
    "zz\x01\x7f", "x",
    "unknown",    "\xF0\x9F\x98\x80",
};

/* Lines of words, known and unknown, and some that are empty or very long. */
static void write_text_lines(int n) {
    FILE *file = fopen("lines", "w");
    ck_assert(file);
    fputs("\xEF\xBB\xBF", file);
    for (int i = 0; i < n; i++) {
        int length = i % 100 ? (int)(number(3, (uint64_t)i) * 12) : 100;
        for (int k = 0; k < length; k++)
            fprintf(file, "%s%s", k ? " " : "",
                    words[(int)(number(4, (uint64_t)(i * 12 + k)) * COUNT_OF(words))]);
        fputs(i % 9 ? "\n" : "\r\n", file);
    }
    fputs("the last line", file);
    ck_assert_int_eq(fclose(file), 0);
}

static void write_pairs(void) {
    FILE *file = fopen("pairs.tsv", "w");
    ck_assert(file);
    for (int i = 0; i < 60; i++) {
        for (int k = 0; k < 6; k++)
            fprintf(file, "%s%s", k ? " " : "",
                    words[(int)(number(5, (uint64_t)(i * 6 + k)) * 16)]);
        fprintf(file, "\t%s %s ein Mann\n", words[i % 16], words[i % 5]);
    }
    ck_assert_int_eq(fclose(file), 0);
}

typedef struct text_row {
    const char *train, *emit, *search;
} text_row;

static const text_row texts[] = {
    { "--train pairs.tsv --tokenizer word", "", "" },
    { "--train pairs.tsv --tokenizer char --max-len 40", "--beam 1 --max-line 4000", "--beam 1" },
    { "--train pairs.tsv --tokenizer bpe --share-vocab", "", "" },
    { "--train pairs.tsv --tokenizer byte-level", "--beam 3", "--beam 3" },
    { "--train pairs.tsv --tokenizer word --tokenizer-tgt bpe", "", "" },
    { "--arch language --train pairs.tsv --tokenizer bpe --max-len 30", "", "" },
    { "--task lm --text pairs.tsv --tokenizer byte-bpe --max-len 24", "", "" },
    { "--task lm --text pairs.tsv --tokenizer text-char --max-len 24 --form llama", "", "" },
    { "--train pairs.tsv --spm-src " WEFT_TEST_DATA "/words_de.spm", "", "" },
};

TEST_ROWS(a_program_writes_the_text_of_generate, COUNT_OF(texts)) {
    const text_row *r = &texts[_i];
    if (!has_compiler()) return;
    write_pairs();
    run("train %s " SMALL "--max-steps 30 -o m > /dev/null", r->train);
    ck_assert_msg(result.status == 0, "%s", result.err);
    write_text_lines(1000);
    compare(r->emit, r->search);
}

/* The program ends where generate does, at a line that it cannot read. */
TEST(a_program_ends_at_a_line_that_is_no_text) {
    static const char *const bad[] = { "\\377", "a\\303", "x\\ry", "a\\000b" };
    if (!has_compiler()) return;
    write_pairs();
    ok("train --train pairs.tsv --tokenizer word " SMALL "--max-steps 1 -o m > /dev/null");
    ok("graph --emit-c m --max-line 100 -o m.c");
    run("%s " STRICT " -DMODEL_MAIN m.c -o program", compiler());
    expect(0);
    for (int i = 0; i < COUNT_OF(bad); i++) {
        run("printf 'ein Mann\n%s\nein' > in; generate m --quiet --threads 1 < in > expected",
            bad[i]);
        expect(1);
        run("./program < in > got");
        expect(1);
        ck_assert_str_eq(result.err, "line 2: not a line of UTF-8 text\n");
        ck_assert(same_files("got", "expected"));
    }
    run("printf '%%0100d\n%%0101d' 1 1 | ./program > got");
    expect(1);
    ck_assert_str_eq(result.err, "line 2: it is too long\n");
}

/* ---- memory, and what is refused ------------------------------------------------------------- */

TEST(memory_is_printed_and_nothing_written) {
    long memory, shorter, weights;
    ok("train --task copy " SIZE "--max-steps 1 -o m > /dev/null");
    ok("graph --emit-c m --dry-run");
    ck_assert_int_eq(sscanf(result.out, "%ld bytes of memory, %ld bytes of w", &memory, &weights),
                     2);
    ok("graph --emit-c m --dry-run --max-length 8");
    ck_assert_int_eq(sscanf(result.out, "%ld bytes of memory", &shorter), 1);
    ck_assert(shorter > 0 && shorter < memory && weights > 0);
    run("graph --emit-c m --dry-run --output m.c");
    expect(2);
    run("ls m.c");
    ck_assert_int_ne(result.status, 0);
}

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
    { "--emit-c m --max-line 0", "0", 2 },
    { "--max-line 100", "no C is written", 2 },
    { "--emit-c m --prefix 'a b' -o m.c", "no identifier", 1 },
    { "--emit-c m --prefix search -o m.c", "for something else", 1 },
    { "--emit-c int8 -o m.c", "weights in int8 have no form in C", 1 },
};

TEST(what_cannot_be_written_is_refused) {
    ok("train --task copy " SIZE "--max-steps 1 -o m > /dev/null");
    ok("convert --weights int8 m -o int8");
    for (int i = 0; i < COUNT_OF(refusals); i++) {
        run("graph %s", refusals[i].options);
        ck_assert_msg(result.status == refusals[i].status && strstr(result.err, refusals[i].says),
                      "%s: %d %s", refusals[i].options, result.status, result.err);
    }
    run("ls m.c");
    ck_assert_int_ne(result.status, 0);
}
