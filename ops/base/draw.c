/* ops/base/draw.c - uniform and normal numbers from Philox (core/base/random.h): each is a pure
 * function of key, stream and index. */
#include "draw.h"

#include "core/base/random.h"
#include "op_base.h"

/* The number in [0, 1) that wf_unit_double makes of the upper and the lower half of this word. */
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

/* Always computes WF_DRAWN numbers, even if the caller needs fewer. */
void wf_draw_normal(double std, uint64_t key, uint64_t stream, uint64_t first,
                    double value[WF_DRAWN]) {
    uint64_t u[WF_DRAWN], v[WF_DRAWN];
    wf_f64()->draw(key, stream, first, u, v);
    wf_f64()->draw_normal(WF_DRAWN, u, v, std, value);
}

double wf_random_uniform(uint64_t key, uint64_t index) {
    wf_philox r = wf_philox4x32(key, index, 0);
    return wf_unit_double(r.v[0], r.v[1]);
}

double wf_random_normal(uint64_t key, uint64_t index) {
    uint64_t u[WF_DRAWN_UNIT] = { 0 }, v[WF_DRAWN_UNIT] = { 0 };
    double value[WF_DRAWN_UNIT];
    wf_philox r = wf_philox4x32(key, index, 0);
    u[0] = (uint64_t)r.v[0] << 32 | r.v[1];
    v[0] = (uint64_t)r.v[2] << 32 | r.v[3];
    wf_f64()->draw_normal(WF_DRAWN_UNIT, u, v, 1, value);
    return value[0];
}
