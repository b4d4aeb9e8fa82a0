/* tools/learn/lesson_judge.c - runs the learner's function on all cases, and finds out what is
 * wrong with the numbers. See lesson.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lesson.h"

enum { GUARD = 16, COLUMN = 15, WIDTH = 88 };

/* Results begin as this signalling NaN, which shows elements that were not written. Arithmetic
 * with it gives another NaN. */
static const uint32_t unwritten_bits = 0x7fa0beef;
void (*lesson_place)(const char *task, const char *text);

/* A function of the address sanitizer. Where it exists, the sanitizer guards the memory around
 * results, and GUARD numbers are not needed. */
extern int __asan_address_is_poisoned(void const volatile *at) __attribute__((weak));
static int guard(void) {
    return __asan_address_is_poisoned ? 0 : GUARD;
}

/* ---- results --------------------------------------------------------------------------------- */

static bool is_unwritten(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits == unwritten_bits;
}

/* Arithmetic makes the signalling NaN a quiet one, and most processors keep its other bits. */
bool is_stale(float x) {
    static const uint32_t quiet = UINT32_C(1) << 22, sign = UINT32_C(1) << 31;
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits & ~sign) == (unwritten_bits | quiet);
}

static bool result_make(result *r, const lesson_task *t, const char *text, char *message) {
    snprintf(message, RESULT_MESSAGE, "out of memory");
    if (!sample_make(&r->s, t, text)) return false;
    for (; r->n_out < LESSON_OUTPUTS && t->out[r->n_out].name; r->n_out++) {
        int k = r->n_out;
        int64_t n = r->count[k] = array_count(&r->s, t->out[k].shape);
        r->out[k] = malloc((size_t)(n + guard()) * sizeof(float));
        r->right[k] = calloc((size_t)n, sizeof(double));
        if (!r->out[k] || !r->right[k]) return false;
        for (int64_t i = 0; i < n + guard(); i++) memcpy(&r->out[k][i], &unwritten_bits, 4);
    }
    return sample_right(&r->s, t, r->right, message);
}

bool results_make(results *r, const lesson_task *t, char *message) {
    *r = (results){ .task = t };
    while (r->n < LESSON_CASES && t->cases[r->n]) {
        r->n++;
        if (!result_make(&r->of[r->n - 1], t, t->cases[r->n - 1], message)) {
            results_free(r);
            return false;
        }
    }
    return true;
}

void results_free(results *r) {
    for (int i = 0; i < r->n; i++) {
        sample_free(&r->of[i].s);
        for (int k = 0; k < r->of[i].n_out; k++) {
            free(r->of[i].out[k]);
            free(r->of[i].right[k]);
        }
    }
    r->n = 0;
}

/* ---- sentences ------------------------------------------------------------------------------- */

/* Printed before each line. It is "?" in a guess, which is shown only if a crash prevents the
 * verdict. */
static const char *line_mark = "";

void put_words(FILE *report, const char *text) {
    int column = COLUMN + 2;
    fprintf(report, "%s%*s", line_mark, column, "");
    for (const char *at = text; *at;) {
        int n = (int)strcspn(at, " ");
        if (column + n > WIDTH && column > COLUMN + 2) {
            fprintf(report, "\n%s%*s", line_mark, COLUMN + 2, "");
            column = COLUMN + 2;
        }
        fprintf(report, "%.*s ", n, at);
        column += n + 1;
        at += n + (at[n] == ' ');
    }
    fprintf(report, "\n");
}

/* Writes the name of an element: "out[2][0]". */
static void name_element(const result *r, const lesson_task *t, int k, int64_t i, char *text,
                         size_t size) {
    const char *shape = t->out[k].shape;
    int64_t step = r->count[k];
    int n = snprintf(text, size, "%s", t->out[k].name);
    for (; *shape; shape++) {
        step /= r->s.size[(unsigned char)*shape];
        n += snprintf(text + n, size - (size_t)n, "[%lld]", (long long)(i / step));
        i %= step;
    }
}

static double tolerance_of(const result *r, const lesson_task *t, int k) {
    return (t->tolerance > 0 ? t->tolerance : 1e-6) * largest(r->right[k], r->count[k]);
}

