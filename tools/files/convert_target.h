/* tools/files/convert_target.h - the file that convert writes. */
#ifndef WEFT_TOOLS_FILES_CONVERT_TARGET_H
#define WEFT_TOOLS_FILES_CONVERT_TARGET_H

#include <stdio.h>

#include "models/model.h"
#include "tools/cli/options/options.h"
#include "tools/cli/output.h"

/* Sets `target` to the file that the path stands for, through links, and locks it, because `train`
 * may be writing it. Exits if it cannot be written or, without `overwrite`, if it is the checkpoint
 * of a training. */
void find_target(const program *p, const char *path, bool overwrite, char target[PATH_SIZE]);

/* Print the command that converts the state_dict in `path`, which was written from m, to a model
 * again. Its options say what the tensors do not. */
void tell_way_back(FILE *to, const wf_model *m, const char *path);

#endif
