/* tests/learn/test_learn.c - the course of tools/learn: solutions pass, exercises say what to do,
 * typical mistakes are named, and the checker survives whatever a learner's code does. */
#include <stdio.h>

#include "tests/suites.h"
#include "tests/support/commands.h"

TESTS(learn)
SETUP(enter_folder, leave_folder)

static const char *const names[] = { "gradient", "embedding", "attention", "heads", "block",
                                     "encoder",  "decoder",   "model",     "copy",  "product" };
enum { EXERCISES = COUNT_OF(names) };

static int number_of(const char *name) {
    int i = 0;
    while (i < EXERCISES && strcmp(names[i], name) != 0) i++;
    ck_assert_int_lt(i, EXERCISES);
    return i;
}

static void read_source(const char *name, const char *kind, char *text, size_t size) {
    char relative[128], path[1024];
    snprintf(relative, sizeof relative, "tools/learn/%d_%s/%s_%s.c", number_of(name), name, name,
             kind);
    read_text(source_path(relative, path, sizeof path), text, size);
    ck_assert_msg(*text, "%s is not there", path);
}

static void write_file(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    ck_assert_int_eq(fclose(f), 0);
}

/* ---- solutions and exercises ----------------------------------------------------------------- */

/* The last exercise also asks for speed, which is not tested with a sanitizer. */
TEST_ROWS(solutions_are_right, EXERCISES) {
    run("learn %d --solution", _i);
    if (SANITIZED && strcmp(names[_i], "product") == 0) {
        assert_contains(result.out, "product        right in");
        return;
    }
    ck_assert_msg(result.status == 0, "%s%s", result.out, result.err);
}

/* An exercise that is begun: learn copies its file, compiles it, and says that the first function
 * is not written yet. */
TEST_ROWS(exercises_say_what_to_do_first, EXERCISES) {
    static const char *const first[] = { "slopes",        "embed",       "softmax",
                                         "linear",        "layer_norm",  "encoder_layer",
                                         "decoder_layer", "transformer", "shift",
                                         "product" };
    char line[128];
    run("learn %d --folder mine", _i);
    ck_assert_int_eq(result.status, 1);
    assert_contains(result.out, "/README.md\nYour file is mine/");
    snprintf(line, sizeof line, "  %-14s not written yet\n", first[_i]);
    assert_contains(result.out, line);
    ck_assert_str_eq(result.err, "");
    ok("ls mine | wc -l");
    ck_assert_int_eq(atoi(result.out), 1);
}

/* A file that is there is never written over. */
TEST(a_learners_file_is_kept) {
    ok("mkdir mine; echo 'int mine;' > mine/2_attention.c");
    run("learn 2 --folder mine");
    ck_assert_int_eq(result.status, 1);
    ok("cat mine/2_attention.c");
    ck_assert_str_eq(result.out, "int mine;\n");
}

/* learn --mistakes: the reference code without mistakes gives weft's numbers, and all known
 * mistakes give different ones. */
TEST_ROWS(known_mistakes_can_be_told_apart, EXERCISES) {
    run("learn %d --solution --mistakes", _i);
    ck_assert_msg(result.status == 0, "%s%s", result.out, result.err);
}

/* ---- seeded mistakes ------------------------------------------------------------------------- */

