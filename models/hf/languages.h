/* models/hf/languages.h - inside models/hf: which languages the tokenizers of a family have, and
 * where a line has its own. */
#ifndef WEFT_MODELS_HF_LANGUAGES_H
#define WEFT_MODELS_HF_LANGUAGES_H

#include <stdbool.h>

typedef struct hf_languages {
    const char *family;    /* model_type */
    const char *tokenizer; /* tokenizer_class */
    const char *set;       /* language_codes; NULL: there is one set alone */
    const char *codes;     /* in the order of their ids, with a blank between */
    const char *around;    /* what stands on both sides of a code in its piece */
    const char *source;    /* that of sources, where a folder does not say */
    bool vocabulary;       /* vocab.json has the ids; else they are the .spm's and one more, as in
                              fairseq, and a mask follows the languages */
    bool behind;           /* a source's language stands behind its end, not in front of it */
} hf_languages;

/* The family's next row after `last`, the first after NULL; NULL: there is none. */
const hf_languages *wf_hf_languages_next(const char *family, const hf_languages *last);

enum { HF_LANGUAGE = 80 };
#define HF_MASK "<mask>"
int wf_hf_language_count(const hf_languages *l);
/* The piece of the next code in rest, which begins as l->codes; NULL: there is none. */
const char *wf_hf_language_next(const hf_languages *l, const char **rest, char piece[HF_LANGUAGE]);

#endif
