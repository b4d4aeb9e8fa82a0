/* tools/learn/lesson_patterns.c - mistakes that any exercise can have. See lesson.h.
 *
 * A learner reads one array in the place of another, reads rows with the wrong distance, or
 * forgets to set a sum to 0. Nobody lists these for each function: the model computes with
 * other inputs, or the right results are stored in another order, and the learner's numbers are
 * compared. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lesson_recipe.h"

enum { PIECES = 64, LETTERS = 16, PIECE_NAME = 40 };

/* An array of a task, or one of the three that are stored as "wq, wk, wv". */
typedef struct piece {
    int array, part, parts;
    char name[PIECE_NAME];
} piece;

/* ---- pieces ---------------------------------------------------------------------------------- */

/* Sets p->name: part 1 of "attention wq, wk, wv" is "attention wk". */
static void name_piece(piece *p, const char *name) {
    const char *comma = strchr(name, ','), *from = comma;
    if (!comma) {
        snprintf(p->name, sizeof p->name, "%s", name);
        return;
    }
    while (from > name && from[-1] != ' ') from--;
    int before = (int)(from - name);
    for (int i = 0; i < p->part && from; i++)
        from = strchr(from, ',') ? strchr(from, ',') + 2 : NULL;
    if (!from) from = "";
    snprintf(p->name, sizeof p->name, "%.*s%.*s", before, name, (int)strcspn(from, ","), from);
}

static int pieces_of(const lesson_task *t, piece *to) {
    int n = 0;
    for (int k = 0; k < LESSON_ARRAYS && t->in[k].name; k++) {
        int parts = t->in[k].shape[0] == '3' ? 3 : 1;
        if (t->in[k].kind == ARRAY_IDS) continue;
        for (int i = 0; i < parts && n < PIECES; i++, n++) {
            to[n] = (piece){ .array = k, .part = i, .parts = parts };
            name_piece(&to[n], t->in[k].name);
        }
    }
    return n;
}

static int64_t piece_count(const sample *s, const piece *p) {
    return s->count[p->array] / p->parts;
}

/* The piece that is used beside this one: beta beside gamma, a bias beside a weight; or -1. */
static int beside(const piece *all, int n, int i) {
    for (int k = 0; k < n; k++)
        if (all[k].array == all[i].array + 1 && all[k].part == all[i].part &&
            all[k].parts == all[i].parts)
            return k;
    return -1;
}

/* ---- changed inputs -------------------------------------------------------------------------- */

/* Array `to` is read in the place of array `from`; both: also the other way round; pair: also the
 * arrays beside the two. If `to` is -1, `from` alone is read wrongly: with rows that are as far
 * apart as the size `letter`, or transposed if letter is 0. */
typedef struct change {
    int from, to;
    bool both, pair;
    char letter;
} change;

static bool copy_piece(const sample *s, const piece *from, const piece *to, sample *changed) {
    int64_t n = piece_count(s, from);
    if (n != piece_count(s, to)) return false;
    memcpy(changed->in[to->array] + n * to->part, s->in[from->array] + n * from->part,
           (size_t)n * sizeof(float));
    return true;
}

static bool exchange(const sample *s, const piece *all, int n, change c, sample *changed) {
    const piece *from = &all[c.from], *to = &all[c.to];
    if (!copy_piece(s, to, from, changed)) return false;
    if (c.both && !copy_piece(s, from, to, changed)) return false;
    if (!c.pair) return true;
    int next = beside(all, n, c.from), other = beside(all, n, c.to);
    if (next < 0 || other < 0 || next == c.to) return false;
    change second = { .from = next, .to = other, .both = c.both };
    return exchange(s, all, n, second, changed);
}

/* Reads each element (i, j) of an array from the wrong place. An element outside of the array is
 * NaN. False: the places would be right, or the array has not two axes. */
