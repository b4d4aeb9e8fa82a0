/* core/file/crc32.c - CRC-32, eight bytes at a time ("slicing by 8"). See crc32.h.
 *
 * The code is in a file of its own, because fuzzers that trace comparisons spend most of their time
 * in these loops: tests/fuzz/run.sh compiles it without tracing. */
#include "crc32.h"

#include <string.h>

/* Fills eight tables. With them the lookups of eight bytes are independent, so they do not wait for
 * each other. */
void wf_crc32_fill(wf_crc32_table *table, uint32_t polynomial) {
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t sum = b;
        for (int i = 0; i < 8; i++) sum = sum >> 1 ^ (sum & 1 ? polynomial : 0);
        table->of[0][b] = sum;
    }
    for (int k = 1; k < 8; k++)
        for (int b = 0; b < 256; b++) {
            uint32_t sum = table->of[k - 1][b];
            table->of[k][b] = sum >> 8 ^ table->of[0][sum & 255];
        }
}

uint32_t wf_crc32(const wf_crc32_table *table, uint32_t sum, const void *data, size_t n) {
    const uint32_t(*t)[256] = table->of;
    const unsigned char *p = data;
    for (; n >= 8; n -= 8, p += 8) {
        uint32_t low, high;
        memcpy(&low, p, 4);
        /* memcpy reads words in the machine's byte order: wf_file_order has refused all but
         * little-endian machines */
        memcpy(&high, p + 4, 4);
        low ^= sum;
        sum = t[7][low & 255] ^ t[6][low >> 8 & 255] ^ t[5][low >> 16 & 255] ^ t[4][low >> 24] ^
              t[3][high & 255] ^ t[2][high >> 8 & 255] ^ t[1][high >> 16 & 255] ^ t[0][high >> 24];
    }
    for (; n > 0; n--) sum = sum >> 8 ^ t[0][(sum ^ *p++) & 255];
    return sum;
}