bool is_wrong(const result *r, const lesson_task *t, int k, int64_t i) {
    return !same_number(r->out[k][i], r->right[k][i], tolerance_of(r, t, k));
}

static int64_t wrong_count(const result *r, const lesson_task *t) {
    int64_t n = 0;
    for (int k = 0; k < r->n_out; k++)
        for (int64_t i = 0; i < r->count[k]; i++) n += is_wrong(r, t, k, i);
    return n;
}

/* Prints the first wrong number beside the right one. */
static void tell_number(const result *r, const lesson_task *t, FILE *report) {
    char text[RESULT_MESSAGE], name[64];
    int64_t all = 0;
    for (int k = 0; k < r->n_out; k++) all += r->count[k];
    for (int k = 0; k < r->n_out; k++) {
        for (int64_t i = 0; i < r->count[k]; i++) {
            if (!is_wrong(r, t, k, i)) continue;
            name_element(r, t, k, i, name, sizeof name);
            snprintf(text, sizeof text,
                     "Case \"%s\": %s is %.6g and should be %.6g; %lld of %lld numbers differ.",
                     r->s.text, name, (double)r->out[k][i], r->right[k][i],
                     (long long)wrong_count(r, t), (long long)all);
            put_words(report, text);
            return;
        }
    }
}

/* ---- mistakes without a name ----------------------------------------------------------------- */

/* True if every number is the right one times the same factor; the message says so. */
static bool is_multiple(const results *r, char *message) {
    double factor = 0;
    for (int c = 0; c < r->n; c++) {
        const result *one = &r->of[c];
        for (int k = 0; k < one->n_out; k++) {
            double small = 1e-4 * largest(one->right[k], one->count[k]);
            for (int64_t i = 0; i < one->count[k]; i++) {
                double ratio = one->out[k][i] / one->right[k][i];
                if (fabs(one->right[k][i]) < small && fabs(one->out[k][i]) < small) continue;
                if (factor == 0) factor = ratio;
                if (!(fabs(ratio - factor) <= 1e-4 * fabs(factor))) return false;
            }
        }
    }
    if (factor == -1)
        snprintf(message, RESULT_MESSAGE, "Every number has the wrong sign.");
    else
        snprintf(message, RESULT_MESSAGE, "Every number is %.6g times the right one.", factor);
    return factor != 0 && fabs(factor - 1) > 1e-3;
}

/* True if some cases are right; the message says how many, and which are wrong. */
static bool are_some_cases(const results *r, char *message) {
    int right = 0, n = 0;
    for (int c = 0; c < r->n; c++) right += wrong_count(&r->of[c], r->task) == 0;
    if (right == 0) return false;
    n = snprintf(message, RESULT_MESSAGE, "%d of %d cases are right; wrong are", right, r->n);
    for (int c = 0; c < r->n; c++)
        if (wrong_count(&r->of[c], r->task) && n < RESULT_MESSAGE - 1)
            n += snprintf(message + n, (size_t)(RESULT_MESSAGE - n), " \"%s\"", r->of[c].s.text);
    return true;
}

/* True if in some case the wrong elements are exactly the last rows, the last columns, or the
 * corner of both. The message says from which row or column on. */
static bool is_an_edge(const results *r, char *message) {
    for (int c = 0; c < r->n; c++) {
        const result *one = &r->of[c];
        const char *shape = r->task->out[0].shape;
        if (strlen(shape) != 2 || wrong_count(one, r->task) == 0) continue;
        int64_t columns = one->s.size[(unsigned char)shape[1]], rows = one->count[0] / columns;
        int64_t top = rows, left = columns, wrong = 0;
        for (int64_t i = 0; i < one->count[0]; i++) {
            if (!is_wrong(one, r->task, 0, i)) continue;
            wrong++;
            if (i / columns < top) top = i / columns;
            if (i % columns < left) left = i % columns;
        }
        if ((top == 0 && left == 0) || wrong < (rows - top) * (columns - left)) continue;
        int n = snprintf(message, RESULT_MESSAGE, "Only ");
        if (top > 0)
            n += snprintf(message + n, RESULT_MESSAGE - (size_t)n, "rows from %lld on",
                          (long long)top);
        if (left > 0)
            n += snprintf(message + n, RESULT_MESSAGE - (size_t)n, "%scolumns from %lld on",
                          top > 0 ? " in " : "", (long long)left);
        snprintf(message + n, RESULT_MESSAGE - (size_t)n, " are wrong: is the last part handled?");
        return true;
    }
    return false;
}

