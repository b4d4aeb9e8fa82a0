/* tests/ops/op_cases.h - the table of ops: a row says how to build an op and what it must give.
 *
 * Adding an op needs one row in one of the op_cases_*.inc files:
 *
 *     CASE(softmax_causal, wf_masked_softmax(a, b, true), "[2,3,4]", ANY(2, 3, 4), MASK(3, 4))
 *
 * A row has a name, the op on its operands a, b, c, d, e, f, the shape of the result, and for each
 * operand the domain of its numbers and its shape. Suites test each row's shape, its first and
 * second order gradients, strided and computed operands, 1, 2 and 5 threads, f32 against f64, and
 * the fused op against its decomposition. If record_ops.py has the same op in PyTorch, they compare
 * values.
 *
 *     FAILS(add_shapes, wf_add(a, b), "[2,3]", ANY(2, 3), ANY(2, 4))   must fail, saying this
 *     UPDATE(assign, wf_assign(a, b), STATE(3), ANY(3))                 writes its STATE operands
 *     RANDOM(dropout, ...)                              a CASE that plans for training */
#ifndef WEFT_TESTS_OPS_OP_CASES_H
#define WEFT_TESTS_OPS_OP_CASES_H

#include "tests/support/support.h"

typedef enum domain {
    NO_OPERAND,
    DOMAIN_ANY,      /* [-2, 2] */
    DOMAIN_POSITIVE, /* [0.5, 2] */
    DOMAIN_AWAY,     /* [-2, -0.5] and [0.5, 2]: away from a kink or a pole at 0 */
    DOMAIN_SPREAD,   /* all elements of the row's operands differ by more than a stencil's width */
    /* not differentiated */
    DOMAIN_FIXED, /* [0.5, 2] */
    DOMAIN_MASK,  /* 0 or 1 */
    DOMAIN_SHUT,  /* 0 in the first row, else 1 */
    DOMAIN_IDS,   /* i32 from 0 to `below` - 1 */
    DOMAIN_STATE  /* a buffer that an update writes: [0.5, 2] */
} domain;

enum { MAX_CASE_OPERANDS = 6 };

typedef struct operand {
    domain domain;
    int64_t below;
    int ndim;
    int64_t shape[WF_MAX_DIMS];
} operand;

#define OPERAND(domain, below, ...)                                                                \
    {                                                                                              \
        domain, below, (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), {              \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define ANY(...) OPERAND(DOMAIN_ANY, 0, __VA_ARGS__)
#define POSITIVE(...) OPERAND(DOMAIN_POSITIVE, 0, __VA_ARGS__)
#define AWAY(...) OPERAND(DOMAIN_AWAY, 0, __VA_ARGS__)
#define SPREAD(...) OPERAND(DOMAIN_SPREAD, 0, __VA_ARGS__)
#define FIXED(...) OPERAND(DOMAIN_FIXED, 0, __VA_ARGS__)
#define MASK(...) OPERAND(DOMAIN_MASK, 0, __VA_ARGS__)
#define SHUT(...) OPERAND(DOMAIN_SHUT, 0, __VA_ARGS__)
#define IDS(below, ...) OPERAND(DOMAIN_IDS, below, __VA_ARGS__)
#define STATE(...) OPERAND(DOMAIN_STATE, 0, __VA_ARGS__)
#define ANY_SCALAR                                                                                 \
    {                                                                                              \
        DOMAIN_ANY, 0, 0, {                                                                        \
            0                                                                                      \
        }                                                                                          \
    }
#define FIXED_SCALAR                                                                               \
    {                                                                                              \
        DOMAIN_FIXED, 0, 0, {                                                                      \
            0                                                                                      \
        }                                                                                          \
    }

typedef struct op_case {
    const char *name;
    wf_tensor *(*build)(wf_tensor *const *x);
    const char *expect; /* the result's shape, or what the error must say */
    bool update, random;
    operand in[MAX_CASE_OPERANDS];
} op_case;

extern const op_case op_cases[], failing_cases[];
extern const int op_case_count, failing_case_count;

/* ---- a row, recorded ------------------------------------------------------------------------- */

/* How an operand comes from its leaf: an op between the leaf and the op that is tested. */
typedef enum dressing {
    PLAIN,
    TRANSPOSED, /* stored with the last two axes swapped */
    SPACED,     /* every third element of a wider leaf */
    COMPUTED    /* a computed value in the plan's memory, which the op may overwrite */
} dressing;

typedef struct fixture {
    const op_case *row;
    wf_graph *g;
    int n; /* operands */
    wf_tensor *leaf[MAX_CASE_OPERANDS], *x[MAX_CASE_OPERANDS];
    wf_tensor *wrt[MAX_CASE_OPERANDS], *grad[MAX_CASE_OPERANDS]; /* differentiable x, gradients */
    int n_wrt;
    int first, last;              /* nodes recorded by the row's expression: [first, last) */
    wf_tensor *y, *weight, *loss; /* loss = sum(weight * y); NULL where y is not real */
} fixture;

void fixture_open(fixture *f, const op_case *row, wf_dtype real, dressing how);
void fixture_close(fixture *f);             /* fails the test if the graph failed */
bool fixture_differentiate(fixture *f);     /* records loss, grad[]; false: no gradient */
bool refuses_gradients(const wf_tensor *y); /* wf_grad through y's op is an error */

enum { MAX_OUTPUTS = 1 + 2 * MAX_CASE_OPERANDS }; /* the largest value of fixture_outputs */
/* The number of arrays that fixture_evaluate writes to out: y and its recorded gradients; for an
 * update, the leaves that it writes. */
int fixture_outputs(const fixture *f);
/* Computes y and then its recorded gradients; or all leaves that an update writes. */
void fixture_evaluate(fixture *f, int threads, values *out);

int64_t operand_count(const operand *o);
double *operand_values(const op_case *row, int which); /* to be freed; f32 holds them exactly */
bool differentiable(const operand *o);
bool is_small(const op_case *row); /* few enough elements for a finite difference in each */
uint64_t row_key(const op_case *row, int salt);

#endif
