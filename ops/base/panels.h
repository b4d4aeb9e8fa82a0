/* ops/base/panels.h - matrices in packed panels. Not installed. */
#ifndef WEFT_OPS_BASE_PANELS_H
#define WEFT_OPS_BASE_PANELS_H

#include "core/op.h"

/* The same where one of them lies in panels: panels.c. */
int64_t wf_repack_tasks(const wf_call *c, int phase);
bool wf_repack_eval(const wf_call *c, int phase, int64_t task, void *scratch);
void wf_panel_row(const wf_view *x, int64_t row, void *out); /* a row of a matrix in panels */

#endif
