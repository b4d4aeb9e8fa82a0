/* tests/support/emitted.h - a C file that wf_emit wrote, compiled by the compilers of this machine
 * and run, beside what the library computes. */
#ifndef WEFT_TESTS_SUPPORT_EMITTED_H
#define WEFT_TESTS_SUPPORT_EMITTED_H

#include <stdbool.h>

/* The compiler of the build, or the one that WEFT_EMIT_CC names, with options. */
const char *emitted_compiler(void);
/* False, which a line says: it compiles nothing here. */
bool has_emitted_compiler(const char *suite);

/* Are the programs of this row of a table compiled and run? A sanitizer watches the emitter, and
 * the text is the same in every build: so sanitized suites compile every 16th row. */
bool compiles_row(int row);

/* Does it compile a line here? */
bool compiles(const char *compiler);
/* Every warning is an error, and nothing is known of a library. */
#define STRICT_FLAGS                                                                               \
    "-std=c11 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -ffreestanding"

/* Compile the file `model.c` of the test's folder strictly and alone: it may need no symbol of any
 * library. */
void compile_alone(const char *compiler);

/* Compile the file `model.c` of the test's folder, which is `text`, by every compiler: the one
 * above, and clang and tcc where they are. It is compiled alone, and with the program `main`, which
 * must print the file `expected`. */
void try_emitted(const char *text, const char *main);

#endif
