/* weft/models/text.h - text to token ids and back: words, characters, byte-pair encoding.
 *
 * A tokenizer holds the vocabulary of one side; a joint vocabulary is one object used for both.
 * It is learned from lines, or read from a vocabulary file (and a codes file), or from a model's
 * file. The same lines give the same tokenizer, byte for byte, on any machine.
 *
 *     wf_tokenizer *t = wf_tokenizer_learn(&options, next_line, file, message);
 *     int64_t n = wf_tokenizer_encode(t, "a line", 6, ids, 100, message);
 *     wf_tokenizer_decode(t, ids, n, text, sizeof text);
 *
 * A line is UTF-8, strictly: no overlong forms, no surrogates, nothing above U+10FFFF, no U+0000.
 * It may end with "\n", "\r\n" or "\r", which are dropped; none of these may stand inside it.
 * Nothing is normalised, no case is folded; but SentencePiece takes any bytes and does with them
 * what its file says. Running text, of the kinds that say so, has line breaks
 * as it has letters: it may be learned from and encoded in parts, each up to the end of a line, and
 * what comes out is the same. Of bytes, nothing is unknown.
 *
 * Every function accepts NULL, and fails; there is nothing in no tokenizer: 0 ids, no piece.
 *
 * Tokenizers that were made elsewhere, SentencePiece and byte level: text_formats.h.
 *
 * What is not here: files (the caller reads and writes bytes), languages, punctuation.
 * Every `message` has room for 256 bytes, or is NULL. A tokenizer is used by one thread at a time:
 * encoding remembers the words it has seen. */
#ifndef WEFT_MODELS_TEXT_H
#define WEFT_MODELS_TEXT_H

#include "../core/file.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wf_tokenizer wf_tokenizer;

typedef enum {
    /* between white space: space, tab, vertical tab, form feed */
    WF_WORDS,
    /* Unicode code points; a space is one too, so every line comes back exactly */
    WF_CHARACTERS,
    /* parts of words: byte-pair encoding (Sennrich et al. 2016) of code points */
    WF_BPE,
    /* running text: line breaks are part of it, and all comes back exactly */
    /* any bytes, an id each: 256 and the special ones */
    WF_BYTES,
    /* code points */
    WF_TEXT_CHARACTERS,
    /* byte-pair encoding of any bytes (Radford et al. 2019) */
    WF_BYTE_BPE,
    /* what a .spm file says (Kudo and Richardson 2018): not learned here */
    WF_SENTENCEPIECE,
    /* byte-pair encoding of bytes with a vocabulary and merges as GPT-2 has them, of lines */
    WF_BYTE_LEVEL
} wf_token_kind;

/* The first ids. Text never becomes one of them, but for WF_UNK_ID: "<s>" in a line is three
 * characters, or a word like any other with an id of its own. */
enum { WF_PAD_ID, WF_UNK_ID, WF_START_ID, WF_END_ID, WF_SPECIAL_IDS };

/* How to learn. */
typedef struct wf_tokenizer_options {
    wf_token_kind kind;
    /* at most so many ids, the four special ones included; 0: no limit */
    int64_t vocab_size;
    /* words, characters: rarer ones are unknown. BPE: rarer pairs stay apart. Bytes are known,
     * however rare */
    int64_t min_freq;
    /* BPE: at most so many; 0: as vocab_size allows */
    int64_t merges;
    /* BPE: use the merges of this codes file instead of learning; or NULL */
    const char *codes;
    size_t codes_bytes;
} wf_tokenizer_options;

/* No limit, min_freq 1; for BPE, of bytes and byte level too, 8,000 ids and min_freq 2. */
WF_API wf_tokenizer_options wf_tokenizer_defaults(wf_token_kind kind);

/* Hands out the next line: 1; 0 at the end; -1 on failure. A line is read until the next call. */
typedef int (*wf_line_reader)(void *from, const char **line, size_t *bytes);

/* Learn from all lines. NULL with message: a line that is not UTF-8 (which), no text, no room.
 *
 * Words and characters get ids by frequency, ties by bytes. BPE: every character of the text twice,
 * inside a word and at its end, then what each merge makes. The pair that is merged is the most
 * frequent; of several the greatest by (left, right), as bytes, with "</w>" after a symbol that
 * ends a word: the order of subword-nmt. Not merged: what would end in a literal "</w>" inside a
 * word or in a literal "@@" at its end, which files could not tell from the marks.
 *
 * Byte level is learned as byte-bpe is, within GPT-2's chunks. Its first ids are BART's: <s> 0, <pad> 1,
 * </s> 2, <unk> 3. <s> stands before what is encoded; an output starts with </s>, as it ends. */
WF_API wf_tokenizer *wf_tokenizer_learn(const wf_tokenizer_options *o, wf_line_reader next,
                                        void *from, char *message);
/* NULL is allowed. */
WF_API void wf_tokenizer_free(wf_tokenizer *t);

