/* tests/tools/test_emit_c.c - `graph --emit-c`: compiled programs of trained models, and web pages
 * of them, write the lines of `generate`; models that cannot be emitted are refused. WEFT_EMIT_CC
 * names another compiler, as in suite `emit`. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/suites.h"
#include "tests/support/commands.h"
#include "tests/support/emitted.h"
#include "tests/support/faults.h"
#include "tests/support/support.h"
#include "tools/emit/emit_model.c" /* to make its allocations fail */

TESTS(emit_c)

#define PLAIN "--d-model 16 --heads 2 --layers 1 --d-ff 24 --quiet --threads 1 "
#define SIZE PLAIN "--valid-size 4 "
#define SMALL PLAIN "--batch-size 8 "

SETUP(enter_folder, leave_folder)

/* ---- models of ids --------------------------------------------------------------------------- */

/* Writes n lines of 1 to `most` random ids in [low, vocab). */
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

/* Emits the model m as C, and compares the output of its program with that of generate. Sanitized
 * suites compile only some rows: see compiles_row. */
static void compare(int row, const char *options, const char *search) {
    run("graph --emit-c m %s -o m.c", options);
    ck_assert_msg(result.status == 0, "%s: %s", options, result.err);
    if (!compiles_row(row)) return;
    run("%s " STRICT_FLAGS " %s -DMODEL_MAIN m.c -o program", emitted_compiler(),
        row % 2 ? "-O0" : "-O1");
    ck_assert_msg(result.status == 0, "%s", result.err);
    run("./program < lines > got && generate m --quiet --threads 1 %s < lines > expected && cmp "
        "got expected",
        search);
    ck_assert_msg(result.status == 0, "%s: %s %s", options, result.out, result.err);
}

TEST(a_program_writes_the_lines_of_generate) {
    if (!has_emitted_compiler("emit_c")) return;
    ok("train --task copy " SIZE "--max-steps 30 -o m > /dev/null");
    write_lines(300, 1, 11, 12);
    compare(0, "", "");
    compare(1, "--beam 4 --prefix copier", "--beam 4");
    compare(2, "--beam 4 --prefix copier --weights-file copier.weights", "--beam 4");
    compare(3, "--beam 4 --weights int8", "--beam 4 --weights int8");
    compare(4, "--beam 1 --batch 3", "--beam 1");
    compare(5, "--weights int8 --weights-file w", "--weights int8");
    ok("mv m whole && convert --weights int8 whole -o m");
    compare(6, "", "");
    compare(7, "--weights f32", "--weights f32");
}

/* With less memory than all caches need, keys and values of one layer are computed again, and with
 * still less those of both; below that, the model is refused. The output stays the same. */
TEST(a_small_memory_changes_no_line) {
    long memory, less, least;
    char options[120];
    if (!has_emitted_compiler("emit_c")) return;
    ok("train --task copy --d-model 16 --heads 2 --layers 2 --d-ff 24 --quiet --threads 1 "
       "--valid-size 4 --max-steps 30 -o m > /dev/null");
    write_lines(100, 1, 11, 12);
    ok("graph --emit-c m --beam 4 --weights int8 --dry-run");
    ck_assert_int_eq(sscanf(result.out, "%ld bytes of memory", &memory), 1);
    ck_assert_msg(!strstr(result.out, "again"), "%s", result.out);
    run("graph --emit-c m --beam 4 --weights int8 --dry-run --ram %ld", memory - 1);
    expect(0);
    ck_assert_int_eq(sscanf(result.out, "%ld bytes of memory", &less), 1);
    ck_assert_msg(strstr(result.out, "; to fit, 1 layer computes keys"), "%s", result.out);
    run("graph --emit-c m --beam 4 --weights int8 --dry-run --ram %ld", less - 1);
    expect(0);
    ck_assert_int_eq(sscanf(result.out, "%ld bytes of memory", &least), 1);
    ck_assert_msg(strstr(result.out, "; to fit, 2 layers compute keys"), "%s", result.out);
    ck_assert(least < less && less < memory);
    snprintf(options, sizeof options, "--beam 4 --weights int8 --ram %ld", memory - 1);
    compare(0, options, "--beam 4 --weights int8");
    snprintf(options, sizeof options, "--beam 4 --weights int8 --ram %ld", least);
    compare(1, options, "--beam 4 --weights int8");
    run("graph --emit-c m --beam 4 --weights int8 --dry-run --ram %ld", least - 1);
    expect(1);
    ck_assert_msg(strstr(result.err, " would fit"), "%s", result.err);
}

