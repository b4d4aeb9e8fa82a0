/* core/base/int8_row.c - a row of weights as int8 with one scale. */
#include "int8_row.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#define LEAST 0x1p-118f

/* The scale of a row: its largest |x| divided by 127, rounded up to a significand of 17 bits, or
 * down if 127 times the result would be infinite. */
static float scale_for(float largest) {
    enum { DROPPED = 127 };
    float scale = largest / WF_INT8_MOST, up;
    uint32_t bits, above;
    memcpy(&bits, &scale, sizeof bits);
    above = (bits + DROPPED) & ~(uint32_t)DROPPED;
    bits &= ~(uint32_t)DROPPED;
    memcpy(&up, &above, sizeof up);
    memcpy(&scale, &bits, sizeof scale);
    return up <= FLT_MAX / WF_INT8_MOST ? up : scale;
}

float wf_int8_scale_of(float largest) {
    assert(largest <= FLT_MAX);
    return largest < LEAST ? 0 : scale_for(largest);
}

float wf_int8_scale(int64_t n, const float *x) {
    float largest = 0;
    for (int64_t i = 0; i < n; i++) largest = fabsf(x[i]) > largest ? fabsf(x[i]) : largest;
    return wf_int8_scale_of(largest);
}

void wf_int8_round(int64_t n, const float *x, float scale, int8_t *q) {
    if (scale == 0) memset(q, 0, (size_t)n);
    for (int64_t i = 0; scale > 0 && i < n; i++)
        q[i] = (int8_t)(int32_t)wf_int8_nearest(x[i] / scale);
}

bool wf_int8_holds(int64_t n, const float *x, int64_t *where) {
    for (*where = 0; *where < n; ++*where)
        if (!isfinite(x[*where])) return false;
    return true;
}
