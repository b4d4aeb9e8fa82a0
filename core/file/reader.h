/* core/file/reader.h - inside core/file: what the readers of the formats share.
 *
 * A file's bytes come from a source; a reader fills in the tensors, with their places in the block
 * of data, and the data. */
#ifndef WEFT_CORE_FILE_READER_H
#define WEFT_CORE_FILE_READER_H

#include "core/op.h"
#include "file_format.h"

struct tensor {
    wf_entry entry;
    int64_t begin, end; /* in the data */
};

struct wf_file {
    char error[WF_MESSAGE];
    char *header; /* decoded in place: names, keys and values point into it */
    char *data;
    struct tensor *tensors; /* in the order of the data */
    struct tensor **named;  /* in the order of their names */
    wf_meta *meta;          /* sorted by key */
    int count, meta_count;
    bool has_meta, checked;
    bool drops;      /* what is loaded is given back */
    wf_file **parts; /* those that were joined, in which names and data are */
    int n_parts;
};

/* Where the bytes of a file are, and the next to be read. */
struct source {
    const char *memory; /* NULL: in fd */
    int fd;
    int64_t size, at;
};

/* Data are read and checked in parts: what was read is still in the cache when it is summed. */
enum { WF_FILE_PART = 1 << 20 };

bool wf_source_read(wf_file *f, struct source *s, void *to, size_t n); /* n bytes are there */

/* A block of that many bytes, 64-byte aligned: kernels are faster on aligned data. */
bool wf_file_allocate(wf_file *f, char **block, uint64_t size);

/* The array with capacity for one more element. The capacity is the next power of two; a header of
 * 100 MB holds less than 2^25 elements. */
void *wf_file_grow(wf_file *f, void *array, int count, size_t size);

/* No name and no key twice: the tensors are sorted by name, the metadata by key. */
bool wf_file_check_names(wf_file *f);
void wf_file_sort(wf_file *f); /* the tensors, by their places in the data */

/* keep: else only to check it, in memory for one part. */
bool wf_file_read_safetensors(wf_file *f, struct source *s, bool keep);

/* What torch.save writes is known by its first bytes: 0, or one of its containers. */
enum { WF_TORCH_ZIP = 1, WF_TORCH_LEGACY, WF_TORCH_KNOWN_BY = 15 };
int wf_torch_container(const unsigned char *first, int64_t size);
bool wf_file_read_torch(wf_file *f, struct source *s, int container);

#endif
