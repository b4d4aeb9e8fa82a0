/* tools/draw/formula.h - turns a formula from the command line into a graph: "softmax(x @ w)".
 *
 * A formula has numbers, names, + - * / @ ^ and parentheses. NAME(a, b...) is the library's op of
 * that name if it has no attributes, or one of the functions listed in formula.c, with usual
 * attributes. A name alone is a leaf. Its values are written "1 2 3; 4 5 6", with semicolons
 * between rows. A single number is a scalar; everything else is a matrix [rows, columns]. The graph
 * computes in f64. */
#ifndef WEFT_TOOLS_DRAW_FORMULA_H
#define WEFT_TOOLS_DRAW_FORMULA_H

#include "subject.h"

enum { MOST_LEAVES = 16, DEEPEST_FORMULA = 64, LONGEST_FORMULA = 4096, MOST_ELEMENTS = 10000 };

typedef struct leaf_text {
    const char *name, *values;
} leaf_text;

/* Record a formula with its leaves. False with message[256]: the mistake, and at which character or
 * in which leaf. */
bool formula_subject(subject *s, const char *formula, const leaf_text *leaves, int n, bool backward,
                     char *message);

#endif
