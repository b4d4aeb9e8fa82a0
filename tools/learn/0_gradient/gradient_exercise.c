/* Exercise 0: a gradient by hand.
 * The formulas: tools/learn/0_gradient/README.md
 *
 * Fill the gaps, then run: tools/learn.sh 0 */
#include "gradient_task.h"

void slopes(enum operation operation, double a, double b, double y, double *da, double *db) {
    switch (operation) {
    case ADD:
        /* set *da and *db for y = a + b */
        break;
    case SUB:
        break;
    case MUL:
        break;
    case DIV:
        break;
    case TANH:
        /* y is tanh(a) already, and the slope needs nothing else. Do not set *db. */
        break;
    case EXP:
        break;
    case RELU:
        break;
    case LEAF:
        break;
    }
}

void backward(struct node *tape, int n) {
    /* 1. Every grad is 0, except that of the last node, which is 1: d result / d result. */

    /* 2. From the last node to the first: each operand's grad grows by the node's grad times the
     * slope. If a node is used twice, both shares are added. */
}
