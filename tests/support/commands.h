/* tests/support/commands.h - runs the programs by lines of shell, as people run them.
 *
 * A test works in an empty folder of its own, with the programs of the build folder that WEFT_TOOLS
 * names in front of the PATH. */
#ifndef WEFT_TESTS_SUPPORT_COMMANDS_H
#define WEFT_TESTS_SUPPORT_COMMANDS_H

#include "support.h"
#include "tests/support/sanitized.h"

typedef struct outcome {
    int status; /* exit code; -1: a signal */
    char out[1 << 16], err[1 << 16];
} outcome;

extern outcome result; /* of the last run */

/* A fixture. */
void enter_folder(void);
void leave_folder(void);
/* A fixture of models that are trained once for all tests of a suite, in a folder of their own.
 * Commands name their files by variables of the environment: $WORDS is the path of the file
 * `words`. */
extern char models_folder[64];
void enter_models(void);
void name_models(const char *const *names, int n);
void forget_models(void);

__attribute__((format(printf, 1, 2))) const outcome *run(const char *format, ...);
void expect(int status);      /* of the last run */
void ok(const char *command); /* run it; it must exit with 0 */

/* Reads the first size - 1 bytes of a file into `text`, as a string: empty if there is no file. */
void read_text(const char *path, char *text, size_t size);
bool same_files(const char *a, const char *b);

/* The command of a browser that can run without a screen; NULL: none is installed. */
const char *browser(void);
/* Lets the browser `with` load a page of the folder, and writes the page after its scripts have run
 * to drawn.html. Fails the test if a script prints to the console. */
void draw_page(const char *with, const char *name);

/* Rewrites a model's file with a right checksum. change_meta sets a key, which may be new, to a
 * value (NULL: removes it). change_values multiplies the f32 tensors whose names begin with
 * `prefix` by a factor (0: removes them). */
void change_meta(const char *path, const char *key, const char *value);
void change_values(const char *path, const char *prefix, float factor);

#endif
