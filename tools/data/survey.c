/* tools/data/survey.c - surveys pairs of text before training. See survey.h. */
#include "survey.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"
#include "core/base/utf8.h"
#include "tools/cli/refused.h"

/* ---- different words ------------------------------------------------------------------------- */

enum { SLOTS = 4 * SURVEY_TYPES };

/* A set of hashes of words, by open addressing. 0: the slot is free. */
typedef struct word_set {
    uint64_t slot[SLOTS];
} word_set;

static void note_word(word_set *set, survey_side *side, const char *word, size_t bytes) {
    uint64_t hash = wf_hash_bytes(1, word, bytes) | 1;
    side->words++;
    if (side->types == SURVEY_TYPES) return;
    uint64_t at = hash >> 20;
    while (set->slot[at % SLOTS] && set->slot[at % SLOTS] != hash) at++;
    if (set->slot[at % SLOTS] == hash) return;
    set->slot[at % SLOTS] = hash;
    side->types++;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static int64_t characters(const char *text, size_t bytes) {
    int64_t n = 0;
    for (size_t i = 0; i < bytes; i++) n += !wf_utf8_continues(text[i]);
    return n;
}

static void look_at_line(word_set *set, survey_side *side, const char *text, size_t bytes) {
    int64_t before = side->words;
    size_t begin = 0;
    for (size_t i = 0; i <= bytes; i++) {
        if (i < bytes && text[i] != ' ') continue;
        if (i > begin) note_word(set, side, text + begin, i - begin);
        begin = i + 1;
    }
    side->bytes += (int64_t)bytes;
    side->characters += characters(text, bytes);
    side->one_word += side->words - before <= 1;
}

uint64_t survey_hash(const pair_lines *p, uint64_t seed) {
    int side = p->bytes[0] ? 0 : 1;
    return wf_mix64(wf_hash_bytes(seed, p->text[side], p->bytes[side]));
}

static bool note_pair(survey *s, const pair_lines *p, char *message) {
    if (s->pairs == s->capacity) {
        int64_t capacity = s->capacity ? 2 * s->capacity : 1024;
        uint64_t *hashes = realloc(s->hashes, (size_t)capacity * sizeof *hashes);
        if (!hashes) return refused(message, "out of memory");
        s->hashes = hashes;
        s->capacity = capacity;
    }
    s->hashes[s->pairs] = survey_hash(p, s->seed);
    s->pairs++;
    return true;
}

bool survey_read(survey *s, pair_lines *p, uint64_t seed, char *message) {
    *s = (survey){ .seed = seed };
    word_set *sets = calloc(2, sizeof *sets);
    bool ok = sets != NULL;
    if (!ok) snprintf(message, 256, "out of memory");
    while (ok && pairs_next(p, message)) {
        for (int i = 0; i < 2; i++) look_at_line(&sets[i], &s->side[i], p->text[i], p->bytes[i]);
        ok = note_pair(s, p, message);
    }
    free(sets);
    return ok && !p->failed;
}

void survey_free(survey *s) {
    free(s->hashes);
    *s = (survey){ 0 };
}

/* ---- what is held back ----------------------------------------------------------------------- */

static int ascending(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

uint64_t survey_threshold(survey *s, int64_t n) {
    if (n <= 0 || n >= s->pairs) return 0;
    qsort(s->hashes, (size_t)s->pairs, sizeof *s->hashes, ascending);
    return s->hashes[0] < s->hashes[n] ? s->hashes[n] : 0;
}
