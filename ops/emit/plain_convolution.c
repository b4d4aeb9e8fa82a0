/* ops/emit/plain_convolution.c - convolution and pooling for emitted files.
 * See plain_numbers.c. */

/* ---- convolution -------------------------------------------------------------------------- */

/* Arrays [2]: for rows and for columns. Channels are those of a group. */
typedef struct convolution {
    int images, groups, sources, targets, transposed;
    int source[2], target[2], kernel[2], stride[2], padding[2], dilation[2];
} convolution;

/* Sets *place to the place in the source that tap k of target element i reads, which may lie
 * outside of the source. Returns 0 if this element has no such tap, else 1. */
static inline int place_of_tap(const convolution *c, int axis, int i, int k, int *place) {
    int at = k * c->dilation[axis] - c->padding[axis];
    *place = i * c->stride[axis] + at;
    if (!c->transposed) return 1;
    *place = (i - at) / c->stride[axis];
    return (i - at) % c->stride[axis] == 0;
}

/* y[0], y[step], ... += weight times x[place], x[place + apart], ... Outside of its width x counts
 * as 0. If x is 0, all of it does. */
static void add_tap(int n, float weight, const float *x, int width, int place, int apart, float *y,
                    int step) {
    int a = 0, end = place < width ? (width - place - 1) / apart + 1 : 0;
    int begin = place < 0 ? (apart - 1 - place) / apart : 0;
    if (end > n) end = n;
    if (!x) end = 0;
    for (; a < begin && a < n; a++) y[a * step] = multiply_add(weight, 0.0f, y[a * step]);
    if (step == 1 && apart == 1)
        for (; a < end; a++) y[a] = multiply_add(weight, x[place + a], y[a]);
    for (; a < end; a++) y[a * step] = multiply_add(weight, x[place + a * apart], y[a * step]);
    for (; a < n; a++) y[a * step] = multiply_add(weight, 0.0f, y[a * step]);
}

/* Adds tap (k, l) of the kernel, whose row of x is given, to a row of the target. */
static void add_tap_of_row(const convolution *c, int l, float weight, const float *x, float *y) {
    int step = c->transposed ? c->stride[1] : 1, first = 0, place = 0, n = c->target[1];
    while (first < step && !place_of_tap(c, 1, first, l, &place)) first++;
    if (first < step && first < n)
        add_tap((n - first - 1) / step + 1, weight, x, c->source[1], place,
                c->transposed ? 1 : c->stride[1], y + first, step);
}

/* y [images, groups targets, ...] = x [images, groups sources, ...] convolved with w, plus bias (0:
 * none). An element is one chain of multiply-adds over sources, rows and columns of the kernel. */
static void convolve(const convolution *c, const float *x, const float *w, const float *bias,
                     float *y) {
    int kernel = c->kernel[0] * c->kernel[1], plane = c->source[0] * c->source[1], place;
    int all = c->images * c->groups * c->targets, size = c->target[0] * c->target[1];
    for (int r = 0; r < all * c->target[0]; r++) {
        int t = r / c->target[0], i = r % c->target[0], channel = t % (c->groups * c->targets);
        int group = channel / c->targets, o = channel % c->targets;
        const float *image = x + (t / c->targets) * c->sources * plane;
        const float *weight = w + group * c->targets * c->sources * kernel;
        float *row = y + t * size + i * c->target[1];
        for (int j = 0; j < c->target[1]; j++) row[j] = bias ? bias[channel] : 0.0f;
        for (int s = 0; s < c->sources; s++)
            for (int k = 0; k < c->kernel[0]; k++) {
                int at = c->transposed ? s * c->targets + o : o * c->sources + s;
                if (!place_of_tap(c, 0, i, k, &place)) continue;
                int inside = place >= 0 && place < c->source[0];
                const float *line = inside ? image + s * plane + place * c->source[1] : 0;
                for (int l = 0; l < c->kernel[1]; l++)
                    add_tap_of_row(c, l, weight[at * kernel + k * c->kernel[1] + l], line, row);
            }
    }
}

