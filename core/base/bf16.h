/* core/base/bf16.h - inside the library: bf16, the upper half of an f32. Not installed. */
#ifndef WEFT_CORE_BASE_BF16_H
#define WEFT_CORE_BASE_BF16_H

#include <stdint.h>
#include <string.h>

/* Rounds an f32 to bf16: to nearest, ties to even. A NaN stays a NaN. */
static inline uint16_t wf_to_bf16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7FFFFFFF) > 0x7F800000) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

static inline float wf_from_bf16(uint16_t half) {
    uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#endif
