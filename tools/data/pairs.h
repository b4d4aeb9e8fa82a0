/* tools/data/pairs.h - aligned lines, source and target: from two files, from one file with a TAB
 * between them, or generated on demand.
 *
 * Lines end with LF or CR LF; a byte order mark at the start of a file is dropped. Everything that
 * would spoil a training is an error that names the file and the line: invalid UTF-8, a NUL byte,
 * an empty side, a missing or a second TAB, files of different length, a line above LONGEST_LINE.
 *
 *     pair_lines p;
 *     if (!pairs_open(&p, "de.txt", "en.txt", message)) ...
 *     while (pairs_next(&p, message)) use(p.text[0], p.bytes[0], p.text[1], p.bytes[1]);
 *     if (p.failed) ...                                            message has the reason
 *     pairs_close(&p);
 *
 * Every `message` has room for 256 bytes. */
#ifndef WEFT_TOOLS_DATA_PAIRS_H
#define WEFT_TOOLS_DATA_PAIRS_H

#include "lines.h"

/* Make pair `number`, counted from 0, as lines that live until the next call. False: there are no
 * more. */
typedef bool pair_maker(void *user, int64_t number, const char *text[2]);

struct pair_lines;
typedef bool pair_filter(const void *user, const struct pair_lines *p);

typedef struct pair_lines {
    lines file[3];    /* of sources, of targets, of alignments */
    pair_maker *make; /* generates pairs; NULL: they come from files */
    void *user;
    /* the paths given to pairs_open, not copied; path[1] NULL: one file with TABs; path[2] NULL:
     * there are no alignments */
    const char *path[3];
    int64_t number; /* number of the last pair returned, counted from 1 */
    /* source, target and alignment of the pair, valid until the next call, and their lengths */
    const char *text[3];
    size_t bytes[3];
    pair_filter *wanted; /* set by the caller: pairs that it rejects are skipped; NULL: none is */
    const void *filter;  /* the `user` that `wanted` gets */
    /* set by the caller: a source may be empty, and a line of one file may be only a target */
    bool targets;
    bool aligned; /* set by the caller: each pair has a line of alignments, read now or later */
    bool failed;
} pair_lines;

/* Open the files. tgt NULL: src is a file of source<TAB>target. False: one cannot be opened. */
bool pairs_open(pair_lines *p, const char *src, const char *tgt, char *message);
/* Start reading spools that are already open and can be read again. Messages name these paths. */
void pairs_start(pair_lines *p, spool *const from[2], const char *const path[2]);
/* After pairs_start: read a line of alignments beside each pair. */
void pairs_beside(pair_lines *p, spool *from, const char *path);
/* Start reading pairs that `make` generates. Messages use `name` instead of a path. */
void pairs_make(pair_lines *p, const char *name, pair_maker *make, void *user);
bool pairs_next(pair_lines *p, char *message); /* false at the end, or after a failure */
void pairs_close(pair_lines *p);

/* Reads the lines of one side, or of both sides alternately, for learning a vocabulary. */
typedef struct pairs_reader {
    pair_lines *pairs;
    bool side[2];  /* true: lines of this side are wanted */
    bool second;   /* the source was returned, and the target is next; false at first */
    char *message; /* [256] */
} pairs_reader;

/* The next line of the pairs_reader `from`. Returns 1, 0 at the end, or -1 on failure. */
int pairs_line(void *from, const char **line, size_t *bytes);

/* ---- a survey before training ---------------------------------------------------------------- */

/* How many pairs there are, what kind of lines they have, and which are held out. That depends on a
 * hash of the seed and the source (the target, if the source is empty). So the order of the lines
 * does not matter, and pairs with equal sources stay together. */

enum { SURVEY_TYPES = 512 }; /* different words are counted only up to this number */

typedef struct survey_side {
    int64_t bytes, characters, words;
    int64_t one_word; /* number of lines with at most one word */
    int types;        /* number of different words, at most SURVEY_TYPES */
} survey_side;

typedef struct survey {
    int64_t pairs;
    survey_side side[2];
    uint64_t seed;
    uint64_t *hashes; /* [pairs] */
    size_t capacity;
} survey;

/* Read all pairs of p. False with message[256]. */
bool survey_read(survey *s, pair_lines *p, uint64_t seed, char *message);
void survey_free(survey *s);

/* A limit for hashes: pairs with a hash below it are held out, at most n of them. 0: none are,
 * because n is 0 or as large as the number of pairs, or because too many hashes are equal. */
uint64_t survey_threshold(survey *s, int64_t n);
uint64_t survey_hash(const pair_lines *p, uint64_t seed);

#endif
