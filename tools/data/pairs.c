/* tools/data/pairs.c - reads aligned lines, rejects invalid ones, and chooses those that
 * are held out. See pairs.h. */
#include "pairs.h"
#include "models/text_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/random.h"
#include "core/base/utf8.h"
#include "core/op.h"
#include "models/text.h"
#include "tools/cli/refused.h"

__attribute__((format(printf, 3, 4))) static bool refuse(pair_lines *p, char *message,
                                                         const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, WF_MESSAGE, format, arguments);
    va_end(arguments);
    p->failed = true;
    return false;
}

bool pairs_open(pair_lines *p, const char *src, const char *tgt, char *message) {
    *p = (pair_lines){ .file = { { .file.file = -1 }, { .file.file = -1 }, { .file.file = -1 } },
                       .path = { src, tgt } };
    for (int i = 0; i < 2 && p->path[i]; i++) {
        if (lines_open(&p->file[i], p->path[i])) continue;
        refuse(p, message, "%s can't be read: %s", p->path[i], strerror(errno));
        pairs_close(p);
        return false;
    }
    return true;
}

void pairs_start(pair_lines *p, spool *const from[2], const char *const path[2]) {
    *p = (pair_lines){ .file = { { .file.file = -1 }, { .file.file = -1 }, { .file.file = -1 } },
                       .path = { path[0], path[1] } };
    for (int i = 0; i < 2 && path[i]; i++) lines_start(&p->file[i], from[i]);
}

void pairs_beside(pair_lines *p, spool *from, const char *path) {
    p->path[2] = path;
    lines_start(&p->file[2], from);
}

void pairs_make(pair_lines *p, const char *name, pair_maker *make, void *user) {
    *p = (pair_lines){ .file = { { .file.file = -1 }, { .file.file = -1 }, { .file.file = -1 } },
                       .path = { name },
                       .make = make,
                       .user = user };
}

void pairs_close(pair_lines *p) {
    for (int i = 0; i < 3; i++) lines_close(&p->file[i]);
}

/* Reads the next line of file i into text[i]. False: the file has ended, or cannot be read. */
static bool read_line(pair_lines *p, int i, char *message) {
    lines *l = &p->file[i];
    char *line;
    switch (lines_next(l, true, &line)) {
    case LINE_READ:
        break;
    case LINE_TOO_LONG:
        return refuse(p, message, "line %lld of %s is longer than a megabyte",
                      (long long)l->number + 1, p->path[i]);
    case LINE_FAILED:
        return refuse(p, message, "%s can't be read: %s", p->path[i], lines_failure(l));
    default:
        return false;
    }
    p->text[i] = line;
    p->bytes[i] = l->length;
    return true;
}

/* True if the current lines lack a side that they need. */
static bool lacks_side(const pair_lines *p) {
    const char *tab = p->path[1] ? NULL : memchr(p->text[0], '\t', p->bytes[0]);
    size_t src = tab ? (size_t)(tab - p->text[0]) : p->bytes[0];
    if (p->path[1]) return (!src && !p->targets) || !p->bytes[1];
    if (!tab) return !src;
    return (!src && !p->targets) || tab + 1 == p->text[0] + p->bytes[0];
}

/* Reports a line that lacks a side, the number of such lines from there on, and an awk command that
 * leaves them out. The command first removes the "\r" of Windows, which awk would take for text. It
 * keeps lines without a TAB, which are refused later. `why`: what is wrong with the reported
 * line. */
static bool refuse_side(pair_lines *p, int i, const char *why, char *message) {
    long long number = (long long)p->number;
    long long n = 1;
    char rest[WF_MESSAGE], of[40] = "", links[48] = "";
    while (read_line(p, 0, rest) && (!p->path[1] || read_line(p, 1, rest))) n += lacks_side(p);
    if (n > 1) snprintf(of, sizeof of, ", the first of %lld", n);
    const char *keeps = p->targets ? "$NF != \"\"" : "NF == 1 || $1 != \"\" && $2 != \"\"";
    if (p->aligned)
        snprintf(links, sizeof links, "; take the same line%s out of ALIGNMENTS", n > 1 ? "s" : "");
    return refuse(
        p, message,
        "line %lld of %.*s %s%s: %sawk -F'\\t' '{ gsub(/\\r/, \"\") } %s' leaves %s out%s", number,
        p->aligned ? 60 : 90, p->path[i], why, of, p->path[1] ? "paste SOURCES TARGETS | " : "",
        keeps, n > 1 ? "them" : "it", links);
}

