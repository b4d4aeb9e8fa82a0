/* tools/files/convert_target.c - the file that convert writes. See convert_target.h. */
#include "convert_target.h"

#include <errno.h>
#include <string.h>

#include "core/file.h"
#include "core/op.h"
#include "tools/cli/options/uses.h"

/* Exits if the file has a training that can be resumed, or if that cannot be found out. */
static void keep_training(const program *p, const char *path) {
    wf_file *f = wf_file_open(path);
    if (!wf_file_ok(f))
        fail(p, "%s is there: %s: give another name, or --overwrite", path, wf_file_error(f));
    /* older versions of train wrote no weft.kind */
    const char *kind = wf_file_meta(f, "weft.kind");
    if (kind ? strcmp(kind, "checkpoint") == 0 : wf_file_meta(f, "train.step") != NULL)
        fail(p,
             "%s is the checkpoint of a training, which can go on from it: give another name, or "
             "--overwrite",
             path);
    wf_file_free(f);
}

void find_target(const program *p, const char *path, bool overwrite, char target[PATH_SIZE]) {
    char message[WF_MESSAGE];
    if (!output_target(path, target)) fail(p, "%s can't be written: %s", path, strerror(errno));
    if (!output_lock(path, message)) fail(p, "%s", message);
    if (!overwrite && is_safetensors_file(target)) keep_training(p, path);
}