static bool read_elsewhere(const sample *s, const lesson_task *t, const piece *p, char letter,
                           sample *changed) {
    const char *shape = t->in[p->array].shape + (p->parts > 1);
    if (strlen(shape) != 2) return false;
    int64_t rows = s->size[(unsigned char)shape[0]], columns = s->size[(unsigned char)shape[1]];
    int64_t step = letter ? s->size[(unsigned char)letter] : 1, across = letter ? 1 : rows;
    int64_t n = rows * columns;
    const float *x = s->in[p->array] + n * p->part;
    float *y = changed->in[p->array] + n * p->part;
    if (step == columns && across == 1) return false;
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++) {
            int64_t at = i * step + j * across;
            y[i * columns + j] = at < n ? x[at] : NAN;
        }
    }
    return true;
}

static bool make_change(const sample *s, const lesson_task *t, const piece *all, int n, change c,
                        sample *changed) {
    if (!sample_make(changed, t, s->text)) return false;
    if (c.to < 0) return read_elsewhere(s, t, &all[c.from], c.letter, changed);
    return exchange(s, all, n, c, changed);
}

/* 1: the change gives the learner's numbers; 0: it does not; -1: it can't be made in this case. */
static int explains_one(const result *r, const lesson_task *t, const piece *all, int n, change c) {
    sample changed;
    int answer = -1;
    if (make_change(&r->s, t, all, n, c, &changed)) answer = sample_explains(r, t, &changed, 0);
    sample_free(&changed);
    return answer;
}

/* The first wrong case decides whether it is worth while to look at the others. */
static bool explains_change(const results *r, const piece *all, int n, change c) {
    const result *first = first_wrong(r);
    if (patience_is_over()) return false;
    if (explains_one(first, r->task, all, n, c) != 1) return false;
    for (int i = 0; i < r->n; i++)
        if (explains_one(&r->of[i], r->task, all, n, c) == 0) return false;
    return true;
}

/* The length of a name without its last word: "decoder norm2" is the struct of "decoder norm2
 * gamma". */
static int struct_length(const char *name) {
    const char *space = strrchr(name, ' ');
    return (int)(space ? (size_t)(space - name) : strlen(name));
}

static void say_exchange(const piece *all, int n, change c, finding *f) {
    const char *from = all[c.from].name, *to = all[c.to].name;
    int next = c.pair ? beside(all, n, c.from) : -1, other = c.pair ? beside(all, n, c.to) : -1;
    char more[2 * PIECE_NAME + 16] = "";
    bool two = next >= 0 && other >= 0;
    if (c.both) {
        if (two) snprintf(more, sizeof more, ", and %s and %s", all[next].name, all[other].name);
        bool structs = two && all[c.from].array != all[c.to].array;
        int a = structs ? struct_length(from) : PIECE_NAME;
        int b = structs ? struct_length(to) : PIECE_NAME;
        snprintf(f->name, sizeof f->name, "%.*s and %.*s exchanged", a, from, b, to);
        snprintf(f->sentence, sizeof f->sentence,
                 "These are the numbers with %s and %s exchanged%s.", from, to, more);
        return;
    }
    if (two) snprintf(more, sizeof more, ", and %s for %s", all[other].name, all[next].name);
    snprintf(f->name, sizeof f->name, "%s in the place of %s", to, from);
    snprintf(f->sentence, sizeof f->sentence, "These are the numbers if %s is read for %s%s.", to,
             from, more);
}

static bool find_exchange(const results *r, finding *f) {
    piece all[PIECES];
    int n = pieces_of(r->task, all);
    for (int kind = 0; kind < 4; kind++) {
        for (int i = 0; i < n; i++) {
            for (int j = kind & 1 ? i + 1 : 0; j < n; j++) {
                change c = { .from = i, .to = j, .both = kind & 1, .pair = kind >> 1 };
                if (i == j || !explains_change(r, all, n, c)) continue;
                say_exchange(all, n, c, f);
                return true;
            }
        }
    }
    return false;
}

