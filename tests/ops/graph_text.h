/* tests/ops/graph_text.h - graphs as text, so that PyTorch and weft can compute the same one.
 *
 * A text (a "program") has lines. The lines leaf, NAME and grad make nodes, numbered from 0:
 *
 *     leaf KIND LOW HIGH KEY d0 d1 ...     KIND p: parameter, i: input, b: buffer, n: i32
 *     NAME x0 x1 ... | i0 i1 ... | r0 ...  a row of graph_ops.inc: operands, integers, reals
 *     grad y x0 x1 ...                     gradients of the scalar y: a node for each x
 *     show y0 y1 ...                       nodes that a plan with fused ops fetches
 *     want y COUNT DOT SIZE ERROR          PyTorch's values of y, as sums: see graph_want
 *     exact32 y RELATIVE ABSOLUTE v0 ...   recorded elements of y in f32, `any` for any number
 *     exact64 y RELATIVE ABSOLUTE v0 ...   the same in f64
 *     end
 *
 * Elements of a leaf are the same in every language: hash(KEY, element) chooses one of 2^12 steps
 * from LOW to HIGH, which an i32 rounds down. A leaf of KIND e has extreme numbers of f32: every
 * KEY-th of a list, each LOW times in a row. */
#ifndef WEFT_TESTS_OPS_GRAPH_TEXT_H
#define WEFT_TESTS_OPS_GRAPH_TEXT_H

#include <stdbool.h>
#include <stdio.h>

#include "nn/loss.h"
#include "ops/ops.h"

enum { GRAPH_NODES = 512, GRAPH_LINE = 8192 };

/* PyTorch's elements e[i] of a node, as three numbers. dot: the sum of w[i] e[i], with weights w[i]
 * = 2 hash(1, i) - 1. size: the sum of |w[i] e[i]|. error: the largest difference between PyTorch's
 * f32 and f64. */
typedef struct graph_want {
    int node;
    int64_t count;
    double dot, size, error;
} graph_want;

typedef struct graph_program {
    char *text; /* lines, each ended by '\0' */
    int lines, shown, wants;
    int show[GRAPH_NODES];
    graph_want want[GRAPH_NODES];
} graph_program;

bool graph_program_read(graph_program *p, FILE *file); /* false: the end, or no memory */
void graph_program_free(graph_program *p);

/* A recorded program. If `named` is not 0, its leaves with axes of that size are inputs, and these
 * axes are the extent "N". */
typedef struct graph_record {
    wf_graph *g;
    int count, leaves, extents; /* extents: axes with a name */
    wf_tensor *node[GRAPH_NODES], *leaf[GRAPH_NODES];
    void *data[GRAPH_NODES]; /* of each leaf */
    size_t bytes[GRAPH_NODES];
    int64_t named;
    char problem[256]; /* of the text; "" if there is none */
} graph_record;

/* Records the program. Also fills in p->show and p->want. */
bool graph_record_new(graph_record *r, graph_program *p, wf_dtype real, int64_t named);
void graph_record_free(graph_record *r);

/* A plan that fetches these nodes, bound and fed but not yet run. It may have failed: see
 * wf_plan_ok. */
wf_plan *graph_plan(graph_record *r, const int *nodes, int n, wf_pool *pool);
/* The values of a node after a run, as doubles, which the caller frees; NULL if that fails. */
double *graph_values(graph_record *r, wf_plan *plan, int node, int64_t *count);

double graph_hash(uint32_t key, uint32_t element); /* in [0, 1) */

#endif