/* The kind that it was made as. */
WF_API wf_token_kind wf_tokenizer_kind(const wf_tokenizer *t);
/* is it one of running text? */
WF_API bool wf_tokenizer_running(const wf_tokenizer *t);
/* ids are 0..size-1 */
WF_API int64_t wf_tokenizer_size(const wf_tokenizer *t);
/* 0 unless BPE */
WF_API int64_t wf_tokenizer_merges(const wf_tokenizer *t);

/* The id that stands for one of the special symbols, which is WF_PAD_ID, WF_UNK_ID, WF_START_ID or
 * WF_END_ID: a vocabulary that was made elsewhere has others. -1: there is none. */
WF_API int32_t wf_tokenizer_special(const wf_tokenizer *t, int which);

/* The piece of an id: "<pad>", "<unk>", "<s>", "</s>", then words, characters, or with BPE "lo"
 * at the end of a word and "hel@@" before more of it; of running text bytes as GPT-2 spells them
 * ("Ġthe" begins with a space), control characters as their pictures; of SentencePiece its pieces, of byte level the given ones.
 * NULL: no such id. */
WF_API const char *wf_tokenizer_piece(const wf_tokenizer *t, int32_t id);

/* The ids of a line, without start and end. Returns how many there are, of which the first
 * `capacity` are written; -1 with message: not UTF-8, no memory. An unknown word, or an unknown
 * character (each, also with BPE), is WF_UNK_ID; so are pictures of control characters in running
 * text that is cut into characters. SentencePiece: with the ids around it; what is unknown is one
 * id, however long. */
WF_API int64_t wf_tokenizer_encode(wf_tokenizer *t, const char *line, size_t bytes, int32_t *ids,
                                   int64_t capacity, char *message);

/* The text of n ids, in the way of snprintf: the length needed, of which at most size - 1 bytes and
 * a '\0' are written. Padding, start and end are nothing, WF_UNK_ID is "<unk>" (with BPE the end
 * of a word). Without unknowns decode(encode(line)) is the line; for words and BPE with one space
 * where white space was, and none at its ends. -1: an id that is not there, or no memory.
 *
 * Of SentencePiece with its own pieces it is what the library makes of them: an unknown one reads
 * as its file says, " ⁇ " if that says nothing. With pieces given it is what transformers makes of
 * them without special tokens: unknown ones, added ones and ids around a line are nothing, and
 * neither is white space at the ends. */
WF_API int64_t wf_tokenizer_decode(const wf_tokenizer *t, const int32_t *ids, int64_t n, char *text,
                                   size_t size);

/* Is this a line as described above, not of running text? False with "not UTF-8 at byte 17",
 * counted from 0. */
WF_API bool wf_text_check(const char *line, size_t bytes, char *message);

/* ---- files ----------------------------------------------------------------------------------- */

/* Read a vocabulary: a piece per line, and after it a space or tab and its count, which is not used
 * ("the 4711"). Ids follow the order. Special symbols at the start of the file, each once
 * and in any order, stand for themselves: <pad> or <blank>, <unk>, <s>, </s>. For BPE a codes file
 * of subword-nmt ("#version: 0.2"), else codes is NULL; what is merged but not in the vocabulary is
 * taken apart again, as subword-nmt does. NULL with message: what is wrong in which line. */
WF_API wf_tokenizer *wf_tokenizer_read(wf_token_kind kind, const char *vocabulary, size_t bytes,
                                       const char *codes, size_t codes_bytes, char *message);

/* The bytes of a vocabulary file, special symbols first, and of a codes file (BPE), in the way of
 * snprintf. Reading both again gives the same tokenizer. Of SentencePiece neither: 0 bytes. */
WF_API size_t wf_tokenizer_vocabulary(const wf_tokenizer *t, char *text, size_t size);
WF_API size_t wf_tokenizer_codes(const wf_tokenizer *t, char *text, size_t size);

/* For a model's file: "PREFIX.kind" (word, char, bpe, byte, text-char, byte-bpe, sentencepiece, byte-level),
 * "PREFIX.vocabulary" and, for BPE, "PREFIX.codes". Of SentencePiece "PREFIX.model" (in base 64),
 * "PREFIX.special" and what else there is: "PREFIX.vocabulary" (an array in JSON), "PREFIX.before",
 * "PREFIX.after", "PREFIX.codes" ("language"), "PREFIX.added". Of byte level likewise, with "PREFIX.codes" the
 * merges, "PREFIX.silent" and "PREFIX.prefix" ("space"). The pairs are put behind the *n that are there
 * already, which has room for WF_TOKENIZER_META more, and *n counts them; they live until the next call or
 * wf_tokenizer_free. False with message (256 bytes, or NULL): no memory, and *n is as it was. Prefixes:
 * "tokenizer" when joint, else "src_tokenizer" and "tgt_tokenizer"; at most 64 bytes. */
enum { WF_TOKENIZER_META = 10 };
WF_API bool wf_tokenizer_to_meta(wf_tokenizer *t, const char *prefix, wf_meta *pairs, int *n,
                                 char *message);
WF_API bool wf_tokenizer_in_file(const wf_file *f, const char *prefix);
WF_API wf_tokenizer *wf_tokenizer_from_meta(const wf_file *f, const char *prefix, char *message);

#ifdef __cplusplus
}
#endif
#endif