/* The sum over rows [from, to) of the target plane dy of dy times what tap (k, l) reads in x. */
static float weight_of_rows(const convolution *c, const float *x, const float *dy, int k, int l,
                            int from, int to) {
    float sum = 0;
    int row = 0, column = 0;
    for (int i = from; i < to; i++) {
        place_of_tap(c, 0, i, k, &row);
        for (int j = 0; j < c->target[1]; j++) {
            place_of_tap(c, 1, j, l, &column);
            int inside = row >= 0 && row < c->source[0] && column >= 0 && column < c->source[1];
            float value = inside ? x[row * c->source[1] + column] : 0.0f;
            sum = multiply_add(value, dy[i * c->target[1] + j], sum);
        }
    }
    return sum;
}

/* dw = the gradient of the weights. Chunks of rows of all images are divided into parts; in a part
 * the sums of bands of rows are added, and then the parts. */
static void convolve_weight(const convolution *c, int parts, int chunk, int band, const float *x,
                            const float *dy, float *dw) {
    int rows = c->target[0], chunks = (rows + chunk - 1) / chunk, units = c->images * chunks;
    int taps = c->kernel[0] * c->kernel[1], width = c->sources * taps;
    int plane = c->source[0] * c->source[1], size = rows * c->target[1];
    for (int e = 0; e < c->groups * c->targets * width; e++) {
        int o = e / width, s = e % width / taps, tap = e % taps, group = o / c->targets;
        float total = 0;
        for (int part = 0; part < parts; part++) {
            float sum = 0;
            for (int u = units * part / parts; u < units * (part + 1) / parts; u++) {
                int image = u / chunks, begin = u % chunks * chunk;
                int end = rows - begin < chunk ? rows : begin + chunk;
                const float *from = x + ((image * c->groups + group) * c->sources + s) * plane;
                const float *with = dy + (image * c->groups * c->targets + o) * size;
                for (int i = begin; i < end; i += band)
                    sum += weight_of_rows(c, from, with, tap / c->kernel[1], tap % c->kernel[1], i,
                                          end - i < band ? end : i + band);
            }
            total = part ? total + sum : sum;
        }
        dw[e] = total;
    }
}

/* The largest element of each window, the first of equal ones, and its tap; -1 if no element is
 * above -inf. A NaN is larger than all. */
static void largest_of_windows(const convolution *c, const float *x, float *y, float *tap) {
    float_bits infinity;
    int row, column, size = c->target[0] * c->target[1];
    infinity.word = UINT32_C(0x7f800000);
    for (int e = 0; e < c->images * size; e++) {
        const float *image = x + e / size * c->source[0] * c->source[1];
        float best = -infinity.number, at = -1;
        for (int k = 0; k < c->kernel[0] * c->kernel[1]; k++) {
            place_of_tap(c, 0, e % size / c->target[1], k / c->kernel[1], &row);
            place_of_tap(c, 1, e % c->target[1], k % c->kernel[1], &column);
            if (row < 0 || row >= c->source[0] || column < 0 || column >= c->source[1]) continue;
            float here = image[row * c->source[1] + column];
            if (here > best || here != here) {
                best = here;
                at = (float)k;
            }
        }
        y[e] = best;
        tap[e] = at;
    }
}

/* The place in x of the largest element of window e, or -1 if that is not in the image. Without a
 * tap it is the first element in the image. */
static int place_of_largest(const convolution *c, int e, float tap) {
    int size = c->source[0] * c->source[1], kernel = c->kernel[0] * c->kernel[1];
    int row = e / c->target[1] % c->target[0] * c->stride[0] - c->padding[0];
    int column = e % c->target[1] * c->stride[1] - c->padding[1];
    if (tap >= 0.0f && tap < (float)kernel) {
        row += (int)tap / c->kernel[1] * c->dilation[0];
        column += (int)tap % c->kernel[1] * c->dilation[1];
    } else {
        while (row < 0) row += c->dilation[0];
        while (column < 0) column += c->dilation[1];
        if (column >= c->source[1]) return -1;
    }
    int at = row * c->source[1] + column;
    return at < size ? at : -1;
}
