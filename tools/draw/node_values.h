/* tools/draw/node_values.h - the value of every node of a graph, for debuggers and pages.
 *
 * One plan fetches all nodes that the wanted tensors depend on. It runs them as recorded, without
 * fusion, so every number comes from the library's own ops. */
#ifndef WEFT_TOOLS_DRAW_NODE_VALUES_H
#define WEFT_TOOLS_DRAW_NODE_VALUES_H

#include "example.h"

typedef struct node_list {
    wf_plan *plan;          /* has run */
    const wf_tensor **node; /* [n], in the plan's order; a leaf comes before its first reader */
    int n;
    int *place;  /* by node id: its index in node, or -1 */
    bool failed; /* a function below had no memory: what was printed is not complete */
} node_list;

/* By node id: true if one of the n wanted tensors depends on the node. The caller frees the array.
 * NULL: out of memory. */
bool *nodes_behind(const wf_graph *g, wf_tensor *const *wanted, int n);

/* Compute all nodes that the n wanted tensors depend on, for the example. False: message[256]. */
bool node_list_new(node_list *l, wf_tensor *const *wanted, int n, const example *e, char *message);
/* Compute all nodes that the results of a subject (subject.h) depend on. For a model these are its
 * loss, its probabilities and its attention weights. */
bool node_list_of(node_list *l, const subject *s, const example *e, char *message);
void node_list_free(node_list *l);

/* A summary of the numbers of a node. */
typedef struct numbers {
    double *x; /* [n], freed by the caller; ids are stored as doubles, which hold them exactly */
    int64_t n, nan, infinite, zeros;
    double low, high, mean;  /* of the finite numbers; 0 if there are none */
    int64_t rows, zero_rows; /* rows along the last axis; rows whose numbers are all 0 */
} numbers;
/* Summarise the numbers of a node. False: out of memory. This and the next two functions then set
 * l->failed, and nothing resets it. */
bool node_numbers(node_list *l, const wf_tensor *t, numbers *out);

/* True if this node has a NaN or an infinity that none of its operands has. Infinities of a mask's
 * constant are intended, and do not count. */
bool node_breaks(node_list *l, const wf_tensor *t);

/* The text of wf_print, freed by the caller; a constant need not be in the list. NULL: out of
 * memory. */
char *node_text(node_list *l, const wf_tensor *t);

/* The right-hand side of an op's formula, or ""; and the name of operand i in it. */
const char *formula_value(const wf_op *op);
const char *operand_name(const wf_op *op, int i, char buffer[32]);
/* The attributes of a node, "scale = 0.5, shift = 1"; "" if none are shown. */
enum { ATTRIBUTES_TEXT = 256 };
const char *attributes_text(const wf_tensor *t, char buffer[ATTRIBUTES_TEXT]);
/* Read the next attribute from the declaration at *at, which moves past it. a->from becomes its
 * byte offset in the struct of attributes, after the attribute that `a` had before, and aligned.
 * False: there is none, or its type is unknown. */
typedef struct attribute {
    char type[16], name[32];
    size_t from, size;
} attribute;
bool next_attribute(const char **at, attribute *a);

#endif
