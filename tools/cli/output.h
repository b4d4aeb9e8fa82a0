/* tools/cli/output.h - output files: checked before the work begins, and written whole or not at
 * all.
 *
 *     output o;
 *     if (!output_open(&o, path, message)) ...
 *     fputs(text, o.stream);
 *     if (!output_close(&o, message)) ...              the old file is unchanged
 *
 * A file is written under a temporary name in the same folder, flushed to the disk, and renamed. If
 * the program exits before that, or SIGINT, SIGTERM or SIGHUP ends it, the old file is unchanged
 * and the temporary one is removed. A name may be a link, even to a file that does not exist yet:
 * then the target is written. "-" is stdout, which stays open. Every `message` has room for 256
 * bytes. */
#ifndef WEFT_TOOLS_CLI_OUTPUT_H
#define WEFT_TOOLS_CLI_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

enum { PATH_SIZE = 4096 }; /* longest path, with its terminating 0 */

typedef struct output {
    FILE *stream;
    const char *path; /* as given, not copied */
    int place;        /* index in the list of open outputs; -1: stdout */
} output;

bool output_open(output *o, const char *path, char *message);
/* False also if an earlier write failed. If stdout is a pipe that nobody reads any more, the
 * program ends silently. */
bool output_close(output *o, char *message);
void output_discard(output *o);
/* Write a file of n bytes: output_open, fwrite and output_close. */
bool output_write(const char *path, const void *bytes, size_t n, char *message);
/* Remove the temporary files of all open outputs, as a signal's handler may. */
void output_discard_all(void);

/* Write the folder of a path, which is shorter than PATH_SIZE. "." if the path has no slash. */
void output_folder(const char *path, char folder[PATH_SIZE]);
/* Write the target of a path: the path itself, or the file that it links to. False: see errno. */
bool output_target(const char *path, char target[PATH_SIZE]);

/* True if `path` can be created or replaced, or with in_place, written to. Otherwise the message
 * says why not. Nothing is changed or left behind. */
bool output_writable(const char *path, bool in_place, char *message);

/* True if the folder exists and can be written into, or can be created with its parents. Otherwise
 * the message says why not. */
bool output_folder_writable(const char *folder, char *message);
/* Create a folder and its parents, unless they exist. */
bool output_make_folder(const char *folder, char *message);

/* Lock a file that this program replaces repeatedly, so that no other run replaces it, too.
 * output_lock fails for the same name until this process and its forked children have ended. The
 * lock is on a file beside it, NAME.lock, which is removed at the end. A NAME.lock that a killed
 * program left has no effect. A file system without locks gives no protection. */
bool output_lock(const char *path, char *message);
/* Lock a folder into which several files are written. No lock file is created. */
bool output_lock_folder(const char *folder, char *message);

/* Flush the folder of `path`, so that creating or removing it survives a power cut. If the file
 * system cannot flush folders, nothing happens. */
void output_flush(const char *path);

/* Write n bytes to a descriptor, by as many calls as it takes. False: see errno. */
bool write_whole(int file, const void *bytes, size_t n);

/* ---- records that are appended, such as those of a log --------------------------------------- */

/* A record is written by one call, if the system takes all of it at once; so a program that reads
 * the file meanwhile finds whole records.
 *
 * Open a file for appending; returns its descriptor. keep: keep its old records, instead of
 * emptying it. -1: see errno. */
int append_open(const char *path, bool keep);
/* Append a record. False with errno: nothing was added. A record that fits only in part is removed
 * again, because the next record would continue its line. */
bool append_record(int file, const void *bytes, size_t n);

#endif