/* True if a line is UTF-8 and not empty, or is a source that may be empty. False with message. */
static bool check_line(pair_lines *p, int i, char *message) {
    char why[WF_MESSAGE];
    long long number = (long long)p->number;
    const char *path = p->path[i];
    if (p->bytes[i] == 0 && i == 0 && p->targets && p->path[1]) return true;
    if (p->bytes[i] == 0) return refuse_side(p, i, "is empty", message);
    return wf_text_check(p->text[i], p->bytes[i], why) ||
           refuse(p, message, "line %lld of %s: %.120s%s", number, path, why,
                  lines_remedy(&p->file[i], why));
}

/* Cuts text[0] at its TAB. */
static bool cut(pair_lines *p, char *message) {
    const char *line = p->text[0], *end = line + p->bytes[0], *path = p->path[0];
    const char *tab = memchr(line, '\t', p->bytes[0]);
    long long number = (long long)p->number;
    if (!tab && p->targets) {
        p->text[1] = line;
        p->bytes[1] = p->bytes[0];
        p->text[0] = "";
        p->bytes[0] = 0;
        return true;
    }
    bool comma = !tab && memchr(line, ',', p->bytes[0]);
    if (!tab)
        return refuse(p, message, "line %lld of %s has no TAB between source and target%s", number,
                      path,
                      comma ? ": if commas part them, make TABs of them"
                            : ": each line is a pair. For two files: --train-src and "
                              "--train-tgt. For running text: --task lm --text");
    if (memchr(tab + 1, '\t', (size_t)(end - tab - 1)))
        return refuse(p, message,
                      "line %lld of %s has more than two columns: keep source and target, as with "
                      "cut -f1,2",
                      number, path);
    p->bytes[0] = (size_t)(tab - line);
    p->text[1] = tab + 1;
    p->bytes[1] = (size_t)(end - tab - 1);
    if ((p->bytes[0] || p->targets) && p->bytes[1]) return true;
    return refuse_side(p, 0, p->bytes[1] ? "has an empty source" : "has an empty target", message);
}

/* Reports that one file has ended and the other has not, after counting the rest of it. */
static bool refuse_counts(pair_lines *p, int longer, char *message) {
    while (read_line(p, longer, message)) continue;
    if (p->failed) return false;
    return refuse(p, message, "%s has %lld lines and %s has %lld: line by line they must be pairs",
                  p->path[0], (long long)p->file[0].number, p->path[1],
                  (long long)p->file[1].number);
}

/* Reads the line of alignments for the next pair; src: this pair exists. False: the numbers of
 * alignments and of pairs differ, or a file cannot be read. */
static bool read_alignment(pair_lines *p, bool src, char *message) {
    bool links = read_line(p, 2, message);
    if (p->failed) return false;
    if (links == src) return true;
    while (read_line(p, links ? 2 : 0, message)) continue;
    if (p->failed) return false;
    return refuse(p, message, "%s has %lld lines and %s has %lld: a line is needed for each pair",
                  p->path[0], (long long)p->file[0].number, p->path[2],
                  (long long)p->file[2].number);
}

static bool next_made(pair_lines *p) {
    if (!p->make(p->user, p->number, p->text)) return false;
    for (int i = 0; i < 2; i++) p->bytes[i] = strlen(p->text[i]);
    p->number++;
    return true;
}

static bool next_read(pair_lines *p, char *message) {
    bool src = read_line(p, 0, message), two = p->path[1] && !p->failed;
    bool tgt = two && read_line(p, 1, message);
    if (p->failed) return false;
    if (two && src != tgt) return refuse_counts(p, tgt, message);
    if (p->path[2] && !read_alignment(p, src, message)) return false;
    if (!src) return p->number ? false : refuse(p, message, "%s is empty", p->path[0]);
    p->number++;
    if (!check_line(p, 0, message)) return false;
    return two ? check_line(p, 1, message) : cut(p, message);
}

bool pairs_next(pair_lines *p, char *message) {
    while (!p->failed) {
        if (!(p->make ? next_made(p) : next_read(p, message))) return false;
        if (!p->wanted || p->wanted(p->filter, p)) return true;
    }
    return false;
}

int pairs_line(void *from, const char **line, size_t *bytes) {
    pairs_reader *r = from;
    bool again = r->second; /* the other side of the last pair is still to be returned */
    if (!again && !pairs_next(r->pairs, r->message)) return r->pairs->failed ? -1 : 0;
    int side = again || !r->side[0];
    r->second = !again && r->side[0] && r->side[1];
    *line = r->pairs->text[side];
    *bytes = r->pairs->bytes[side];
    return 1;
}

/* ---- a survey: different words --------------------------------------------------------------- */

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

/* ---- a survey: lines ------------------------------------------------------------------------- */

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
    if (!wf_grow(&s->hashes, &s->capacity, (size_t)s->pairs + 1, sizeof *s->hashes))
        return refused(message, "out of memory");
    s->hashes[s->pairs++] = survey_hash(p, s->seed);
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
