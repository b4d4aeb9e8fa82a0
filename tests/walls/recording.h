/* tests/walls/recording.h - records each change that a program makes to the files of a folder, with
 * the data.
 *
 * A recording is a list of operations on inodes and names. An inode is a file, whatever it is
 * called; a name is a path below the folder. Calls in the table of recording.c that change files in
 * a way that is not modelled (a shared writable mapping, a new folder) make the recording fail.
 * Calls that are not in the table, such as io_uring and mprotect, are not seen. Changes of mode and
 * owner are counted as calls, but are not recorded. */
#ifndef WEFT_TESTS_WALLS_RECORDING_H
#define WEFT_TESTS_WALLS_RECORDING_H

#include <stddef.h>

#include "trace.h"

enum { MAX_NAMES = 512, MAX_INODES = 512, NO_INODE = -1, NO_NAME = -1 };

typedef enum op_kind {
    OP_WRITE, /* size bytes at offset of the inode */
    OP_SIZE,  /* the inode is `size` long from here on */
    /* `name` is from here on the inode (NO_INODE: removed); `gone`, unless NO_NAME, is removed */
    OP_NAME,
    OP_SYNC_FILE,   /* the inode's bytes and size are on the disk */
    OP_SYNC_FOLDER, /* the names in the folder `name` are on the disk */
} op_kind;

typedef struct op {
    op_kind kind;
    int inode, name, gone;
    int64_t offset, size;
    char *bytes;
    int call; /* the number of the changing call that made the operation, counted from 1 */
} op;

typedef struct content {
    char *bytes;
    int64_t size;
    uint64_t hash; /* of bytes and size */
} content;

typedef struct recording {
    char folder[4096]; /* resolved, no slash at its end */
    char *names[MAX_NAMES];
    int first[MAX_NAMES]; /* the inode of a name before the program ran */
    int n_names;
    content initial[MAX_INODES]; /* contents before the program ran; empty for files that it made */
    uint64_t number[MAX_INODES]; /* the system's number of the inode */
    int n_inodes;
    op *ops;
    int n, capacity;
    int calls;         /* changing calls made, or about to be made */
    int status;        /* as of waitpid */
    char trouble[256]; /* why the recording failed, or "" */
} recording;

/* Records the files in the folder, and then the changes by the program argv. Returns false if
 * r->trouble says why that failed: a call is not modelled, or programs may not be traced here
 * (r->status -1). */
bool record(recording *r, const char *folder, char *const *argv, const char *said);
void recording_free(recording *r);

int find_name(const recording *r, const char *name); /* NO_NAME: never there */
int inode_now(const recording *r, int name);         /* after all that is recorded */
bool in_folder(const recording *r, int name, int folder);
void hash_content(content *c);
void write_bytes(content *c, int64_t offset, const char *bytes, int64_t n); /* grows with zeros */
void set_size(content *c, int64_t size);

/* For other functions that watch a program: does the call change a file below the folder? */
bool changes(const char *folder, const call *c);

#endif
