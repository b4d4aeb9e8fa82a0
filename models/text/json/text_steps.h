/* models/text/json/text_steps.h - inside models: the parts of a tokenizer.json that a text goes
 * through.
 *
 * Normalizers change a piece of text, pre-tokenizers cut pieces, decoders change a list of tokens'
 * texts. Each is a row of a table: its type in the file, how its fields are read, what it does. A
 * Sequence is read into steps one after another. A type without a row is refused by name. */
#ifndef WEFT_MODELS_TEXT_TEXT_STEPS_H
#define WEFT_MODELS_TEXT_TEXT_STEPS_H

#include "aligned.h"
#include "json_tree.h"
#include "models/text/sentencepiece/spm.h"

typedef struct wf_text_step wf_text_step;
typedef struct wf_parts wf_parts;

/* The object of the file that a step is read from. */
typedef struct wf_step_source {
    const json_tree *tree;
    size_t at; /* the object */
    const char *type;
    char *message;
} wf_step_source;

typedef struct wf_step_kind {
    const char *type;
    const char *mark; /* an object without a type is of this kind if it has this field; or NULL */
    bool (*read)(wf_text_step *s, const wf_step_source *from);
    bool (*normalize)(wf_text_step *s, wf_aligned *a, wf_piece *p);
    /* cut: cuts a piece of text, and keeps its parts (wf_piece_keep). cut_parts: cuts each of these
     * parts once more; NULL: no second cut */
    bool (*cut)(wf_text_step *s, wf_aligned *a, wf_piece p);
    bool (*cut_parts)(wf_text_step *s, wf_aligned *a, wf_piece p);
    /* A decoder has one of two functions. put: appends what token i becomes. decode: makes the next
     * list of texts. */
    bool (*put)(wf_text_step *s, wf_parts *p, wf_span token, size_t i);
    bool (*decode)(wf_text_step *s, wf_parts *p);
} wf_step_kind;

typedef enum { REMOVED, ISOLATED, MERGED_WITH_PREVIOUS, MERGED_WITH_NEXT, CONTIGUOUS } wf_behavior;

/* Flags of the pre-tokenizer ByteLevel. PREFIX_SPACE: a space is put before a piece. USE_REGEX:
 * pieces are cut as in GPT-2. */
enum { PREFIX_SPACE, USE_REGEX };
/* The values of `choice`, and the flag, of the pre-tokenizer Metaspace. */
enum { SCHEME_FIRST, SCHEME_NEVER, SCHEME_ALWAYS, SPLIT_SPACES = 0 };
/* The flag of Split, those of the normal forms, and those of BertNormalizer. */
enum { INVERT };
enum { COMPATIBLE, COMPOSES };
enum { CLEAN, CHINESE, LOWER, ACCENTS };

/* A step. Each kind of step uses some of the fields. */
struct wf_text_step {
    const wf_step_kind *kind;
    wf_span text, other; /* values of fields, within the text of the file */
    uint32_t code;
    bool flags[4];
    int64_t sizes[2];
    int choice; /* a wf_behavior, or another kind's own */
    wf_expression expression;
    char *map; /* a precompiled map of characters, decoded */
    wf_spm_normalizer rules;
};

typedef struct wf_text_steps {
    wf_text_step *at;
    size_t n, capacity;
} wf_text_steps;

/* Texts one after another. Text i ends at ends[i]. */
typedef struct wf_texts {
    wf_spm_text text;
    size_t *ends;
    size_t n, capacity;
} wf_texts;

/* The lists of decoders, which write the next list from the list now, and then swap both. */
struct wf_parts {
    wf_texts now, next;
    char *message;
};

/* Goes through the objects of a Sequence in order, and of Sequences in it. Initialise it with
 * { .tree = tree }; call wf_steps_into for the Sequence, and wf_steps_next for each object. */
enum { WF_MOST_OPEN = 64 }; /* the most Sequences inside each other: the depth of the JSON tree */
typedef struct wf_steps_walk {
    const json_tree *tree;
    struct {
        size_t list, at;
    } open[WF_MOST_OPEN];
    int n;
} wf_steps_walk;

