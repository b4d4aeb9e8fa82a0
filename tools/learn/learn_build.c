/* tools/learn/learn_build.c - compiles an exercise with its checker. See learn.h.
 *
 * The compiler is the one that built weft. Sanitizers find reads and writes outside of arrays; if
 * they are not installed, the file is compiled without them. Functions of earlier exercises come
 * from their solutions. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "learn.h"

enum { MOST_WORDS = 64, MOST_PATHS = 32 };
static const char *const compiler[] = { LEARN_COMPILER };
/* flags of weft's own build; libraries */
static const char *const needed[] = { LEARN_FLAGS "-lm" };

void exercise_path(int number, const char *file, char path[PATH_SIZE]) {
    snprintf(path, PATH_SIZE, "%s/tools/learn/%d_%s/%s", LEARN_SOURCE, number,
             exercises[number].name, file);
}

/* ---- the command ----------------------------------------------------------------------------- */

typedef struct command {
    const char *word[MOST_WORDS];
    int n;
    char text[MOST_PATHS][PATH_SIZE + 256]; /* memory for words that are made here */
    int texts;
} command;

static void put(command *c, const char *word) {
    if (c->n < MOST_WORDS - 1) c->word[c->n++] = word;
    c->word[c->n] = NULL;
}

static void put_path(command *c, const char *before, const char *folder, const char *name) {
    char *text = c->text[c->texts++];
    snprintf(text, sizeof c->text[0], "%s%s/%s", before, folder, name);
    put(c, text);
}

static void put_archive(command *c, const char *kind, const char *name) {
    char archive[128];
    snprintf(archive, sizeof archive, "tools/liblearn-%s-%s.a", kind, name);
    put_path(c, "", LEARN_BUILD, archive);
}

/* Adds the loops that measure the peak, for each instruction set. */
static void put_loops(command *c) {
    static const char *const sets[] = { LEARN_LOOPS };
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) put_path(c, "", LEARN_BUILD, sets[i]);
}

static void put_inputs(command *c, int number, const char *file, bool guarded) {
    char folder[PATH_SIZE];
    for (int i = 0; i <= number; i++) {
        exercise_path(i, "", folder);
        put_path(c, "-I", folder, ".");
    }
    put(c, file);
    /* main needs the lesson, which needs the solutions and the judge, so the judge is listed
     * twice */
    put_path(c, "", LEARN_BUILD, "tools/liblearn-judge.a");
    put_archive(c, "checks", exercises[number].name);
    for (int i = number - 1; i >= 0; i--)
        put_archive(c, guarded ? "guarded" : "solution", exercises[i].name);
    put_path(c, "", LEARN_BUILD, "tools/liblearn-judge.a");
    if (exercises[number].timed) put_loops(c);
    /* weft itself comes as a shared library: to copy all of it into each program takes ten times as
     * long. */
    put(c, LEARN_WEFT);
    put(c, "-Wl,-rpath," LEARN_BUILD);
}

static void make_command(command *c, int number, const char *file, bool fast, const char *safe,
                         const char *to) {
    c->n = 0;
    c->texts = 0;
    for (size_t i = 0; i < sizeof compiler / sizeof *compiler; i++) put(c, compiler[i]);
    put(c, "-std=gnu17");
    put(c, "-Wall");
    put(c, "-Wextra");
    put(c, "-Wno-unused-parameter");
    put(c, "-Wno-unused-variable");
    /* gcc warns wrongly about arrays that are filled in a loop after their declaration */
    put(c, "-Wno-maybe-uninitialized");
    put(c, "-g");
    put(c, fast ? "-O3" : "-O1");
    if (fast) put(c, "-march=native");
    if (fast) put(c, "-ffast-math");
    if (!fast && *safe) put(c, safe);
    if (!fast && *safe) put(c, "-fno-sanitize-recover=all");
    put(c, "-pthread");
    put_inputs(c, number, file, !fast && *safe);
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) put(c, needed[i]);
    put(c, "-o");
    put(c, to);
}

/* ---- running it ------------------------------------------------------------------------------ */

/* Reads until the end, and discards the data. */
static void drain(int from) {
    char bytes[4096];
    while (read(from, bytes, sizeof bytes) > 0) continue;
}

/* Returns the compiler's exit code; 127: it could not be run. quiet: its messages are discarded,
 * and do not go to stderr. */
static int run_command(const command *c, bool quiet) {
    int status = 0, words[2];
    if (pipe(words) != 0) return 127;
    pid_t child = fork();
    if (child == 0) {
        if (quiet) dup2(words[1], STDERR_FILENO);
        close(words[0]), close(words[1]);
        execvp(c->word[0], (char *const *)c->word);
        _exit(127);
    }
    close(words[1]);
    drain(words[0]);
    close(words[0]);
    if (child < 0 || waitpid(child, &status, 0) < 0) return 127;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

build_result exercise_build(int number, const char *file, bool fast, const char *to) {
    command c;
    /* The first attempt has sanitizers, and its messages are discarded: if it fails, the second
     * attempt, without sanitizers, prints them. */
    make_command(&c, number, file, fast, "-fsanitize=address,undefined", to);
    if (!fast && run_command(&c, true) == 0) {
        return BUILD_GUARDED;
    }
    make_command(&c, number, file, fast, "", to);
    int status = run_command(&c, false);
    if (status == 127) fail(&learn_program, "there is no compiler %s", c.word[0]);
    return status == 0 ? BUILD_PLAIN : BUILD_FAILED;
}
