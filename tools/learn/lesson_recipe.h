/* tools/learn/lesson_recipe.h - a layer as steps, each of which names its operands by index.
 *
 * Students connect the steps of a layer wrongly in more ways than anybody lists: a step reads
 * another value, is left out, or adds twice. To name a student's mistake, find_step tries each
 * such change of one step, and compares the results with those of the student's layer. */
#ifndef WEFT_TOOLS_LEARN_LESSON_RECIPE_H
#define WEFT_TOOLS_LEARN_LESSON_RECIPE_H

#include "lesson.h"

typedef enum { STEP_ATTEND, STEP_ADD, STEP_NORM, STEP_FF } step_kind;
typedef enum { LOOKS_EVERYWHERE, LOOKS_BACK, LOOKS_AT_TOKENS } step_mask;
enum { RECIPE_STEPS = 12, RECIPE_INPUTS = 2 };

/* A step reads values by number: value v is input v, or, from `inputs` on, the result of step v -
 * inputs. */
typedef struct recipe_step {
    const char *name; /* of its result: "the self-attention", "a" */
    step_kind kind;
    int a, b;    /* numbers of the values that it reads; an attention: a for queries, b for keys */
    int weights; /* the first of its arrays */
    step_mask mask; /* of an attention */
    bool shown;     /* its weights are the task's first result */
} recipe_step;

typedef struct recipe {
    struct {
        const char *name;
        int array;
        char rows; /* the letter of its size */
    } in[RECIPE_INPUTS];
    int inputs, steps;
    int keep; /* the array that says which rows of the last input are tokens */
    recipe_step step[RECIPE_STEPS];
} recipe;

/* Finds the change of one step that gives the learner's numbers. False: there is none. */
bool find_step(const results *r, finding *f);
/* Computes the results of a recipe, like the model of a task. False: its sizes do not fit. */
bool recipe_compute(const sample *s, const recipe *c, double *const *out, int n_out);

#endif
