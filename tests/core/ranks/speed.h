/* tests/core/ranks/speed.h - how fast a transport is: run by all its ranks, printed by the
 * first. */
#ifndef WEFT_TESTS_CORE_RANKS_SPEED_H
#define WEFT_TESTS_CORE_RANKS_SPEED_H

#include "core/transport.h"

int measure_speed(wf_transport *t, const char *name);

#endif
