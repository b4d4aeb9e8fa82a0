/* core/file/file_format.h - inside core: what the reader and the writer of safetensors files both know.
 *
 * The format (huggingface/safetensors): 8 bytes header length, little-endian; a JSON object
 *     { "__metadata__": { string: string },
 *       "name": { "dtype": string, "shape": [sizes], "data_offsets": [begin, end] }, ... };
 * the tensors' bytes, one after the other, up to the end of the file. */
#ifndef WEFT_CORE_FILE_FILE_FORMAT_H
#define WEFT_CORE_FILE_FILE_FORMAT_H

#include "core/file.h"

#define WF_FILE_MAX_HEADER 100000000 /* as in the reference implementation: decimal, not MiB */
#define WF_FILE_METADATA "__metadata__"
#define WF_FILE_CHECKSUM "weft.checksum" /* metadata key; its value is 16 hexadecimal digits */
/* How the header of every file by weft begins. */
#define WF_FILE_BEGINNING "{\"" WF_FILE_METADATA "\":{\"" WF_FILE_CHECKSUM "\":\""

/* Bits of an element; 0: there is no such dtype. *name becomes the static copy. */
int wf_file_dtype(const char **name);

int wf_file_by_key(const void *a, const void *b); /* order of wf_meta, for qsort */

/* Bytes are taken as they are. false, with a message, where numbers begin with their high byte. */
bool wf_file_order(char *message);

/* openat with O_CLOEXEC, tried again when a signal came first: on file systems of a network it may.
 * The descriptor, or -1: errno. */
int wf_file_descriptor(int folder, const char *name, int flags, unsigned mode);

/* Is this a header that the reader accepts before so many bytes of data? Decodes it in place. */
bool wf_file_check_header(char *header, size_t size, int64_t data_size, char *message);

/* Is this file, so far only written, one that wf_file_open accepts, with this checksum? Reads it
 * with pread, through a buffer of fixed size. */
bool wf_file_check_written(int fd, const char checksum[17], char *message);

/* The checksum of all that a file means, but for the checksum's own pair: tensors as their data
 * lie, then metadata by key. Of each tensor what it is, then its data in parts (all but the last of
 * a multiple of 8 bytes), then wf_mix64. */
uint64_t wf_file_sum_entry(uint64_t h, const wf_entry *e);
uint64_t wf_file_sum_part(uint64_t h, const void *data, size_t n);
void wf_file_sum_text(uint64_t h, const wf_meta *meta, int n_meta, char text[17]);

/* A sentence into message (256 bytes, or NULL); control characters from elsewhere become '?'. */
bool wf_file_fail(char *message, const char *format, ...) WF_PRINTF(2, 3); /* false */
bool wf_file_fail_errno(char *message, const char *what);                  /* "what: reason" */

#endif
