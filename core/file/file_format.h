/* core/file/file_format.h - inside core: what the reader and the writer of safetensors files share.
 *
 * The format (huggingface/safetensors): 8 bytes header length, little-endian; a JSON object
 *     { "__metadata__": { string: string },
 *       "name": { "dtype": string, "shape": [sizes], "data_offsets": [begin, end] }, ... };
 * the tensors' bytes, one after the other, up to the end of the file. */
#ifndef WEFT_CORE_FILE_FILE_FORMAT_H
#define WEFT_CORE_FILE_FILE_FORMAT_H

#include <stdarg.h>

#include "core/save.h"

/* The most bytes of a header: the limit of the reference implementation, which is decimal and not
 * 100 MiB. */
#define WF_FILE_MAX_HEADER 100000000
#define WF_FILE_METADATA "__metadata__"
#define WF_FILE_CHECKSUM "weft.checksum" /* metadata key; its value is 16 hexadecimal digits */
/* The text with which the header of every file that weft writes begins. */
#define WF_FILE_PREFIX "{\"" WF_FILE_METADATA "\":{\"" WF_FILE_CHECKSUM "\":\""

#define WF_FILE_SCALE "_scale" /* the I8 matrix "w" has its scales in "w_scale" */

/* The number of bits of an element of the dtype *name, which then points to a static copy of the
 * name. 0: there is no such dtype. */
int wf_file_dtype(const char **name);

int wf_file_by_key(const void *a, const void *b); /* compares keys of wf_meta */

/* True on a little-endian machine, whose byte order is that of the files. False with message on
 * others, where weft neither reads nor writes files. */
bool wf_file_order(char *message);

/* Calls openat with O_CLOEXEC, again after EINTR, which network file systems can return. Returns
 * the descriptor, or -1 with errno. */
int wf_file_descriptor(int folder, const char *name, int flags, unsigned mode);

/* True if the reader accepts this header in front of data_size bytes of data. The header is decoded
 * in place. */
bool wf_file_check_header(char *header, size_t size, int64_t data_size, char *message);

/* True if wf_file_open would accept the file just written to fd, and its checksum is this one. The
 * data are read with pread, through a buffer of fixed size. */
bool wf_file_check_written(int fd, const char checksum[17], char *message);

/* The checksum of a file's contents, except the checksum itself: the tensors in the order of their
 * data, then the metadata by key. For each tensor: wf_file_sum_entry, wf_file_sum_part for its data
 * (all parts but the last are multiples of 8 bytes), then wf_mix64. wf_file_sum_text adds the
 * metadata and writes the checksum as text. */
uint64_t wf_file_sum_entry(uint64_t h, const wf_entry *e);
uint64_t wf_file_sum_part(uint64_t h, const void *data, size_t n);
void wf_file_sum_text(uint64_t h, const wf_meta *meta, int n_meta, char text[17]);

/* The selected leaves of a graph in the order of recording; the caller frees the array. NULL: out
 * of memory. */
wf_tensor **wf_leaves_of(const wf_graph *g, const wf_leaves *what, int *n);

/* True if this entry can be loaded into this leaf: its type, its shape and every value fit. False
 * with a message. */
bool wf_file_fits(const wf_entry *e, const wf_entry *scale, const wf_tensor *leaf, char *message);

/* Write a sentence into message (256 bytes, or NULL); it may quote a file, so control characters
 * become '?'. */
void wf_file_say(char *message, const char *format, va_list args);
bool wf_file_fail(char *message, const char *format, ...) WF_PRINTF(2, 3); /* returns false */
bool wf_file_fail_errno(char *message, const char *what); /* false; message "what: reason" */

#endif
