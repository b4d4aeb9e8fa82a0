/* core/file_format.h - inside core: what the reader and the writer of safetensors files both know.
 *
 * The format (huggingface/safetensors): 8 bytes header length, little-endian; a JSON object
 * { "__metadata__": { string: string }, "name": { "dtype", "shape", "data_offsets": [begin, end] }, ... };
 * the tensors' bytes, one after the other, up to the end of the file. */
#ifndef WEFT_CORE_FILE_FORMAT_H
#define WEFT_CORE_FILE_FORMAT_H

#include "file.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "weft copies tensors of safetensors files as they are: the machine must be little-endian"
#endif

#define WF_FILE_MAX_HEADER 100000000 /* of the reference implementation: decimal, not 100 MiB */
#define WF_FILE_METADATA "__metadata__"
#define WF_FILE_CHECKSUM "weft.checksum" /* metadata key; the value is 16 lower-case hex digits */

/* Bits of an element of this dtype; 0 if there is no such dtype. *name becomes the static copy. */
int wf_file_dtype(const char **name);

/* Bytes of dtype and shape by checked multiplication. False with a sentence that begins with the name. */
bool wf_file_size(const wf_entry *e, size_t *bytes, char *message);

/* The checksum of everything a file means: tensors in the order of the data, metadata in that of keys. */
uint64_t wf_file_hash_entry(uint64_t h, const wf_entry *e);
uint64_t wf_file_hash_meta(uint64_t h, wf_meta pair); /* the checksum's own pair changes nothing */
void wf_file_hash_text(uint64_t h, char text[17]);

/* Write a sentence of at most 255 bytes into message (may be NULL), control characters of names from
 * elsewhere as '?'. Returns false. */
bool wf_file_fail(char *message, const char *format, ...) WF_PRINTF(2, 3);

const char *wf_file_reason(char buffer[64]); /* of errno, in words */
const char *wf_file_shape_text(int ndim, const int64_t *shape, char buffer[192]); /* "[2,3]" */

#endif
