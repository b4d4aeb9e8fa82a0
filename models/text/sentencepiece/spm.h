/* models/text/sentencepiece/spm.h - inside models: SentencePiece models (Kudo and Richardson 2018).
 * Pieces are those of the library sentencepiece 0.2.3, byte for byte.
 *
 * spm_model.c reads the file, spm_trie.c finds pieces in text, spm_normalize.c normalises a line,
 * spm_unigram.c and spm_bpe.c cut it into pieces, spm_encode.c combines these and decodes.
 * sentencepiece.c makes a tokenizer of it.
 *
 * The only vocabulary here is the file's own: a piece's id is its index in the file. */
#ifndef WEFT_MODELS_TEXT_SPM_H
#define WEFT_MODELS_TEXT_SPM_H

#include "models/text/tokenizer.h"

#define SPACE_SYMBOL "\xE2\x96\x81" /* U+2581, which stands for a space */
#define REPLACEMENT "\xEF\xBF\xBD"  /* U+FFFD, which replaces a byte that is not UTF-8 */
enum { SPACE_SYMBOL_BYTES = 3, REPLACEMENT_BYTES = 3 };
/* The longest piece, and the longest text of a rule, in bytes. It limits the time of each step
 * through a line, even for a hostile file. */
enum { WF_SPM_LONGEST = 1024 };

/* Types of pieces, with the numbers used in the file. */
typedef enum {
    SPM_NORMAL = 1,
    SPM_UNKNOWN,
    SPM_CONTROL,
    SPM_USER_DEFINED,
    SPM_UNUSED,
    SPM_BYTE
} wf_spm_type;
typedef enum { SPM_UNIGRAM = 1, SPM_BPE, SPM_WORD, SPM_CHAR } wf_spm_kind;

typedef struct wf_spm_piece {
    wf_span text; /* in wf_spm.file */
    float score;
    wf_spm_type type;
} wf_spm_piece;

/* ---- spm_trie.c ------------------------------------------------------------------------------ */

/* A trie as a double array (Aoe 1989). The child of node n for byte c is node base[n] + c, if the
 * parent of that is n. The array has 256 nodes after every base, so no step leaves it. */
typedef struct wf_trie_node {
    int32_t base, parent, value; /* parent < 0: none; value -1: no string ends at this node */
} wf_trie_node;

typedef struct wf_trie {
    wf_trie_node *nodes; /* the first is the root; NULL: there are no strings */
    size_t n, capacity;
} wf_trie;

typedef struct wf_trie_key {
    wf_span text; /* not empty */
    int32_t value;
} wf_trie_key;

/* sorts the keys; false: out of memory */
bool wf_trie_build(wf_trie *t, wf_trie_key *keys, size_t n);
void wf_trie_free(wf_trie *t);

/* The child of a node for a byte; -1: there is none. */
static inline int32_t trie_step(const wf_trie *t, int32_t node, char byte) {
    int32_t next = t->nodes[node].base + (unsigned char)byte;
    return t->nodes[next].parent == node ? next : -1;
}

/* ---- spm_normalize.c ------------------------------------------------------------------------- */

typedef struct wf_spm_normalizer {
    /* units of the rules' double array, four bytes each; NULL: there are no rules */
    const unsigned char *units;
    size_t n_units;
    wf_span replacements; /* replacements of the rules, each with its '\0' */
    bool dummy_prefix, remove_extra, escape, suffix;
    const wf_trie *symbols; /* symbols defined by the user, which are not normalised */
} wf_spm_normalizer;

typedef struct wf_spm_text {
    char *at;
    size_t bytes, capacity;
} wf_spm_text;

/* Read a precompiled map of characters into `n`. False with message: what is wrong with it. */
bool wf_spm_rules(wf_spm_normalizer *n, wf_span map, char *message);
bool wf_spm_normalize(const wf_spm_normalizer *n, wf_span line, wf_spm_text *out, char *message);
/* The replacement by the rule for the shortest beginning of a text, as Hugging Face's tokenizers
 * library asks for it. False: there is none. */
bool wf_spm_first_rule(const wf_spm_normalizer *n, wf_span text, wf_span *by);
bool wf_spm_put(wf_spm_text *to, const char *text, size_t bytes); /* false: no memory */

