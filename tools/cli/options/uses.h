/* tools/cli/options/uses.h - checks the files that a program reads and writes, before it opens an
 * output.
 *
 * No output may be an input or another output. That holds for links, for other paths to a file, for
 * files to which a standard stream was redirected, and for files that do not exist yet. Every
 * program calls check_uses after parsing its options; the table of options says how each file is
 * used. */
#ifndef WEFT_TOOLS_CLI_USES_H
#define WEFT_TOOLS_CLI_USES_H

#include "options.h"

/* A file that no option names. */
typedef struct used_file {
    const char *name; /* what messages call it */
    const char *path; /* its path; NULL: the file open as `descriptor` */
    int descriptor;
    file_use use; /* USE_NONE: not used this time, so check_uses skips the entry */
} used_file;

/* Check all uses of files; more[n]: files that no option names. Exits with 2 if two uses contradict
 * each other. Exits with 1 if an output cannot be written, ends in .png or the like, or would
 * replace a file of another kind; or if an input is a folder, or a text in place of a model. */
void check_uses(const program *p, const used_file *more, int n);

/* Exits with 1 if the path is a folder or a text in place of a model's file, with the next step.
 * check_uses does this for every USE_MODEL. */
void check_model_file(const program *p, const char *path);

/* True if the file can be read and begins as one of safetensors does: with the length of a header
 * that it has room for, and an object of JSON. */
bool is_safetensors_file(const char *path);

#endif
