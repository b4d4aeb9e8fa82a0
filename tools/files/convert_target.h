/* tools/files/convert_target.h - the file that convert writes. */
#ifndef WEFT_TOOLS_FILES_CONVERT_TARGET_H
#define WEFT_TOOLS_FILES_CONVERT_TARGET_H

#include "tools/cli/options/options.h"
#include "tools/cli/output.h"

/* Sets `target` to the file that the path stands for, through links, and locks it, because `train`
 * may be writing it. Exits if it cannot be written or, without `overwrite`, if it is the checkpoint
 * of a training. */
void find_target(const program *p, const char *path, bool overwrite, char target[PATH_SIZE]);

#endif