static void tell_pattern(const results *r, FILE *report) {
    static bool (*const patterns[])(const results *, char *) = { is_multiple, is_an_edge,
                                                                 are_some_cases };
    char message[RESULT_MESSAGE];
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        if (!patterns[i](r, message)) continue;
        put_words(report, message);
        return;
    }
}

/* ---- the verdict ----------------------------------------------------------------------------- */

static void tell_mistakes(const lesson_task *t, uint64_t set, FILE *report) {
    const char *between = "";
    int n = mistake_count(t);
    fprintf(report, "%s  %-*s", line_mark, COLUMN - 1, t->name);
    for (int i = 0; i < n; i++) {
        if (!HAS(set, i)) continue;
        fprintf(report, "%s %s", between, t->mistakes[i].name);
        between = "; and";
    }
    fprintf(report, "\n");
    for (int i = 0; i < n; i++)
        if (HAS(set, i)) put_words(report, t->mistakes[i].sentence);
}

const result *first_wrong(const results *r) {
    for (int c = 0; c < r->n; c++)
        if (wrong_count(&r->of[c], r->task)) return &r->of[c];
    return NULL;
}

static int64_t count_unwritten(const result *r, int k) {
    int64_t n = 0;
    for (int64_t i = 0; i < r->count[k]; i++) n += is_unwritten(r->out[k][i]);
    return n;
}

/* True if the function writes nothing in any case, as in the exercise with its gaps. */
static bool is_empty(const results *r) {
    for (int c = 0; c < r->n; c++)
        for (int k = 0; k < r->of[c].n_out; k++)
            if (count_unwritten(&r->of[c], k) < r->of[c].count[k]) return false;
    return true;
}

static bool tell_empty(const results *r, FILE *report) {
    if (!is_empty(r)) return false;
    fprintf(report, "  %-*s not written yet\n", COLUMN - 1, r->task->name);
    put_words(report, r->task->formula);
    return true;
}

/* Prints the first result with numbers that are never written. False: there is none. */
static bool tell_unwritten(const results *r, FILE *report) {
    char text[RESULT_MESSAGE], first[64];
    for (int c = 0; c < r->n; c++) {
        const result *one = &r->of[c];
        for (int k = 0; k < one->n_out; k++) {
            int64_t empty = count_unwritten(one, k), i = 0;
            if (empty == 0) continue;
            while (!is_unwritten(one->out[k][i])) i++;
            name_element(one, r->task, k, i, first, sizeof first);
            fprintf(report, "%s  %-*s %s of %s is not written\n", line_mark, COLUMN - 1,
                    r->task->name, empty < one->count[k] ? "a part" : "all", r->task->out[k].name);
            snprintf(
                text, sizeof text,
                "In the case \"%s\" %lld of its %lld numbers never get a value; the first is %s.",
                one->s.text, (long long)empty, (long long)one->count[k], first);
            put_words(report, text);
            return true;
        }
    }
    return false;
}

/* Prints the kind of mistake: first a listed one is sought, then one that any function can have,
 * then several listed ones at once. */
static bool tell_kind(const results *r, FILE *report) {
    finding f;
    uint64_t set = mistake_found(r);
    bool found = !set && finding_of(r, &f);
    if (!set && !found) set = mistakes_found(r);
    if (set) tell_mistakes(r->task, set, report);
    if (!found) return set != 0;
    fprintf(report, "%s  %-*s %s\n", line_mark, COLUMN - 1, r->task->name, f.name);
    put_words(report, f.sentence);
    return true;
}

