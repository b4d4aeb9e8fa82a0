/* weft/ops/spectrum_ops.h - short-time Fourier transforms and mel filters. See ops.h. */
#ifndef WEFT_OPS_SPECTRUM_OPS_H
#define WEFT_OPS_SPECTRUM_OPS_H

#include "../core/graph.h"
#include "../core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- signals: signal/ ------------------------------------------------------------------------ */
/* extends the axis at both ends by its mirror image; the elements at the ends are not repeated */
WF_API wf_tensor *wf_pad_reflect(wf_tensor *x, int axis, int64_t before, int64_t after);
typedef enum { WF_WINDOW_HANN, WF_WINDOW_HAMMING, WF_WINDOW_NONE } wf_window; /* periodic */
typedef struct wf_stft_options {
    int64_t n_fft; /* number of points of the transform, at most 4096 */
    /* hop_length 0 means n_fft / 4, win_length 0 means n_fft. A window shorter than n_fft is in the
     * middle of the frame */
    int64_t hop_length, win_length;
    wf_window window;
    /* true: frame t is centred at x[t hop], for which x is padded by reflection; false: it begins
     * there */
    bool center;
} wf_stft_options;
typedef struct wf_stft_result {
    wf_tensor *real, *imag;
} wf_stft_result;
/* x [...,L] -> [...,F,T] each, F = n_fft / 2 + 1 frequencies, T frames, as torch.stft */
WF_API wf_stft_result wf_stft(wf_tensor *x, const wf_stft_options *options);
WF_API wf_tensor *wf_power_spectrum(wf_tensor *x, const wf_stft_options *options); /* |stft|^2 */
/* Triangular filters on the mel scale, as a constant [n_mels,F]: those of librosa.filters.mel, or
 * with htk and plain those of torchaudio. A mel spectrogram is their product with a power
 * spectrum. */
typedef struct wf_mel_options {
    double sample_rate;
    int64_t n_fft, n_mels;
    double f_min, f_max; /* in Hz; f_max 0 means half of the sample rate */
    bool htk;            /* HTK's scale; else Slaney's */
    bool plain;          /* triangles have height 1; otherwise area 1 over frequencies */
} wf_mel_options;
WF_API wf_tensor *wf_mel_filters(wf_graph *g, const wf_mel_options *options);
/* x [...,L], samples at 16 kHz -> [...,n_mels,L/160]: the features of Whisper; their floor is
 * relative to the maximum of each signal by itself */
WF_API wf_tensor *wf_log_mel_spectrogram(wf_tensor *x, int64_t n_mels);

#ifdef __cplusplus
}
#endif
#endif
