/* core/plan/plan_error.c - how a plan fails, for all files of core/plan. */
#include "plan.h"

#include <stdio.h>
#include <string.h>

bool wf_plan_fail(wf_plan *p, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(p->error, sizeof p->error, format, args);
    va_end(args);
    if (p->graph) wf_name_tags(p->graph, p->error, sizeof p->error);
    return false;
}

bool wf_plan_lacks(wf_plan *p) {
    p->lacks = true;
    return wf_plan_fail(p, "out of memory");
}

bool wf_plan_fail_at(wf_plan *p, const wf_tensor *node, const wf_op *op) {
    const char *path = node && node->name ? node->name : "";
    const char *function = node && node->function ? node->function : op->name;
    bool same = strcmp(function, op->name) == 0;
    return wf_plan_fail(p, "%s%s%s%s%s: %s", path, path[0] ? ": " : "", same ? "" : function,
                        same ? "" : ": ", op->name,
                        p->report.message[0] ? p->report.message : "failed");
}

bool wf_plan_ok(const wf_plan *p) {
    return p && p->ok;
}
