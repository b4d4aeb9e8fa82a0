/* tools/learn/lesson_mistakes.c - finds the known mistakes that give the learner's numbers. See
 * lesson.h.
 *
 * Sets of one mistake are tried first, then of two, then of three, within a limit of time. A
 * set is compared case by case, so the first case dismisses most sets. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lesson_recipe.h"

const double model_anything = 1e300;
enum { MOST_TOGETHER = 3 };
/* Results agree within this share of the largest number: the rounding of a float in a long sum. */
static const double alike = 2e-5;

int mistake_count(const lesson_task *t) {
    int n = 0;
    while (n < LESSON_MISTAKES && t->mistakes[n].name) n++;
    return n;
}

bool same_number(double a, double b, double tolerance) {
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    if (isinf(a) || isinf(b)) return a == b;
    return fabs(a - b) <= tolerance;
}

double largest(const double *x, int64_t n) {
    double most = 1e-30;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(x[i]) && fabs(x[i]) > most) most = fabs(x[i]);
    return most;
}

/* ---- a set of mistakes in one case ----------------------------------------------------------- */

typedef struct numbers {
    double *out[LESSON_OUTPUTS];
} numbers;

static bool numbers_make(numbers *v, const result *r, const lesson_task *t, const sample *s,
                         uint64_t set) {
    bool ok = true;
    memset(v, 0, sizeof *v);
    for (int k = 0; k < r->n_out; k++) {
        v->out[k] = calloc((size_t)r->count[k] + 1, sizeof(double));
        ok = ok && v->out[k];
    }
    if (ok) t->model(s, set, v->out);
    return ok;
}

static void numbers_free(numbers *v) {
    for (int k = 0; k < LESSON_OUTPUTS; k++) free(v->out[k]);
}

bool numbers_explain(const result *r, double *const *out) {
    bool same = true;
    for (int k = 0; same && k < r->n_out; k++) {
        for (int64_t i = 0; i < r->count[k]; i++)
            if (out[k][i] == model_anything) out[k][i] = r->out[k][i];
        double tolerance = alike * largest(out[k], r->count[k]);
        for (int64_t i = 0; same && i < r->count[k]; i++)
            same = same_number((float)out[k][i], r->out[k][i], tolerance);
    }
    return same;
}

bool sample_explains(const result *r, const lesson_task *t, const sample *s, uint64_t set) {
    numbers v;
    bool same = numbers_make(&v, r, t, s, set) && numbers_explain(r, v.out);
    numbers_free(&v);
    return same;
}

static bool explains_case(const result *r, const lesson_task *t, uint64_t set) {
    return sample_explains(r, t, &r->s, set);
}

static bool explains(const results *r, uint64_t set) {
    for (int i = 0; i < r->n; i++)
        if (!explains_case(&r->of[i], r->task, set)) return false;
    return true;
}

/* ---- all sets -------------------------------------------------------------------------------- */

/* The first set of mistakes that explains r: the mistakes of `set`, and as many further ones as
 * `more` says, with indices from `first` on. 0: there is none, or the search took too long. */
static uint64_t search(const results *r, int first, int more, uint64_t set) {
    int n = mistake_count(r->task);
    if (more == 0) return explains(r, set) ? set : 0;
    for (int i = first; i <= n - more; i++) {
        if (patience_is_over()) return 0;
        uint64_t found = search(r, i + 1, more - 1, set | UINT64_C(1) << i);
        if (found) return found;
    }
    return 0;
}

static uint64_t search_all(const results *r, int most) {
    uint64_t found = 0;
    for (int together = 1; !found && together <= most; together++)
        found = search(r, 0, together, 0);
    return found;
}

/* False if fewer than 8 numbers are finite and not 0: many mistakes could give these. */
static bool says_enough(const result *r) {
    int64_t n = 0;
    for (int k = 0; k < r->n_out; k++)
        for (int64_t i = 0; i < r->count[k]; i++) n += isfinite(r->out[k][i]) && r->out[k][i] != 0;
    return n >= 8;
}

/* True if the mistakes change the right results of this case, and the learner's results are wrong
 * in it; or if neither is so. */