/* Emits a model while the request `at` for memory fails. Gives the longest --max-length that the
 * message says would fit; 0: it says none. */
static long long length_told(const wf_file *f, const emit_settings *set, long at, long *asked) {
    char message[WF_MESSAGE] = "";
    emitted e;
    long left;
    faults_begin(at, false);
    bool written = emit_model(&e, f, set, message);
    *asked = faults_end(&left);
    ck_assert(!written);
    ck_assert_int_eq(left, 0);
    const char *told = strstr(message, "--max-length ");
    return told ? atoll(told + strlen("--max-length ")) : 0;
}

/* A length whose file could not be written is none that fits. */
TEST(a_length_that_cannot_be_tried_is_not_told_to_fit) {
    enum { TRIED = 40 };
    char message[WF_MESSAGE] = "";
    emit_settings set = { .beam = 1, .prefix = "model", .weights = EMIT_F32, .max_length = 5 };
    emitted e;
    long asked, unread;
    ok("train --task copy " SIZE "--max-steps 1 -o m > /dev/null");
    wf_file *f = wf_file_open("m");
    ck_assert_msg(emit_model(&e, f, &set, message), "%s", message);
    set.ram = atoll(e.sizes);
    free(e.text);
    set.max_length = 0;
    long long fits = length_told(f, &set, LONG_MAX, &asked);
    ck_assert_int_ge(fits, 5);
    for (long i = 1; i < TRIED; i++)
        ck_assert_int_le(length_told(f, &set, asked / TRIED * i, &unread), fits);
    wf_file_free(f);
}

/* The program opens the file of weights beside itself, or its argument, and refuses any other
 * file. */
