/* weft/models/text_formats.h - tokenizers that were made elsewhere: SentencePiece, and byte-level
 * byte-pair encoding as GPT-2 has it. */
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
    /* by id, as a vocab.json has them: what the file cuts and is not here is unknown. NULL: no
     * such id. No pieces: the file's own */
    const char *const *pieces;
    int64_t n_pieces;
    /* ids of padding, unknown, start, end; -1: there is none. With pieces the unknown one must
     * be there */
    int32_t special[WF_SPECIAL_IDS];
    /* ids around what is encoded, WF_MOST_AROUND each at most */
    const int32_t *before, *after;
    int n_before, n_after;
    bool
        /* ">>fra<<" at the start of a line is one piece, as Marian's models want */
        language_codes;
    /* pieces from this id on were added to those that text is cut into, and are none: languages,
     * a mask. 0: there are none such */
    int32_t added;
} wf_sentencepiece_options;

/* A model of the file's own pieces, with the special ids that it names, and nothing around a line.
 * It is read to the end. False with message: what is wrong with it. */
WF_API bool wf_sentencepiece_defaults(const void *model, size_t bytes, wf_sentencepiece_options *o,
                                      char *message);
/* All is copied. The pieces of a line are those of the library sentencepiece 0.2.3, byte for byte:
 * of unigram, BPE, word and character models, whose pieces are 1,024 bytes at most and whose scores
 * are numbers. NULL with message: not a model, ids that are not
 * there, a piece twice. */
WF_API wf_tokenizer *wf_tokenizer_from_sentencepiece(const wf_sentencepiece_options *o,
                                                     char *message);
/* The options that it was made of; what they point to lives as long as the tokenizer. False: it is
 * of another kind. */
WF_API bool wf_tokenizer_sentencepiece(const wf_tokenizer *t, wf_sentencepiece_options *o);

/* ---- byte level ------------------------------------------------------------------------------ */

typedef struct wf_byte_level_options {
    /* by id, as a vocab.json has them: bytes spelled by letters, "Ġthe". NULL: no such id */
    const char *const *pieces;
    int64_t n_pieces;
    /* a merges.txt */
    const char *merges;
    size_t merges_bytes;
    /* ids of padding, unknown, start, end; -1: there is none */
    int32_t special[WF_SPECIAL_IDS];
    /* ids around what is encoded, WF_MOST_AROUND each at most */
    const int32_t *before, *after;
    /* ids that read as nothing, beside all these: a mask */
    const int32_t *silent;
    int n_before, n_after, n_silent;
    /* a line without a space in front gets one */
    bool prefix_space;
} wf_byte_level_options;

/* All is copied. A line is cut as GPT-2 cuts it (letters, numbers, others, each with a space before
 * it; blanks; 's 't 're 've 'm 'll 'd; classes of Unicode 16.0), and its chunks are merged as the
 * library tokenizers 0.23 does it: the same ids. A line must be UTF-8, and may hold anything; what
 * ids read as is made UTF-8 with U+FFFD. NULL with message: a byte that has no piece, a merge whose
 * pieces are not in the vocabulary, a piece or a merge twice, ids that are not there. */
WF_API wf_tokenizer *wf_tokenizer_from_byte_level(const wf_byte_level_options *o, char *message);
/* The options that it was made of; what they point to lives as long as the tokenizer. False: it is
 * of another kind. */
WF_API bool wf_tokenizer_byte_level(const wf_tokenizer *t, wf_byte_level_options *o);

#ifdef __cplusplus
}
#endif
#endif
