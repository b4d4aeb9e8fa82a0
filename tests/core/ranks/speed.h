/* tests/core/ranks/speed.h - measures the speed of a transport: all its ranks call it, and rank 0
 * prints the results. */
#ifndef WEFT_TESTS_CORE_RANKS_SPEED_H
#define WEFT_TESTS_CORE_RANKS_SPEED_H

#include "core/transport.h"

int measure_speed(wf_transport *t, const char *name);

#endif
