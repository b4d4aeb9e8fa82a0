/* models/hf_internal.h - for the programs: the files that an import may read, and which models have
 * no family. Not installed. */
#ifndef WEFT_MODELS_HF_INTERNAL_H
#define WEFT_MODELS_HF_INTERNAL_H

#include "models/hf.h"

/* List the names of all files that an import may read in a folder, whether or not they exist: the
 * fixed names, and the weight files that an index in this folder names. With folder NULL there is
 * no index. A program must not overwrite a file of this list. False with message: out of memory, or
 * an invalid index. Free the list in either case. */
typedef struct wf_hf_files {
    char **names; /* [n] */
    int n;
    size_t room; /* elements that names has memory for */
} wf_hf_files;

bool wf_hf_list_files(const char *folder, wf_hf_files *list, char *message);
void wf_hf_files_free(wf_hf_files *list);

/* False for an encoder-decoder of a form that no family of Hugging Face's transformers has. */
bool wf_hf_has_family(const wf_model *m);
/* True for a language model whose family stores queries, keys and values as one matrix, as GPT-2.
 * An adapter of the whole matrix can be exported, and an adapter of its q, k or v part can't. */
bool wf_hf_packs_attention(const wf_model *m);

#endif
