/* core/base/random.h - counter-based random numbers: Philox4x32-10 (Salmon et al., SC'11).
 *
 * A number is a pure function of (key, counter): no state, any order, any thread. */
#ifndef WEFT_CORE_BASE_RANDOM_H
#define WEFT_CORE_BASE_RANDOM_H

#include <stdint.h>

typedef struct wf_philox {
    uint32_t v[4];
} wf_philox;

static inline wf_philox wf_philox4x32(uint64_t key, uint64_t counter_lo, uint64_t counter_hi) {
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t x0 = (uint32_t)counter_lo, x1 = (uint32_t)(counter_lo >> 32);
    uint32_t x2 = (uint32_t)counter_hi, x3 = (uint32_t)(counter_hi >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * x0, p1 = (uint64_t)0xCD9E8D57u * x2;
        uint32_t y0 = (uint32_t)(p1 >> 32) ^ x1 ^ k0, y2 = (uint32_t)(p0 >> 32) ^ x3 ^ k1;
        x1 = (uint32_t)p1;
        x3 = (uint32_t)p0;
        x0 = y0;
        x2 = y2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return (wf_philox){ { x0, x1, x2, x3 } };
}

/* 53 bits in [0, 1). */
static inline double wf_unit_double(uint32_t hi, uint32_t lo) {
    return (double)(((uint64_t)hi << 32 | lo) >> 11) * 0x1.0p-53;
}

/* 64-bit FNV-1a of n bytes, for fingerprints and not for security. h is the hash of the bytes
 * before them. */
static inline uint64_t wf_fnv1a(uint64_t h, const void *data, uint64_t n) {
    const unsigned char *p = (const unsigned char *)data;
    for (uint64_t i = 0; i < n; i++) h = (h ^ p[i]) * 0x100000001B3u;
    return h;
}

/* One step of a fast hash over 8-byte words. For a given word the result is a bijection of h, and
 * for a given h a bijection of the word. */
static inline uint64_t wf_mix_word(uint64_t h, uint64_t word) {
    h = (h ^ word) * 0x9E3779B97F4A7C15u;
    return h ^ (h >> 32);
}

/* The final mix of splitmix64. */
static inline uint64_t wf_mix64(uint64_t h) {
    h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9u;
    h = (h ^ (h >> 27)) * 0x94D049BB133111EBu;
    return h ^ (h >> 31);
}
/* The hash of names: wf_fnv1a, mixed by wf_mix64. */
static inline uint64_t wf_hash_bytes(uint64_t h, const void *data, uint64_t n) {
    return wf_mix64(wf_fnv1a(h ^ 0xCBF29CE484222325u, data, n));
}

#endif
