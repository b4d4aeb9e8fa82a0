/* tests/fuzz/fuzz.h - a fuzz target: a function of arbitrary bytes that must not crash.
 *
 * With libFuzzer (run.sh) every target is a program of its own. In the test program the targets are
 * ordinary functions, which test_fuzz.c calls with the files of corpus/, and walls/mutants.c with
 * mutants of model files. fuzz_must is an assertion that also NDEBUG keeps: it aborts if its
 * condition is false. */
#ifndef WEFT_TESTS_FUZZ_FUZZ_H
#define WEFT_TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
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

/* Targets that read safetensors files define this function, so that libFuzzer mutates their inputs
 * with mutator.h. */
#ifdef WEFT_LIBFUZZER
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed);
#define FUZZ_MUTATOR                                                                               \
    size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed) {   \
        return fuzz_mutate(data, size, most, seed, LLVMFuzzerMutate);                              \
    }
#else
#define FUZZ_MUTATOR
#endif

#define fuzz_must(condition)                                                                       \
    do {                                                                                           \
        if (condition) break;                                                                      \
        fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);             \
        abort();                                                                                   \
    } while (0)

/* A refusal is a sentence that a terminal can show. */
static inline void fuzz_must_say(const char *message) {
    bool plain = *message != '\0';
    for (const char *c = message; *c; c++) plain &= (unsigned char)*c >= 0x20 && *c != 0x7F;
    if (!plain) fprintf(stderr, "it says '%s'\n", message);
    fuzz_must(plain);
}

/* Makes a file in memory with these bytes, and writes its path to path[32]. Returns a descriptor
 * for fuzz_unfile, which removes the file. */
int fuzz_file(const void *data, size_t size, char *path);
void fuzz_unfile(int file);

/* A path that no other process uses: in $TMPDIR, or in memory (/dev/shm) if the machine has
 * that. */
const char *fuzz_path(void);

#endif
