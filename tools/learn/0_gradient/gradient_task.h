/* tools/learn/0_gradient/gradient_task.h - the functions of exercise 0. README.md explains them. */
#ifndef WEFT_TOOLS_LEARN_GRADIENT_TASK_H
#define WEFT_TOOLS_LEARN_GRADIENT_TASK_H

/* LEAF is a given number; TANH, EXP and RELU have one operand, a. */
enum operation { LEAF, ADD, SUB, MUL, DIV, TANH, EXP, RELU };

/* A step of a computation. Operands are indices of earlier nodes. */
struct node {
    enum operation operation;
    int a, b;     /* 0 where there is none */
    double value; /* filled in already */
    double grad;  /* d (value of the last node) / d (value of this node) */
};

/* The slopes dy/da and dy/db of y = a (operation) b, or of y = operation(a). */
void slopes(enum operation operation, double a, double b, double y, double *da, double *db);

/* Compute the grad of all n nodes. The last node is the result. */
void backward(struct node *tape, int n);

#endif
