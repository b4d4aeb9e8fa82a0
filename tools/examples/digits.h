/* digits.h - images for the examples: digits that look handwritten, drawn by this file.
 *
 * A digit has some of the seven strokes of a pocket calculator, between six corners. Every drawing
 * moves each corner at random, so that all are different. */
#ifndef DIGITS_H
#define DIGITS_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <weft/weft.h>

enum { SIDE = 16, PIXELS = SIDE * SIDE };

/* A random offset in [-by, by): number i of the stream `key`. */
static inline double moved(double by, uint64_t key, uint64_t i) {
    return by * (2 * wf_random_uniform(key, i) - 1);
}

/* The distance from (x, y) to the line between a and b. */
static inline double distance(double x, double y, const double a[2], const double b[2]) {
    double dx = b[0] - a[0], dy = b[1] - a[1];
    double at = ((x - a[0]) * dx + (y - a[1]) * dy) / (dx * dx + dy * dy + 1e-9);
    at = fmin(fmax(at, 0), 1);
    return hypot(x - a[0] - at * dx, y - a[1] - at * dy);
}

/* Draw a digit, 0 to 9, into pixels [SIDE, SIDE], where 0 is paper and 1 is ink. The same key gives
 * the same drawing. */
static inline void draw_digit(int digit, uint64_t key, float *pixels) {
    /* corners: 0 1 at the top, 2 3 in the middle, 4 5 at the bottom; a stroke joins two of them */
    static const int from[7] = { 0, 0, 1, 2, 2, 3, 4 }, to[7] = { 1, 2, 3, 3, 4, 5, 5 };
    /* bit s: the digit has stroke s */
    static const int strokes[10] = { 0x77, 0x24, 0x5d, 0x6d, 0x2e, 0x6b, 0x7b, 0x25, 0x7f, 0x6f };
    double corner[6][2];
    for (int i = 0; i < 6; i++) {
        const uint64_t own = 2 + 2 * (uint64_t)i;
        corner[i][0] = 4.5 + 6 * (i % 2) + moved(1.5, key, 0) + moved(1.2, key, own);
        corner[i][1] = 3 + 4.5 * (i / 2) + moved(1.5, key, 1) + moved(1.2, key, own + 1);
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

/* Draw n digits, 0 to 9 in turn. */
static inline void draw_digits(int n, uint64_t key, float *pixels, int32_t *labels) {
    for (int i = 0; i < n; i++) {
        labels[i] = i % 10;
        draw_digit(i % 10, key << 16 | (uint64_t)i, pixels + i * PIXELS);
    }
}

/* Print n images [n, SIDE, SIDE] side by side as text. */
static inline void print_images(const float *pixels, int n) {
    for (int y = 0; y < SIDE; y++) {
        for (int i = 0; i < n * SIDE; i++)
            putchar(" .:+#"[(int)(4.99f * pixels[i / SIDE * PIXELS + y * SIDE + i % SIDE])]);
        putchar('\n');
    }
}

#endif