/* The letters of a task's sizes. */
static int letters_of(const lesson_task *t, char to[LETTERS]) {
    char text[LESSON_ARRAYS * 4] = "";
    int n = 0;
    for (int k = 0; k < LESSON_ARRAYS && t->in[k].name; k++) strcat(text, t->in[k].shape);
    for (int k = 0; k < LESSON_OUTPUTS && t->out[k].name; k++) strcat(text, t->out[k].shape);
    for (const char *at = text; *at && n < LETTERS; at++)
        if (!memchr(to, *at, (size_t)n) && (*at < '0' || *at > '9')) to[n++] = *at;
    return n;
}

static bool find_distance(const results *r, finding *f) {
    piece all[PIECES];
    char letters[LETTERS + 1] = "";
    int n = pieces_of(r->task, all), m = letters_of(r->task, letters);
    for (int i = 0; i < n; i++) {
        for (int k = -1; k < m; k++) {
            change c = { .from = i, .to = -1, .letter = k < 0 ? '\0' : letters[k] };
            if (!explains_change(r, all, n, c)) continue;
            const char *shape = r->task->in[all[i].array].shape + (all[i].parts > 1);
            if (k < 0)
                snprintf(f->name, sizeof f->name, "%s is read by columns", all[i].name);
            else
                snprintf(f->name, sizeof f->name, "rows of %s are read %c apart", all[i].name,
                         letters[k]);
            snprintf(f->sentence, sizeof f->sentence,
                     "Element (i, j) of %s [%c, %c] is %s[i * %c + j]: a row has %c numbers.",
                     all[i].name, shape[0], shape[1], all[i].name, shape[1], shape[1]);
            return true;
        }
    }
    return false;
}

/* ---- results in another order ---------------------------------------------------------------- */

typedef enum { RUNNING, RUNNING_IN_ROWS, FIRST_ROW, TURNED, OTHER_DISTANCE } arrangement;

/* The right results of output k as this mistake leaves them; false: it can't be made here. */
static bool arrange(const result *r, const lesson_task *t, int k, arrangement kind, char letter,
                    double *y) {
    const char *shape = t->out[k].shape;
    size_t axes = strlen(shape);
    int64_t n = r->count[k], columns = axes ? r->s.size[(unsigned char)shape[axes - 1]] : 1;
    int64_t rows = n / columns, step = letter ? r->s.size[(unsigned char)letter] : columns;
    double sum = 0;
    if (axes != 2 && kind != RUNNING) return false;
    if (kind == OTHER_DISTANCE && (step == columns || (rows - 1) * step + columns > n))
        return false;
    for (int64_t i = 0; i < n; i++) y[i] = NAN;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = i / columns, j = i % columns;
        sum = (kind == RUNNING_IN_ROWS && j == 0 ? 0 : sum) + r->right[k][i];
        if (kind == RUNNING || kind == RUNNING_IN_ROWS) y[i] = sum;
        if (kind == FIRST_ROW) y[i] = r->right[k][j];
        if (kind == TURNED) y[j * rows + at] = r->right[k][i];
        if (kind == OTHER_DISTANCE) y[at * step + j] = r->right[k][i];
    }
    return true;
}

/* Returns 1, 0 or -1 as explains_one does, for a wrong arrangement of output k. All other outputs
 * must be right. */
static int arranged_so(const result *r, const lesson_task *t, int k, arrangement kind,
                       char letter) {
    double *y = malloc((size_t)(r->count[k] + 1) * sizeof *y);
    int answer = y && arrange(r, t, k, kind, letter, y) ? 1 : -1;
    double tolerance = answer == 1 ? 2e-5 * largest(y, r->count[k]) : 0;
    for (int64_t i = 0; answer == 1 && i < r->count[k]; i++)
        if (!same_number(y[i], r->out[k][i], tolerance)) answer = 0;
    for (int other = 0; answer == 1 && other < r->n_out; other++)
        for (int64_t i = 0; other != k && i < r->count[other]; i++)
            if (is_wrong(r, t, other, i)) answer = 0;
    free(y);
    return answer;
}

