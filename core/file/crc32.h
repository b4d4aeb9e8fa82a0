/* core/file/crc32.h - inside core/file: the CRC-32 of ZIP archives (polynomial 0xEDB88320).
 *
 *     wf_crc32_table *table = malloc(sizeof *table);
 *     wf_crc32_fill(table);
 *     uint32_t sum = ~wf_crc32(table, UINT32_MAX, data, n); */
#ifndef WEFT_CORE_FILE_CRC32_H
#define WEFT_CORE_FILE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* of[k][b]: the sum of byte b and k zeros behind it. */
typedef struct wf_crc32_table {
    uint32_t of[8][256];
} wf_crc32_table;
void wf_crc32_fill(wf_crc32_table *table);

/* The sum that began as UINT32_MAX, n bytes later. */
uint32_t wf_crc32(const wf_crc32_table *table, uint32_t sum, const void *data, size_t n);

#endif
