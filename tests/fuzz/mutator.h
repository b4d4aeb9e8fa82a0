/* tests/fuzz/mutator.h - mutants of safetensors files that pass the door: a few edits of what the
 * file says (names, shapes, types, values, metadata, vocabularies, settings), of its header's text
 * or of its bytes; then lengths and, mostly, the checksum are made right again.
 *
 * A mutant that is no file any more is changed as bytes. Mutants depend on the file and the seed
 * alone. */
#ifndef WEFT_TESTS_FUZZ_MUTATOR_H
#define WEFT_TESTS_FUZZ_MUTATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MUTANT_MOST = 1 << 18 }; /* bytes of a mutant, at most */

/* Into out[most]; returns its size. */
size_t mutate_file(const uint8_t *data, size_t size, uint64_t seed, uint8_t *out, size_t most);

/* Writes the right checksum where a wrong one stands. True: that was all that was wrong. */
bool reseal(uint8_t *data, size_t size);

/* The mutator that libFuzzer calls: one in four times it uses libFuzzer's own changes, resealed. */
typedef size_t byte_mutator(uint8_t *data, size_t size, size_t most);
size_t fuzz_mutate(uint8_t *data, size_t size, size_t most, unsigned seed, byte_mutator *own);

#endif
