/* tests/ops/graph_text.h - graphs as text, so that PyTorch and weft can compute the same one.
 *
 * A program is lines; each makes one node or more, numbered from 0:
 *
 *     leaf KIND LOW HIGH KEY d0 d1 ...     KIND p: parameter, i: input, b: buffer, n: i32
 *     NAME x0 x1 ... | i0 i1 ... | r0 ...  a row of graph_ops.inc: operands, integers, reals
 *     grad y x0 x1 ...                     gradients of the scalar y: a node for each x
 *     show y0 y1 ...                       what a fused plan fetches
 *     want y COUNT DOT SIZE ERROR          recorded of y: see graph_want
 *     exact32 y RELATIVE ABSOLUTE v0 v1 ...    recorded elements of y in f32, `any` for any; exact64
 *     end
 *
 * Elements of a leaf are the same in every language: hash(KEY, element) of 2^12 steps from LOW to
 * HIGH, of an i32 the integer below. Those of kind e are a list of numbers at the ends of the
 * types: every KEY-th, each LOW times in a row. */
#ifndef WEFT_TESTS_OPS_GRAPH_TEXT_H
#define WEFT_TESTS_OPS_GRAPH_TEXT_H

#include <stdbool.h>
#include <stdio.h>

#include "nn/loss.h"
#include "ops/ops.h"

enum { GRAPH_NODES = 512, GRAPH_LINE = 8192 };

/* Three numbers for the elements of a tensor: their sum with weights hash(1, element) from -1 to
 * 1, that of their sizes with sizes of weights, and the largest error of PyTorch's f32 beside its
 * f64. */
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

/* A program as a graph. Axes of `named` steps have a name where named is not 0, and inputs for
 * leaves. */
typedef struct graph_record {
    wf_graph *g;
    int count, leaves, extents; /* extents: axes with a name */
    wf_tensor *node[GRAPH_NODES], *leaf[GRAPH_NODES];
    void *data[GRAPH_NODES]; /* of each leaf */
    size_t bytes[GRAPH_NODES];
    int64_t named;
    char problem[256]; /* of the text; "" if there is none */
} graph_record;

/* Fills in what the program shows and wants, too. */
bool graph_record_new(graph_record *r, graph_program *p, wf_dtype real, int64_t named);
void graph_record_free(graph_record *r);

/* A plan that fetches these nodes, bound and fed; to be run. NULL: see wf_error or `problem`. */
wf_plan *graph_plan(graph_record *r, const int *nodes, int n, wf_pool *pool);
/* The values of a node after a run, as doubles, to be freed. */
double *graph_values(graph_record *r, wf_plan *plan, int node, int64_t *count);

double graph_hash(uint32_t key, uint32_t element); /* in [0, 1) */

#endif
