/* tools/learn/lesson.h - the checker of an exercise: tasks as rows, and the judge of results.
 *
 * A lesson has tasks, one for each function that the learner writes. A task declares its inputs by
 * shape, and its cases by sizes: "T3 S5 d8 causal" sets T, S and d, and the task interprets the
 * word. Each row gives the inputs, the right results (from weft's own ops, in f64), and the
 * sentences.
 *
 * Every task also has a model: plain C that makes the known mistakes on request, one bit each. If
 * the learner's numbers are wrong, the judge looks for a set of at most three mistakes that gives
 * the same numbers: in every case, or at least in those up to the first wrong one. Without mistakes
 * the model gives the right numbers. `learn --mistakes` checks that, and that no two mistakes give
 * the same numbers.
 *
 * All this is linked with the learner's code into one program, which learn (learn.h) starts and
 * watches. */
#ifndef WEFT_TOOLS_LEARN_LESSON_H
#define WEFT_TOOLS_LEARN_LESSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/graph.h"

enum { LESSON_ARRAYS = 40, LESSON_OUTPUTS = 4, LESSON_CASES = 8, LESSON_MISTAKES = 32 };

typedef enum {
    ARRAY_VALUES, /* from -1.5 to 1.5; others in cases with "small", "large" or "low" */
    /* from -1.5 to 1.5, divided by the root of the last size, so that products stay in range */
    ARRAY_WEIGHTS,
    ARRAY_NEAR_1, /* from 0.5 to 1.5 */
    /* 0 or 1, with at least one 1 in every row; in a case with the word "empty", one row is all
     * 0 */
    ARRAY_CHOICES,
    ARRAY_PREFIX, /* a row of ones that ends in zeros: which tokens are not padding */
    ARRAY_IDS     /* integers from 0 to the size `below` - 1 */
} array_kind;

typedef struct lesson_array {
    const char *name;
    const char *shape; /* sizes of the axes: a digit, or a letter whose size the case sets: "3DD" */
    array_kind kind;
    char below;
} lesson_array;

/* The inputs of one case. */
typedef struct sample {
    const char *text; /* the case, such as "T3 S5 causal" */
    int size[128];    /* by letter: size['T'] is T */
    int n_in;
    float *in[LESSON_ARRAYS]; /* all inputs; of ids their values as floats */
    int *ids[LESSON_ARRAYS];  /* the same ids as integers; NULL for other kinds */
    int64_t count[LESSON_ARRAYS];
} sample;

typedef struct mistake {
    const char *name;     /* "no 1/sqrt(d)" */
    const char *sentence; /* a sentence that says what is wrong, and why it matters */
} mistake;

typedef struct lesson_task {
    const char *name;    /* the learner's function */
    const char *formula; /* its purpose in a line */
    lesson_array in[LESSON_ARRAYS], out[LESSON_OUTPUTS];
    const char *cases[LESSON_CASES];
    /* Call the learner's function. */
    void (*learner)(const sample *s, float *const *out);
    /* Build the graph of the right results; inputs are constants. NULL: the model without mistakes
     * is right, as in tasks on integers. */
    void (*weft)(const sample *s, wf_graph *g, wf_tensor *const *in, wf_tensor **out);
    /* Compute the results with mistakes: bit i selects mistakes[i]. */
    void (*model)(const sample *s, uint64_t mistakes, double *const *out);
    mistake mistakes[LESSON_MISTAKES];
    const struct recipe *steps; /* of a layer, for lesson_recipe.h; or NULL */
    double tolerance;           /* relative to the largest result; 0: 1e-6 */
} lesson_task;

typedef struct picture {
    char title[80];
    const char *row, *column; /* a word for rows and one for columns; NULL: "query" and "key" */
    int64_t heads, rows, columns;
    float *weights; /* [heads, rows, columns] in 0..1, to be freed */
} picture;