static bool differs_where_wrong(const result *r, const lesson_task *t, uint64_t set) {
    result right = *r;
    float *out[LESSON_OUTPUTS] = { NULL };
    bool ok = true;
    for (int k = 0; k < r->n_out; k++) {
        right.out[k] = out[k] = malloc((size_t)(r->count[k] + 1) * sizeof(float));
        for (int64_t i = 0; out[k] && i < r->count[k]; i++) out[k][i] = (float)r->right[k][i];
        ok = ok && out[k];
    }
    ok = ok && explains_case(r, t, 0) == explains_case(&right, t, set);
    for (int k = 0; k < r->n_out; k++) free(out[k]);
    return ok;
}

uint64_t mistake_found(const results *r) {
    return search_all(r, 1);
}

/* If sizes are exchanged, a case of unequal sizes reads numbers by chance. Then the cases up to the
 * first wrong one decide, provided that the others are wrong at least where they should be. */
uint64_t mistakes_found(const results *r) {
    uint64_t found = search_all(r, MOST_TOGETHER);
    results some = *r;
    some.n = 1;
    while (some.n < r->n && explains_case(&r->of[some.n - 1], r->task, 0)) some.n++;
    if (found || some.n == r->n || !says_enough(&r->of[some.n - 1])) return found;
    found = search_all(&some, MOST_TOGETHER);
    for (int c = some.n; found && c < r->n; c++)
        if (!differs_where_wrong(&r->of[c], r->task, found)) found = 0;
    return found;
}

/* ---- are the mistakes different? ------------------------------------------------------------- */

/* The largest difference between x and y, relative to the largest right number; infinite where one
 * has a number and the other has none. */
static double apart(const result *one, double *const *x, double *const *y) {
    double most = 0;
    for (int k = 0; k < one->n_out; k++) {
        double scale = largest(one->right[k], one->count[k]);
        for (int64_t i = 0; i < one->count[k]; i++) {
            double d = fabs(x[k][i] - y[k][i]) / scale;
            if (same_number(x[k][i], y[k][i], 0)) d = 0;
            most = fmax(most, isnan(d) ? INFINITY : d);
        }
    }
    return most;
}

/* How far the numbers of two sets of mistakes are apart in any case. */
static double difference(const results *r, uint64_t a, uint64_t b) {
    double most = 0;
    for (int c = 0; c < r->n; c++) {
        const result *one = &r->of[c];
        numbers x, y;
        bool ok = numbers_make(&x, one, r->task, &one->s, a);
        ok = numbers_make(&y, one, r->task, &one->s, b) && ok;
        if (ok) most = fmax(most, apart(one, x.out, y.out));
        numbers_free(&x);
        numbers_free(&y);
    }
    return most;
}

/* True if the model without mistakes gives the right numbers and so do, if there are any, the steps
 * of a layer (lesson_recipe.h). */
static bool is_right(const results *r) {
    static const double exact = 1e-9;
    bool ok = true;
    for (int c = 0; c < r->n && ok; c++) {
        numbers v;
        const result *one = &r->of[c];
        ok = numbers_make(&v, one, r->task, &one->s, 0) && apart(one, v.out, one->right) < exact;
        if (ok && r->task->steps)
            ok = recipe_compute(&one->s, r->task->steps, v.out, one->n_out) &&
                 apart(one, v.out, one->right) < exact;
        numbers_free(&v);
    }
    return ok;
}

bool list_mistakes(const lesson_task *t, FILE *report) {
    static const double enough = 3e-4;
    char message[RESULT_MESSAGE];
    results r;
    if (!results_make(&r, t, message)) {
        fprintf(report, "%s: %s\n", t->name, message);
        return false;
    }
    bool ok = is_right(&r);
    int n = mistake_count(t);
    const char *said = t->weft ? "compared with weft" : "compared with its formula";
    fprintf(report, "%s: %s; %d mistakes are known\n", t->name,
            ok ? said : "THE MODEL WITHOUT MISTAKES IS WRONG", n);
    for (int i = 0; i < n; i++) {
        uint64_t set = UINT64_C(1) << i;
        double off = difference(&r, set, 0);
        fprintf(report, "  %-34s off by %.2g\n", t->mistakes[i].name, off);
        if (off < enough) fprintf(report, "    IT DOES NOT SHOW\n");
        ok = ok && off >= enough;
        for (int j = 0; j < i; j++) {
            if (difference(&r, set, UINT64_C(1) << j) >= enough) continue;
            fprintf(report, "    IT LOOKS LIKE %s\n", t->mistakes[j].name);
            ok = false;
        }
    }
    results_free(&r);
    return ok;
}
