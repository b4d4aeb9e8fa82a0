/* tests/support/collectives.h - a test of any transport, over shared memory, MPI or another one:
 * all its ranks run the collectives, and compare the results with data that they compute
 * themselves. */
#ifndef WEFT_TESTS_SUPPORT_COLLECTIVES_H
#define WEFT_TESTS_SUPPORT_COLLECTIVES_H

#include "core/transport.h"

/* Sends ragged, empty and large pieces, in place and not, and many small ones in a row, and checks
 * the counted bytes. `user` points to the largest size of a piece, an int64_t. Returns 0, or 9
 * after wf_transport_fail. */
int check_collectives(wf_transport *t, void *user);

#endif
