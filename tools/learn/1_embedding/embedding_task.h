/* tools/learn/1_embedding/embedding_task.h - the functions of exercise 1. README.md explains
 * them. */
#ifndef WEFT_TOOLS_LEARN_EMBEDDING_TASK_H
#define WEFT_TOOLS_LEARN_EMBEDDING_TASK_H

/* table [V, D], ids [T] below V: out [T, D], the rows of the ids, each times sqrt(D). */
void embed(const float *table, const int *ids, int T, int D, float *out);

/* out [T, D]: the waves of positions 0 to T - 1. D is even. */
void positions(int T, int D, float *out);

/* out [T, D]: the input of a Transformer, embedded ids with their positions. */
void input(const float *table, const int *ids, int T, int D, float *out);

#endif