static bool all_arranged_so(const results *r, int k, arrangement kind, char letter) {
    if (arranged_so(first_wrong(r), r->task, k, kind, letter) != 1) return false;
    for (int c = 0; c < r->n; c++)
        if (arranged_so(&r->of[c], r->task, k, kind, letter) == 0) return false;
    return true;
}

static void say_arrangement(const lesson_task *t, int k, arrangement kind, char letter,
                            finding *f) {
    const char *name = t->out[k].name, *shape = t->out[k].shape;
    static const char *const sums = "Each number has those before it in its sum: set the sum to 0 "
                                    "inside the loops, for each number.";
    switch (kind) {
    case RUNNING:
        snprintf(f->name, sizeof f->name, "the sum is not set to 0 for every number");
        snprintf(f->sentence, sizeof f->sentence, "%s", sums);
        return;
    case RUNNING_IN_ROWS:
        snprintf(f->name, sizeof f->name, "the sum is set to 0 for every row alone");
        snprintf(f->sentence, sizeof f->sentence, "%s", sums);
        return;
    case FIRST_ROW:
        snprintf(f->name, sizeof f->name, "every row of %s is the first", name);
        snprintf(f->sentence, sizeof f->sentence, "Is the number of the row in every index?");
        return;
    case TURNED:
        snprintf(f->name, sizeof f->name, "%s is written transposed", name);
        break;
    case OTHER_DISTANCE:
        snprintf(f->name, sizeof f->name, "rows of %s are written %c apart", name, letter);
        break;
    }
    snprintf(f->sentence, sizeof f->sentence,
             "Element (i, j) of %s [%c, %c] is %s[i * %c + j]: a row has %c numbers.", name,
             shape[0], shape[1], name, shape[1], shape[1]);
}

static bool find_arrangement(const results *r, finding *f) {
    char letters[LETTERS + 1] = "";
    int m = letters_of(r->task, letters);
    for (int k = 0; k < first_wrong(r)->n_out; k++) {
        for (int kind = RUNNING; kind <= OTHER_DISTANCE; kind++) {
            int tries = kind == OTHER_DISTANCE ? m : 1;
            for (int i = 0; i < tries; i++) {
                char letter = kind == OTHER_DISTANCE ? letters[i] : '\0';
                if (!all_arranged_so(r, k, (arrangement)kind, letter)) continue;
                say_arrangement(r->task, k, (arrangement)kind, letter, f);
                return true;
            }
        }
    }
    return false;
}

/* ---- results that are read before they are written ------------------------------------------- */

static bool find_stale(const results *r, finding *f) {
    for (int c = 0; c < r->n; c++) {
        for (int k = 0; k < r->of[c].n_out; k++) {
            for (int64_t i = 0; i < r->of[c].count[k]; i++) {
                if (!is_stale(r->of[c].out[k][i])) continue;
                const char *name = r->task->out[k].name;
                snprintf(f->name, sizeof f->name, "%s is read before it is written", name);
                snprintf(
                    f->sentence, sizeof f->sentence,
                    "What stands in %s at first may be anything. A sum that is made there with += "
                    "begins with %s[...] = 0.",
                    name, name);
                return true;
            }
        }
    }
    return false;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* True if fewer than 3 wrong numbers are finite: many changes would give these. */
static bool says_too_little(const results *r) {
    int64_t n = 0;
    for (int c = 0; c < r->n; c++)
        for (int k = 0; k < r->of[c].n_out; k++)
            for (int64_t i = 0; i < r->of[c].count[k]; i++)
                n += is_wrong(&r->of[c], r->task, k, i) && isfinite(r->of[c].out[k][i]);
    return n < 3;
}

bool finding_of(const results *r, finding *f) {
    if (find_stale(r, f)) return true;
    if (says_too_little(r)) return false;
    return find_arrangement(r, f) || find_distance(r, f) || find_step(r, f) || find_exchange(r, f);
}
