/* tools/cli/output.h - output files: checked before the work begins, and written whole or not at
 * all.
 *
 *     output o;
 *     if (!output_open(&o, path, message)) ...
 *     fputs(text, o.stream);
 *     if (!output_close(&o, message)) ...              the old file is unchanged
 *
 * A file is written under a temporary name in the same folder, flushed to the disk, and renamed.
 * A program that exits or is stopped by a signal before that leaves nothing behind, and the old
 * file unchanged. Names may be links, also to files that do not exist yet: the target is
 * written. "-" is stdout, which stays open. Every `message` has room for 256 bytes. */
#ifndef WEFT_TOOLS_CLI_OUTPUT_H
#define WEFT_TOOLS_CLI_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

enum { PATH_SIZE = 4096 }; /* of any path, with its terminating 0 */

typedef struct output {
    FILE *stream;
    const char *path; /* as given, not copied */
    int place;        /* index in the list of open outputs; -1: it is stdout */
} output;

bool output_open(output *o, const char *path, char *message);
bool output_close(output *o, char *message); /* false also if anything written to it failed */
void output_discard(output *o);

/* The folder of a path that is shorter than PATH_SIZE; "." if it has no slash. */
void output_folder(const char *path, char folder[PATH_SIZE]);
/* The target of path: path itself, or the file to which it is a link. False: errno. */
bool output_target(const char *path, char target[PATH_SIZE]);

/* True if `path` can be created or replaced, or with in_place be written into; else the message
 * says why not. Nothing is changed, and nothing is left behind. */
bool output_writable(const char *path, bool in_place, char *message);

/* Checks a folder likewise: it is there, or can be made with those above it. */
bool output_folder_writable(const char *folder, char *message);
/* Make a folder and those above it, if they are not there. */
bool output_make_folder(const char *folder, char *message);

/* Lock a file that this program replaces again and again, against other runs that would replace
 * it too: output_lock of the same name fails for them until this process, and those that it
 * forks, have ended. The lock is on a file beside it, NAME.lock, which is removed at the end;
 * one left by a killed program locks nothing. A file system without locks gives no protection. */
bool output_lock(const char *path, char *message);
/* Locks a folder into which several files are written; no lock file is made. */
bool output_lock_folder(const char *folder, char *message);

/* Flush the folder of `path`, so that its creation or removal survives a power cut. File systems
 * that cannot flush folders are left alone. */
void output_flush(const char *path);

#endif
