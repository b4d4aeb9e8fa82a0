/* weft/models/text_formats.h - tokenizers made by other software: SentencePiece, GPT-2's byte-level
 * byte-pair encoding, and tokenizer.json. */
#ifndef WEFT_MODELS_TEXT_FORMATS_H
#define WEFT_MODELS_TEXT_FORMATS_H

#include "text.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- SentencePiece --------------------------------------------------------------------------- */

enum { WF_MOST_AROUND = 64 };
typedef struct wf_sentencepiece_options {
    /* a .spm file */
    const void *model;
    size_t bytes;
    /* pieces by id, as in a vocab.json; a piece of the file that is not among them is unknown. An
     * entry may be NULL: no such id. pieces NULL: the file's own pieces and ids */
    const char *const *pieces;
    int64_t n_pieces;
    /* ids of padding, unknown, start, end; -1: none. With pieces, the unknown id is required */
    int32_t special[WF_SPECIAL_IDS];
    /* ids added before and after an encoded line, at most WF_MOST_AROUND each */
    const int32_t *before, *after;
    int n_before, n_after;
    /* ">>fra<<" at the start of a line is one piece, as in Marian's models */
    bool language_codes;
    /* pieces from this id on were added later, and text is never cut into them: languages, a mask.
     * 0: there are none */
    int32_t added;
} wf_sentencepiece_options;

/* Options for a model with the file's own pieces and special ids, and no ids around a line. The
 * whole file is checked. False with message: what is wrong with it. */
WF_API bool wf_sentencepiece_defaults(const void *model, size_t bytes, wf_sentencepiece_options *o,
                                      char *message);
/* Make a tokenizer; everything is copied. The model is a unigram, BPE, word or character model with
 * finite scores and pieces of at most 1,024 bytes. Lines get the same pieces as from the library
 * sentencepiece 0.2.3. NULL with message: the data are no model, an id does not exist, or a piece
 * occurs twice. */
WF_API wf_tokenizer *wf_tokenizer_from_sentencepiece(const wf_sentencepiece_options *o,
                                                     char *message);

/* ---- byte level ------------------------------------------------------------------------------ */

typedef struct wf_byte_level_options {
    /* pieces by id, as in a vocab.json, with bytes spelled by letters: "Ġthe". NULL: no such id */
    const char *const *pieces;
    int64_t n_pieces;
    /* a merges.txt */
    const char *merges;
    size_t merges_bytes;
    /* ids of padding, unknown, start, end; -1: none */
    int32_t special[WF_SPECIAL_IDS];
    /* ids added before and after an encoded line, at most WF_MOST_AROUND each */
    const int32_t *before, *after;
    /* further ids that give no text, such as a mask; at most WF_MOST_AROUND */
    const int32_t *silent;
    int n_before, n_after, n_silent;
    /* a line without a space at its start gets one */
    bool prefix_space;
} wf_byte_level_options;

/* Make a tokenizer; everything is copied. A line is cut as by GPT-2 into runs of letters, of
 * numbers or of other characters, each with the one space before it; runs of white space; and 's 't
 * 're 've 'm 'll 'd. Classes of characters are those of Unicode 16.0. Its chunks are merged as by
 * the library tokenizers 0.23, which gives the same ids. A line must be UTF-8. Decoded text is made
 * valid UTF-8 with U+FFFD. NULL with message: a byte has no piece, a merge's pieces are not in the
 * vocabulary, a piece or a merge occurs twice, or an id does not exist. */
WF_API wf_tokenizer *wf_tokenizer_from_byte_level(const wf_byte_level_options *o, char *message);

/* ---- tokenizer.json -------------------------------------------------------------------------- */

typedef struct wf_json_text_options {
    /* a tokenizer.json: json_tokenizer.h */
    const char *json;
    size_t bytes;
    /* number of ids; those above the file's have no piece and give no text. 0: the file's */
    int64_t rows;
    /* ids of padding, unknown, start, end; -1: none */
    int32_t special[WF_SPECIAL_IDS];
} wf_json_text_options;

/* Make a tokenizer; everything is copied. A line becomes the ids that the library tokenizers gives
 * with special tokens, and ids become text without special tokens. NULL with message: the data are
 * no tokenizer.json, or have more ids than rows. */
WF_API wf_tokenizer *wf_tokenizer_from_json(const wf_json_text_options *o, char *message);

#ifdef __cplusplus
}
#endif
#endif
