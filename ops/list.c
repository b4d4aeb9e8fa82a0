/* ops/list.c - every op of the library, for tests and pictures. The list itself is list.inc. */
#include "ops/base/op_base.h"
#include "ops/ops_internal.h"

static const wf_op *const ops[] = {
#define OP(name) &wf_op_##name,
#include "list.inc"
#undef OP
};

int wf_op_count(void) {
    return (int)(sizeof ops / sizeof *ops);
}

const wf_op *wf_op_at(int i) {
    return i >= 0 && i < wf_op_count() ? ops[i] : NULL;
}
