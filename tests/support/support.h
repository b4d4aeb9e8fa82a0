/* tests/support/support.h - what every suite needs: numbers out of plans, comparisons, and the
 * tally that main.c prints.
 *
 * Check runs every test in a process of its own; the tally lives in memory that they all share. */
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
/* Beside the kind, in a table of optimizers. */
#define ADAM_DEFAULTS .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8
#define SCALAR                                                                                     \
    0, (int64_t[]) {                                                                               \
        0                                                                                          \
    }

/* Counters, and the largest error of each kind that passed or failed a test. */
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
void tally_part(int part);                 /* where this process counts from now on */
void tally_note(tally kind, double error); /* one more of this kind */
void tally_print(void);

/* A graph that must be fine at the end of the test: fails with its error, frees it. */
wf_graph *new_graph(wf_dtype real);
void end_graph(wf_graph *g);

/* Leaves with values. The list is converted to the graph's type. */
wf_tensor *param_of(wf_graph *g, const char *name, int ndim, const int64_t *shape,
                    const double *values);
wf_tensor *ids_of(wf_graph *g, const char *name, int ndim, const int64_t *shape,
                  const int32_t *values);
bool write_doubles(wf_tensor *leaf, const double *values);
double *leaf_values(const wf_tensor *leaf); /* to be freed */

/* The values of t in the plan's last run, as doubles, to be freed; their number in *count (may
 * be NULL). */
double *plan_values(wf_plan *p, const wf_tensor *t, int64_t *count);

typedef struct values {
    int64_t count;
    double *data;
} values;

/* Plan the n tensors, run them once, and hand out their values. Fails the test with the plan's
 * error. */
void evaluate_as(wf_plan_options o, int threads, values *out); /* without feeds */
void evaluate(wf_tensor *const *fetch, int n, int threads, bool training, values *out);
void free_values(values *v, int n);
double evaluate_scalar(wf_tensor *t);

/* max |a - b| / max |b|; NaN and infinities must stand in the same places, else NaN. */
double distance(values a, values b);
bool same_bits(values a, values b);

/* Deterministic numbers in [0, 1): the i-th of the stream `key`. */
double number(uint64_t key, uint64_t i);
uint64_t key_of(const char *name, uint64_t salt);

char *source_path(const char *relative, char *buffer, size_t size); /* a file of the source tree */

#define assert_contains(text, part)                                                                \
    ck_assert_msg(strstr((text), (part)) != NULL, "\"%s\" does not say \"%s\"", (text), (part))

#endif
