/* tools/data/pairs.h - aligned lines, source and target: from two files, from one with a TAB
 * between the two, or made up as they are wanted.
 *
 * Lines end with "\n" or "\r\n"; a byte order mark at the start of a file is dropped. Everything
 * that would spoil a training is refused with the file and the line: what is not UTF-8, a NUL byte,
 * an empty side, a missing or a second TAB, files of different length, a line above LONGEST_LINE.
 *
 *     pair_lines p;
 *     if (!pairs_open(&p, "de.txt", "en.txt", message)) ...
 *     while (pairs_next(&p, message)) use(p.text[0], p.bytes[0], p.text[1], p.bytes[1]);
 *     if (p.failed) ...                                            message says why
 *     pairs_close(&p);
 *
 * Every `message` has room for 256 bytes. */
#ifndef WEFT_TOOLS_DATA_PAIRS_H
#define WEFT_TOOLS_DATA_PAIRS_H

#include "lines.h"

/* Pair `number`, from 0, as lines that live until the next call; false: there are no more. */
typedef bool pair_maker(void *user, int64_t number, const char *text[2]);

struct pair_lines;
typedef bool pair_filter(const void *user, const struct pair_lines *p);

typedef struct pair_lines {
    lines file[2];
    pair_maker *make; /* NULL: they come from files */
    void *user;
    const char *path[2]; /* as given to pairs_open, not copied; path[1] NULL: one file with TABs */
    int64_t number;      /* of the pair returned last, from 1 */
    const char *text[2]; /* the pair: source and target, valid until the next call, */
    size_t bytes[2];     /* and their lengths */
    pair_filter *wanted; /* pairs that it refuses are passed over; NULL: none is. To be set */
    const void *filter;  /* its user */
    bool targets; /* a source may be empty, and a line of one file its target alone: to be set */
    bool failed;
} pair_lines;

/* Opens the files. tgt NULL: src is a file of source<TAB>target. False: one can't be opened. */
bool pairs_open(pair_lines *p, const char *src, const char *tgt, char *message);
/* Starts to read spools that are open already, and can be read again; paths are named in messages. */
void pairs_start(pair_lines *p, spool *const from[2], const char *const path[2]);
/* Starts to read pairs that `make` returns; messages say `name` in place of a path. */
void pairs_make(pair_lines *p, const char *name, pair_maker *make, void *user);
bool pairs_next(pair_lines *p, char *message); /* false: the end, or a failure */
void pairs_close(pair_lines *p);

/* The lines of one side, or of both, one after the other: what a vocabulary is learned from. */
typedef struct pairs_reader {
    pair_lines *pairs;
    bool side[2];  /* which are wanted */
    bool second;   /* the source was handed out, the target is next; false at first */
    char *message; /* [256] */
} pairs_reader;

/* The next line of the pairs_reader `from`: 1; 0 at the end; -1 on failure. */
int pairs_line(void *from, const char **line, size_t *bytes);

#endif
