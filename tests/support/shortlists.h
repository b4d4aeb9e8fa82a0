/* tests/support/shortlists.h - lexical shortlists in Marian's binary form. */
#ifndef WEFT_TESTS_SUPPORT_SHORTLISTS_H
#define WEFT_TESTS_SUPPORT_SHORTLISTS_H

#include <stddef.h>
#include <stdint.h>

enum { SHORTLIST_BYTES = 1 << 13 };

/* Writes a shortlist in which source token w has the ids shortlist_id(w, k, vocab) for k below
 * `per`. Returns its size in bytes. */
size_t write_shortlist(uint8_t *to, uint64_t first, int words, int per, int vocab);
int32_t shortlist_id(int w, int k, int vocab);
/* Writes the checksum of the bytes from 16 on into bytes 8 to 15. */
void seal_shortlist(uint8_t *bytes, size_t n);
/* Writes a number of 64 bits, low byte first. */
void put_u64(uint8_t *at, uint64_t value);

#endif
