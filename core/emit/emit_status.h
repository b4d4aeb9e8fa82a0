/* core/emit/emit_status.h - wf_emit for a caller that tries again with other options. Not
 * installed. */
#ifndef WEFT_CORE_EMIT_EMIT_STATUS_H
#define WEFT_CORE_EMIT_EMIT_STATUS_H

#include "core/emit.h"

/* Like wf_emit. *lacks is true if the result is NULL because memory ran out, and not because of the
 * plans or options. */
char *wf_emit_or_lack(wf_plan *const *plans, int n, const wf_emit_options *options, char *message,
                      bool *lacks);

#endif
