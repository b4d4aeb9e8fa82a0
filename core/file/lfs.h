/* core/file/lfs.h - recognises a Git LFS pointer: a few lines of text that a clone without git-lfs
 * has in the place of a large file. Readers check for one before they report a damaged file. */
#ifndef WEFT_CORE_FILE_LFS_H
#define WEFT_CORE_FILE_LFS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define WF_LFS_START "version https://git-lfs.github.com/spec/v"
#define WF_LFS_SENTENCE                                                                            \
    "it is a Git LFS pointer, not the file itself: fetch that with 'git lfs pull'"

static inline bool wf_lfs_pointer(const void *bytes, size_t size) {
    const size_t n = sizeof WF_LFS_START - 1;
    return size >= n && memcmp(bytes, WF_LFS_START, n) == 0;
}

#endif
