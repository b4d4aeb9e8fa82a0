/* core/base/int8_row.h - inside the library: a row of weights as int8 with one scale. Not
 * installed. */
#ifndef WEFT_CORE_BASE_INT8_ROW_H
#define WEFT_CORE_BASE_INT8_ROW_H

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* WF_INT8_LONGEST is a length of rows up to which the dot product of two int8 rows fits in 32 bits:
 * each of its products is at most 127 * 127. */
enum { WF_INT8_MOST = 127, WF_INT8_LONGEST = 1 << 17 };

/* The scale of a row: its largest |x|, divided by 127 and rounded to a float with a significand of
 * 17 bits. It is 0 if the largest |x| is below 2^-118. wf_int8_round computes q = x / scale,
 * rounded to nearest, ties to even, in [-127, 127]. Each product q * scale is exact in f32,
 * so quantising these products again gives the same scale and q. x must be finite. */
float wf_int8_scale(int64_t n, const float *x);
float wf_int8_scale_of(float largest); /* of a row with this largest |x| */
void wf_int8_round(int64_t n, const float *x, float scale, int8_t *q);
/* True if all values are finite; else *where is the index of the first that is not. */
bool wf_int8_holds(int64_t n, const float *x, int64_t *where);

/* Rounds a float of magnitude below 2^22 to the nearest integer, ties to even. Adding and then
 * subtracting 1.5 * 2^23 rounds without a function call. */
static inline float wf_int8_nearest(float x) {
#if FLT_EVAL_METHOD == 0
    const float to_integer = 0x1.8p23f;
    return x + to_integer - to_integer;
#else
    return nearbyintf(x);
#endif
}

#endif
