/* tests/fuzz/mutator.h - mutations of safetensors files that get past the first checks of a reader:
 * a few edits of the contents (names, shapes, types, values, metadata, vocabularies, settings), of
 * the header's text or of the bytes; then the lengths and, mostly, the checksum are corrected.
 *
 * A file that cannot be parsed is edited as bytes. A mutant depends on the file and the seed
 * alone. */
#ifndef WEFT_TESTS_FUZZ_MUTATOR_H
#define WEFT_TESTS_FUZZ_MUTATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MUTANT_MOST = 1 << 18 }; /* bytes of a mutant, at most */

/* Writes a mutant of the file to out[most]. Returns its size. */
size_t mutate_file(const uint8_t *data, size_t size, uint64_t seed, uint8_t *out, size_t most);

/* If only the checksum of a file is wrong, replaces it by the right one and returns true. */
bool reseal(uint8_t *data, size_t size);

/* The mutator that libFuzzer calls: one in four times it uses libFuzzer's own changes, resealed. */
typedef size_t byte_mutator(uint8_t *data, size_t size, size_t most);
size_t fuzz_mutate(uint8_t *data, size_t size, size_t most, unsigned seed, byte_mutator *own);

#endif
