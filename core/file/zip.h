/* core/file/zip.h - inside core/file: archives of records that are stored without compression. */
#ifndef WEFT_CORE_FILE_ZIP_H
#define WEFT_CORE_FILE_ZIP_H

#include "crc32.h"
#include "reader.h"

typedef struct wf_zip_record {
    const char *name;
    /* offset of the local header; offset of the bytes; number of bytes */
    int64_t header, at, size;
    uint32_t sum; /* CRC-32 */
} wf_zip_record;

typedef struct wf_zip {
    char *directory;        /* holds the names */
    wf_zip_record *records; /* in the order of the file */
    wf_zip_record **named;  /* in the order of their names */
    int count;
    wf_crc32_table *table;
    char *part; /* a buffer for bytes that are checked but not kept */
} wf_zip;

/* Read the list of records. False, with f's error: two share a byte or a name, one is compressed or
 * encrypted, the archive is damaged or cannot be read, or out of memory. */
bool wf_zip_open(wf_file *f, struct source *s, wf_zip *z);
const wf_zip_record *wf_zip_find(const wf_zip *z, const char *name); /* NULL: not there */
/* Read the bytes of a record, or only check them if `to` is NULL. False, with f's error, if they
 * cannot be read or their CRC-32 does not match. */
bool wf_zip_read(wf_file *f, struct source *s, wf_zip *z, const wf_zip_record *r, char *to);
void wf_zip_close(wf_zip *z);

#endif
