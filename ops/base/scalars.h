/* ops/base/scalars.h - exp, log, log10, sin, cos and pow of single numbers, computed by the kernels
 * for double. Unlike libm's, they have the same bits on every processor and with every C library,
 * so all code that affects a result must use them. sqrt, fma, fmod, floor and the like are exact in
 * IEEE 754, so those of libm can be used. Not installed. */
#ifndef WEFT_OPS_BASE_SCALARS_H
#define WEFT_OPS_BASE_SCALARS_H

#include "ops/kernels/kernels.h"

#define WF_NUMBER_OF(name)                                                                         \
    static inline double wf_##name##_of(double x) {                                                \
        wf_f64()->unary[WF_UNARY_##name](1, &x, &x);                                               \
        return x;                                                                                  \
    }
WF_NUMBER_OF(exp)
WF_NUMBER_OF(log)
WF_NUMBER_OF(log10)
WF_NUMBER_OF(sin)
WF_NUMBER_OF(cos)
#undef WF_NUMBER_OF

static inline double wf_pow_of(double a, double b) {
    wf_f64()->binary[WF_BINARY_pow](1, &a, 1, &b, 1, &a);
    return a;
}

#endif
