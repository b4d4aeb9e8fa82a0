/* weft/core/file.h - safetensors files: read strictly, written atomically; PyTorch's files, read.
 *
 * A file holds names, shapes, bytes and a string map. What they mean for a model is not known
 * here; save.h saves and loads the leaves of a graph. */
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
 * A checksum is verified: the one in the metadata that wf_file_save writes, or the CRC-32 of each
 * record of a ZIP archive.
 *
 * Both containers of torch.save are read: the ZIP archive of torch 1.6 and later, and the older
 * one, which has no checksum. A state_dict is a flat dict of tensors. Nothing that the file names
 * is executed. Everything that a state_dict does not need is refused by name, as are tensors that
 * are not contiguous. There is no metadata. Tensors that share a storage in PyTorch share their
 * data here; those of a safetensors file never overlap. The pickle may have at most 32 MiB, and
 * reading it takes at most 25 times its length of memory. */
WF_API wf_file *wf_file_open(const char *path);
WF_API wf_file *wf_file_parse(const void *bytes,
                              size_t size); /* like wf_file_open; the memory is copied */
/* Join n files into one that owns them and has the entries of all; it has no metadata. Never NULL.
 * It has an error if one of the files has, or if two have a tensor of the same name. */
WF_API wf_file *wf_file_join(wf_file *const *files, int n);
/* Frees its entries and texts, too. */
WF_API void wf_file_free(wf_file *f);
/* False if it could not be read. */
WF_API bool wf_file_ok(const wf_file *f);
/* The reason, or "". */
WF_API const char *wf_file_error(const wf_file *f);
/* Its tensors; entry i, 0..count-1. */
WF_API int wf_file_count(const wf_file *f);
WF_API const wf_entry *wf_file_at(const wf_file *f, int i); /* tensor i in the order of the data */
WF_API const wf_entry *wf_file_find(const wf_file *f, const char *name); /* NULL: not there */
WF_API int wf_file_place(const wf_file *f,
                         const wf_entry *entry); /* the entry's index; -1 if f does not have it */
WF_API const char *wf_file_meta(const wf_file *f, const char *key); /* NULL: not there */
/* Pairs of its metadata; pair i, 0..count-1. */
WF_API int wf_file_meta_count(const wf_file *f);
WF_API wf_meta wf_file_meta_at(const wf_file *f, int i);
WF_API bool wf_file_checked(const wf_file *f); /* the file had a checksum, and it was right */

/* Write atomically. The file is written under a temporary name in the same folder, flushed, and
 * renamed; then the folder is flushed. On failure the old file is unchanged, and message[256] has
 * the reason. The bytes depend only on the arguments. An old file's permissions are kept; a new
 * file gets those of the umask.
 *
 * Before the rename the new file is read back, with all checks of wf_file_open, and its checksum is
 * compared with that of the memory that was written. For 740 MB this takes 0.6 s of processor time
 * instead of 0.4 s, and 1 MB of memory. */
WF_API bool wf_file_save(const char *path, const wf_entry *entries, int n, const wf_meta *meta,
                         int n_meta, char *message);

/* Remove the temporary files "name.tmp-weft-PID-N" that killed processes left while they saved
 * `path`. wf_file_save does this too; this is for programs that write such files themselves. */
WF_API void wf_file_remove_left(const char *path);

/* An I8 matrix has its scales in a second tensor "name_scale", F32, one number for each row; a
 * value is the stored number times the scale of its row. The first function returns the scales of
 * this entry, or NULL. The second is true if this entry holds scales. */
WF_API const wf_entry *wf_file_scale_of(const wf_file *f, const wf_entry *entry);
WF_API bool wf_file_is_scale(const wf_file *f, const wf_entry *entry);

/* The number of NaN and infinite values in an entry of reals; 0 for other types. */
WF_API int64_t wf_file_not_finite(const wf_entry *entry);
/* Copy an entry (F32, F64, BF16, F16; I32 for i32) into a leaf of the same shape, converting. False
 * with message[256]. */
WF_API bool wf_file_load(const wf_entry *entry, wf_tensor *leaf, char *message);
/* Like wf_file_load for n pairs. If one of them fails, no leaf changes. */
WF_API bool wf_file_load_leaves(const wf_entry *const *entries, wf_tensor *const *leaves, int n,
                                char *message);
/* Like wf_file_load_leaves for entries of f, where scales[i] is what wf_file_scale_of returns for
 * entries[i]. f and scales may be NULL. A leaf that is listed k times in a row takes k entries of
 * one type and shape, stacked along its rows. */
WF_API bool wf_file_load_from(const wf_file *f, const wf_entry *const *entries,
                              const wf_entry *const *scales, wf_tensor *const *leaves, int n,
                              char *message);
/* From now on, a load from f frees the file's memory while it copies. So f and the leaves together
 * take little more memory than the larger of the two. (Parts of a packed leaf that do not begin on
 * whole panels are kept, and copied once more.) Call it if f is freed right after it is loaded. It
 * affects wf_file_load_from, wf_load and a model's functions.
 *
 * An entry that was loaded, or shares a storage with one that was, then has no data (NULL), and
 * cannot be loaded again; its name, type and shape stay, as does the metadata. A refused load frees
 * nothing. No other thread may use f meanwhile. */
WF_API void wf_file_drop_loaded(wf_file *f);
/* Save n leaves with wf_file_save, under their names and in their own types. Leaves kept as
 * WF_PANELS_INT8 become I8 with scales. No plan that updates one of them may run meanwhile. */
WF_API bool wf_file_save_leaves(const char *path, wf_tensor *const *leaves, int n,
                                const wf_meta *meta, int n_meta, char *message);

/* Real numbers as text in files: with a decimal point, in any locale. */
enum { WF_REAL_TEXT = 32 };
/* Like printf's %.*g in the C locale, with 1..17 digits; 17 digits read back as the same number. */
WF_API char *wf_format_real(double value, int digits, char text[WF_REAL_TEXT]);
/* Like strtod in the C locale; false unless the whole text is a number. */
WF_API bool wf_parse_real(const char *text, double *value);

#ifdef __cplusplus
}
#endif
#endif
