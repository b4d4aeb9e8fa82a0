/* weft/core/file.h - safetensors files: read strictly, written atomically; PyTorch's files, read.
 *
 * A file holds named tensors and a map from strings to strings. This header does not know what they
 * mean for a model; save.h saves and loads the leaves of a graph. */
#ifndef WEFT_CORE_FILE_H
#define WEFT_CORE_FILE_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wf_file wf_file;

/* A tensor in a file, either to read or to write. */
typedef struct wf_entry {
    const char *name;
    /* as safetensors names it: "F32" "F64" "F16" "BF16" "I32" "I64" "U64" "U8" ... */
    const char *dtype;
    int ndim; /* 0..WF_MAX_DIMS */
    int64_t shape[WF_MAX_DIMS];
    const void *data; /* row-major, little-endian */
    size_t bytes;
} wf_entry;

/* A key and a value of the file's __metadata__. */
typedef struct wf_meta {
    const char *key, *value;
} wf_meta;

/* Read a whole file: safetensors, or a state_dict of torch.save; the first bytes tell which. Never
 * NULL; after a failure it has an error and no entries. Entries and texts live until wf_file_free.
 * A checksum is verified if the file has one: that in the metadata, which wf_file_save writes, or
 * the CRC-32 of each record of a ZIP archive.
 *
 * Both containers of torch.save are read: the ZIP archive of torch 1.6 and later, and the older
 * one, which has no checksum. A state_dict is a flat dict of tensors. Nothing that the file names
 * is executed. A file with anything that a state_dict does not need is refused with an error that
 * names it, and so is one with tensors that are not contiguous. Such a file has no metadata.
 * Tensors that share a storage in PyTorch share their data here; those of a safetensors file never
 * overlap. The pickle may have at most 32 MiB, and reading it takes at most 25 times its length of
 * memory. */
WF_API wf_file *wf_file_open(const char *path);
/* Free the object with all entries and texts that were read from it. */
WF_API void wf_file_free(wf_file *f);
/* False if the file could not be read. */
WF_API bool wf_file_ok(const wf_file *f);
/* The reason, or "". */
WF_API const char *wf_file_error(const wf_file *f);
/* The number of tensors, whose indices are 0..count-1. */
WF_API int wf_file_count(const wf_file *f);
WF_API const wf_entry *wf_file_at(const wf_file *f, int i); /* tensor i in the order of the data */
WF_API const wf_entry *wf_file_find(const wf_file *f, const char *name); /* NULL: not there */
WF_API const char *wf_file_meta(const wf_file *f, const char *key);      /* NULL: not there */
/* The number of metadata pairs, and pair i, 0..count-1. */
WF_API int wf_file_meta_count(const wf_file *f);
WF_API wf_meta wf_file_meta_at(const wf_file *f, int i);

/* Write atomically. The file is written under a temporary name in the same folder, flushed, and
 * renamed; then the folder is flushed. On failure the old file is unchanged, unless only the folder
 * could not be flushed; message[256] has the reason. The bytes depend only on the arguments. An old
 * file's permissions are kept; a new file gets those of the umask.
 *
 * Before the rename the new file is read back, with all checks of wf_file_open, and its checksum is
 * compared with that of the memory that was written. With this check, saving 740 MB takes 0.6 s of
 * processor time instead of 0.4 s, and 1 MB of memory. */
WF_API bool wf_file_save(const char *path, const wf_entry *entries, int n, const wf_meta *meta,
                         int n_meta, char *message);

/* Copy an entry into a leaf of the same shape, converting its type: F32, F64, BF16 or F16 for a
 * leaf of reals, I32 or I64 for one of i32. False with message[256]. */
WF_API bool wf_file_load(const wf_entry *entry, wf_tensor *leaf, char *message);

#ifdef __cplusplus
}
#endif
#endif
