/* ops/elementwise/two.h - a macro that defines an elementwise op of two operands and its
 * constructor, for the rows of binary.inc and bits.inc.
 *
 * Not for other folders. */
#ifndef WEFT_OPS_ELEMENTWISE_TWO_H
#define WEFT_OPS_ELEMENTWISE_TWO_H

#include "ops/base/op_base.h"
#include "ops/base/walk.h"
#include "ops/emit/loops.h"

/* Needs eval_NAME and emit_NAME. shape_rule: the function of the shape rule; ...: the members of
 * wf_op that hold the formula and the gradient. */
#define ELEMENTWISE_OF_TWO(NAME, shape_rule, ...)                                                  \
    const wf_op wf_op_##NAME = {                                                                   \
        .name = #NAME,                                                                             \
        .family = "elementwise",                                                                   \
        .arity = 2,                                                                                \
        .shape = shape_rule,                                                                       \
        __VA_ARGS__,                                                                               \
        .run = &(const wf_kernel){ .tasks = wf_elementwise_tasks,                                  \
                                   .eval = eval_##NAME,                                            \
                                   .strided = 3,                                                   \
                                   .in_place = 3,                                                  \
                                   .emit = emit_##NAME },                                          \
    };                                                                                             \
    wf_tensor *wf_##NAME(wf_tensor *a, wf_tensor *b) {                                             \
        return wf_record(&wf_op_##NAME, 2, (wf_tensor *[]){ a, b }, NULL);                         \
    }

#endif
