/* tools/draw/example.h - one example for a subject, which is a graph to draw: values of its inputs.
 *
 * A model gets a line and an output. The line is given or made up; the output is given or the
 * model's own greedy one. A layer gets random numbers, the same in every run, and masks that leave
 * everything open. A formula gets its own values. */
#ifndef WEFT_TOOLS_DRAW_EXAMPLE_H
#define WEFT_TOOLS_DRAW_EXAMPLE_H

#include "subject.h"
#include "tools/data/batch.h"
#include "tools/data/language.h"

typedef struct example {
    const subject *subject;
    int64_t sentences, length; /* of a layer */
    language language;         /* of a model */
    batch batch;
    char *source, *target; /* its line and its output, as generate writes them, or NULL */
} example;

/* Make an example. e->sentences and e->length must be set before. source and target are lines, or
 * NULL. f is the model's file, or NULL. False: message[256]. */
bool example_new(example *e, const subject *s, const wf_file *f, const char *source,
                 const char *target, char *message);
/* Bind the plan, and feed those inputs of the subject's graph that it reads. False: see
 * wf_plan_error. */
bool example_feed(const example *e, wf_plan *p);
void example_free(example *e);

#endif
