/* weft/models/text.h - converts text to token ids and back: words, characters, byte-pair encoding.
 *
 * A tokenizer holds the vocabulary of one side; a joint vocabulary is one object used for both. It
 * is learned from lines, or read from a vocabulary file (and a codes file), or from a model's file.
 * Equal lines give equal tokenizers, byte for byte, on any machine.
 *
 *     wf_tokenizer *t = wf_tokenizer_learn(&options, next_line, file, message);
 *     int64_t n = wf_tokenizer_encode(t, "a line", 6, ids, 100, message);
 *     wf_tokenizer_decode(t, ids, n, text, sizeof text);
 *
 * A line is UTF-8, strictly: no overlong forms, no surrogates, nothing above U+10FFFF, no U+0000.
 * It may end with "\n", "\r\n" or "\r", which are dropped; neither \n nor \r may stand inside it.
 * Nothing is normalised, and case is kept; but SentencePiece accepts any bytes, and normalises them
 * as its file says. Kinds of running text treat line breaks as characters like others. Such text
 * can be learned and encoded in parts that end with a line, and the result is the same. Kinds whose
 * tokens are bytes know every text.
 *
 * Every function accepts NULL as the tokenizer, and then fails or returns 0 ids or no piece.
 *
 * text_formats.h has tokenizers made by other software: SentencePiece, byte level, and
 * tokenizer.json.
 *
 * Files are not handled here: the caller reads and writes bytes. Nothing here depends on languages
 * or punctuation. Every `message` has room for 256 bytes, or is NULL. Only one thread at a time may
 * use a tokenizer, because encoding caches words. */
#ifndef WEFT_MODELS_TEXT_H
#define WEFT_MODELS_TEXT_H

#include "../core/file.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wf_tokenizer wf_tokenizer;

typedef enum {
    /* words between white space: space, tab, vertical tab, form feed */
    WF_WORDS,
    /* Unicode code points; spaces are code points too, so every line is restored exactly */
    WF_CHARACTERS,
    /* parts of words: byte-pair encoding (Sennrich et al. 2016) of code points */
    WF_BPE,
    /* The next three are kinds of running text: line breaks are part of the text, and all of it is
     * restored exactly. WF_BYTES has an id for each byte: 256 and the special ones */
    WF_BYTES,
    /* code points */
    WF_TEXT_CHARACTERS,
    /* byte-pair encoding of any bytes (Radford et al. 2019) */
    WF_BYTE_BPE,
    /* a SentencePiece model from a .spm file (Kudo and Richardson 2018); wf_tokenizer_learn has
     * none */
    WF_SENTENCEPIECE,
    /* lines in byte-pair encoding of bytes, with a vocabulary and merges in the form of GPT-2 */
    WF_BYTE_LEVEL,
    /* lines as a tokenizer.json says, which wf_tokenizer_learn can't make */
    WF_JSON_TEXT
} wf_token_kind;

/* The special ids, which come first. Text never becomes one of them, except WF_UNK_ID: "<s>" in a
 * line is three characters, or an ordinary word. */
enum { WF_PAD_ID, WF_UNK_ID, WF_START_ID, WF_END_ID, WF_SPECIAL_IDS };

/* The options of wf_tokenizer_learn. */
typedef struct wf_tokenizer_options {
    wf_token_kind kind;
    /* most ids, including the four special ones; 0: no limit */
    int64_t vocab_size;
    /* at least 1. Words, characters: those that occur less often get no id, and are unknown. BPE:
     * pairs that occur less often are not merged. Bytes are always known */
    int64_t min_freq;
    /* BPE: most merges; 0: as many as vocab_size allows */
    int64_t merges;
    /* BPE: use the merges of this codes file instead of learning; or NULL */
    const char *codes;
    size_t codes_bytes;
} wf_tokenizer_options;

/* No limit and min_freq 1. For BPE, including that of bytes and byte level, 8,000 ids and min_freq
 * 2. */
WF_API wf_tokenizer_options wf_tokenizer_defaults(wf_token_kind kind);

/* A function that sets *line and *bytes to the next line. It returns 1; 0 at the end; -1 on
 * failure. The line must stay valid until the next call. */
typedef int (*wf_line_reader)(void *from, const char **line, size_t *bytes);

/* Learn a tokenizer from all lines. NULL with message, for instance if a line is not UTF-8, there
 * is no text, vocab_size is too small, or nothing occurs min_freq times.
 *
 * Words and characters get ids by falling frequency, ties by their bytes. In BPE each character
 * gets two ids, within a word and at its end. Then each merge adds the id of its result. The most
 * frequent pair is merged; of several, the greatest by (left, right) as bytes, with "</w>" after a
 * symbol that ends a word. This is the order of subword-nmt. A merge is skipped if its result would
 * end in a literal "</w>" within a word, or in a literal "@@" at a word's end: in files, these
 * literals would look like the marks.
 *
 * Byte level is learned like byte-bpe, within GPT-2's chunks. Its first ids are BART's: <s> 0,
 * <pad> 1, </s> 2, <unk> 3. Encoded lines begin with <s>; an output starts and ends with </s>. */
WF_API wf_tokenizer *wf_tokenizer_learn(const wf_tokenizer_options *o, wf_line_reader next,
                                        void *from, char *message);
