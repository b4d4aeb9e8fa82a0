/* core/file/reader.h - inside core/file: shared by the readers of all formats.
 *
 * A reader takes a file's bytes from a source. It fills in the tensors, with their places in the
 * block of data, and the data. */
#ifndef WEFT_CORE_FILE_READER_H
#define WEFT_CORE_FILE_READER_H

#include "core/op.h"
#include "file_format.h"

struct tensor {
    wf_entry entry;
    int64_t begin, end; /* offsets of its bytes in the data */
};

struct wf_file {
    char error[WF_MESSAGE];
    char *header; /* text of the header, decoded in place: names, keys and values point into it */
    char *data;
    struct tensor *tensors; /* in the order of the data */
    struct tensor **named;  /* in the order of their names */
    wf_meta *meta;          /* sorted by key */
    int count, meta_count;
    bool has_meta, checked;
    /* true: a load frees the memory of the data that it has copied */
    bool drops;
    /* the files that were joined into this one; they own names and data */
    wf_file **parts;
    int n_parts;
};

/* The source of a file's bytes, and the position of the next byte. */
struct source {
    const char *memory; /* NULL: read from fd */
    int fd;
    int64_t size, at;
};

/* Data are read and checked in parts of this many bytes, so that a part is still in the cache when
 * its checksum is computed. */
enum { WF_FILE_PART = 1 << 20 };

/* Read n bytes, of which the caller knows that they are within s->size. False, with f's error: the
 * file cannot be read, or has become shorter. */
bool wf_source_read(wf_file *f, struct source *s, void *to, size_t n);

/* Allocate a block of `size` bytes, 64-byte aligned, because kernels are faster on aligned data.
 * False: out of memory. */
bool wf_file_allocate(wf_file *f, char **block, uint64_t size);

/* Returns the array with capacity for one more element; NULL if out of memory, and then the old
 * array stays valid. Capacities are powers of two. An int counts the elements: fewer than 2^25 fit
 * into a header of 100 MB, or into a pickle of WF_PICKLE_MAX bytes. */
void *wf_file_grow(wf_file *f, void *array, int count, size_t size);

/* Checks that no name and no key occurs twice. Sorts the tensors by name, and the metadata by
 * key. */
bool wf_file_check_names(wf_file *f);
void wf_file_sort(wf_file *f);  /* sorts the tensors by their places in the data */
bool wf_file_index(wf_file *f); /* makes f->named; false: out of memory */

/* keep: store the data; otherwise only check them, in a buffer of one part. */
bool wf_file_read_safetensors(wf_file *f, struct source *s, bool keep);

/* Recognises a file of torch.save by its first bytes. Returns its container, or 0 for other
 * files. */
enum { WF_TORCH_ZIP = 1, WF_TORCH_LEGACY, WF_TORCH_KNOWN_BY = 15 };
int wf_torch_container(const unsigned char *first, int64_t size);
bool wf_file_read_torch(wf_file *f, struct source *s, int container);

#endif
