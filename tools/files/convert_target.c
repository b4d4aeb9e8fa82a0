/* tools/files/convert_target.c - the file that convert writes. See convert_target.h. */
#include "convert_target.h"

#include <errno.h>
#include <string.h>

#include "core/file.h"
#include "core/op.h"

/* True if the file has a training that can be resumed. */
static bool is_checkpoint(const char *path) {
    wf_file *f = wf_file_open(path);
    const char *kind = wf_file_ok(f) ? wf_file_meta(f, "weft.kind") : NULL;
    bool checkpoint = kind && strcmp(kind, "checkpoint") == 0;
    wf_file_free(f);
    return checkpoint;
}

void find_target(const program *p, const char *path, bool overwrite, char target[PATH_SIZE]) {
    char message[WF_MESSAGE];
    if (!output_target(path, target)) fail(p, "%s can't be written: %s", path, strerror(errno));
    if (!output_lock(path, message)) fail(p, "%s", message);
    if (!overwrite && is_checkpoint(target))
        fail(p,
             "%s has a training that train --resume goes on with: give another name, or "
             "--overwrite",
             path);
}
