/* tools/cli/options/uses.h - which files a program reads and writes, asked before it opens one.
 *
 * No output is an input or another output, whatever their names: through links, by another path, as
 * what a standard stream was redirected to, there already or not yet. Every program calls
 * check_uses between its options and its work; what there is to check stands in its table. */
#ifndef WEFT_TOOLS_CLI_USES_H
#define WEFT_TOOLS_CLI_USES_H

#include "options.h"

/* A file that no option names. */
typedef struct used_file {
    const char *name; /* for people */
    const char *path; /* NULL: the file open as `descriptor` */
    int descriptor;
    file_use use; /* USE_NONE: not used after all */
} used_file;

/* Check all uses of files. Exits with 2 if two contradict each other, with 1 if an output cannot
 * be written. */
void check_uses(const program *p, const used_file *more, int n);

#endif
