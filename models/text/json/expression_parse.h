/* models/text/json/expression_parse.h - inside models: the tree of a regular expression, between
 * expression_parse.c, which reads it, and expression.c, which makes a program of it. */
#ifndef WEFT_MODELS_TEXT_EXPRESSION_PARSE_H
#define WEFT_MODELS_TEXT_EXPRESSION_PARSE_H

#include "expression.h"

typedef enum {
    NODE_EMPTY,
    NODE_TEXT,   /* literals [a, a + b) */
    NODE_SET,    /* set a */
    NODE_LOOK,   /* operation a, with b; OP_BEHIND and OP_WORD_EDGE: set c */
    NODE_THEN,   /* a, then b */
    NODE_OR,     /* a or else b */
    NODE_REPEAT, /* a, `least` to `most` times; b is a wf_greed */
    NODE_AHEAD,  /* a; b: not */
    NODE_ATOMIC  /* a */
} expression_kind;

typedef struct expression_node {
    expression_kind kind;
    uint32_t a, b, c, least, most;
    bool nullable;     /* it may match nothing */
    uint32_t first[8]; /* bytes with which it may begin, unless it is nullable */
} expression_node;

enum { MOST_NODES = 4096, DEEPEST_GROUP = 32 };

typedef struct expression_tree {
    wf_expression *e; /* gets the sets and literals */
    expression_node *nodes;
    size_t n, capacity;
} expression_tree;

/* The root of the tree of a pattern. False with message. */
bool wf_expression_parse(expression_tree *t, wf_span pattern, uint32_t *root, char *message);

#endif
