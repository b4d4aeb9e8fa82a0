/* ops/signal/mel.c - spectra on the mel scale, composed of other ops: a bank of triangular filters
 * like those of librosa.filters.mel and torchaudio, and the features of Whisper (Radford et al.
 * 2022). */
#include <math.h>
#include <stdlib.h>

#include "core/compose.h"
#include "ops/base/op_base.h"
#include "ops/base/scalars.h"
#include "ops/base/shapes.h"

enum { MOST_BINS = 1 << 16, MOST_MELS = 4096 };

/* ---- the scale ------------------------------------------------------------------------------- */

/* Slaney's Auditory Toolbox (1998): linear below 1000 Hz, where a mel is 200/3 Hz; above it, 27
 * mels multiply the frequency by 6.4. HTK: 2595 log10(1 + f / 700). */
static const double hertz_of_a_mel = 200.0 / 3, bend = 1000, mels_of_the_bend = 15;

static double log_step(void) {
    return wf_log_of(6.4) / 27;
}

static double mel_of(double hertz, bool htk) {
    if (htk) return 2595 * wf_log10_of(1 + hertz / 700);
    return hertz < bend ? hertz / hertz_of_a_mel
                        : mels_of_the_bend + wf_log_of(hertz / bend) / log_step();
}

static double hertz_of(double mel, bool htk) {
    if (htk) return 700 * (wf_pow_of(10, mel / 2595) - 1);
    return mel < mels_of_the_bend ? mel * hertz_of_a_mel
                                  : bend * wf_exp_of((mel - mels_of_the_bend) * log_step());
}

/* ---- the filters ----------------------------------------------------------------------------- */

static bool options_fit(const wf_mel_options *o, double top) {
    return o->sample_rate > 0 && o->sample_rate <= 1e9 && o->n_fft >= 1 && o->n_fft <= MOST_BINS &&
           o->n_mels >= 1 && o->n_mels <= MOST_MELS && o->f_min >= 0 && top > o->f_min &&
           top <= 1e9;
}

/* Filter i rises from corner i to 1 at corner i + 1 and falls to 0 at corner i + 2. Corners are
 * evenly spaced on the mel scale. Unless `plain` is set, a filter has the area 1 over
 * frequencies. */
static void fill_filter(const wf_mel_options *o, double top, int64_t i, wf_view *m) {
    double corner[3], low = mel_of(o->f_min, o->htk), high = mel_of(top, o->htk);
    int64_t bins = o->n_fft / 2 + 1;
    for (int k = 0; k < 3; k++)
        corner[k] =
            hertz_of(low + (high - low) * (double)(i + k) / (double)(o->n_mels + 1), o->htk);
    double area = o->plain ? 1 : 2 / (corner[2] - corner[0]);
    for (int64_t bin = 0; bin < bins; bin++) {
        double hertz = (double)bin * o->sample_rate / (double)o->n_fft;
        double up = (hertz - corner[0]) / (corner[1] - corner[0]);
        double down = (corner[2] - hertz) / (corner[2] - corner[1]);
        wf_put(m, i * bins + bin, area * fmax(0, fmin(up, down)));
    }
}

wf_tensor *wf_mel_filters(wf_graph *g, const wf_mel_options *o) {
    if (!o) return wf_poison(g, "mel_filters has no options: they are NULL");
    double top = o->f_max != 0 ? o->f_max : o->sample_rate / 2;
    if (!options_fit(o, top))
        return wf_poison(
            g,
            "mel_filters: %lld filters from %g to %g Hz, of a transform of %lld points "
            "at %g Hz: there are 1 to %d filters and 1 to %d points, and the frequencies "
            "rise from 0 or more",
            (long long)o->n_mels, o->f_min, top, (long long)o->n_fft, o->sample_rate, MOST_MELS,
            MOST_BINS);
    int64_t shape[] = { o->n_mels, o->n_fft / 2 + 1 };
    wf_view m = { .dtype = wf_real(g),
                  .data = calloc((size_t)(shape[0] * shape[1]), sizeof(double)) };
    if (!m.data) return wf_poison(g, "mel_filters: out of memory");
    for (int64_t i = 0; i < o->n_mels; i++) fill_filter(o, top, i, &m);
    wf_tensor *t = wf_constant_array(g, m.dtype, 2, shape, m.data);
    free(m.data);
    return t;
}

/* ---- features -------------------------------------------------------------------------------- */

/* Mel powers of frames of 25 ms, 10 ms apart, without the last frame. y is the log10 of each power,
 * where powers below 1e-10 count as 1e-10. Then y is raised to at least the largest y of the
 * signal minus 8. The result is y / 4 + 1. */
wf_tensor *wf_log_mel_spectrogram(wf_tensor *x, int64_t n_mels) {
    const wf_stft_options stft = { .n_fft = 400, .hop_length = 160, .center = true };
    const wf_mel_options mel = { .sample_rate = 16000, .n_fft = 400, .n_mels = n_mels };
    WF_COMPOSE("log_mel_spectrogram", x);
    wf_graph *g = x ? x->graph : NULL;
    if (!x) return wf_poison(NULL, "log_mel_spectrogram of NULL");
    wf_tensor *power = wf_slice(wf_power_spectrum(x, &stft), -1, 0, -1); /* [...,201,T] */
    wf_tensor *y = wf_matmul(wf_mel_filters(g, &mel), power);            /* [...,M,T] */
    y = wf_log10(wf_maximum(y, wf_constant(g, 1e-10)));
    wf_tensor *top = wf_max(y, WF_AXIS(-1) | WF_AXIS(-2), true);
    return wf_composed(wf_affine(wf_maximum(y, wf_affine(top, 1, -8)), 0.25, 1));
}