TEST(a_program_takes_its_file_of_weights_alone) {
    static const char *const others[] = {
        "head -c 100 w > other",                                        /* shorter */
        "cat w m > other",                                              /* longer */
        "cp w other; printf x | dd of=other bs=1 seek=99 conv=notrunc", /* changed */
        "graph --emit-c second --weights-file other > /dev/null",       /* of another model */
    };
    if (!has_emitted_compiler("emit_c")) return;
    ok("train --task copy " SIZE "--max-steps 2 -o m > /dev/null");
    ok("train --task copy " SIZE "--max-steps 3 -o second > /dev/null");
    ok("graph --emit-c m --weights-file w -o m.c && mkdir there");
    run("%s " STRICT_FLAGS " -O1 -DMODEL_MAIN m.c -o there/program", emitted_compiler());
    expect(0);
    run("echo 3 4 | there/program");
    expect(1);
    ck_assert_str_eq(result.err, "there/w: cannot read the weights\n");
    run("echo 3 4 | there/program w > got && cp w there && echo 3 4 | there/program > expected");
    expect(0);
    ck_assert(same_files("got", "expected"));
    for (int i = 0; i < COUNT_OF(others); i++) {
        run("{ %s; } 2> told && echo 3 4 | there/program other", others[i]);
        expect(1);
        ck_assert_str_eq(result.err, "other: not the weights of this program\n");
    }
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

/* Writes n lines of words, known and unknown, of which some are empty or very long; then a last
 * line without a line break. */
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

#define JSON "--tokenizer-json " WEFT_TEST_DATA "/tokenizer/gpt2.json --end-token '<|endoftext|>' "

static const text_row texts[] = {
    { "--train pairs.tsv --tokenizer word", "", "" },
    { "--train pairs.tsv --tokenizer char --max-len 40", "--beam 1 --max-line 4000", "--beam 1" },
    { "--train pairs.tsv --tokenizer bpe --share-vocab", "", "" },
    { "--train pairs.tsv --tokenizer byte-level", "--beam 3 --batch 7", "--beam 3" },
    { "--train pairs.tsv --tokenizer word --tokenizer-tgt bpe", "", "" },
    { "--arch language --train pairs.tsv --tokenizer bpe --max-len 30", "", "" },
    { "--train pairs.tsv --tokenizer bpe --share-vocab --tie all", "--weights int8 --beam 4",
      "--weights int8 --beam 4" },
    { "--task lm --text pairs.tsv --tokenizer byte-bpe --max-len 24", "", "" },
    { "--task lm --text pairs.tsv --tokenizer text-char --max-len 24 --form llama", "", "" },
    { "--task lm --text pairs.tsv " JSON "--max-len 24", "", "" },
    { "--task lm --text pairs.tsv " JSON "--max-len 24 --form llama", "--beam 2 --batch 2",
      "--beam 2" },
    { "--train pairs.tsv --spm-src " WEFT_TEST_DATA "/words_de.spm", "", "" },
};

TEST_ROWS(a_program_writes_the_text_of_generate, COUNT_OF(texts)) {
    const text_row *r = &texts[_i];
    if (!has_emitted_compiler("emit_c")) return;
    write_pairs();
    run("train %s " SMALL "--max-steps 30 -o m > /dev/null", r->train);
    ck_assert_msg(result.status == 0, "%s", result.err);
    write_text_lines(1000);
    compare(_i, r->emit, r->search);
}

/* The emitted program ends where generate does, at a line that is no valid text. */
TEST(a_program_ends_at_a_line_that_is_no_text) {
    static const char *const bad[] = { "\\377", "a\\303", "x\\ry", "a\\000b" };
    if (!has_emitted_compiler("emit_c")) return;
    write_pairs();
    ok("train --train pairs.tsv --tokenizer word " SMALL "--max-steps 1 -o m > /dev/null");
    ok("graph --emit-c m --max-line 100 -o m.c && graph --emit-c m --max-line 100 --batch 2 -o "
       "m2.c");
    run("%s " STRICT_FLAGS " -O1 -DMODEL_MAIN m.c -o program && "
        "%s " STRICT_FLAGS " -O1 -DMODEL_MAIN m2.c -o pairwise",
        emitted_compiler(), emitted_compiler());
    expect(0);
    for (int i = 0; i < COUNT_OF(bad); i++) {
        run("printf 'ein Mann\n%s\nein' > in; generate m --quiet --threads 1 < in > expected",
            bad[i]);
        expect(1);
        run("./program < in > got");
        expect(1);
        ck_assert_str_eq(result.err, "line 2: not a line of UTF-8 text\n");
        ck_assert(same_files("got", "expected"));
        run("./pairwise < in > got");
        expect(1);
        ck_assert_str_eq(result.err, "line 2: not a line of UTF-8 text\n");
        ck_assert(same_files("got", "expected"));
    }
    run("printf '%%0100d\n%%0101d' 1 1 | ./program > got");
    expect(1);
    ck_assert_str_eq(result.err, "line 2: it is too long\n");
    run("printf '1\n%%0101d\n1' 1 | ./pairwise > got");
    expect(1);
    ck_assert_str_eq(result.err, "line 2: it is too long\n");
}

/* A program that translates two lines at once, the first of them empty, and then the second alone,
 * with the same score. An empty or invalid line has the score 0 in place of the last line's. */
static const char two_lines[] =
    "#include <stdio.h>\n#include \"m.c\"\n"
    "int main(void) {\n"
    "    static _Alignas(64) unsigned char memory[model_MEMORY];\n"
    "    static char text[2][model_TEXT];\n"
    "    static model m;\n"
    "    model_line both[2] = { { \"\", 0, text[0], model_TEXT, 0, 1 },\n"
    "                           { \"ein Mann\", 8, text[1], model_TEXT, 0, 1 } };\n"
    "    model_start(&m, memory);\n"
    "    model_translate_batch(&m, both, 2);\n"
    "    model_translate(&m, both[1].line, 8, text[1], model_TEXT);\n"
    "    if (both[0].score != 0 || both[1].score == 0 || both[1].score != model_score(&m)) "
    "return 1;\n"
    "    if (model_translate(&m, \"\", 0, text[0], model_TEXT) || model_score(&m) != 0) return 2;\n"
    "    model_translate(&m, both[1].line, 8, text[1], model_TEXT);\n"
    "    if (model_translate(&m, \"\\377\", 1, text[0], model_TEXT) >= 0) return 3;\n"
    "    return model_score(&m) != 0 ? 4 : 0;\n"
    "}\n";

TEST(lines_of_a_batch_have_the_scores_of_single_ones) {
    if (!has_emitted_compiler("emit_c")) return;
    write_pairs();
    ok("train --train pairs.tsv --tokenizer word " SMALL "--max-steps 1 -o m > /dev/null");
    ok("graph --emit-c m --batch 2 -o m.c");
    FILE *file = fopen("two.c", "w");
    ck_assert(file && fputs(two_lines, file) >= 0);
    ck_assert_int_eq(fclose(file), 0);
    run("%s -std=c11 -O1 two.c -o two && ./two", emitted_compiler());
    ck_assert_msg(result.status == 0, "%d %s", result.status, result.err);
}

/* A program that translates three lines at once, and then the same three while the encoder refuses
 * one of them. The other two must keep their outputs and scores. */
static const char three_lines[] =
    "#include <stdio.h>\n#include <string.h>\n"
    "static int encoded, refused = -1;\n#include \"failing.c\"\n"
    "static const char *const sources[] = { \"ein Mann\", \"Frau im x\", \"ein\" };\n"
    "static char text[2][3][model_TEXT];\n"
    "static model_line lines[2][3];\n"
    "int main(void) {\n"
    "    static _Alignas(64) unsigned char memory[model_MEMORY];\n"
    "    static model m;\n"
    "    for (int k = 0; k < 6; k++) {\n"
    "        model_line *l = &lines[k / 3][k % 3];\n"
    "        *l = (model_line){ sources[k % 3], strlen(sources[k % 3]), text[k / 3][k % 3], "
    "model_TEXT, 0, 1 };\n"
    "    }\n"
    "    model_start(&m, memory);\n"
    "    model_translate_batch(&m, lines[0], 3);\n"
    "    for (refused = 0; refused < 3; refused++) {\n"
    "        memset(memory, 0xff, sizeof memory);\n"
    "        encoded = 0;\n"
    "        model_translate_batch(&m, lines[1], 3);\n"
    "        for (int i = 0; i < 3; i++) {\n"
    "            const model_line *a = &lines[0][i], *b = &lines[1][i];\n"
    "            int same = a->result == b->result && a->score == b->score && "
    "strcmp(a->out, b->out) == 0;\n"
    "            int none = b->result == model_NO_OUTPUT && b->score == 0;\n"
    "            if (a->result < 1 || !(i == refused ? none : same)) return 1 + i;\n"
    "        }\n"
    "    }\n"
    "    return 0;\n"
    "}\n";

TEST(a_source_that_fails_in_a_batch_changes_no_other) {
    if (!has_emitted_compiler("emit_c")) return;
    write_pairs();
    ok("train --train pairs.tsv --tokenizer word " SMALL "--max-steps 20 -o m > /dev/null");
    ok("graph --emit-c m --batch 3 -o m.c");
    ok("sed 's/if (encode_source(\\(.*\\))) {/if (encode_source(\\1) || encoded++ == refused) {/' "
       "m.c > failing.c && grep 'encoded++ == refused' failing.c");
    FILE *file = fopen("three.c", "w");
    ck_assert(file && fputs(three_lines, file) >= 0);
    ck_assert_int_eq(fclose(file), 0);
    run("%s -std=c11 -O1 three.c -o three && ./three", emitted_compiler());
    ck_assert_msg(result.status == 0, "%d %s", result.status, result.err);
}

/* With these flags a compiler would compute other bits, so the emitted file stops the compilation
 * (#error). */
TEST(other_arithmetic_is_refused) {
    static const char *const flags[] = { "-ffast-math", "-Ofast", "-D__FLT_EVAL_METHOD__=2" };
    if (!has_emitted_compiler("emit_c")) return;
    ok("train --task copy " SIZE "--max-steps 1 -o m > /dev/null");
    ok("graph --emit-c m -o m.c");
    for (int i = 0; i < COUNT_OF(flags); i++) {
        run("%s -std=c11 -w -c m.c %s", emitted_compiler(), flags[i]);
        ck_assert_int_ne(result.status, 0);
        ck_assert_msg(strstr(result.err, "other bits"), "%s: %s", flags[i], result.err);
    }
}

/* ---- a page ---------------------------------------------------------------------------------- */

static bool has_page_tools(void) {
    if (run("command -v clang && command -v wasm-ld && command -v node")->status == 0) return true;
    printf("emit_c: skipped, because clang, lld or node is not here\n");
    return false;
}

static const text_row pages[] = {
    { "--task copy", "", "" },
    { "--train pairs.tsv --tokenizer bpe --share-vocab", "--beam 3", "--beam 3" },
    { "--task lm --text pairs.tsv --tokenizer byte-bpe --max-len 24", "", "" },
    { "--task lm --text pairs.tsv " JSON "--max-len 24", "", "" },
};

/* A page writes the lines of generate. It shows bytes that are no UTF-8 as U+FFFD, so the output of
 * generate is decoded alike, by node. */
TEST_ROWS(a_page_computes_the_lines_of_generate, COUNT_OF(pages)) {
    const text_row *r = &pages[_i];
    char script[512];
    if (!has_page_tools()) return;
    source_path("tests/targets/page.js", script, sizeof script);
    write_pairs();
    run("train %s " SMALL "--max-steps 30 -o m > /dev/null", r->train);
    ck_assert_msg(result.status == 0, "%s", result.err);
    if (_i == 0)
        write_lines(50, 1, 11, 12);
    else
        ok("{ head -n 50 pairs.tsv | cut -f 1; echo; echo \"it's 日本\"; } > lines");
    run("graph --emit-html m %s -o page.html && node %s page.html < lines > got && "
        "generate m --quiet --threads 1 %s < lines > bytes && "
        "node -e 'process.stdout.write(fs.readFileSync(0, \"utf8\"))' < bytes > expected && "
        "cmp got expected",
        r->emit, script, r->search);
    ck_assert_msg(result.status == 0, "%s: %s %s", r->train, result.out, result.err);
}

/* The page answers the text behind # in its address, and requests no other file. */
TEST(a_browser_shows_an_output) {
    char script[512];
    if (!has_page_tools() || !browser()) return;
    source_path("tests/targets/browser.js", script, sizeof script);
    ok("train --task copy " SIZE "--max-steps 1 -o m > /dev/null");
    ok("graph --emit-html m -o page.html && echo 3 1 2 | generate m --quiet > expected");
    run("node %s %s \"file://$PWD/page.html#3%%201%%202\" .output > got", script, browser());
    ck_assert_msg(result.status == 0, "%s", result.err);
    ck_assert(same_files("got", "expected"));
}

TEST(a_page_says_what_it_cannot_read) {
    char script[512];
    if (!has_page_tools()) return;
    source_path("tests/targets/page.js", script, sizeof script);
    ok("train --task copy " SIZE "--max-steps 1 -o m > /dev/null");
    ok("graph --emit-html m --max-line 9 -o page.html");
    run("printf '1 2\nx\n1 2 3 4 5 6\n' | node %s page.html | sed 1d", script);
    expect(0);
    ck_assert_str_eq(result.out, "!These are no ids of the vocabulary.\n!This line is too long.\n");
}

TEST(a_file_for_which_compilers_take_long_is_told) {
    ok("train --task copy --d-model 16 --heads 2 --layers 1 --d-ff 40000 --quiet --threads 1 "
       "--valid-size 4 --max-steps 1 -o m > /dev/null");
    ok("graph --emit-c m --dry-run");
    assert_contains(result.err, "--weights-file NAME keeps the weights out of it");
    ok("graph --emit-c m --weights-file m.weights -o m.c");
    ck_assert(!strstr(result.err, "keeps the weights out of it"));
}

TEST(a_page_needs_a_compiler) {
    ok("train --task copy " SIZE "--max-steps 1 -o m > /dev/null");
    ok("mkdir bin && ln -s \"$(command -v graph)\" bin/graph");
    run("PATH=$PWD/bin graph --emit-html m -o page.html");
    expect(1);
    ck_assert_str_eq(result.err, "graph: m: a page needs clang and lld, and there is no clang: "
                                 "install the packages clang and lld\n");
    ok("printf '#!/bin/sh\necho no linker here >&2\nexit 1\n' > bin/clang && chmod +x bin/clang");
    run("PATH=$PWD/bin:$PATH graph --emit-html m -o page.html");
    expect(1);
    ck_assert_msg(strstr(result.err, "needs the package lld: no linker here\n"), "%s", result.err);
    run("ls page.html");
    ck_assert_int_ne(result.status, 0);
}

/* ---- memory, and what is refused ------------------------------------------------------------- */

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
    ok("graph --emit-c m --dry-run --max-length 8 --batch 4");
    ck_assert_int_eq(sscanf(result.out, "%ld bytes of memory", &memory), 1);
    ck_assert(memory > 2 * shorter && memory < 5 * shorter);
    ok("graph --emit-c m --dry-run --weights-file w");
    ck_assert_msg(strstr(result.out, " bytes of the weights' file"), "%s", result.out);
    run("ls w");
    ck_assert_int_ne(result.status, 0);
    run("graph --emit-c m --ram %ld -o m.c && rm m.c && graph --emit-c m --ram %ld -o m.c", memory,
        memory - 1);
    expect(1);
    const char *would = strstr(result.err, "; --max-length ");
    ck_assert_msg(would && sscanf(would, "; --max-length %ld would fit", &shorter) == 1, "%s",
                  result.err);
    run("graph --emit-c m --dry-run --ram %ld --max-length %ld", memory - 1, shorter);
    expect(0);
    run("graph --emit-c m --dry-run --ram %ld --max-length %ld", memory - 1, shorter + 1);
    expect(1);
    run("graph --emit-c m --dry-run --output m.c");
    expect(2);
    run("ls m.c");
    ck_assert_int_ne(result.status, 0);
}

