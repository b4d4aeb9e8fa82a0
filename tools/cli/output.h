/* tools/cli/output.h - files to be written: looked at before the work begins, and whole or not
 * there.
 *
 *     output o;
 *     if (!output_open(&o, path, message)) ...
 *     fputs(text, o.stream);
 *     if (!output_close(&o, message)) ...              the old file is as it was
 *
 * Written under a temporary name in the same folder, flushed to the disk, renamed. A program that
 * exits or is stopped by a signal in between leaves nothing behind and the old file as it was.
 * Names may be links, also to what is not there yet: what is meant is written. Every `message` has
 * room for 256 bytes. */
#ifndef WEFT_TOOLS_CLI_OUTPUT_H
#define WEFT_TOOLS_CLI_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

enum { PATH_SIZE = 4096 }; /* of any path, its end included */

typedef struct output {
    FILE *stream;
    const char *path; /* as given, not copied */
    int place;        /* among those that are open */
} output;

bool output_open(output *o, const char *path, char *message);
bool output_close(output *o, char *message); /* false also if anything written to it failed */
void output_discard(output *o);

/* The folder of a path that is shorter than PATH_SIZE; "." if it has no slash. */
void output_folder(const char *path, char folder[PATH_SIZE]);
/* The name that is meant: path, or where it leads as a link. False: errno. */
bool output_target(const char *path, char target[PATH_SIZE]);

/* Could `path` be created or replaced? in_place: written into if it is there. If not, message says
 * why. Nothing is changed, and nothing is left behind. */
bool output_writable(const char *path, bool in_place, char *message);

/* Keep a file that will be replaced again and again from other runs that would: until this process
 * ends, and those that it forks, output_lock of the same name fails for others. By a file beside
 * it, NAME.lock, that goes with the program; one that a killed program leaves behind locks
 * nothing. Where the file system has no locks, nothing is kept. */
bool output_lock(const char *path, char *message);
/* Locks a folder into which several files are written; no lock file is made. */
bool output_lock_folder(const char *folder, char *message);

/* Make that `path` is there, or is not, outlast a power cut: flush the folder that it is in. Where
 * folders can't be flushed, nothing is done. */
void output_flush(const char *path);

#endif
