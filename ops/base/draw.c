/* ops/base/draw.c - uniform and normal numbers from Philox (core/base/random.h): each is a pure
 * function of key, stream and its number. */
#include "draw.h"

#include <math.h>

#include "core/base/random.h"
#include "op_base.h"

/* wf_unit_double of the two halves of a word: uniform in [0, 1). */
static double unit(uint64_t words) {
    return (double)(int64_t)(words >> 11) * 0x1.0p-53;
}

void wf_draw_uniform(uint64_t key, uint64_t stream, uint64_t first, double value[WF_DRAWN]) {
    uint64_t u[WF_DRAWN], unused[WF_DRAWN];
    wf_f64()->draw(key, stream, first, u, unused);
    for (int i = 0; i < WF_DRAWN; i++) value[i] = unit(u[i]);
}

void wf_draw_single(uint64_t key, uint64_t stream, uint64_t first, float value[WF_DRAWN]) {
    uint64_t u[WF_DRAWN], unused[WF_DRAWN];
    wf_f64()->draw(key, stream, first, u, unused);
    for (int i = 0; i < WF_DRAWN; i++) value[i] = (float)(int32_t)(u[i] >> 40) * 0x1p-24f;
}

/* Box and Muller (1958): sqrt(-2 ln u) cos(2 pi v) is normal for independent u and v; u > 0. */
static const double two_pi = 6.283185307179586;

static double normal(double std, uint64_t u, uint64_t v) {
    return std * sqrt(-2 * log(1 - unit(u))) * cos(two_pi * unit(v));
}

/* For f32 the kernels' log and cos are used. They differ from libm's, and between instruction sets,
 * by a relative error below UNSURE. Where that could change the rounded value, libm is used
 * instead. */
#define UNSURE 1e-13

static void normal_block(double std, const uint64_t *u, const uint64_t *v, double *value) {
    wf_f64()->draw_normal(u, v, std, UNSURE, value);
    for (int i = 0; i < WF_DRAWN; i++)
        if (isnan(value[i])) value[i] = normal(std, u[i], v[i]);
}

/* All elements are computed, though a tail may need few. */
void wf_draw_normal(wf_dtype dtype, double std, uint64_t key, uint64_t stream, uint64_t first,
                    double value[WF_DRAWN]) {
    uint64_t u[WF_DRAWN], v[WF_DRAWN];
    wf_f64()->draw(key, stream, first, u, v);
    if (dtype == WF_F32)
        normal_block(std, u, v, value);
    else
        for (int i = 0; i < WF_DRAWN; i++) value[i] = normal(std, u[i], v[i]);
}

double wf_random_uniform(uint64_t key, uint64_t index) {
    wf_philox r = wf_philox4x32(key, index, 0);
    return wf_unit_double(r.v[0], r.v[1]);
}

double wf_random_normal(uint64_t key, uint64_t index) {
    wf_philox r = wf_philox4x32(key, index, 0);
    return normal(1, (uint64_t)r.v[0] << 32 | r.v[1], (uint64_t)r.v[2] << 32 | r.v[3]);
}
