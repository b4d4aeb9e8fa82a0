/* tools/learn/9_product/product_task.h - the function of exercise 9. README.md explains it. */
#ifndef WEFT_TOOLS_LEARN_PRODUCT_TASK_H
#define WEFT_TOOLS_LEARN_PRODUCT_TASK_H

/* a [m, k], b [k, n]: c [m, n] = a b, for any sizes. The arrays do not overlap. */
void product(const float *a, const float *b, float *c, int m, int k, int n);

#endif