/* ---- a training ------------------------------------------------------------------------------ */

/* Options of a training; the update at which its file was saved; and options of graph. The emitted
 * program continues the training from that file, or starts it anew. */
typedef struct trained {
    const char *options, *before, *emit;
} trained;

static const trained trainings[] = {
    { "--task copy --dropout 0.1 --min-len 9 --batch-size 6", "--max-steps 3", "" },
    { "--task copy", "--max-steps 1", "--from-start" },
    { "--task reverse --arch language --dropout 0.1 --optimizer adamw --lr-schedule cosine "
      "--max-len 4",
      "--max-steps 1", "--from-start --prefix gpt --weights-file w" },
    { "--task sort --arch language --form llama --optimizer lion --lr 1e-4 --ema 0.9 "
      "--label-smoothing 0.1 --max-len 4 --seed 5",
      "--max-steps 7", "" },
    { "--task copy --max-len 4 --quantize-aware int8", "--max-steps 2", "" },
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
    run("graph --emit-c m --train %s -o m.c", t->emit);
    ck_assert_msg(result.status == 0, "%s", result.err);
    if (!compiles_row(_i)) return;
    run("%s " STRICT_FLAGS " -O1 -DMODEL_MAIN m.c -o program", emitted_compiler());
    ck_assert_msg(result.status == 0, "%s", result.err);
    run("./program %d > got && cmp got expected", STEPS);
    ck_assert_msg(result.status == 0, "%s: %s %s", t->options, result.out, result.err);
}

