/* tools/data/survey.h - a first look at pairs of text: how many there are, and of what kind their
 * lines are; and which of them are held back.
 *
 * A pair is held back by a hash of its source and the seed, so that it is the same pair in whatever
 * order the lines come, and pairs with equal sources stay together. */
#ifndef WEFT_TOOLS_DATA_SURVEY_H
#define WEFT_TOOLS_DATA_SURVEY_H

#include "pairs.h"

enum { SURVEY_TYPES = 512 }; /* different words are counted up to here */

typedef struct survey_side {
    int64_t bytes, characters, words;
    int64_t one_word; /* lines of no more than one */
    int types;        /* different words, at most SURVEY_TYPES */
} survey_side;

typedef struct survey {
    int64_t pairs;
    survey_side side[2];
    uint64_t seed;
    uint64_t *hashes; /* [pairs] */
    int64_t capacity;
} survey;

/* Reads all pairs of p. False with message[256]. */
bool survey_read(survey *s, pair_lines *p, uint64_t seed, char *message);
void survey_free(survey *s);

/* A limit of hashes: at most n pairs have a hash below it, and are held back. 0: none, because too
 * many hashes are equal. */
uint64_t survey_threshold(survey *s, int64_t n);
uint64_t survey_hash(const pair_lines *p, uint64_t seed);

#endif
