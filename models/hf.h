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

/* The names of the files that wf_hf_import reads in a folder, there or not: those that any folder
 * may have, and the weights that an index there names. NULL: without the latter. A program that
 * writes a file asks this list first. False with message: no memory, or a wrong index; the list is to
 * be freed either way. */
typedef struct wf_hf_files {
    char **names; /* [n] */
    int n;
} wf_hf_files;
WF_API bool wf_hf_list_files(const char *folder, wf_hf_files *list, char *message);
WF_API void wf_hf_files_free(wf_hf_files *list);

/* How a folder is written; both return false with message, which ends the export. */
typedef struct wf_hf_writer {
    /* Called once, before anything is written, with the names of all files. May be NULL. */
    bool (*begin)(void *user, const char *const *names, int n, char *message);
    /* Writes a file but the weights. */
    bool (*put)(void *user, const char *name, const void *bytes, size_t size, char *message);
    void *user;
} wf_hf_writer;
/* Writes a folder that transformers opens: first the weights, config.json last. The folder must be
 * there when `begin` has returned. Sets hf's notes. False with message: no family has a model like
 * this, or a file can't be written. */
WF_API bool wf_hf_export(wf_hf *hf, const char *folder, const wf_hf_writer *to, char *message);

#ifdef __cplusplus
}
#endif
#endif