typedef struct seed {
    const char *exercise, *said, *before[2], *after[2];
} seed;
#define SEED(exercise, said, ...) TWO(exercise, said, __VA_ARGS__, NULL, NULL)
#define TWO(exercise, said, before, after, before_too, after_too)                                  \
    { #exercise, said, { before, before_too }, { after, after_too } },
static const seed seeds[] = {
#include "learn_seeds.inc"
};

enum { TEXT = 1 << 15 };

static void change(char *text, const char *before, const char *after) {
    static char rest[TEXT];
    char *at = strstr(text, before);
    ck_assert_msg(at && !strstr(at + 1, before), "\"%s\" does not stand once in the solution",
                  before);
    snprintf(rest, sizeof rest, "%s", at + strlen(before));
    snprintf(at, (size_t)(TEXT - (at - text)), "%s%s", after, rest);
}

/* Seeds that learn cannot name yet, by their text "before". */
static const char *const unnamed[] = { NULL };

/* Compiling a mistake takes a quarter of a second, and its name does not depend on sanitizers. So
 * sanitized tests, which look at the checker's memory, try every fourth seed, and the others the
 * rest. */
static bool is_tried(int i) {
    return (i % 4 == 0) == (bool)SANITIZED;
}

TEST_ROWS(seeded_mistakes_are_named, COUNT_OF(seeds)) {
    if (!is_tried(_i)) return;
    static char text[TEXT];
    const seed *s = &seeds[_i];
    read_source(s->exercise, "solution", text, sizeof text);
    for (int k = 0; k < 2 && s->before[k]; k++) change(text, s->before[k], s->after[k]);
    write_file("own.c", text);
    run("learn %s --file own.c", s->exercise);
    ck_assert_int_eq(result.status, 1);
    bool expected = true;
    for (int k = 0; unnamed[k]; k++) expected = expected && strcmp(unnamed[k], s->before[0]) != 0;
    if (expected) assert_contains(result.out, s->said);
}

static const struct {
    const char *where, *said;
} edges[] = {
    { "r + 1 == rows && rows > 1", "Only rows from" },
    { "c + 1 == columns && rows > 1", "Only columns from" },
    { "r + 1 == rows && c + 1 == columns && rows > 1 && columns > 1", "in columns from" },
};

/* A softmax that is right except in its last row, its last column, or its last element. */
TEST_ROWS(wrong_edges_are_named, COUNT_OF(edges)) {
    char text[2048];
    snprintf(text, sizeof text,
             "#include \"attention_task.h\"\n#include <math.h>\n"
             "void softmax(const float *x, int rows, int columns, float *y) {\n"
             "    for (int r = 0; r < rows; r++, x += columns, y += columns) {\n"
             "        float most = x[0], sum = 0;\n"
             "        for (int c = 0; c < columns; c++) most = fmaxf(most, x[c]);\n"
             "        for (int c = 0; c < columns; c++) sum += y[c] = expf(x[c] - most);\n"
             "        for (int c = 0; c < columns; c++) y[c] = y[c] / sum + (%s ? 1 + c : 0);\n"
             "    }\n}\n"
             "void causal_mask(int n, float *mask) {}\n"
             "void attention(const float *q, const float *k, const float *v, const float *mask, "
             "int T, int S,\n"
             "               int d, int e, float *weights, float *out) {}\n",
             edges[_i].where);
    write_file("own.c", text);
    run("learn attention --file own.c");
    ck_assert_int_eq(result.status, 1);
    assert_contains(result.out, edges[_i].said);
}

/* ---- code that does not return --------------------------------------------------------------- */

typedef struct fault {
    const char *body, *said;
} fault;
static const fault faults[] = {
    { "for (int i = 0; i <= rows * columns; i++) y[i] = 0;", "outside of an array" },
    { "for (;;) y[0] = 0;", "does not end: stopped after 2 seconds" },
    { "float *p = 0; *p = 1;", "null pointer" },
    { "volatile int zero = 0; y[0] = (float)(rows / zero);", "divides an integer by zero" },
    { "exit(0);", "exit was called" },
    { "abort();", "abort" },
    { "softmax(x, rows, columns, y); y[0] += 1;", "calls itself without end" },
    { "((float *)x)[0] = 5; for (int i = 0; i < rows * columns; i++) y[i] = 0;",
      "changes its input x" },
    { "for (;;) printf(\"again and again and again\\n\");", "does not end" },
    /* With a sanitizer in the checker, its report comes first. */
    { "free(y);", SANITIZED ? "memory that it has freed" : "frees memory twice" },
    { "char *p = malloc(64); free(p); p[3] = 1; y[0] = p[3];", "memory that it has freed" },
    { "raise(9);", "ended by signal 9" },
    { "close(0); close(1); close(2); for (;;) sleep(1);", "does not end" },
    { "if (fork() == 0) for (;;) sleep(1); exit(0);", "does not end" },
    { "y[0] = x[1000000000];", "memory that is not its own" },
};

TEST_ROWS(faults_are_survived, COUNT_OF(faults)) {
    char text[2048];
    snprintf(text, sizeof text,
             "#include \"attention_task.h\"\n#include <signal.h>\n#include <stdio.h>\n#include "
             "<stdlib.h>\n"
             "#include <unistd.h>\n"
             "void softmax(const float *x, int rows, int columns, float *y) {\n    %s\n}\n"
             "void causal_mask(int n, float *mask) {}\n"
             "void attention(const float *q, const float *k, const float *v, const float *mask, "
             "int T, int S,\n"
             "               int d, int e, float *weights, float *out) {}\n",
             faults[_i].body);
    write_file("own.c", text);
    bool endless = strstr(faults[_i].said, "does not end") != NULL;
    run("learn attention --file own.c --seconds %d", endless ? 2 : 20);
    ck_assert_int_eq(result.status, 1);
    assert_contains(result.out, faults[_i].said);
    ck_assert_int_lt((int)strlen(result.out), 8000);
}

/* If cases before a crash gave wrong numbers, their mistake is named, because it explains the
 * crash. */
TEST(a_crash_is_explained_by_the_cases_before_it) {
    static char text[TEXT];
    read_source("decoder", "solution", text, sizeof text);
    change(text, "&w->cross, a, T, memory, S,", "&w->cross, memory, S, a, T,");
    write_file("own.c", text);
    run("learn 6 --file own.c");
    assert_contains(result.out, "memory and query exchanged");
    assert_contains(result.out, "outside of an array");
}

TEST(what_does_not_compile_is_shown) {
    write_file("own.c", "void softmax(int x) { return 3 }\n");
    run("learn 2 --file own.c");
    ck_assert_int_eq(result.status, 1);
    assert_contains(result.out, "It does not compile");
    assert_contains(result.err, "own.c:1");
    write_file("own.c", "int nothing;\n");
    run("learn 2 --file own.c");
    ck_assert_int_eq(result.status, 1);
    assert_contains(result.err, "undefined reference to `softmax'");
}

/* ---- pictures, and what is not there --------------------------------------------------------- */

TEST(pictures_are_drawn_of_ones_own_numbers) {
    ok("learn 2 --solution --picture");
    assert_contains(result.out, "Your attention, causal");
    assert_contains(result.out, "\n11 ");
    ok("learn 3 --solution -o heads.svg");
    ok("cat heads.svg");
    assert_contains(result.out, "<svg");
    assert_contains(result.out, "</svg>");
    run("learn 0 --solution --picture");
    ck_assert_int_eq(result.status, 1);
    assert_contains(result.out, "has no picture");
    ck_assert_ptr_null(strstr(result.out, "gap"));
}

/* An exercise with unfilled gaps gives no picture: it would show zeros, or the program would
 * stop. */
TEST_ROWS(a_picture_of_gaps_is_refused, 5) {
    static const int lessons[] = { 1, 2, 3, 6, 8 };
    run("learn %d --folder . --picture -o p.svg; echo $?; test ! -e p.svg", lessons[_i]);
    expect(0);
    assert_contains(result.out, "There is no picture: ");
    assert_contains(result.out, "gap is not filled yet. learn ");
    assert_contains(result.out, ", without --picture, says which.\n1\n");
}

TEST(nonsense_is_refused) {
    static const char *const commands[][2] = {
        { "learn 10", "there is no exercise \"10\"" },
        { "learn two", "there is no exercise" },
        { "learn 2 --file nowhere.c", "nowhere.c can't be read" },
        { "learn --picture", "--picture" },
        { "learn --file own.c", "--file" },
        { "learn 2 --picture --mistakes", "--mistakes would have no effect" },
        { "learn 2 -o p.svg --mistakes", "--mistakes would have no effect" },
        { "learn 2 --folder /dev/null/x", "can't be made" },
    };
    for (int i = 0; i < COUNT_OF(commands); i++) {
        run("%s", commands[i][0]);
        ck_assert_msg(result.status == 2 || result.status == 1, "%s", commands[i][0]);
        assert_contains(result.err, commands[i][1]);
    }
}