/* The program of a training on text reads batches, of at most the sizes given to graph. */
TEST(a_training_on_text_reads_batches) {
    if (!has_emitted_compiler("emit_c")) return;
    ok("seq 1 400 > text && train --task lm --text text --max-len 8 --batch-size 3 --max-steps 1 "
       "--text-eval-size 0 " PLAIN "-o m > /dev/null");
    run("graph --emit-c m --train --batch-size 2 --length 6 -o m.c && %s " STRICT_FLAGS
        " -O1 -DMODEL_MAIN m.c -o program",
        emitted_compiler());
    ck_assert_msg(result.status == 0, "%s", result.err);
    run("echo '1 2 3  5 6 7 8 9 10  6 7 8 9 10 -1  1 2 7' | ./program > more");
    expect(1);
    ck_assert_msg(strstr(result.err, "update 3: no batches of such sizes"), "%s", result.err);
    run("echo '1 2 3  5 6 7 8 9 10  6 7 8 9 10 -1' | ./program > more && inspect more");
    expect(0);
    ck_assert_msg(strstr(result.out, "train.step                       2"), "%s", result.out);
}

/* A language model with a tokenizer.json has rows without a start token, as those of Hugging Face.
 * The text is one row of 22 tokens: 0 stands around it, and 199 is its line break. */
