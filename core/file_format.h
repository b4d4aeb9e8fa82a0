/* core/file_format.h - inside core: what the reader and the writer of safetensors files both know.
 *
 * The format (huggingface/safetensors): 8 bytes header length, little-endian; a JSON object
 *     { "__metadata__": { string: string },
 *       "name": { "dtype": string, "shape": [sizes], "data_offsets": [begin, end] }, ... };
 * the tensors' bytes, one after the other, up to the end of the file. */
#ifndef WEFT_CORE_FILE_FORMAT_H
#define WEFT_CORE_FILE_FORMAT_H

#include "file.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "weft takes the data of safetensors files as they are: the machine must be little-endian"
#endif

#define WF_FILE_MAX_HEADER 100000000 /* as in the reference implementation: decimal, not MiB */
#define WF_FILE_METADATA "__metadata__"
#define WF_FILE_CHECKSUM "weft.checksum" /* metadata key; its value is 16 hexadecimal digits */

/* Bits of an element; 0: there is no such dtype. *name becomes the static copy. */
int wf_file_dtype(const char **name);

int wf_file_by_key(const void *a, const void *b); /* order of wf_meta, for qsort */

/* Is this a header that the reader accepts before so many bytes of data? Decodes it in place. */
bool wf_file_check_header(char *header, size_t size, int64_t data_size, char *message);

/* The checksum of all that a file means, but for the checksum's own pair. stride: bytes from entry
 * to entry. The order matters: tensors as their data, metadata by key. */
void wf_file_checksum(const wf_entry *entries, int n, size_t stride, const wf_meta *meta,
                      int n_meta, char text[17]);

/* A sentence into message (256 bytes, or NULL); control characters from elsewhere become '?'. */
bool wf_file_fail(char *message, const char *format, ...) WF_PRINTF(2, 3); /* false */
bool wf_file_fail_errno(char *message, const char *what);                  /* "what: reason" */

#endif
