/* tools/learn/learn.h - the parts of `learn`: finding an exercise, compiling it, running it.
 *
 * The learner's file is compiled and linked with its checker (lesson.h) into a separate program. It
 * runs with limits on time and memory, so whatever the learner's code does, learn can report it. */
#ifndef WEFT_TOOLS_LEARN_LEARN_H
#define WEFT_TOOLS_LEARN_LEARN_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/cli/options/options.h"
#include "tools/cli/output.h"

enum { REPORT_SIZE = 1 << 20 }; /* most bytes of a report; a picture is the longest */

typedef struct exercise {
    const char *name;  /* "attention": the files are attention_exercise.c, ... */
    const char *title; /* for people */
    bool timed;        /* its speed is measured, too, in a second program compiled for speed */
} exercise;

/* The exercises in the order of the course. A lesson's number is its index. */
extern const exercise exercises[];
int exercise_count(void);

extern program learn_program;

/* ---- files: learn_build.c -------------------------------------------------------------------- */

/* The path of a file in a lesson's source folder; file "": of the folder, with '/' at its end. */
void exercise_path(int number, const char *file, char path[PATH_SIZE]);
typedef enum {
    BUILD_FAILED, /* the compiler's messages were printed */
    BUILD_PLAIN,
    BUILD_GUARDED /* with sanitizers */
} build_result;
/* Compile a file with the checker of this lesson into a program. fast: optimised for speed, without
 * sanitizers. */
build_result exercise_build(int number, const char *file, bool fast, const char *to);

/* ---- runs: learn_run.c ----------------------------------------------------------------------- */

typedef struct run_outcome {
    bool right;
    char place[256]; /* the call that did not return; "": all returned */
    char fault[512]; /* a sentence about a crash; "" if there was none */
    char *report;    /* to be freed */
    size_t bytes;
} run_outcome;

/* Run the program as "check", "trial", "mistakes" or "picture", for at most so many seconds. file:
 * the learner's file, for messages. bounded: limit the address space to 4 GB. False: the program
 * could not be started. */
bool exercise_run(const char *path, const char *what, const char *file, bool bounded,
                  double seconds, run_outcome *out);

#endif