TEST(a_training_of_a_model_without_a_start_writes_the_file_of_train) {
    static const char *const options =
        "--task lm --text text " JSON "--form llama --max-len 22 --batch-size 1 --lr-steps 30 "
        "--warmup 5 --text-eval-size 0 " PLAIN;
    if (!has_emitted_compiler("emit_c")) return;
    ok("echo 'the lower the slower, the newest' > text && "
       "tokenize --tokenizer " WEFT_TEST_DATA "/tokenizer/gpt2.json < text > ids");
    run("train %s --max-steps 1 -o m > /dev/null && train %s --max-steps 4 -o expected > /dev/null",
        options, options);
    ck_assert_msg(result.status == 0, "%s", result.err);
    run("graph --emit-c m --train -o m.c && %s " STRICT_FLAGS " -O1 -DMODEL_MAIN m.c -o program",
        emitted_compiler());
    ck_assert_msg(result.status == 0, "%s", result.err);
    run("for i in 1 2 3; do echo \"1 1 22 0 $(cat ids) 199 $(cat ids) 199 0\"; done | ./program > "
        "got && cmp got expected");
    ck_assert_msg(result.status == 0, "%s%s", result.out, result.err);
}

/* ---- refusals -------------------------------------------------------------------------------- */

typedef struct refusal {
    const char *options, *says;
    int status;
} refusal;