/* NULL is allowed. */
WF_API void wf_tokenizer_free(wf_tokenizer *t);

/* The kind of the tokenizer. */
WF_API wf_token_kind wf_tokenizer_kind(const wf_tokenizer *t);
/* The number of ids, which are 0..size-1. */
WF_API int64_t wf_tokenizer_size(const wf_tokenizer *t);

/* The id of a special symbol, where `which` is WF_PAD_ID, WF_UNK_ID, WF_START_ID or WF_END_ID.
 * Vocabularies of other software, and those of byte level, have other ids. -1: there is none. */
WF_API int32_t wf_tokenizer_special(const wf_tokenizer *t, int which);

/* The piece of an id. Special ones are "<pad>", "<unk>", "<s>", "</s>". Others are words or
 * characters; with BPE, "lo" at the end of a word and "hel@@" before more of it. For running text,
 * bytes are spelled as by GPT-2 ("Ġthe" begins with a space), and control characters by Unicode's
 * pictures of them. SentencePiece and byte level have the pieces of their files. NULL: there is no
 * such id. */
WF_API const char *wf_tokenizer_piece(const wf_tokenizer *t, int32_t id);

/* Convert a line to ids, without start and end. The first `capacity` ids are written; returns how
 * many there are. -1 with message: not UTF-8, or out of memory. Each unknown word or character
 * (also with BPE) is WF_UNK_ID. With WF_TEXT_CHARACTERS, so are Unicode's pictures of control
 * characters, such as U+2400. SentencePiece adds the ids around a line, and gives one id for an
 * unknown sequence of any length. */
WF_API int64_t wf_tokenizer_encode(wf_tokenizer *t, const char *line, size_t bytes, int32_t *ids,
                                   int64_t capacity, char *message);

/* Convert n ids to text. Like snprintf it returns the length needed, and writes at most size - 1
 * bytes and a '\0'. Padding, start and end give no text; WF_UNK_ID gives "<unk>", which with BPE
 * ends a word. Without unknown ids, decode(encode(line)) is the line; but for words and BPE, white
 * space becomes one space, and none at the ends. -1: an id does not exist, or out of memory.
 *
 * For SentencePiece with its own pieces, the text is that of the library: an unknown piece reads as
 * its file says, or " ⁇ ". With given pieces it is the text that transformers gives without special
 * tokens: unknown and added pieces, ids around a line, and white space at the ends give no text. */
WF_API int64_t wf_tokenizer_decode(const wf_tokenizer *t, const int32_t *ids, int64_t n, char *text,
                                   size_t size);

/* ---- files ----------------------------------------------------------------------------------- */

/* Read a vocabulary: one piece per line. A space or tab and a count may follow ("the 4711"); counts
 * are ignored. Ids follow the order of lines. Special symbols may come at the start of the file,
 * each once and in any order: <pad> or <blank>, <unk>, <s>, </s>. For BPE, codes is a codes file of
 * subword-nmt ("#version: 0.2"); otherwise it is NULL. As in subword-nmt, a merged piece that is
 * not in the vocabulary is split again. NULL with message: the mistake and its line, or the kind
 * has no such file (SentencePiece, byte level, tokenizer.json). */
WF_API wf_tokenizer *wf_tokenizer_read(wf_token_kind kind, const char *vocabulary, size_t bytes,
                                       const char *codes, size_t codes_bytes, char *message);

/* The bytes of a vocabulary file, special symbols first, and of a codes file (BPE), both in the
 * manner of snprintf. Reading both again gives the same tokenizer. SentencePiece, byte level and
 * tokenizer.json have neither: 0 bytes. */
WF_API size_t wf_tokenizer_vocabulary(const wf_tokenizer *t, char *text, size_t size);
WF_API size_t wf_tokenizer_codes(const wf_tokenizer *t, char *text, size_t size);

/* Write the tokenizer as metadata of a model's file: "PREFIX.kind" (word, char, bpe, byte,
 * text-char, byte-bpe, sentencepiece, byte-level, json), "PREFIX.vocabulary" and, for BPE,
 * "PREFIX.codes". SentencePiece has "PREFIX.model" (in base 64), "PREFIX.special" and, if needed,
 * "PREFIX.vocabulary" (a JSON array), "PREFIX.before", "PREFIX.after", "PREFIX.codes" ("language"),
 * "PREFIX.added". Byte level has the same, with the merges in "PREFIX.codes", and "PREFIX.silent"
 * and "PREFIX.prefix" ("space"). A tokenizer.json is "PREFIX.model", with "PREFIX.special" and
 * "PREFIX.rows". The new pairs are appended to the *n pairs in `pairs`, which must have room for
 * WF_TOKENIZER_META more. *n becomes the new number. Pairs live until the next call or
 * wf_tokenizer_free. False with message (256 bytes, or NULL): out of memory, and *n is unchanged.
 * The prefix, at most 64 bytes, is "tokenizer" if both sides share it, else "src_tokenizer" or
 * "tgt_tokenizer". */
enum { WF_TOKENIZER_META = 11 };
WF_API bool wf_tokenizer_to_meta(wf_tokenizer *t, const char *prefix, wf_meta *pairs, int *n,
                                 char *message);
WF_API wf_tokenizer *wf_tokenizer_from_meta(const wf_file *f, const char *prefix, char *message);

#ifdef __cplusplus
}
#endif
#endif
