/* core/base/clock.h - inside the library: how long something takes. Not installed. */
#ifndef WEFT_CORE_BASE_CLOCK_H
#define WEFT_CORE_BASE_CLOCK_H

#include <time.h>

/* Seconds of the monotonic clock, which changes of the system's time do not affect. */
static inline double wf_seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
