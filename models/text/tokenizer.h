/* models/text/tokenizer.h - inside models: the parts of a tokenizer, for the files that make and
 * use it.
 *
 * text_lines.c defines lines and words, vocabulary.c learns a vocabulary, vocabulary_file.c reads
 * and writes it, and tokenizer.c turns lines into ids and back. For byte-pair encoding bpe.c keeps
 * symbols and merges, bpe_learn.c finds the merges, bpe_apply.c applies them to a word, and codes.c
 * reads and writes them; merge.c is the loop of every tokenizer that merges pairs. Running text is
 * first spelled, and then cut into chunks instead of words: running.c. SentencePiece
 * (sentencepiece.h, spm.h), GPT-2's byte level (byte_level.h) and tokenizer.json (json_text.h) are
 * separate.
 *
 * In byte-pair encoding, a token is written in two ways. As a symbol it is written as in a codes
 * file: "lo</w>" ends a word, "lo" does not. As a piece it is written as in a vocabulary file: "lo"
 * and "lo@@". In running text there are no such marks, so symbol and piece are the same. */
#ifndef WEFT_MODELS_TEXT_TOKENIZER_H
#define WEFT_MODELS_TEXT_TOKENIZER_H

#include <string.h>

#include "merge.h"
#include "models/message.h"
#include "models/text_formats.h"

#define END_OF_WORD "</w>"
#define MORE_OF_WORD "@@"
#define UNKNOWN_PIECE "<unk>"
enum {
    MARK = 4,
    MORE = 2,
    CODE_POINT = 4,
    LONGEST_CHUNK = 256
}; /* bytes: of END_OF_WORD, of MORE_OF_WORD, of the longest code point, of the longest chunk */

typedef struct wf_symbol {
    int32_t id;    /* id of its piece; -1: not in the vocabulary */
    int32_t merge; /* the first merge that makes it; -1: none */
} wf_symbol;

/* Words seen before, with their ids. The ids of word i end at ends[i]. */
typedef struct wf_seen {
    wf_strings words;
    size_t *ends, ends_capacity;
    int32_t *ids;
    size_t ids_capacity;
} wf_seen;

struct wf_tokenizer {
    wf_token_kind kind;
    wf_strings pieces; /* pieces, whose ids begin at WF_SPECIAL_IDS */

    /* byte-pair encoding only */
    wf_strings symbols;
    wf_symbol *about; /* [symbols.n] */
    size_t about_capacity;
    wf_merges merges;
    wf_seen seen;
    /* work space of byte-pair encoding, used anew for each word */
    wf_merger merger;
    int32_t *stack, *ids;
    size_t stack_capacity, ids_capacity;

    struct wf_sentencepiece *sentencepiece; /* only for that kind: sentencepiece.h */
    struct wf_byte_level *byte_level;       /* only for that kind: byte_level.h */
    struct wf_json_text *json;              /* only for that kind: json_text.h */

    char *stored[WF_TOKENIZER_META]; /* results of wf_tokenizer_to_meta: keys and values */
};

/* ---- text_lines.c ---------------------------------------------------------------------------- */

wf_span wf_line_body(const char *line, size_t bytes); /* without its line break */
/* the line with its line break; false: there are no more */
bool wf_line_next(wf_span *rest, wf_span *line);
/* the next word between white space; false: none */
bool wf_word_next(wf_span *rest, wf_span *word);
/* the first code point of a text that is not empty */
wf_span wf_code_point(const char *text, size_t bytes);
/* takes the first code point of a text that is not empty */
static inline wf_span wf_character_next(wf_span *rest) {
    return wf_span_take(rest, wf_code_point(rest->text, rest->bytes).bytes);
}
bool wf_is_blank(char c); /* true for white space within a line */

/* ---- output in the manner of snprintf -------------------------------------------------------- */

typedef struct wf_sink {
    char *text;
    size_t size, used;
} wf_sink;

static inline wf_sink sink(char *text, size_t size) {
    if (text && size) *text = '\0';
    return (wf_sink){ text, text ? size : 0, 0 };
}

static inline void put(wf_sink *s, const char *text, size_t bytes) {
    size_t room = s->used < s->size ? s->size - s->used - 1 : 0;
    size_t n = bytes < room ? bytes : room;
    if (n) memcpy(s->text + s->used, text, n);
    if (s->used < s->size) s->text[s->used + n] = '\0';
    s->used += bytes;
}

static inline void put_span(wf_sink *s, wf_span text) {
    put(s, text.text, text.bytes);
}

/* ---- running text: running.c ----------------------------------------------------------------- */

/* True for kinds of running text, which keep line breaks. */
static inline bool wf_is_running(wf_token_kind kind) {
    return kind == WF_BYTES || kind == WF_TEXT_CHARACTERS || kind == WF_BYTE_BPE;
}
static inline bool wf_has_merges(wf_token_kind kind) {
    return kind == WF_BPE || kind == WF_BYTE_BPE;
}
/* If tokens are characters, checks that the text is UTF-8; kinds made of bytes accept all bytes.
 * False with message. */
bool wf_running_check(wf_token_kind kind, wf_span text, char *message);
/* The character that spells a byte, and the byte that a character spells; -1: none. */
uint32_t wf_byte_character(unsigned char byte);
int wf_character_byte(uint32_t code);
size_t wf_spell_byte(unsigned char byte, char out[CODE_POINT]); /* returns the bytes written */
wf_span wf_spell_bytes(wf_span bytes, char *out);               /* spells each byte, into out */
/* The spelling of a character: a control character becomes its picture (U+2400 on), which is
 * written to out; others stay as they are. Empty if the character is itself such a picture. */
wf_span wf_spell_character(wf_span c, char out[CODE_POINT]);
/* Append the bytes that a piece spells. */
void wf_unspell(const wf_tokenizer *t, wf_span piece, wf_sink *to);
/* The next chunk, within which bytes are merged: a run of letters, of digits or of other
 * characters, with the space before it if there is one; or white space, up to the end of a line.
 * False: there are no more. */
bool wf_chunk_next(wf_span *rest, wf_span *chunk);

/* ---- byte-pair encoding ---------------------------------------------------------------------- */

/* The symbol of a character, where `last` says whether it ends its word. -1: there is none. */
int32_t wf_character_symbol(const wf_tokenizer *t, wf_span character, bool last);

/* True if files can express the result of a merge, and left does not end a word. */
bool wf_can_merge(const wf_tokenizer *t, int32_t left, int32_t right);

/* False: no memory. */
bool wf_add_symbol(wf_tokenizer *t, const char *text, size_t bytes, int32_t *symbol);
bool wf_add_character(wf_tokenizer *t, wf_span character, bool last, int32_t *symbol);
bool wf_add_merge(wf_tokenizer *t, int32_t left, int32_t right);
bool wf_symbol_piece(wf_tokenizer *t, int32_t symbol); /* adds its piece to the vocabulary */
bool wf_link_pieces(wf_tokenizer *t);                  /* stores the pieces' ids with the symbols */

bool wf_read_codes(wf_tokenizer *t, const char *codes, size_t bytes, int64_t most, char *message);

/* Learns merges from words and their counts. False: out of memory. */
bool wf_learn_merges(wf_tokenizer *t, const wf_strings *words, const int64_t *counts,
                     const wf_tokenizer_options *o);

/* The ids of a word, valid until the next call. Returns how many; -1: out of memory. */
int64_t wf_apply_merges(wf_tokenizer *t, wf_span word, const int32_t **ids);

#endif
