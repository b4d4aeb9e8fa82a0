/* tests/support/support.h - helpers of all suites: values of plans, comparisons, and the tally of
 * counts that test_main.c prints.
 *
 * Check runs most tests in a process of their own, so the tally is in memory that all of these
 * share. */
#ifndef WEFT_TESTS_SUPPORT_SUPPORT_H
#define WEFT_TESTS_SUPPORT_SUPPORT_H

#include "tests/support/marks.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/ops.h"

#define COUNT_OF(a) ((int)(sizeof(a) / sizeof *(a)))
#define SHAPE(...)                                                                                 \
    (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), (int64_t[]) {                     \
        __VA_ARGS__                                                                                \
    }
/* Fields of wf_optimizer_options, for Adam in a table of optimizers. */
#define ADAM_DEFAULTS .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8
#define SCALAR                                                                                     \
    0, (int64_t[]) {                                                                               \
        0                                                                                          \
    }

/* Kinds of checks. The tally has for each their number and the largest error. */
typedef enum tally {
    TALLY_ROWS,
    TALLY_OPS,
    TALLY_FIRST_ORDER,
    TALLY_SECOND_ORDER,
    TALLY_TORCH_F32,
    TALLY_TORCH_F64,
    TALLY_F32_F64,
    TALLY_DECOMPOSED,
    TALLY_EXTENTS,
    TALLY_EMPTY,
    TALLY_FAULTS,
    TALLY_KINDS
} tally;
bool tally_open(int parts);
void tally_part(int part);                 /* the suite's part, in which this process counts */
void tally_note(tally kind, double error); /* one more of this kind */
void tally_print(void);

/* end_graph fails the test with the graph's error, if it has one, and frees the graph. */
wf_graph *new_graph(wf_dtype real);
void end_graph(wf_graph *g);

/* Leaves with values. param_of makes a parameter, whose list is converted to the graph's type;
 * ids_of a buffer of int32. */
wf_tensor *param_of(wf_graph *g, const char *name, int ndim, const int64_t *shape,
                    const double *values);
wf_tensor *ids_of(wf_graph *g, const char *name, int ndim, const int64_t *shape,
                  const int32_t *values);
bool write_doubles(wf_tensor *leaf, const double *values);
double *leaf_values(const wf_tensor *leaf); /* to be freed */

/* The values of t in the plan's last run, as doubles, which the caller frees. Their number is in
 * *count (may be NULL). */
double *plan_values(wf_plan *p, const wf_tensor *t, int64_t *count);

typedef struct values {
    int64_t count;
    double *data;
} values;

/* Makes a plan that fetches the tensors, runs it once, and returns their values in `out`. Fails the
 * test with the plan's error. */
void evaluate_as(wf_plan_options o, int threads, values *out); /* without feeds */
void evaluate(wf_tensor *const *fetch, int n, int threads, bool training, values *out);
void free_values(values *v, int n);
double evaluate_scalar(wf_tensor *t);

/* max |a - b| / max |b| over finite elements; NaN if a and b have other counts, or NaN and
 * infinities at other places. */
double distance(values a, values b);
bool same_bits(values a, values b);

/* Deterministic numbers in [0, 1): the i-th of the stream `key`. */
double number(uint64_t key, uint64_t i);
uint64_t key_of(const char *name, uint64_t salt);

char *source_path(const char *relative, char *buffer, size_t size); /* a file of the source tree */

#define assert_contains(text, part)                                                                \
    ck_assert_msg(strstr((text), (part)) != NULL, "\"%s\" does not say \"%s\"", (text), (part))

#endif
