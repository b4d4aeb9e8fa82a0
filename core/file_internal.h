/* core/file_internal.h - inside the library and its programs: several entries of a file at once,
 * files in parts or in memory, scales of I8 matrices, numbers as text. Not installed. */
#ifndef WEFT_CORE_FILE_INTERNAL_H
#define WEFT_CORE_FILE_INTERNAL_H

#include "core/file.h"

/* Like wf_file_open, for a file in memory, which is copied. */
wf_file *wf_file_parse(const void *bytes, size_t size);
/* The bytes of the file that wf_file_save would write; *size receives their number. The caller
 * frees them. NULL with message[256]. */
char *wf_file_bytes(const wf_entry *entries, int n, const wf_meta *meta, int n_meta, size_t *size,
                    char *message);
/* Join n files into one that owns them and has the entries of all; it has no metadata. Never NULL.
 * It has an error if one of the files has, or if two have a tensor of the same name. */
wf_file *wf_file_join(wf_file *const *files, int n);
/* The entry's index; -1 if f does not have it. */
int wf_file_place(const wf_file *f, const wf_entry *entry);
/* True if the file had a checksum, and it was right. */
bool wf_file_checked(const wf_file *f);
/* Remove the temporary files "name.tmp-weft-PID-N" that killed processes left while they saved
 * `path`. wf_file_save does this too; the function is for programs that write a file under such a
 * name themselves. */
void wf_file_remove_left(const char *path);
/* An I8 matrix has its scales in a second tensor "name_scale", F32, one number for each row; a
 * value is the stored number times the scale of its row. The first function returns the scales of
 * this entry, or NULL. The second is true if this entry holds scales. */
const wf_entry *wf_file_scale_of(const wf_file *f, const wf_entry *entry);
bool wf_file_is_scale(const wf_file *f, const wf_entry *entry);
/* The number of NaN and infinite values in an entry of reals; 0 for other types. */
int64_t wf_file_not_finite(const wf_entry *entry);
/* Like wf_file_load for n pairs. If one of them fails, no leaf changes. */
bool wf_file_load_leaves(const wf_entry *const *entries, wf_tensor *const *leaves, int n,
                         char *message);
/* Like wf_file_load_leaves for entries of f, where scales[i] is what wf_file_scale_of returns for
 * entries[i]. f and scales may be NULL. A leaf that is listed k times in a row takes k entries of
 * one type and shape, stacked along its rows. */
bool wf_file_load_from(const wf_file *f, const wf_entry *const *entries,
                       const wf_entry *const *scales, wf_tensor *const *leaves, int n,
                       char *message);
/* From now on, a load from f frees the file's memory while it copies. So f and the leaves together
 * take little more memory than the larger of the two. Entries that are stacked in a packed leaf,
 * and do not begin on whole panels there, are copied once more, and their memory is freed only with
 * f. Call the function if f is freed right after it is loaded. It affects wf_file_load_from,
 * wf_load and a model's functions.
 *
 * An entry that was loaded, or shares a storage with one that was, then has no data (NULL), and
 * cannot be loaded again; its name, type and shape stay, as does the metadata. A refused load frees
 * nothing. No other thread may use f meanwhile. */
void wf_file_drop_loaded(wf_file *f);
/* Save n leaves with wf_file_save, under their names and in their own types. Leaves kept as
 * WF_PANELS_INT8 become I8 with scales. No plan that updates one of them may run meanwhile. */
bool wf_file_save_leaves(const char *path, wf_tensor *const *leaves, int n, const wf_meta *meta,
                         int n_meta, char *message);

/* The size of a buffer for a real number as text. The text has a decimal point in any locale. */
enum { WF_REAL_TEXT = 32 };
/* Like printf's %.*g in the C locale, with 1..17 digits; 17 digits read back as the same number. */
char *wf_format_real(double value, int digits, char text[WF_REAL_TEXT]);
/* Like strtod in the C locale. True if the whole text is a number. */
bool wf_parse_real(const char *text, double *value);

#endif