static const refusal refusals[] = {
    { "--emit-c", "needs the file of a model", 2 },
    { "--emit-c m --html page.html", "one at a time", 2 },
    { "--emit-html m --emit-c", "one at a time", 2 },
    { "--emit-html", "needs the file of a model", 2 },
    { "--emit-html m --train", "a page has no training", 2 },
    { "--emit-html m --prefix a", "a page declares nothing", 2 },
    { "--emit-html m --batch 2", "a page reads one line at a time", 2 },
    { "--batch 2", "no C is written", 2 },
    { "--emit-c m --batch 0", "0", 2 },
    { "--emit-c m --train --batch 2", "a training has no search", 2 },
    { "--emit-c m --ram 100K --beam 1 --batch 200 -o m.c", " --batch ", 1 },
    { "--emit-c m --depth 2", "C is written", 2 },
    { "--beam 2", "no C is written", 2 },
    { "--emit-c m --beam 65", "65", 2 },
    { "--emit-c m --max-length 0", "0", 2 },
    { "--emit-c m --max-line 0", "0", 2 },
    { "--max-line 100", "no C is written", 2 },
    { "--weights-file w", "no C is written", 2 },
    { "--emit-c m --weights-file nowhere/w -o m.c", "nowhere/w", 1 },
    { "--emit-c m --prefix 'a b' -o m.c", "no identifier", 1 },
    { "--emit-c m --prefix search -o m.c", "for something else", 1 },
    { "--train", "no C is written", 2 },
    { "--weights int8", "no C is written", 2 },
    { "--ram 64K", "no C is written", 2 },
    { "--emit-c m --ram 64G -o m.c", "is not a number of bytes from 1 to", 2 },
    { "--emit-c m --ram K -o m.c", "is not a number of bytes from 1 to", 2 },
    { "--emit-c m --ram 4K --beam 4 -o m.c", "is above --ram 4096", 1 },
    { "--emit-c m --train --weights int8", "a training has no search", 2 },
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
