/* tests/support/shortlists.c - writes lexical shortlists. See shortlists.h. */
#include "shortlists.h"

void put_u64(uint8_t *at, uint64_t value) {
    for (int i = 0; i < 8; i++) at[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get_u64(const uint8_t *at) {
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) value |= (uint64_t)at[i] << (8 * i);
    return value;
}

void seal_shortlist(uint8_t *bytes, size_t n) {
    uint64_t sum = 0;
    for (size_t at = 16; at + 8 <= n; at += 8)
        sum ^= get_u64(bytes + at) + 0x9e3779b9u + (sum << 6) + (sum >> 2);
    put_u64(bytes + 8, sum);
}

int32_t shortlist_id(int w, int k, int vocab) {
    return (int32_t)((w * 7 + k * 3) % vocab);
}

size_t write_shortlist(uint8_t *to, uint64_t first, int words, int per, int vocab) {
    const uint64_t head[] = { 0xF11A48D5013417F5,
                              0,
                              first,
                              (uint64_t)per,
                              (uint64_t)words + 1,
                              (uint64_t)words * (uint64_t)per };
    uint8_t *at = to;
    for (int i = 0; i < 6; i++, at += 8) put_u64(at, head[i]);
    for (int w = 0; w <= words; w++, at += 8) put_u64(at, (uint64_t)w * (uint64_t)per);
    for (int w = 0; w < words; w++)
        for (int k = 0; k < per; k++)
            for (int i = 0; i < 4; i++)
                *at++ = (uint8_t)((uint32_t)shortlist_id(w, k, vocab) >> (8 * i));
    seal_shortlist(to, (size_t)(at - to));
    return (size_t)(at - to);
}
