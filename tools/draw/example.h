/* tools/draw/example.h - one example for a subject: what its inputs are fed with.
 *
 * A model gets a line, given or made, and an output, given or its own greedy one; a layer gets
 * random numbers, the same in every run, and masks that leave all open; a formula its own values. */
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
    char *source, *target; /* its line and its output, as generate writes them; or NULL */
} example;

/* sentences and length are set before. source, target: lines, or NULL. f: the file of a model, or
 * NULL. False: message[256]. */
bool example_new(example *e, const subject *s, const wf_file *f, const char *source,
                 const char *target, char *message);
/* Binds the plan and feeds the inputs of the subject's graph that it reads. False: wf_plan_error. */
bool example_feed(const example *e, wf_plan *p);
void example_free(example *e);

#endif