void wf_steps_into(wf_steps_walk *w, size_t list);
size_t wf_steps_next(wf_steps_walk *w); /* 0: there are no more */

/* Is an object of this type? If it has no type: does it have the field `mark`, unless that is
 * NULL? */
bool wf_step_is(const json_tree *t, size_t object, const char *type, const char *mark);
/* False, with the message that the object's type is not known. */
bool wf_step_unknown(const json_tree *t, size_t object, const char *what, char *message);

/* Reads a step, or the steps of a Sequence; value 0 has none. `what` names the step in messages:
 * "normalizer"; `list` is the field of a Sequence with its steps. False with message. */
bool wf_steps_read(wf_text_steps *s, const wf_step_kind *kinds, const char *what, const char *list,
                   const json_tree *tree, size_t value, char *message);
void wf_steps_free(wf_text_steps *s);

extern const wf_step_kind wf_normalizer_kinds[], wf_pre_tokenizer_kinds[], wf_decoder_kinds[];

/* Cut the pieces of a text by all pre-tokenizers. False with message. */
bool wf_cut_pieces(const wf_text_steps *s, wf_aligned *a);
/* Change a list of texts by a decoder. False with message. */
bool wf_decode_texts(wf_text_step *s, wf_parts *p);
bool wf_texts_put(wf_parts *p, wf_span s); /* appends to the unfinished text */
bool wf_texts_end(wf_parts *p);            /* finishes it: the next put begins another */
void wf_texts_swap(wf_parts *p);

/* ---- fields ---------------------------------------------------------------------------------- */

/* The functions below read a field. They return false with message if the field is missing or of
 * another type. */
bool wf_step_text(const wf_step_source *from, const char *key, wf_span *out);
bool wf_step_code(const wf_step_source *from, const char *key, uint32_t *out);
bool wf_step_flag(const wf_step_source *from, const char *key, bool *out);
/* A field that may be missing or null: then *out stays as it is. */
bool wf_step_flag_or(const wf_step_source *from, const char *key, bool *out);
bool wf_step_size(const wf_step_source *from, const char *key, int64_t least, int64_t *out);
/* Finds which of several words the field has; the list ends with NULL. *out becomes its index. */
bool wf_step_choice(const wf_step_source *from, const char *key, const char *const *words,
                    int *out);
/* Reads the field "pattern", {"String": ...} or {"Regex": ...}, into s->expression. */
bool wf_step_pattern(const wf_step_source *from, wf_text_step *s);
/* A field that is an array or object. */
bool wf_step_value(const wf_step_source *from, const char *key, size_t *out);

/* ---- shared by several kinds ----------------------------------------------------------------- */

/* True for characters that a step treats in this way: */
bool wf_bert_drops(uint32_t code);     /* BertNormalizer removes them */
bool wf_other_space(uint32_t code);    /* BertNormalizer turns them into a space */
bool wf_is_chinese(uint32_t code);     /* BertNormalizer puts a space on both sides of them */
bool wf_is_accent(uint32_t code);      /* BertNormalizer strips them as accents */
bool wf_is_mark(uint32_t code);        /* StripAccents removes them */
bool wf_nmt_drops(uint32_t code);      /* Nmt removes them */
bool wf_nmt_space(uint32_t code);      /* Nmt turns them into a space */
bool wf_is_digit(uint32_t code);       /* Digits cuts at them */
bool wf_is_punctuation(uint32_t code); /* BertPreTokenizer and Punctuation cut at them */
/* Replaces every byte by the character that stands for it. False with message. */
bool wf_piece_to_bytes(wf_aligned *a, wf_piece *p);
/* Applies a Unicode normal form: NFD, or NFC if `compose`; NFKD or NFKC if `compatible`. */
bool wf_piece_normal(wf_aligned *a, wf_piece *p, bool compatible, bool compose);
/* Precompiled maps; charsmap.c. */
bool wf_charsmap_read(wf_text_step *s, const wf_step_source *from);
bool wf_charsmap_normalize(wf_text_step *s, wf_aligned *a, wf_piece *p);

#endif
