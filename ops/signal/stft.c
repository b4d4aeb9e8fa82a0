/* ops/signal/stft.c - the short-time Fourier transform, composed of other ops, like torch.stft.
 * Frames of a signal, one every `hop` samples, are multiplied by a window, and have the discrete
 * Fourier transform
 *
 *     X[k, t] = sum over n of w[n] x[t hop + n] exp(-2 pi i k n / N),    k = 0 .. N/2
 *
 * which is one product of the frames with a matrix that holds w[n] cos and -w[n] sin. Frames are
 * views. The mel scale is in mel.c. */
#include <math.h>
#include <stdlib.h>

#include "core/compose.h"
#include "ops/base/op_base.h"
#include "ops/base/scalars.h"
#include "ops/base/shapes.h"

#define PI 3.141592653589793
enum { MOST_FFT = 4096 }; /* the matrix has N (N + 2) elements */

/* sin(2 pi m / n), 0 <= m < n. The angle is reflected into the first quarter of a turn, so that
 * half turns have the sine 0. The sine of the nearest double to pi is 1.2e-16. */
static double sine_of_turn(int64_t m, int64_t n) {
    bool below = 2 * m > n;
    int64_t twice = 2 * (below ? n - m : m), quarter = twice < n - twice ? twice : n - twice;
    double sine = wf_sin_of(PI * (double)quarter / (double)n);
    return below ? -sine : sine;
}

/* cos(2 pi m / n), 0 <= m < n: a quarter of a turn ahead. */
static double cosine_of_turn(int64_t m, int64_t n) {
    return sine_of_turn((4 * m + n) % (4 * n), 4 * n);
}

/* ---- windows --------------------------------------------------------------------------------- */

/* Element n of a periodic window of this length: its first element is not repeated at the end. A
 * window of one point is 1, as in PyTorch. */
static double window_at(wf_window kind, int64_t n, int64_t length) {
    if (length == 1) return 1;
    double turn = cosine_of_turn(n, length);
    switch (kind) {
    case WF_WINDOW_HANN:
        return 0.5 - 0.5 * turn;
    case WF_WINDOW_HAMMING:
        return 0.54 - 0.46 * turn;
    default:
        return 1;
    }
}

/* The matrix [N, 2 F]. The window is in the middle of the N rows, with zeros on both sides. There
 * are F cosines, then F sines. */
static wf_tensor *transform(wf_graph *g, const wf_stft_options *o, int64_t length) {
    int64_t n = o->n_fft, bins = n / 2 + 1, shape[] = { n, 2 * bins };
    int64_t before = (n - length) / 2;
    wf_view m = { .dtype = wf_real(g), .data = calloc((size_t)(n * 2 * bins), sizeof(double)) };
    if (!m.data) return wf_poison(g, "stft: no memory for the matrix of the transform");
    for (int64_t i = 0; i < length; i++) {
        int64_t row = before + i;
        double w = window_at(o->window, i, length);
        for (int64_t k = 0; k < bins; k++) {
            wf_put(&m, row * 2 * bins + k, w * cosine_of_turn(k * row % n, n));
            wf_put(&m, row * 2 * bins + bins + k, -w * sine_of_turn(k * row % n, n));
        }
    }
    wf_tensor *t = wf_constant_array(g, m.dtype, 2, shape, m.data);
    free(m.data);
    return t;
}

/* ---- frames ---------------------------------------------------------------------------------- */

wf_tensor *wf_pad_reflect(wf_tensor *x, int axis, int64_t before, int64_t after) {
    WF_COMPOSE("pad_reflect", x);
    wf_tensor *parts[3];
    int ndim = wf_rank(x), i = wf_axis(axis, ndim), n = 0;
    char text[WF_AXIS_TEXT];
    if (!x) return wf_poison(NULL, "pad_reflect of NULL");
    if (i < 0)
        return wf_poison(x->graph, "pad_reflect: %d axes, and no %s", ndim,
                         wf_axis_text(axis, text));
    if (before < 0 || after < 0 || before > INT32_MAX || after > INT32_MAX)
        return wf_poison(x->graph,
                         "pad_reflect: %lld before and %lld after, not from 0 to 2^31 - 1",
                         (long long)before, (long long)after);
    if (before) parts[n++] = wf_flip(wf_slice(x, i, 1, before + 1), WF_AXIS(i));
    parts[n++] = x;
    if (after) parts[n++] = wf_flip(wf_slice(x, i, -1 - after, -1), WF_AXIS(i));
    return wf_composed(wf_concat(parts, n, i));
}

static bool options_fit(wf_graph *g, const wf_tensor *x, const wf_stft_options *o, int64_t hop,
                        int64_t length) {
    bool sizes =
        o->n_fft >= 1 && o->n_fft <= MOST_FFT && hop >= 1 && length >= 1 && length <= o->n_fft;
    if (!sizes)
        wf_poison(g,
                  "stft: %lld points, at most %d, every %lld, with a window of %lld: all are 1 or "
                  "more, and "
                  "the window at most the points",
                  (long long)o->n_fft, MOST_FFT, (long long)hop, (long long)length);
    else if (o->window < WF_WINDOW_HANN || o->window > WF_WINDOW_NONE)
        wf_poison(g, "stft: there is no window number %d", (int)o->window);
    else if (x->ndim < 1 || x->ndim >= WF_MAX_DIMS)
        wf_poison(g, "stft: a signal of %d axes, not from 1 to %d", x->ndim, WF_MAX_DIMS - 1);
    else
        return wf_ok(g);
    return false;
}

wf_stft_result wf_stft(wf_tensor *x, const wf_stft_options *o) {
    WF_COMPOSE("stft", x);
    wf_graph *g = x ? x->graph : NULL;
    wf_tensor *poison = !x   ? wf_poison(NULL, "stft of NULL")
                        : !o ? wf_poison(g, "stft has no options: they are NULL")
                             : NULL;
    if (poison) return (wf_stft_result){ poison, poison };
    int64_t hop = o->hop_length ? o->hop_length : o->n_fft / 4;
    int64_t length = o->win_length ? o->win_length : o->n_fft, bins = o->n_fft / 2 + 1;
    if (!options_fit(g, x, o, hop, length)) {
        poison = wf_poison(g, NULL);
        return (wf_stft_result){ poison, poison };
    }
    if (o->center) x = wf_pad_reflect(x, -1, o->n_fft / 2, o->n_fft / 2);
    wf_tensor *frames = wf_unfold(x, -1, o->n_fft, hop, 1);    /* [...,T,N] */
    wf_tensor *y = wf_matmul(frames, transform(g, o, length)); /* [...,T,2 F] */
    y = wf_transpose(y, -1, -2);                               /* [...,2 F,T] */
    wf_stft_result r = { wf_slice(y, -2, 0, bins), NULL };
    r.imag = wf_slice(y, -2, bins, WF_END);
    wf_composed(r.imag);
    return r;
}

wf_tensor *wf_power_spectrum(wf_tensor *x, const wf_stft_options *o) {
    WF_COMPOSE("power_spectrum", x);
    wf_stft_result y = wf_stft(x, o);
    return wf_composed(wf_add(wf_square(y.real), wf_square(y.imag)));
}
