/* tools/data/survey.h - surveys pairs of text before training: how many there are, what kind of
 * lines they have, and which are held out.
 *
 * Whether a pair is held out depends on a hash of its source and the seed. So the order of the
 * lines does not matter, and pairs with equal sources stay together. */
#ifndef WEFT_TOOLS_DATA_SURVEY_H
#define WEFT_TOOLS_DATA_SURVEY_H

#include "pairs.h"

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
    int64_t capacity;
} survey;

/* Read all pairs of p. False with message[256]. */
bool survey_read(survey *s, pair_lines *p, uint64_t seed, char *message);
void survey_free(survey *s);

/* A limit for hashes: pairs with a hash below it are held out, at most n of them. 0: none are,
 * because n is 0 or as large as the number of pairs, or because too many hashes are equal. */
uint64_t survey_threshold(survey *s, int64_t n);
uint64_t survey_hash(const pair_lines *p, uint64_t seed);

#endif