typedef struct lesson {
    const lesson_task *const *tasks;
    int n_tasks;
    /* Run after all tasks are right, such as a training. Prints; true: passed. NULL: there is
     * none. */
    bool (*trial)(FILE *report);
    /* Make a picture of the learner's own numbers. False: it can't be made. NULL: the lesson has
     * none. */
    bool (*draw)(picture *p);
} lesson;

/* The lesson of this program, from X_checks.c. */
extern const lesson the_lesson;

/* ---- numbers: lesson_sample.c ---------------------------------------------------------------- */

/* Make the inputs of the case `text`. False: out of memory. Free s in either case. */
bool sample_make(sample *s, const lesson_task *t, const char *text);
void sample_free(sample *s);
bool sample_has(const sample *s, const char *word);
int64_t array_count(const sample *s, const char *shape);
/* A pseudo-random number from 0 to 1, determined by these arguments. */
double lesson_number(const char *name, int64_t i);
/* Compute the right results with weft, or with the model if the task has no `weft`. False:
 * message[256]. */
bool sample_right(const sample *s, const lesson_task *t, double *const *out, char *message);
/* Write these values to a leaf, in its own type. False: it failed. */
bool leaf_write(wf_tensor *leaf, const float *values);

/* ---- judging: lesson_judge.c, lesson_mistakes.c ---------------------------------------------- */

/* The numbers of one task in one case. */
typedef struct result {
    sample s;
    int n_out;
    int64_t count[LESSON_OUTPUTS];
    float *out[LESSON_OUTPUTS]; /* the learner's */
    double *right[LESSON_OUTPUTS];
} result;

enum { RESULT_MESSAGE = 256 };
typedef struct results {
    const lesson_task *task;
    int n;
    result of[LESSON_CASES];
} results;
/* Make all cases with their right results. False: message. */
bool results_make(results *r, const lesson_task *t, char *message);
void results_free(results *r);

/* Report the call that begins, so that a crash can be located. task NULL: it has returned. */
extern void (*lesson_place)(const char *task, const char *text);

/* Print words, wrapped, to the right of the column of names. */
void put_words(FILE *report, const char *text);
/* Run the learner's function in all cases, and print the verdict with sentences that explain it.
 * True: all results are right. */
bool judge_task(const lesson_task *t, FILE *report);
/* Print the mistakes of a task. True: they differ from the right numbers and from each other, and
 * without them the model is right. */
bool list_mistakes(const lesson_task *t, FILE *report);

/* mistake_found: the bit of one mistake that explains the results. mistakes_found: the bits of a
 * smallest set that does. 0: none is known, or the search took too long. */
uint64_t mistake_found(const results *r);
uint64_t mistakes_found(const results *r);
bool patience_is_over(void);
/* Does the model give the learner's numbers, with these inputs and mistakes? */
bool sample_explains(const result *r, const lesson_task *t, const sample *s, uint64_t set);
/* True if `out` has the learner's numbers, up to rounding. */
bool numbers_explain(const result *r, double *const *out);
/* A model writes this number where a mistake leaves an element unwritten, or reads outside of an
 * array: any number of the learner's fits it. */
extern const double model_anything;
int mistake_count(const lesson_task *t);
/* is_wrong: is number i of output k wrong? is_stale: was x computed from an element that was not
 * written yet? */
bool is_wrong(const result *r, const lesson_task *t, int k, int64_t i);
bool is_stale(float x);
const result *first_wrong(const results *r);
/* True if a and b are equal up to this much rounding. */
bool same_number(double a, double b, double tolerance);
/* The largest finite |x|, but not less than a tiny number. */
double largest(const double *x, int64_t n);

/* ---- mistakes that any function can have: lesson_patterns.c -------------------------------- */

typedef struct finding {
    char name[128], sentence[RESULT_MESSAGE];
} finding;
bool finding_of(const results *r, finding *f);

#define HAS(mistakes, i) (((mistakes) >> (i)) & 1)

#endif
