/* core/file/zip.h - inside core/file: archives of records that are stored as they are. */
#ifndef WEFT_CORE_FILE_ZIP_H
#define WEFT_CORE_FILE_ZIP_H

#include "crc32.h"
#include "reader.h"

typedef struct wf_zip_record {
    const char *name;
    int64_t header, at, size; /* of its own header, and of its bytes, in the file */
    uint32_t sum;             /* CRC-32 */
} wf_zip_record;

typedef struct wf_zip {
    char *directory;        /* the names are in it */
    wf_zip_record *records; /* in the order of the file */
    wf_zip_record **named;  /* in the order of their names */
    int count;
    wf_crc32_table *table;
    char *part; /* for bytes that are only checked */
} wf_zip;

/* Read where the records are: no two share a byte, no two a name, none is compressed. */
bool wf_zip_open(wf_file *f, struct source *s, wf_zip *z);
const wf_zip_record *wf_zip_find(const wf_zip *z, const char *name); /* NULL: not there */
/* Read the bytes, or with to NULL only check them; false if their CRC-32 is another. */
bool wf_zip_read(wf_file *f, struct source *s, wf_zip *z, const wf_zip_record *r, char *to);
void wf_zip_close(wf_zip *z);

#endif
