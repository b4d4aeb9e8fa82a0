/* weft/models/hf.h - reads and writes folders of Hugging Face's transformers with an
 * encoder-decoder, a language model or an encoder: config.json, generation_config.json, weights and
 * the files of a tokenizer.
 *
 * Families: Marian (OPUS-MT), BART, mBART, M2M100 (NLLB), T5 (FLAN-T5, MADLAD-400), mT5, UMT5;
 * GPT-2, GPT-BigCode (StarCoder), Llama (SmolLM), Mistral, Qwen 2 and 3, Gemma 1, StarCoder 2;
 * BERT, RoBERTa, XLM-R, CamemBERT, MPNet, DistilBERT, also with the modules of
 * sentence-transformers. Each is a table in hf/family.c, hf/t5_family.c,
 * hf/lm/lm_family.c or hf/encoder/bert_family.c, with the keys of its files and the names of its
 * tensors. hf/README.md lists the differences from transformers. Nothing is guessed: a missing,
 * unknown or contradictory entry is an error that names it.
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
    wf_model *model; /* a Transformer, a language model or an encoder, in f32 */
    /* tokenizers of sources and of targets: one object if both sides share it, as in a language
     * model or an encoder. NULL: the folder has no tokenizer that weft can read */
    wf_tokenizer *src, *tgt;
    /* settings with which generate() of transformers would search by default */
    wf_generation generation;
    /* labels of the classes of an encoder, a line each, from malloc: wf_hf_free frees them. NULL:
     * it has none */
    char *class_names;
    char notes[WF_HF_NOTES]; /* differences from transformers, one sentence per line, or "" */
} wf_hf;

/* Read a whole folder. False with message. Free out by wf_hf_free in either case. */
WF_API bool wf_hf_import(const char *folder, wf_hf *out, char *message);
/* Frees the model, the tokenizers and the labels. */
WF_API void wf_hf_free(wf_hf *hf);

/* The caller's functions, which an export calls. One that returns false, with message, ends it. */
typedef struct wf_hf_writer {
    /* Called once, before anything is written, with the names of all files. May be NULL. */
    bool (*begin)(void *user, const char *const *names, int n, char *message);
    /* Write a file other than the weights. */
    bool (*put)(void *user, const char *name, const void *bytes, size_t size, char *message);
    void *user;
} wf_hf_writer;
/* Write a folder that transformers can open: the weights first, config.json last. The folder must
 * exist when `begin` has returned. Sets hf's notes. False with message: no family has such a model,
 * or a file cannot be written. */
WF_API bool wf_hf_export(wf_hf *hf, const char *folder, const wf_hf_writer *to, char *message);

/* ---- adapters: folders of PEFT (LoRA) -------------------------------------------------------- */

/* Read adapter_config.json and adapter_model.safetensors of a folder, for the model in the file
 * `base`. Returns that model with these adapters (wf_adapters); its own weights are not loaded, and
 * wf_model_save saves the adapters alone. NULL with message: the folder has options of PEFT that
 * weft lacks, or a tensor belongs to no matrix of the model. */
WF_API wf_model *wf_hf_import_adapters(const char *folder, const wf_file *base, char *message);
/* Write the adapters of a model in f32 as such a folder. PEFT needs it and the folder that
 * wf_hf_export writes of the model. False with message: m has no adapters, no family has such a
 * model or such an adapter, or a file cannot be written. */
WF_API bool wf_hf_export_adapters(const wf_model *m, const char *folder, const wf_hf_writer *to,
                                  char *message);

#ifdef __cplusplus
}
#endif
#endif
