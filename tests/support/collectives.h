/* tests/support/collectives.h - what any transport must do, whatever moves the bytes: run by all
 * its ranks, compared with what each can compute by itself. */
#ifndef WEFT_TESTS_SUPPORT_COLLECTIVES_H
#define WEFT_TESTS_SUPPORT_COLLECTIVES_H

#include "core/transport.h"

/* 0, or a code after wf_transport_fail: ragged, empty and large pieces; in place; many small ones
 * in a row; what is counted. user: the most bytes of a piece (an int64_t). */
int check_collectives(wf_transport *t, void *user);

#endif
