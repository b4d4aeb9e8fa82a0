/* tools/draw/node_values.h - the value of every node of a graph, for debuggers and pages.
 *
 * One plan fetches all nodes that the wanted tensors depend on, as recorded: nothing is fused, and
 * every number is the one that the library's own ops computed. Nothing is computed here. */
#ifndef WEFT_TOOLS_DRAW_NODE_VALUES_H
#define WEFT_TOOLS_DRAW_NODE_VALUES_H

#include "example.h"

typedef struct node_list {
    wf_plan *plan;          /* has run */
    const wf_tensor **node; /* [n], in the plan's order; a leaf before its first reader */
    int n;
    int *place; /* by id: its place in node, or -1 */
} node_list;

/* By id: is it among what the n wanted tensors depend on? To be freed; NULL: out of memory. */
bool *nodes_behind(const wf_graph *g, wf_tensor *const *wanted, int n);

/* The nodes behind the n wanted tensors, for the example. False: message[256]. */
bool node_list_new(node_list *l, wf_tensor *const *wanted, int n, const example *e, char *message);
void node_list_free(node_list *l);

/* A summary of the numbers of a node. */
typedef struct numbers {
    double *x; /* [n], to be freed; ids as doubles, which hold them exactly */
    int64_t n, nan, infinite, zeros;
    double low, high, mean;  /* of the finite ones; 0 if there are none */
    int64_t rows, zero_rows; /* along the last axis; those that are all 0 */
} numbers;
/* False: out of memory. */
bool node_numbers(const node_list *l, const wf_tensor *t, numbers *out);

/* Did this node make a NaN, or an infinity, that none of its operands has? The infinities of a mask's
 * constant are meant, and so not found. */
bool node_breaks(const node_list *l, const wf_tensor *t);

/* wf_print into memory, to be freed. NULL: out of memory. */
char *node_text(const node_list *l, const wf_tensor *t);

/* The value of an op in its formula, "" if it has none; and the name of operand i there. */
const char *formula_value(const wf_op *op);
const char *operand_name(const wf_op *op, int i, char buffer[32]);
/* "scale = 0.5, shift = 1": the attributes of a node; "" if there are none that are told. */
enum { ATTRIBUTES_TEXT = 256 };
const char *attributes_text(const wf_tensor *t, char buffer[ATTRIBUTES_TEXT]);
/* Where the attribute ends that is declared at *at, and begins at or after `from`: the members of a
 * struct are aligned. *at goes to the next one. 0: its type is none of those of wf_op.attributes. */
typedef struct attribute {
    char type[16], name[32];
    size_t from, size;
} attribute;
bool next_attribute(const char **at, attribute *a);

#endif
