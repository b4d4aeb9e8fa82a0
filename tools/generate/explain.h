/* tools/generate/explain.h - writes one stand-alone page about one line: its pieces, the search as
 * a tree, the likeliest tokens of every step, all attention, and the numbers of every node of the
 * model.
 *
 * explain.c         the page: opening, the texts, the attention
 * explain_tree.c    the search: recorded while it runs
 * explain_stack.c   the nodes of the graph, and a sample of their values
 *
 * The numbers are logits and log-probabilities of the search, and values of the model's one graph,
 * to which no node is added. Only log(sum exp(logits / temperature)) is computed here. */
#ifndef WEFT_TOOLS_GENERATE_EXPLAIN_H
#define WEFT_TOOLS_GENERATE_EXPLAIN_H

#include "attention_maps.h"
#include "models/decode.h"
#include "tools/page/page.h"

/* ---- explain_tree.c -------------------------------------------------------------------------- */

enum { TREE_TOP = 10, TREE_BANNED = WF_FATE_STOPPED + 1 };

/* A hypothesis: the tokens of its parent and one more. Node 0 is the root, without a token. */
typedef struct tree_node {
    int32_t parent, token; /* -1: none */
    double log_prob, total, score;
    /* a wf_fate, or TREE_BANNED: the token was likely enough to go on, but a rule bans it */
    int fate;
    bool cut, on_path; /* cut: as wf_continuation.cut; on_path: an output contains the node */
    /* index of the row with the tokens that may follow; -1: the node was not live */
    int32_t row;
    int32_t output; /* rank among the outputs, from 1; 0: it is not an output */
    int32_t shown;  /* number in the page; -1: it is left out */
} tree_node;

/* The likeliest tokens after a live hypothesis, by the model's unchanged logits. */
typedef struct tree_row {
    int32_t node, n; /* n: TREE_TOP, or the vocabulary's size if that is smaller */
    int32_t tokens[TREE_TOP];
    double logits[TREE_TOP];
    bool banned[TREE_TOP];
    double normaliser;   /* log(sum exp(logit)) */
    double *normalisers; /* log-sum-exp of the logits for each of the temperatures */
} tree_row;

typedef struct tree {
    tree_node *nodes;
    tree_row *rows;
    size_t n_nodes, n_rows, room_nodes, room_rows;
    int32_t *live, *next; /* [width] nodes of the live hypotheses, now and in the next step */
    int width;
    int64_t vocab;
} tree;

/* False: out of memory. */
bool tree_open(tree *t, const wf_decode_options *o, int64_t vocab);
void tree_close(tree *t);
/* Adds a step of the search, which has one sentence. False: out of memory. */
bool tree_add(tree *t, const wf_search_step *step);
/* Finds the nodes that are outputs. */
void tree_mark(tree *t, const wf_decoded *outputs);
/* Writes the fields "search", the tree, and "labels", its tokens. False: out of memory. */
bool tree_json(tree *t, const wf_decode_options *o, const language *l, jsonl *out);

/* ---- explain_stack.c ------------------------------------------------------------------------- */

/* The computed nodes on which logits and attention weights depend, in the order of the graph. */
typedef struct stack {
    wf_tensor **nodes; /* [n] */
    int n;
} stack;

/* False: out of memory. */
bool stack_open(stack *s, const wf_model *m);
void stack_close(stack *s);
/* Writes the field "stack" after a run of the plan that fetches the nodes. False: out of memory, or
 * the plan failed. */
bool stack_json(const stack *s, wf_plan *p, jsonl *out);

#endif
