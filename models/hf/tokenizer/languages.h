/* models/hf/tokenizer/languages.h - inside models/hf: which languages the tokenizers of a family
 * have, and where a line's language token stands. */
#ifndef WEFT_MODELS_HF_TOKENIZER_LANGUAGES_H
#define WEFT_MODELS_HF_TOKENIZER_LANGUAGES_H

#include <stdbool.h>

typedef struct hf_languages {
    const char *family;    /* model_type */
    const char *tokenizer; /* tokenizer_class */
    const char *set;       /* the value of language_codes; NULL: the class has only one set */
    const char *codes;     /* language codes in the order of their ids, with spaces between */
    const char *around;    /* text on both sides of a code in its piece, such as "__" */
    const char *source;    /* default language of sources, if the folder names none */
    /* true: vocab.json has the ids of pieces. false: they are the .spm file's ids plus one, as in
     * fairseq, and a mask token follows the languages */
    bool vocabulary;
    /* true: the language of a source comes after its end token; false: before the text */
    bool behind;
} hf_languages;

/* Returns the family's row after `last`, or its first row if `last` is NULL. Returns NULL after the
 * last row. */
const hf_languages *wf_hf_languages_next(const char *family, const hf_languages *last);

enum { HF_LANGUAGE = 80 };
#define HF_MASK "<mask>"
int wf_hf_language_count(const hf_languages *l);
/* Reads the next language code from *rest, which is l->codes at first, and returns its piece. NULL:
 * there are no more. */
const char *wf_hf_language_next(const hf_languages *l, const char **rest, char piece[HF_LANGUAGE]);

#endif
