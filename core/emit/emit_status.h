/* core/emit/emit_status.h - wf_emit for a caller that tries again with other options. Not
 * installed. */
#ifndef WEFT_CORE_EMIT_EMIT_STATUS_H
#define WEFT_CORE_EMIT_EMIT_STATUS_H

#include "core/emit.h"

/* Like wf_emit. *lacks is true if there is no text only because memory was lacking, so that the
 * options themselves may be right. */
char *wf_emit_or_lack(wf_plan *const *plans, int n, const wf_emit_options *options, char *message,
                      bool *lacks);

#endif
