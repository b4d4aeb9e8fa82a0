/* models/marian_internal.h - inside the library and its programs: files of Marian (Junczys-Dowmunt
 * et al. 2018) with an encoder-decoder Transformer, such as Firefox's translators. Not installed.
 *
 * Two containers are read and written: model.npz, as training writes it, and
 * model.intgemm.alphas.bin, whose matrices are rounded to int8; see marian/README.md. Every
 * `message` has room for 256 bytes, or is NULL. */
#ifndef WEFT_MODELS_MARIAN_INTERNAL_H
#define WEFT_MODELS_MARIAN_INTERNAL_H

#include "models/hf.h"

/* The bytes of the files. src and tgt are SentencePiece models; for a joint vocabulary both point
 * to the same one. Both NULL: there are none, and the model reads and writes ids, with </s> 0 and
 * <unk> 1. search: the configuration of a decoder, in YAML, or NULL. Its `normalize` is the length
 * penalty of the search; 0, as in Marian, if there is none. */
typedef struct wf_marian_files {
    const void *model, *src, *tgt, *search;
    size_t model_bytes, src_bytes, tgt_bytes, search_bytes;
} wf_marian_files;

/* The name of the parameter that holds the scales of an int8 file, which an import adds to the
 * model. */
#define WF_MARIAN_SCALES "marian.scales"

/* Read a model in f32, its tokenizers and its decoding settings. False with message. Free out by
 * wf_hf_free in either case. */
bool wf_marian_import(const wf_marian_files *files, wf_hf *out, char *message);

/* Load a model that was imported from an int8 file, to decode in Marian's own arithmetic: integer
 * products, with activations rounded by the file's scales. NULL with message: the model has no
 * scales, or its weights have changed since the import. */
wf_model *wf_marian_load(const wf_file *f, char *message);

/* The bytes of a model.npz, malloc'ed, which Marian reads. NULL with message: Marian has no such
 * model. */
void *wf_marian_export(const wf_model *m, size_t *bytes, char *message);

/* A copy of the binary file `like` with the weights of m, which was trained further from that file.
 * Matrices are rounded to int8 where `like` has int8, and its scales of activations stay. The
 * result is malloc'ed and has as many bytes as `like`. NULL with message. */
void *wf_marian_export_like(const wf_model *m, const void *like, size_t bytes, char *message);

/* ---- scales of activations: marian_calibrate.c ----------------------------------------------- */

typedef struct wf_marian_scales wf_marian_scales;

/* Begin to measure the scales by which an encoder-decoder Transformer's activations are rounded to
 * int8. Then add pairs, each a source and the output that the model itself decodes from it. NULL
 * with message. Free the scales before the model. */
wf_marian_scales *wf_marian_scales_new(wf_model *m, wf_pool *pool, char *message);
void wf_marian_scales_free(wf_marian_scales *s);
/* Run a batch of pairs through the model. tgt_length [B]: tokens of each target with its start.
 * False with message. */
bool wf_marian_scales_add(wf_marian_scales *s, const wf_batch *pairs, const int32_t *tgt_length,
                          char *message);

/* The bytes of a binary file, .intgemm.alphas.bin, malloc'ed: matrices in int8, and these scales.
 * NULL with message. */
void *wf_marian_export_int8(const wf_model *m, const wf_marian_scales *s, size_t *bytes,
                            char *message);

#endif
