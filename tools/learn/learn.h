/* tools/learn/learn.h - the parts of `learn`: where an exercise is, how it is compiled, how it
 * is run.
 *
 * The learner's file is compiled and linked with its checker (lesson.h) into a program of its
 * own, which
 * runs apart with a limit of time and memory: whatever the learner's code does, learn says so. */
#ifndef WEFT_TOOLS_LEARN_LEARN_H
#define WEFT_TOOLS_LEARN_LEARN_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/cli/options/options.h"
#include "tools/cli/output.h"

enum { REPORT_SIZE = 1 << 20 }; /* bytes of a report, of which a picture is the longest */

typedef struct exercise {
    const char *name;  /* "attention": its files are attention_exercise.c, ... */
    const char *title; /* for people */
    bool timed;        /* it is measured, too: compiled once more, for speed */
} exercise;

/* In the order of the course; a lesson's number is its place. */
extern const exercise exercises[];
int exercise_count(void);

extern program learn_program;

/* ---- files: learn_build.c -------------------------------------------------------------------- */

/* The source folder of a lesson, and the pages and files in it. */
void exercise_path(int number, const char *ending, char path[PATH_SIZE]);
typedef enum {
    BUILD_FAILED, /* what the compiler said is printed */
    BUILD_PLAIN,
    BUILD_GUARDED /* with sanitizers */
} build_result;
/* Compile a file with the checker of this lesson into a program; fast: for speed, never guarded. */
build_result exercise_build(int number, const char *file, bool fast, const char *to);

/* ---- runs: learn_run.c ----------------------------------------------------------------------- */

typedef struct run_outcome {
    bool right;
    char place[256]; /* of the last call, if it did not return */
    char fault[512]; /* a sentence on a crash; "" if there was none */
    char *report;    /* to be freed */
    size_t bytes;
} run_outcome;

/* Run it as "check", "trial", "mistakes" or "picture", for so many seconds at most. file: the
 * learner's, for the sentence; bounded: in 4 GB of addresses. False: it could not be started. */
bool exercise_run(const char *path, const char *what, const char *file, bool bounded,
                  double seconds, run_outcome *out);

#endif