static void tell_wrong(const results *r, FILE *report) {
    if (!tell_kind(r, report) && !tell_unwritten(r, report)) {
        fprintf(report, "%s  %-*s wrong, in a way that has no name here\n", line_mark, COLUMN - 1,
                r->task->name);
        put_words(report, r->task->formula);
        tell_pattern(r, report);
    }
    tell_number(first_wrong(r), r->task, report);
}

static void tell_right(const results *r, FILE *report) {
    double worst = 0;
    for (int c = 0; c < r->n; c++)
        for (int k = 0; k < r->of[c].n_out; k++) {
            const result *one = &r->of[c];
            double scale = largest(one->right[k], one->count[k]);
            for (int64_t i = 0; i < one->count[k]; i++)
                worst = fmax(worst, fabs(one->out[k][i] - one->right[k][i]) / scale);
        }
    fprintf(report, "  %-*s right in %d cases, at most %.0e off\n", COLUMN - 1, r->task->name, r->n,
            worst);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static bool tell_overrun(const result *r, const lesson_task *t, FILE *report) {
    char text[RESULT_MESSAGE];
    for (int k = 0; k < r->n_out; k++)
        for (int64_t i = r->count[k]; i < r->count[k] + guard(); i++) {
            if (is_unwritten(r->out[k][i])) continue;
            fprintf(report, "  %-*s writes outside of an array\n", COLUMN - 1, t->name);
            snprintf(text, sizeof text,
                     "Case \"%s\": %s has %lld numbers, and number %lld is written.", r->s.text,
                     t->out[k].name, (long long)r->count[k], (long long)i);
            put_words(report, text);
            return true;
        }
    return false;
}

static bool tell_changed_input(const result *r, const lesson_task *t, FILE *report) {
    sample fresh;
    int changed = -1;
    bool ok = sample_make(&fresh, t, r->s.text);
    for (int k = 0; ok && k < fresh.n_in; k++) {
        size_t n = (size_t)fresh.count[k];
        if (memcmp(fresh.in[k], r->s.in[k], n * sizeof *fresh.in[k]) != 0) changed = k;
        if (fresh.ids[k] && memcmp(fresh.ids[k], r->s.ids[k], n * sizeof *fresh.ids[k]) != 0)
            changed = k;
    }
    sample_free(&fresh);
    if (changed < 0) return false;
    fprintf(report, "  %-*s changes its input %s\n", COLUMN - 1, t->name, t->in[changed].name);
    put_words(report, "Inputs belong to the caller, who reads them again: write only results.");
    return true;
}

/* Prints the verdict of the first n cases, in case the next call does not return. */
static void tell_guess(const results *r, int n, FILE *report) {
    results some = *r;
    some.n = n;
    if (is_empty(&some)) return;
    line_mark = "?";
    tell_wrong(&some, report);
    line_mark = "";
}

/* The search for a mistake ends after so many seconds, because a learner waits. They are processor
 * time of this program, so the finding does not depend on other programs. */
static const double patience = 3; /* seconds */
static clock_t begun;

bool patience_is_over(void) {
    return (double)(clock() - begun) / CLOCKS_PER_SEC > patience;
}

bool judge_task(const lesson_task *t, FILE *report) {
    char message[RESULT_MESSAGE];
    results r;
    bool ended = false, right = true;
    begun = clock();
    if (!results_make(&r, t, message)) {
        fprintf(report, "  %s: the checker failed: %s\n", t->name, message);
        return false;
    }
    for (int c = 0; c < r.n && !ended; c++) {
        lesson_place(t->name, r.of[c].s.text);
        t->learner(&r.of[c].s, r.of[c].out);
        ended = tell_overrun(&r.of[c], t, report) || tell_changed_input(&r.of[c], t, report);
        bool wrong = wrong_count(&r.of[c], t) > 0;
        if (right && wrong && !ended && c + 1 < r.n) tell_guess(&r, c + 1, report);
        right = right && !wrong;
    }
    lesson_place(NULL, NULL);
    if (!ended && right) tell_right(&r, report);
    if (!ended && !right && !tell_empty(&r, report)) tell_wrong(&r, report);
    results_free(&r);
    return right && !ended;
}