/* The length of the longest symbol with which the text begins; 0: none. */
size_t wf_spm_symbol(const wf_trie *symbols, wf_span text);

/* ---- the model: spm_model.c ------------------------------------------------------------------ */

typedef struct wf_spm_token {
    wf_span text; /* text of an unknown piece: the part of the normalised line */
    int32_t id;
} wf_spm_token;

typedef struct wf_spm_best wf_spm_best; /* spm_unigram.c */

typedef struct wf_spm {
    int others; /* tokenizers that share it, beside the first */
    char *file;
    size_t file_bytes;
    wf_spm_kind kind;
    bool byte_fallback, denormalizes, unused; /* unused: some pieces have the type SPM_UNUSED */
    wf_span unknown_surface;                  /* the text that an unknown piece is decoded to */
    int32_t special[WF_SPECIAL_IDS];
    wf_spm_normalizer normalizer, denormalizer;

    wf_spm_piece *pieces;
    size_t n, pieces_capacity;
    const char **texts;          /* [n] texts of the pieces, each with its '\0' */
    int32_t unknown, bytes[256]; /* ids */
    float lowest;                /* lowest score of a piece of type SPM_NORMAL */
    /* normal: pieces of the types SPM_NORMAL, SPM_USER_DEFINED and SPM_UNUSED; reserved: all
     * others. normal_ids[i] is the id of text i in normal, reserved_ids[i] that in reserved. */
    wf_strings normal, reserved;
    int32_t *normal_ids, *reserved_ids;
    size_t longest;  /* bytes of the longest normal piece */
    wf_trie trie;    /* normal pieces, for a unigram model */
    wf_trie symbols; /* symbols that the user defined */

    /* The line that is being encoded. */
    wf_spm_text line;
    wf_spm_token *tokens;
    size_t n_tokens, tokens_capacity;
    wf_spm_best *best;
    size_t best_capacity;
    wf_merger merger;
    /* for unused pieces, by id: bytes of the left part of the merge; NULL: there are none */
    int32_t *split;
    wf_spm_token *stack;
    size_t stack_capacity;
} wf_spm;

/* Copies the bytes of a .spm file, and reads them. NULL with message. */
wf_spm *wf_spm_read(const void *bytes, size_t n, char *message);
void wf_spm_free(wf_spm *m); /* each tokenizer that shares m calls this; the last call frees m */

/* The id of a piece; the unknown id if there is no such piece. */
int32_t wf_spm_id(const wf_spm *m, wf_span text);
/* The id of a text if encoding may use it as a piece: its type is SPM_NORMAL or SPM_USER_DEFINED.
 * Else the unknown id. */
int32_t wf_spm_encode_id(const wf_spm *m, wf_span text);

bool wf_spm_add(wf_spm *m, wf_span text, int32_t id); /* appends a token; false: out of memory */
bool wf_spm_unigram(wf_spm *m, wf_span line);         /* finds the tokens of a normalised line */
bool wf_spm_bpe(wf_spm *m, wf_span line);
/* The scores of an unknown character, and of a symbol that the user defined. Such a symbol is
 * better than every other cut of its text, and a longer one is better than shorter ones. */
float wf_spm_unknown_score(const wf_spm *m);
float wf_spm_user_score(size_t bytes);

/* ---- spm_encode.c ---------------------------------------------------------------------------- */

/* The tokens of any bytes, in m->tokens until the next call. Returns how many; -1 with message. */
int64_t wf_spm_encode(wf_spm *m, wf_span line, char *message);

/* Decodes pieces one by one, by their ids. With id -1 the piece may be any text, which is kept if
 * the model has no such piece. */
typedef struct wf_spm_decoder {
    const wf_spm *m;
    wf_spm_text text;
    char bytes[4]; /* of byte pieces: the bytes of an incomplete character */
    size_t n_bytes;
    bool started, took_space, ok;
} wf_spm_decoder;

wf_spm_decoder wf_spm_decode(const wf_spm *m);
void wf_spm_decode_piece(wf_spm_decoder *d, int32_t id, wf_span piece);
bool wf_spm_decode_end(wf_spm_decoder *d, char *message); /* after it, text is complete */

#endif
