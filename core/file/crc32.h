/* core/file/crc32.h - inside weft: 32-bit checksums, computed with a table for a polynomial whose
 * bits are reversed. They are the CRC-32 of ZIP archives and the CRC-32C of TensorBoard's event
 * files.
 *
 *     wf_crc32_table *table = malloc(sizeof *table);
 *     wf_crc32_fill(table, WF_CRC32_ZIP);
 *     uint32_t sum = ~wf_crc32(table, UINT32_MAX, data, n); */
#ifndef WEFT_CORE_FILE_CRC32_H
#define WEFT_CORE_FILE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* of[k][b]: the checksum of byte b with k zero bytes after it, begun at 0 and not complemented. */
typedef struct wf_crc32_table {
    uint32_t of[8][256];
} wf_crc32_table;
#define WF_CRC32_ZIP 0xEDB88320u
#define WF_CRC32_C 0x82F63B78u /* Castagnoli's */
void wf_crc32_fill(wf_crc32_table *table, uint32_t polynomial);

/* Update a checksum with n more bytes. `sum` is UINT32_MAX at first; the complement of the last
 * result is the checksum. */
uint32_t wf_crc32(const wf_crc32_table *table, uint32_t sum, const void *data, size_t n);

#endif
