/* tests/support/emitted.h - compiles a C file of wf_emit by the compilers of this machine, runs it,
 * and compares its output with the library's results. */
#ifndef WEFT_TESTS_SUPPORT_EMITTED_H
#define WEFT_TESTS_SUPPORT_EMITTED_H

#include <stdbool.h>

/* The compiler of the build, or the one that WEFT_EMIT_CC names, with options. */
const char *emitted_compiler(void);
/* Returns false, and prints a line that the suite is skipped, if that compiler does not work
 * here. */
bool has_emitted_compiler(const char *suite);

/* Is the program of this row of a table compiled and run? The emitted text is the same in every
 * build, so sanitized suites, which look for mistakes of the emitter, compile only every 16th
 * row. */
bool compiles_row(int row);

/* Is this compiler installed, and can it compile a small file? */
bool compiles(const char *compiler);
/* Flags for C11 without a hosted C library, in which a warning of these groups is an error. */
#define STRICT_FLAGS                                                                               \
    "-std=c11 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -ffreestanding"

/* Compile the file `model.c` of the test's folder strictly and alone: it may need no symbol of any
 * library. */
void compile_alone(const char *compiler);
/* Compile model.c with its main (MODEL_MAIN) strictly, with more flags, into the program `program`:
 * it may need nothing of libc but what its main prints and reads with. */
void compile_main(const char *compiler, const char *flags);

/* Writes `text` to the file `model.c` of the test's folder, and compiles it with the program
 * `main`, which must print the contents of the file `expected`: by emitted_compiler(), and in
 * builds without sanitizers also by clang and tcc, where they are installed. Without sanitizers the
 * first two also compile the file alone. */
void try_emitted(const char *text, const char *main);

#endif
