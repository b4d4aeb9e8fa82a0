/* tests/fuzz/fuzz.h - a fuzz target: a function of arbitrary bytes that must not crash.
 *
 * With libFuzzer (run.sh) every target is a program of its own. In the test program they are
 * ordinary functions, which test_fuzz.c calls with the files of corpus/. What must hold is said
 * with fuzz_must, which ends the program, also without debugging. */
#ifndef WEFT_TESTS_FUZZ_H
#define WEFT_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef WEFT_LIBFUZZER
#define FUZZ_TARGET(name)                                                                          \
    int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);                                  \
    int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
#else
#define FUZZ_TARGET(name)                                                                          \
    int fuzz_##name(const uint8_t *data, size_t size);                                             \
    int fuzz_##name(const uint8_t *data, size_t size)
#endif

#define fuzz_must(condition)                                                                       \
    do {                                                                                           \
        if (condition) break;                                                                      \
        fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);             \
        abort();                                                                                   \
    } while (0)

#endif
