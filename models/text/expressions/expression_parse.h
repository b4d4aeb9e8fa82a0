/* models/text/expressions/expression_parse.h - inside models: the tree of a regular expression,
 * between expression_parse.c, which reads it, and expression.c, which makes a program of it. */
#ifndef WEFT_MODELS_TEXT_EXPRESSION_PARSE_H
#define WEFT_MODELS_TEXT_EXPRESSION_PARSE_H

#include "core/base/utf8.h"
#include "expression.h"

typedef enum {
    NODE_EMPTY,
    NODE_TEXT,   /* literals [a, a + b) */
    NODE_SET,    /* set a */
    NODE_LOOK,   /* operation a, with b; c: the set, for OP_BEHIND and OP_WORD_EDGE */
    NODE_THEN,   /* a, then b */
    NODE_OR,     /* a or else b */
    NODE_REPEAT, /* a, `least` to `most` times; b is a wf_greed */
    NODE_AHEAD,  /* look-ahead: a must match here, or must not if b */
    NODE_ATOMIC  /* a as an atomic group */
} expression_kind;

typedef struct expression_node {
    expression_kind kind;
    uint32_t a, b, c, least, most;
    bool nullable;     /* it may match nothing */
    uint32_t first[8]; /* bytes with which a match may begin, unless the node is nullable */
} expression_node;

enum { MOST_NODES = 4096, DEEPEST_GROUP = 32 };

typedef struct expression_tree {
    wf_expression *e; /* gets the sets and literals */
    expression_node *nodes;
    size_t n, capacity;
} expression_tree;

/* The root of the tree of a pattern. False with message. */
bool wf_expression_parse(expression_tree *t, wf_span pattern, uint32_t *root, char *message);

/* The state of the parser: the whole pattern, the rest of it that is not yet read, the tree built
 * so far, and the options in force at this place. */
typedef struct wf_expression_parser {
    expression_tree *tree;
    wf_span all, rest;
    char *message;
    bool any_case, dot_all;
    int depth;
    int32_t last_folded; /* the previous letter, where case is ignored; 0: none */
} wf_expression_parser;

/* False with message. */
static inline bool refuse(wf_expression_parser *p, const char *what) {
    return fail(p->message, "the expression '%.*s' has %s",
                (int)(p->all.bytes < 80 ? p->all.bytes : 80), p->all.text, what);
}

static inline bool memory(wf_expression_parser *p) {
    return fail(p->message, "out of memory");
}

static inline bool starts(const wf_expression_parser *p, const char *with) {
    size_t n = strlen(with);
    return p->rest.bytes >= n && memcmp(p->rest.text, with, n) == 0;
}

static inline void skip(wf_expression_parser *p, size_t n) {
    p->rest.text += n;
    p->rest.bytes -= n;
}

static inline bool accept(wf_expression_parser *p, const char *with) {
    if (!starts(p, with)) return false;
    skip(p, strlen(with));
    return true;
}

static inline int32_t next_code(wf_expression_parser *p) {
    size_t at = 0;
    int32_t code = wf_utf8_next(p->rest.text, p->rest.bytes, &at);
    skip(p, at);
    return code;
}

static inline bool is_letter(int32_t c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* ---- expression_class.c ---------------------------------------------------------------------- */

/* Reads a class, whose "[" has been read, into an empty set. */
bool wf_expression_class(wf_expression_parser *p, wf_code_set *set);
/* Reads an escape, after its backslash, that stands for a character. *known: false if it does
 * not. */
bool wf_escaped_code(wf_expression_parser *p, int32_t *code, bool *known);
/* Reads an escape that stands for a set into an empty set. *known: false if it does not. */
bool wf_escaped_set(wf_expression_parser *p, wf_code_set *set, bool in_class, bool *known);

#endif
