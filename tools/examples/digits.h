/* digits.h - images for the examples: digits as if by hand, drawn by this file.
 *
 * A digit is some of the seven strokes of a pocket calculator between six corners. Every drawing
 * moves the corners, each by itself, so that no two are alike. */
#ifndef DIGITS_H
#define DIGITS_H

#include <math.h>
#include <stdint.h>

enum { SIDE = 16, PIXELS = SIDE * SIDE };

/* Evenly in [0, 1): splitmix64 (Steele et al. 2014). */
static inline double uniform(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) / 9007199254740992.0;
}

/* How far (x, y) is from the line between a and b. */
static inline double distance(double x, double y, const double a[2], const double b[2]) {
    double dx = b[0] - a[0], dy = b[1] - a[1];
    double at = ((x - a[0]) * dx + (y - a[1]) * dy) / (dx * dx + dy * dy + 1e-9);
    at = at < 0 ? 0 : at > 1 ? 1 : at;
    return hypot(x - a[0] - at * dx, y - a[1] - at * dy);
}

/* One digit, 0 to 9, into pixels [SIDE, SIDE]: 0 is paper, 1 is ink. */
static inline void draw_digit(int digit, uint64_t *random, float *pixels) {
    /* corners: 0 1 above, 2 3 in the middle, 4 5 below; a stroke joins two of them */
    static const int from[7] = { 0, 0, 1, 2, 2, 3, 4 }, to[7] = { 1, 2, 3, 3, 4, 5, 5 };
    /* bit s: the digit has stroke s */
    static const int strokes[10] = { 0x77, 0x24, 0x5d, 0x6d, 0x2e, 0x6b, 0x7b, 0x25, 0x7f, 0x6f };
    double corner[6][2], shift[2] = { 3 * uniform(random) - 1.5, 3 * uniform(random) - 1.5 };
    for (int i = 0; i < 6; i++) {
        corner[i][0] = 4.5 + 6 * (i % 2) + shift[0] + 2.4 * (uniform(random) - 0.5);
        corner[i][1] = 3 + 4.5 * (i / 2) + shift[1] + 2.4 * (uniform(random) - 0.5);
    }
    for (int i = 0; i < PIXELS; i++) {
        double near = 9;
        for (int s = 0; s < 7; s++)
            if (strokes[digit] >> s & 1)
                near = fmin(near,
                            distance(i % SIDE, (double)(i / SIDE), corner[from[s]], corner[to[s]]));
        pixels[i] = (float)fmax(0, fmin(1, 1.5 - near));
    }
}

/* n of them, all digits in turn. */
static inline void draw_digits(int n, uint64_t *random, float *pixels, int32_t *labels) {
    for (int i = 0; i < n; i++) {
        labels[i] = i % 10;
        draw_digit(i % 10, random, pixels + i * PIXELS);
    }
}

/* An image as text, for people. */
static inline void image_text(const float *pixels, char text[PIXELS + SIDE + 1]) {
    for (int i = 0; i < PIXELS; i++) {
        *text++ = " .:+#"[(int)(4.99f * fmaxf(0, fminf(1, pixels[i])))];
        if (i % SIDE == SIDE - 1) *text++ = '\n';
    }
    *text = 0;
}

#endif
