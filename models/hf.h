/* weft/models/hf.h - an encoder-decoder as Hugging Face's transformers keeps it: a folder with
 * config.json, generation_config.json, weights and the files of a tokenizer; read, and written.
 *
 * Families: Marian (OPUS-MT), BART, mBART, M2M100 (NLLB). Each is a table, hf/family.c, of what its
 * files say and what their tensors are called; hf/README.md has what differs from transformers.
 * Nothing is guessed: what is missing, unknown or contradicts is one sentence.
 *
 *     wf_hf hf;
 *     if (!wf_hf_import("opus-mt-en-de", &hf, message)) ...
 *     wf_decoder *d = wf_decoder_new(hf.model, NULL, message);
 *     wf_hf_free(&hf);
 *
 * Every `message` has room for 256 bytes, or is NULL. */
#ifndef WEFT_MODELS_HF_H
#define WEFT_MODELS_HF_H

#include "generation.h"
#include "text.h"
#include "transformer.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { WF_HF_NOTES = 2048 };

typedef struct wf_hf {
    wf_model *model;          /* a Transformer, in f32 */
    wf_tokenizer *src, *tgt;  /* NULL: the folder has none that weft can read */
    wf_generation generation; /* as generate() of transformers would search by default */
    char notes[WF_HF_NOTES];  /* what is not as there, a sentence a line; "" */
} wf_hf;

/* All of a folder. False with message; out is to be freed by wf_hf_free either way. */
WF_API bool wf_hf_import(const char *folder, wf_hf *out, char *message);
/* Frees the model and the tokenizers. */
WF_API void wf_hf_free(wf_hf *hf);

/* Writes a file of the folder but the weights; false with message. */
typedef bool (*wf_hf_put)(void *user, const char *name, const void *bytes, size_t size,
                          char *message);
/* A folder, which is there, that transformers opens: config.json comes last. Of hf the notes are
 * set. False with message: no family has a model like this, or a file can't be written. */
WF_API bool wf_hf_export(wf_hf *hf, const char *folder, wf_hf_put put, void *user, char *message);

#ifdef __cplusplus
}
#endif
#endif
