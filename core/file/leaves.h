/* core/file/leaves.h - inside core: which leaves of a graph are saved and loaded. */
#ifndef WEFT_CORE_FILE_LEAVES_H
#define WEFT_CORE_FILE_LEAVES_H

#include "core/save.h"

/* The selected leaves in the order of recording; the caller frees the array. NULL: out of
 * memory. */
wf_tensor **wf_leaves_of(const wf_graph *g, const wf_leaves *what, int *n);

#endif
